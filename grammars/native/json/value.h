// JSON texts as values; numbers are exact.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../text/numbers.h"

namespace sglite::json {

struct Value {
    enum class Kind { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
    Kind kind = Kind::kNull;
    std::string text{};  // of a string, as UTF-8 (WTF-8 for lone surrogates)
    text::Decimal number{};
    std::vector<Value> items{};
    // In the order of the text; of keys that stand twice the last one counts, in its first place.
    std::vector<std::pair<std::string, Value>> members{};

    const Value* find(std::string_view key) const;
};

// Throws Refused, with the offset as pointer, for what is no JSON (RFC 8259) and for values nested
// deeper than 1,000.
Value read(std::string_view text);

// One text for all values that JSON Schema calls equal: numbers by value, keys sorted.
std::string identity(const Value& value);

}  // namespace sglite::json
