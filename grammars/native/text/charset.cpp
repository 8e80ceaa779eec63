#include "charset.h"

#include <algorithm>
#include <span>

namespace sglite::text {
namespace {

struct Run {
    uint32_t begin;
    uint8_t category;
};
struct Range {
    uint32_t low, high;
};
struct Case {
    uint32_t code, next;
};
struct Script {
    std::string_view name, short_name;
    std::span<const Range> ranges;
};

#include "unicode_tables.inc"

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

struct LongName {
    std::string_view name, category;
};
constexpr LongName kLongNames[] = {
    {"Letter", "L"},
    {"Cased_Letter", "LC"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Format", "Cf"},
    {"Private_Use", "Co"},
    {"Unassigned", "Cn"},
};

// Appends behind the last range, which lies before; neighbours become one.
void append(Ranges& ranges, uint32_t low, uint32_t high) {
    if (!ranges.empty() && low <= ranges.back().second + 1) {
        ranges.back().second = std::max(ranges.back().second, high);
    } else {
        ranges.emplace_back(low, high);
    }
}

void append_characters(Ranges& ranges, uint32_t low, uint32_t high) {
    if (low < kFirstSurrogate) append(ranges, low, std::min(high, kFirstSurrogate - 1));
    if (high > kLastSurrogate) append(ranges, std::max(low, kLastSurrogate + 1), high);
}

Ranges copied(std::span<const Range> table) {
    Ranges ranges;
    ranges.reserve(table.size());
    for (const Range& range : table) ranges.emplace_back(range.low, range.high);
    return ranges;
}

bool in_category(std::string_view wanted, std::string_view category) {
    if (wanted == "LC") return category == "Lu" || category == "Ll" || category == "Lt";
    return category.starts_with(wanted);
}

std::optional<Ranges> category(std::string_view name) {
    for (const LongName& known : kLongNames) {
        if (known.name == name) name = known.category;
    }
    if (name.empty() || name.size() > 2) return std::nullopt;
    bool wanted[std::size(kCategoryNames)];
    bool known = false;
    for (size_t i = 0; i < std::size(kCategoryNames); ++i) {
        known |= wanted[i] = in_category(name, kCategoryNames[i]);
    }
    if (!known) return std::nullopt;
    Ranges ranges;
    for (size_t i = 0; i < std::size(kCategories); ++i) {
        const Run& run = kCategories[i];
        if (run.category >= std::size(kCategoryNames) || !wanted[run.category]) continue;
        const bool last = i + 1 == std::size(kCategories);
        append_characters(ranges, run.begin, last ? kLastCharacter : kCategories[i + 1].begin - 1);
    }
    return ranges;
}

std::optional<Ranges> script(std::string_view name) {
    for (const Script& known : kScripts) {
        if (known.name == name || known.short_name == name) return copied(known.ranges);
    }
    return std::nullopt;
}

}  // namespace

Ranges united(Ranges ranges) {
    std::sort(ranges.begin(), ranges.end());
    Ranges merged;
    merged.reserve(ranges.size());
    for (const auto& [low, high] : ranges) append_characters(merged, low, high);
    return merged;
}

Ranges negated(const Ranges& ranges) {
    Ranges gaps;
    gaps.reserve(ranges.size() + 2);
    uint32_t at = 0;
    for (const auto& [low, high] : ranges) {
        if (at < low) append_characters(gaps, at, low - 1);
        at = high + 1;
    }
    if (at <= kLastCharacter) append_characters(gaps, at, kLastCharacter);
    return gaps;
}

const Ranges& word_characters() {
    static const Ranges ranges = copied(kWord);
    return ranges;
}

const Ranges& decimal_digits() {
    static const Ranges ranges = copied(kDigit);
    return ranges;
}

const Ranges& space_characters() {
    static const Ranges ranges = copied(kSpace);
    return ranges;
}

const Ranges& domain_characters() {
    static const Ranges ranges = copied(kDomain);
    return ranges;
}

const Ranges& viramas() {
    static const Ranges ranges = copied(kVirama);
    return ranges;
}

std::optional<Ranges> property(std::string_view name) {
    if (const size_t equals = name.find('='); equals != name.npos) {
        const std::string_view kind = name.substr(0, equals), value = name.substr(equals + 1);
        if (kind == "gc" || kind == "General_Category") return category(value);
        if (kind == "sc" || kind == "Script") return script(value);
        return std::nullopt;
    }
    if (name == "Any") return negated({});
    if (name == "ASCII") return Ranges{{0, 0x7F}};
    return category(name);
}

Ranges without_case(const Ranges& ranges, bool ascii_only) {
    Ranges found = ranges;
    const auto by_code = [](const Case& entry, uint32_t code) { return entry.code < code; };
    for (const auto& [low, high] : ranges) {
        if (ascii_only) {
            for (uint32_t c = std::max<uint32_t>(low, 'A'); c <= std::min<uint32_t>(high, 'Z'); ++c)
                found.emplace_back(c + 32, c + 32);
            for (uint32_t c = std::max<uint32_t>(low, 'a'); c <= std::min<uint32_t>(high, 'z'); ++c)
                found.emplace_back(c - 32, c - 32);
            continue;
        }
        const auto* entry = std::lower_bound(std::begin(kCases), std::end(kCases), low, by_code);
        for (; entry != std::end(kCases) && entry->code <= high; ++entry) {
            for (uint32_t next = entry->next; next != entry->code;) {
                found.emplace_back(next, next);
                next = std::lower_bound(std::begin(kCases), std::end(kCases), next, by_code)->next;
            }
        }
    }
    return united(std::move(found));
}

}  // namespace sglite::text
