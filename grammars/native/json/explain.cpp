// What is enforced of a document, and how: a line per schema that can matter, for people.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "../text/formats.h"
#include "../text/utf8.h"
#include "goals_inside.h"
#include "shown.h"

namespace sglite::json {
namespace {

constexpr std::string_view kNames =
    "$schema $id id $anchor $defs definitions $dynamicAnchor "
    "$recursiveAnchor";  // not annotations, and not shown

bool is_name(std::string_view key) {
    size_t at = 0;
    while (at < kNames.size()) {
        const size_t end = std::min(kNames.find(' ', at), kNames.size());
        if (kNames.substr(at, end - at) == key) return true;
        at = end + 1;
    }
    return false;
}

// "3 items", "1 to 5 items", "at least 2 items", "at most 1 item".
std::string count(const std::string& low, const std::string& high, const std::string& unit) {
    const std::string& last = high.empty() ? low : high;
    const std::string units = last == "1" ? unit : unit + "s";
    if (low == high) return low + " " + units;
    if (high.empty()) return "at least " + low + " " + units;
    if (low.empty()) return "at most " + high + " " + units;
    return low + " to " + high + " " + units;
}

bool has_number(const Value& value) {
    if (value.kind == Value::Kind::kNumber) return true;
    for (const Value& item : value.items) {
        if (has_number(item)) return true;
    }
    for (const auto& member : value.members) {
        if (has_number(member.second)) return true;
    }
    return false;
}

// The line of one schema.
class Line {
  public:
    Line(Document& document, const Place& place) : keywords_(document, place) {
        types();
        numbers();
        strings();
        objects();
        arrays();
        logic();
        annotations();
    }

    std::string text() const {
        std::string out;
        for (const std::string& clause : clauses_) out += (out.empty() ? "" : "; ") + clause;
        return out.empty() ? "any value" : out;
    }

  private:
    bool has(Keyword keyword) const { return keywords_.has(keyword); }
    const Value& value(Keyword keyword) const { return *keywords_[keyword]; }
    std::string show(Keyword keyword) const {
        return has(keyword) ? shown(value(keyword)) : std::string();
    }
    // What is said of one type, which is named where the schema allows others too.
    void add(std::string_view type, const std::string& clause) {
        clauses_.push_back(only_ == type ? clause : std::string(type) + "s: " + clause);
    }

    void types() {
        if (has(Keyword::kType)) {
            const Value& type = value(Keyword::kType);
            std::string names = type.text;
            for (const Value& name : type.items) {
                names += (names.empty() ? "" : " or ") + name.text;
            }
            clauses_.push_back(names);
            only_ = names == "integer" ? "number" : names;
        }
        const auto listed = [&](Keyword keyword, const char* how) {
            if (!has(keyword)) return;
            const char* note = has_number(value(keyword)) ? " (by value: 1 equals 1.0)" : "";
            clauses_.push_back(how + show(keyword) + note);
        };
        listed(Keyword::kConst, "equal to ");
        listed(Keyword::kEnum, "one of ");
    }

    void numbers() {
        std::vector<std::string> demands;
        const auto bound = [&](Keyword plain, Keyword exclusive, const char* within,
                               const char* without) {
            const bool flag = has(exclusive) && value(exclusive).kind != Value::Kind::kNumber;
            const bool excluded = flag && value(exclusive).kind == Value::Kind::kTrue;
            if (has(plain)) demands.push_back((excluded ? without : within) + show(plain));
            if (has(exclusive) && !flag) demands.push_back(without + show(exclusive));
        };
        bound(Keyword::kMinimum, Keyword::kExclusiveMinimum, "at least ", "above ");
        bound(Keyword::kMaximum, Keyword::kExclusiveMaximum, "at most ", "below ");
        if (has(Keyword::kMultipleOf)) {
            demands.push_back("a multiple of " + show(Keyword::kMultipleOf));
        }
        list("number", demands, "digit by digit, exactly");
    }

    void strings() {
        std::vector<std::string> demands;
        if (has(Keyword::kMinLength) || has(Keyword::kMaxLength)) {
            demands.push_back(
                count(show(Keyword::kMinLength), show(Keyword::kMaxLength), "character"));
        }
        if (has(Keyword::kPattern)) {
            const std::string& pattern = value(Keyword::kPattern).text;
            const bool whole = pattern.size() > 1 && pattern.front() == '^' &&
                               pattern.back() == '$' && pattern.find('|') == std::string::npos;
            demands.push_back("matching " + show(Keyword::kPattern) +
                              (whole ? "" : " anywhere in the text"));
        }
        if (has(Keyword::kFormat) && is_known_format()) {
            demands.push_back("format " + show(Keyword::kFormat));
        }
        if (has(Keyword::kQuote)) {
            const Quote quote = keywords_.quote();
            const std::string words = quote.whole_words ? " of whole words" : "";
            demands.push_back("a quote" + words + " from a document of " +
                              std::to_string(text::decoded(quote.document).size()) + " characters");
        }
        list("string", demands, "an automaton over characters");
    }

