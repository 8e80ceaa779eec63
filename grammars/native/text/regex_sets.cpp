// Escapes and brackets of patterns.
#include "charset.h"
#include "regex_parser.h"

namespace sglite::text {
namespace {

const Ranges kEcmaSpace = {{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                           {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                           {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const Ranges kAsciiSpace = {{0x09, 0x0D}, {0x20, 0x20}};
const Ranges kAsciiDigit = {{'0', '9'}};
const Ranges kAsciiWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

Ranges single(uint32_t code) { return Ranges(1, {code, code}); }

bool is_letter(char32_t code) { return (code | 32) >= 'a' && (code | 32) <= 'z'; }
bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }
bool is_octal(char32_t code) { return code >= '0' && code <= '7'; }

bool names_set(char32_t letter) {
    letter |= 32;
    return letter == 'd' || letter == 'w' || letter == 's';
}

std::string shown(char32_t letter) { return {'\\', static_cast<char>(letter)}; }

}  // namespace

Regex Parser::escape(size_t start) {
    const char32_t letter = peek();
    if (python_ && (letter == 'A' || letter == 'Z')) {
        ++at_;
        return {.kind = letter == 'A' ? Regex::Kind::kStart : Regex::Kind::kEnd};
    }
    if (letter == 'b' || letter == 'B') {
        ++at_;
        Regex tree = chars(word_set());
        tree.kind = letter == 'b' ? Regex::Kind::kBoundary : Regex::Kind::kInside;
        return tree;
    }
    if (letter >= '1' && letter <= '9') {
        const bool octal_digits = is_octal(letter) && is_octal(peek(1)) && is_octal(peek(2));
        if (!python_ || !octal_digits)
            refuse("a backreference is not regular; write the texts that may stand there", start);
        return chars(cased(united(single(octal(start)))));
    }
    if (letter == 'k' && !python_)
        refuse("a backreference is not regular; write the texts that may stand there", start);
    Ranges set = united(escaped_set(start));
    return chars(names_set(letter) ? std::move(set) : cased(std::move(set)));
}

Ranges Parser::escaped_set(size_t start) {
    const char32_t letter = next("an escape");
    switch (letter) {
        case 'd':
        case 'w':
        case 's':
            return named_set(letter);
        case 'D':
        case 'W':
        case 'S':
            return negated(named_set(letter | 32));
        case 't':
            return single('\t');
        case 'n':
            return single('\n');
        case 'v':
            return single('\v');
        case 'f':
            return single('\f');
        case 'r':
            return single('\r');
        case 'x':
            return single(hexadecimal(2, start));
        case 'u':
            return single(unicode_escape(start));
        case '0':
            --at_;
            return single(octal(start));
        default:
            break;
    }
    if (python_) {
        if (letter == 'a') return single('\a');
        if (letter == 'U') return single(hexadecimal(8, start));
        if (letter == 'N') {
            refuse("a character by its name is not supported; write it, or its number as \\uXXXX",
                   start);
        }
    } else if (letter == 'c') {
        const char32_t control = next("a control escape");
        if (!is_letter(control)) refuse("a control escape needs a letter", start);
        return single(control % 32);
    }
    // No syntax of Python's `re`, but of what goes beyond it there.
    if (letter == 'p' || letter == 'P') return property_set(letter == 'P', start);
    if (is_letter(letter) || is_digit(letter)) refuse("unknown escape " + shown(letter), start);
    return single(letter);
}

Ranges Parser::named_set(char32_t letter) const {
    if (letter == 'w') return word_set();
    if (letter == 'd') return flags_.ascii_only ? kAsciiDigit : decimal_digits();
    if (!python_) return kEcmaSpace;
    return flags_.ascii_only ? kAsciiSpace : space_characters();
}

Ranges Parser::word_set() const { return flags_.ascii_only ? kAsciiWord : word_characters(); }

// Python: up to three octal digits. ECMA-262 knows \0 alone.
uint32_t Parser::octal(size_t start) {
    uint32_t value = 0;
    for (int i = 0; i < (python_ ? 3 : 1) && is_octal(peek()); ++i) {
        value = value * 8 + static_cast<uint32_t>(next("an escape") - '0');
    }
    if (!python_ && is_digit(peek())) refuse("octal escapes are not ECMA-262", start);
    if (value > 0377) refuse("an octal escape above 377", start);
    return value;
}

uint32_t Parser::hexadecimal(size_t length, size_t start) {
    uint64_t value = 0;
    bool good = length > 0 && length <= 64;
    for (size_t i = 0; good && i < length; ++i) {
        const char32_t digit = peek(i);
        const bool letter = (digit | 32) >= 'a' && (digit | 32) <= 'f';
        good = is_digit(digit) || letter;
        value = value * 16 + (letter ? (digit | 32) - 'a' + 10 : digit - '0');
        good = good && value <= kLastCharacter;
    }
    if (!good) {
        refuse("an escape needs " + std::to_string(length) + " hexadecimal digits of a character",
               start);
    }
    at_ += length;
    return static_cast<uint32_t>(value);
}

uint32_t Parser::unicode_escape(size_t start) {
    if (!python_ && take("{")) {
        size_t length = 0;
        while (peek(length) != '}' && at_ + length < pattern_.size()) ++length;
        const uint32_t code = hexadecimal(length, start);
        if (!take("}")) refuse("a character's escape is not closed", start);
        return code;
    }
    const uint32_t unit = hexadecimal(4, start);
    if (python_ || unit < 0xD800 || unit >= 0xDC00 || !follows("\\u") || peek(2) == '{') {
        return unit;
    }
    const size_t before = at_;
    at_ += 2;
    const uint32_t tail = hexadecimal(4, start);
    if (tail >= 0xDC00 && tail < 0xE000) {
        return 0x10000 + ((unit - 0xD800) << 10) + tail - 0xDC00;
    }
    at_ = before;
    return unit;
}

Ranges Parser::property_set(bool complement, size_t start) {
    if (!take("{")) refuse("a property escape needs a name in braces", start);
    std::string name;
    for (char32_t code; (code = next("a property's name")) != '}';) {
        if (code >= 0x80) refuse("unknown property", start);
        name.push_back(static_cast<char>(code));
    }
    const std::optional<Ranges> ranges = property(name);
    if (!ranges) {
        refuse("unknown property '" + name +
                   "'; there are general categories (L, Lu, ...) and some scripts "
                   "(Script=Greek, ...)",
               start);
    }
    return complement ? negated(*ranges) : *ranges;
}

Regex Parser::brackets(size_t start) {
    const bool complement = take("^");
    Ranges plain, named;  // ignoring case does not change what \d and the like stand for
    const auto add = [&](Item item, const Ranges& set) {
        Ranges& to = item == Item::kNamed ? named : plain;
        to.insert(to.end(), set.begin(), set.end());
        if (to.size() > 100'000) to = united(std::move(to));
    };
    for (bool first = true;; first = false) {
        if (at_end()) refuse("brackets are not closed", start);
        if (peek() == ']' && !(first && python_)) break;
        Ranges low, high;
        const Item from = bracket_item(start, low);
        if (peek() != '-' || peek(1) == ']' || at_ + 1 >= pattern_.size()) {
            add(from, low);
            continue;
        }
        ++at_;
        const Item to = bracket_item(start, high);
        if (from == Item::kCharacter && to == Item::kCharacter) {
            if (low[0].first > high[0].first) refuse("a range that runs backwards", start);
            add(from, {{low[0].first, high[0].first}});
            continue;
        }
        // ECMA-262 takes the hyphen for itself beside a set, as in [\w-.].
        if (python_) refuse("a range between sets", start);
        add(from, low);
        add(to, high);
        add(Item::kCharacter, single('-'));
    }
    ++at_;
    plain = cased(united(std::move(plain)));
    if (!named.empty()) {
        plain.insert(plain.end(), named.begin(), named.end());
        plain = united(std::move(plain));
    }
    return chars(complement ? negated(plain) : std::move(plain));
}

Parser::Item Parser::bracket_item(size_t start, Ranges& set) {
    const char32_t code = next("brackets");
    if (code == '[') refuse_posix_class(start);
    if (code != '\\') {
        set = single(code);
        return Item::kCharacter;
    }
    const char32_t letter = peek();
    if (letter == 'b') {
        ++at_;
        set = single('\b');
    } else if (python_ && is_octal(letter)) {
        set = single(octal(start));
    } else {
        set = escaped_set(start);
    }
    if (names_set(letter)) return Item::kNamed;
    return (letter | 32) == 'p' ? Item::kProperty : Item::kCharacter;
}

void Parser::refuse_posix_class(size_t start) const {
    if (peek() != ':') return;
    size_t length = 1;
    while (is_letter(peek(length)) || peek(length) == '^') ++length;
    if (length > 1 && peek(length) == ':' && peek(length + 1) == ']') {
        refuse("POSIX classes are not supported; write the characters out", start);
    }
}

}  // namespace sglite::text
