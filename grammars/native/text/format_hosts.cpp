// Names of hosts and addresses of mail: RFC 1123, 5321, 5890 to 5892 and 6531.
#include "charset.h"
#include "format_patterns.h"

namespace sglite::text {
namespace {

constexpr uint32_t kDomainCharacter = 0x10FFFD, kViramaCharacter = 0x10FFFB;
const std::string kDomain = R"(\u{10FFFD})", kVirama = R"(\u{10FFFB})";

// What separates labels; on the wire only the first one does.
const std::string kDot = R"([.\u3002\uFF0E\uFF61])";
const std::string kInLabel = R"([^.\u3002\uFF0E\uFF61])";

const std::string kLabel = R"([A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?)";
const std::string kULabel = R"((?!\p{M})[a-z0-9)" + kDomain + R"(](?:[a-z0-9)" + kDomain +
                            R"(\-]{0,57}[a-z0-9)" + kDomain + "])?";

// Patterns name the characters of U-labels and viramas by characters that stand in for them.
void put_sets(Regex& tree) {
    for (Regex& part : tree.parts) put_sets(part);
    Ranges kept;
    const Ranges* added = nullptr;
    for (const auto& [low, high] : tree.chars) {
        if (low == high && low == kDomainCharacter) {
            added = &domain_characters();
        } else if (low == high && low == kViramaCharacter) {
            added = &viramas();
        } else {
            kept.emplace_back(low, high);
        }
    }
    if (added == nullptr) return;
    kept.insert(kept.end(), added->begin(), added->end());
    tree.chars = united(std::move(kept));
}

LangId with_sets(Languages& languages, const std::string& pattern) {
    Regex tree = parse(pattern, Dialect::kEcma);
    put_sets(tree);
    return languages.regex(tree, false);
}

// Labels in punycode that cannot be decoded: the last digit is a letter, and the first number has
// two digits. Hyphens in the third and fourth place of what is encoded are false too.
const std::string kFalsePunycode = "(?:^|" + kDot + ")[Xx][Nn]--(?:" + kInLabel + "?|" + kInLabel +
                                   "{2}--" + kInLabel + "*|" + kInLabel + R"(*[0-9\-])(?:$|)" +
                                   kDot + ")";

// RFC 5892, appendix A: what stands without the neighbours that it needs.
std::string without_context() {
    const std::string not_japanese =
        R"([^.\u3002\uFF0E\uFF61\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]*)";
    return R"((?:^|[^l])\u00B7|\u00B7(?:$|[^l])|\u0375(?:$|\P{sc=Greek}))"
           R"(|(?:^|\P{sc=Hebrew})[\u05F3\u05F4])"
           R"(|[\u0660-\u0669])" +
           kInLabel + R"(*[\u06F0-\u06F9]|[\u06F0-\u06F9])" + kInLabel + R"(*[\u0660-\u0669])" +
           "|(?:^|" + kDot + ")" + not_japanese + R"(\u30FB)" + not_japanese + "(?:$|" + kDot + ")";
}

// Joiners stand behind a virama, or the one without width between Arabic letters that join.
std::string joiners() {
    const std::string joins_left =
        R"([\u0626\u0628\u062A-\u062E\u0633-\u063A\u0641-\u0647\u0649\u064A\u0678-\u0687)"
        R"(\u069A-\u06BF\u06C1\u06C2\u06CC\u06CE\u06D0\u06D1])";
    const std::string joins_right = R"([\u0622-\u063A\u0641-\u064A\u0671-\u06D3])";
    const std::string marks = R"([\u064B-\u065F\u0670]*)";
    return R"((?:[^\u200C\u200D]|)" + kVirama + R"([\u200C\u200D]|)" + joins_left + marks +
           R"(\u200C(?=)" + marks + joins_right + "))*";
}

}  // namespace

LangId host_name(Languages& languages) {
    return languages.both(
        {full(languages, kLabel + R"((?:\.)" + kLabel + ")*"), languages.length(1, 253),
         languages.complement(languages.pattern(kFalsePunycode, Dialect::kEcma, true))});
}

LangId international_host_name(Languages& languages) {
    const std::string label = "(?:(?!..--)(?:" + kLabel + "|" + kULabel + ")|[Xx][Nn]--" +
                              R"([A-Za-z0-9\-]{0,58}[A-Za-z0-9]))";
    const std::string bad = kFalsePunycode + "|" + without_context();
    return languages.both({with_sets(languages, label + "(?:" + kDot + label + ")*"),
                           with_sets(languages, joiners()), languages.length(1, 253),
                           languages.complement(languages.pattern(bad, Dialect::kEcma, true))});
}

LangId mailbox(Languages& languages, bool international) {
    const std::string more = international ? R"(\u{80}-\u{10FFFF})" : "";
    const std::string atom = R"([A-Za-z0-9!#$%&'*+/=?^_`{|}~\-)" + more + "]+";
    const std::string quoted = R"("(?:[ !#-\[\]-~)" + more + R"(]|\\[ -~])*")";
    const std::string local = "(?:" + atom + R"((?:\.)" + atom + ")*|" + quoted + ")";
    const std::string label = international ? "(?:" + kLabel + "|" + kULabel + ")" : kLabel;
    const std::string literal = R"(\[(?:)" + ipv4_pattern() + "|IPv6:" + ipv6_pattern() + R"()\])";
    return with_sets(languages,
                     local + "@(?:" + label + R"((?:\.)" + label + ")*|" + literal + ")");
}

}  // namespace sglite::text