    void objects() {
        if (has(Keyword::kRequired) && !value(Keyword::kRequired).items.empty()) {
            add("object", "required: " + listed(value(Keyword::kRequired).items));
        }
        if (!value_is_empty(Keyword::kProperties)) {
            std::unordered_set<std::string_view> needed;
            for (const Value& name : keywords_.names(Keyword::kRequired)) needed.insert(name.text);
            std::vector<std::string_view> optional;
            for (const auto& member : value(Keyword::kProperties).members) {
                if (!needed.contains(member.first)) optional.push_back(member.first);
            }
            if (!optional.empty()) add("object", "optional: " + listed(optional));
        }
        if (!value_is_empty(Keyword::kPatternProperties)) {
            std::vector<std::string_view> patterns;
            for (const auto& member : value(Keyword::kPatternProperties).members) {
                patterns.push_back(member.first);
            }
            add("object", "keys that match " + listed(patterns));
        }
        if (has(Keyword::kPropertyNames)) add("object", "every key as under propertyNames");
        if (has(Keyword::kMinProperties) || has(Keyword::kMaxProperties)) {
            add("object",
                count(show(Keyword::kMinProperties), show(Keyword::kMaxProperties), "key"));
        }
        for (const Keyword keyword :
             {Keyword::kDependencies, Keyword::kDependentRequired, Keyword::kDependentSchemas}) {
            if (value_is_empty(keyword)) continue;
            std::vector<std::string_view> names;
            for (const auto& member : value(keyword).members) names.push_back(member.first);
            add("object", "where there is " + listed(names) + ", what " +
                              std::string(spelling(keyword)) + " says");
        }
        others("object", Keyword::kAdditionalProperties, "other keys");
        others("object", Keyword::kUnevaluatedProperties, "keys that no subschema speaks of");
        const bool open =
            !has(Keyword::kAdditionalProperties) && !has(Keyword::kUnevaluatedProperties);
        const bool is_whole = keywords_.place().pointer == 0 && has(Keyword::kProperties);
        if (open && (only_ == "object" || is_whole)) {
            add("object", "other keys allowed here");
        }
    }

    void arrays() {
        if (has(Keyword::kMinItems) || has(Keyword::kMaxItems)) {
            add("array", count(show(Keyword::kMinItems), show(Keyword::kMaxItems), "item"));
        }
        const bool is_list =
            has(Keyword::kItems) && value(Keyword::kItems).kind == Value::Kind::kArray;
        const Keyword prefix = is_list ? Keyword::kItems : Keyword::kPrefixItems;
        if (has(prefix)) {
            add("array", "the first " + std::to_string(value(prefix).items.size()) + " as under " +
                             std::string(spelling(prefix)));
        }
        others("array", is_list ? Keyword::kAdditionalItems : Keyword::kItems,
               has(prefix) ? "further items" : "items");
        others("array", Keyword::kUnevaluatedItems, "items that no subschema speaks of");
        if (has(Keyword::kContains)) {
            const std::string low = show(Keyword::kMinContains);
            add("array", count(low.empty() ? "1" : low, show(Keyword::kMaxContains), "item") +
                             " as under contains, counted");
        }
        if (keywords_.flag(Keyword::kUniqueItems)) {
            add("array",
                "all different by value: those that are written are remembered, and "
                "cannot come again");
        }
    }

    void logic() {
        for (const Keyword keyword :
             {Keyword::kRef, Keyword::kDynamicRef, Keyword::kRecursiveRef}) {
            if (!has(keyword)) continue;
            const std::string text =
                printable(keywords_.document().pointers.text(keywords_.target(keyword).pointer));
            clauses_.push_back("as under " + (text.empty() ? "#" : text) + " (" +
                               std::string(spelling(keyword)) + ")");
        }
        const auto several = [&](Keyword keyword, const char* how) {
            if (!has(keyword)) return;
            clauses_.push_back(how + std::to_string(value(keyword).items.size()) + " under " +
                               std::string(spelling(keyword)));
        };
        several(Keyword::kAllOf, "all ");
        several(Keyword::kAnyOf, "at least one of ");
        several(Keyword::kOneOf, "exactly one of ");
        if (has(Keyword::kNot)) clauses_.emplace_back("never as under not");
        if (has(Keyword::kIf) && (has(Keyword::kThen) || has(Keyword::kElse))) {
            std::string clause = "if as under if";
            if (has(Keyword::kThen)) clause += ", as under then";
            if (has(Keyword::kElse)) clause += ", else as under else";
            clauses_.push_back(clause);
        }
    }

    void annotations() {
        std::vector<std::string> names;
        for (const auto& [key, value] : keywords_.place().schema->members) {
            if (is_name(key)) continue;
            if (key == "format" && has(Keyword::kFormat) && is_known_format()) continue;
            if (key == "format") {
                names.push_back("format " + shown(value));
            } else if (!counts(key)) {
                names.push_back(plain(key));
            }
        }
        if (names.empty()) return;
        std::string clause = "not enforced (annotations): ";
        for (size_t i = 0; i < names.size(); ++i) clause += (i == 0 ? "" : ", ") + names[i];
        clauses_.push_back(clause);
    }

    // Whether a key is a keyword here that can refuse a value.
    bool counts(std::string_view key) const {
        if (key == "then" || key == "else") return has(Keyword::kIf);
        if (key == "if") return has(Keyword::kThen) || has(Keyword::kElse);
        if (key == "minContains" || key == "maxContains") return has(Keyword::kContains);
        for (int i = 0; i < static_cast<int>(Keyword::kCount); ++i) {
            const auto keyword = static_cast<Keyword>(i);
            if (spelling(keyword) == key) return has(keyword);
        }
        return false;
    }
    bool is_known_format() const {
        return std::ranges::count(text::format_names(), value(Keyword::kFormat).text) > 0;
    }
    bool value_is_empty(Keyword keyword) const {
        return !has(keyword) || value(keyword).members.empty();
    }
    void others(std::string_view type, Keyword keyword, const std::string& what) {
        if (!has(keyword)) return;
        const Value::Kind kind = value(keyword).kind;
        if (kind == Value::Kind::kFalse) {
            add(type, "no " + what);
        } else if (kind == Value::Kind::kTrue) {
            add(type, what + " with any value");
        } else {
            add(type, what + " as under " + std::string(spelling(keyword)));
        }
    }
    void list(std::string_view type, const std::vector<std::string>& demands, const char* how) {
        if (demands.empty()) return;
        std::string clause;
        for (const std::string& demand : demands) {
            clause += (clause.empty() ? "" : ", ") + demand;
        }
        add(type, clause + " (" + how + ")");
    }

    const Keywords keywords_;
    std::string only_;  // the type, where the schema names one
    std::vector<std::string> clauses_;
};

// The schemas of a document by their order in its text.
void number(const Value& value, std::unordered_map<const Value*, size_t>& order) {
    order.emplace(&value, order.size());
    for (const Value& item : value.items) number(item, order);
    for (const auto& member : value.members) number(member.second, order);
}

std::string manner(const Style& style) {
    std::string out = style.declared_order ? "declared keys in their order, others behind them"
                                           : "keys in any order";
    out += ", none twice; ";
    switch (style.whitespace) {
        case Style::Whitespace::kSingle:
            out += "a space behind ',' and ':' and no other white space; ";
            break;
        case Style::Whitespace::kCompact:
            out += "no white space; ";
            break;
        case Style::Whitespace::kFlexible:
            out += "up to 32 characters of white space at a place; ";
            break;
    }
    out += style.any_spelling ? "strings and numbers in every spelling of JSON"
                              : "strings as json.dumps(ensure_ascii=False) writes them, integers "
                                "without fraction and exponent";
    return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Goals::explain() const {
    std::unordered_map<const Value*, size_t> order;
    number(inside_->schema, order);
    std::vector<Place> places = inside_->reader.seen();
    const auto before = [&](const Place& a, const Place& b) {
        return order.at(a.schema) < order.at(b.schema);
    };
    std::ranges::stable_sort(places, before);
    const auto same = [](const Place& a, const Place& b) { return a.schema == b.schema; };
    const auto rest = std::ranges::unique(places, same);
    places.erase(rest.begin(), rest.end());

    std::vector<std::pair<std::string, std::string>> lines;
    for (const Place& place : places) {
        lines.emplace_back(printable(inside_->document.pointers.text(place.pointer)),
                           Line(inside_->document, place).text());
    }
    if (lines.empty()) lines.emplace_back("", "any value");
    lines.emplace_back("text", manner(inside_->style));
    return lines;
}

}  // namespace sglite::json
