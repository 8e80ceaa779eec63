// A reader of JSON texts (RFC 8259), and the one spelling of equal values.
#include "value.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "../refused.h"

namespace sglite::json {
namespace {

constexpr int kDeepest = 500;  // some threads have a stack of 512 KiB
constexpr int64_t kMostValues = 500'000;
// Objects with more members than this find keys that stand twice by hashing.
constexpr size_t kFewMembers = 12;

void append_utf8(uint32_t c, std::string& out) {
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xC0 | c >> 6);
        out += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        out += static_cast<char>(0xE0 | c >> 12);
        out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (c & 0x3F));
    } else {
        out += static_cast<char>(0xF0 | c >> 18);
        out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
        out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        out += static_cast<char>(0x80 | (c & 0x3F));
    }
}

// Bytes of the character at `at` if it is well-formed UTF-8 (RFC 3629), else 0. Lone surrogates
// in their three bytes are let through: a caller may have encoded a text that holds them.
size_t character_size(std::string_view text, size_t at) {
    const auto byte = [&](size_t i) -> uint8_t {
        return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0;
    };
    const uint8_t first = byte(0);
    const auto goes_on = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
        return byte(i) >= low && byte(i) <= high;
    };
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return goes_on(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        return goes_on(1, first == 0xE0 ? 0xA0 : 0x80) && goes_on(2) ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        const uint8_t low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
        return goes_on(1, low, high) && goes_on(2) && goes_on(3) ? 4 : 0;
    }
    return 0;
}

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    Value document() {
        Value value = this->value(0);
        skip_space();
        if (at_ < text_.size()) fail("more text behind the JSON value");
        return value;
    }

  private:
    [[noreturn]] void fail(const std::string& reason) const {
        throw Refused(reason, std::to_string(at_));
    }

    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip_space() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c != ' ' && c != '\n' && c != '\t' && c != '\r') break;
            ++at_;
        }
    }

    bool take(char c) {
        if (peek() != c || at_ >= text_.size()) return false;
        ++at_;
        return true;
    }

    void literal(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) fail("a value was expected");
        at_ += word.size();
    }

    Value value(int depth) {
        if (depth > kDeepest) throw Refused("nested too deeply; make it flatter");
        if (++count_ > kMostValues) {
            throw Refused("more than " + std::to_string(kMostValues) + " values; make it smaller",
                          std::to_string(at_));
        }
        skip_space();
        Value value;
        switch (peek()) {
            case '{':
                object(value, depth);
                break;
            case '[':
                array(value, depth);
                break;
            case '"':
                value.kind = Value::Kind::kString;
                string(value.text);
                break;
            case 'n':
                literal("null");
                break;
            case 't':
                value.kind = Value::Kind::kTrue;
                literal("true");
                break;
            case 'f':
                value.kind = Value::Kind::kFalse;
                literal("false");
                break;
            default:
                value.kind = Value::Kind::kNumber;
                number(value.number);
        }
        return value;
    }

    void object(Value& value, int depth) {
        value.kind = Value::Kind::kObject;
        ++at_;
        skip_space();
        if (take('}')) return;
        std::unordered_map<std::string, size_t> places;
        do {
            skip_space();
            if (peek() != '"') fail("a key was expected");
            std::string key;
            string(key);
            skip_space();
            if (!take(':')) fail("':' was expected");
            Value inner = this->value(depth + 1);
            const size_t known = find_place(value, places, key);
            if (known < value.members.size()) {
                value.members[known].second = std::move(inner);
            } else {
                value.members.emplace_back(std::move(key), std::move(inner));
            }
            skip_space();
        } while (take(','));
        if (!take('}')) fail("',' or '}' was expected");
    }

    // The place of a key among the members read so far, or their number.
    static size_t find_place(const Value& value, std::unordered_map<std::string, size_t>& places,
                             const std::string& key) {
        const size_t count = value.members.size();
        if (count < kFewMembers) {
            size_t i = 0;
            while (i < count && value.members[i].first != key) ++i;
            return i;
        }
        if (places.empty()) {
            for (size_t i = 0; i < count; ++i) places.emplace(value.members[i].first, i);
        }
        return places.try_emplace(key, count).first->second;
    }

    void array(Value& value, int depth) {
        value.kind = Value::Kind::kArray;
        ++at_;
        skip_space();
        if (take(']')) return;
        do {
            value.items.push_back(this->value(depth + 1));
            skip_space();
        } while (take(','));
        if (!take(']')) fail("',' or ']' was expected");
    }

    void digits() {
        if (peek() < '0' || peek() > '9') fail("a value was expected");
        while (peek() >= '0' && peek() <= '9') ++at_;
    }

    void number(text::Decimal& number) {
        const size_t begin = at_;
        take('-');
        if (!take('0')) digits();
        if (take('.')) digits();
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            digits();
        }
        try {
            number = text::decimal(text_.substr(begin, at_ - begin));
        } catch (const Refused& refused) {
            throw Refused(refused.what(), std::to_string(begin));
        }
    }

    uint32_t four_hex() {
        uint32_t value = 0;
        for (int i = 0; i < 4; ++i) {
            const char c = peek();
            const bool is_digit = c >= '0' && c <= '9';
            const char lower = static_cast<char>(c | 0x20);
            if (!is_digit && (lower < 'a' || lower > 'f')) fail("four hexadecimal digits");
            value = value * 16 + (is_digit ? c - '0' : lower - 'a' + 10);
            ++at_;
        }
        return value;
    }

    void escape(std::string& out) {
        static constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
        const char c = peek();
        const size_t simple = kNames.find(c);
        if (c != 'u' && (simple == std::string_view::npos || at_ >= text_.size())) {
            fail("an unknown escape");
        }
        ++at_;
        if (c != 'u') {
            out += kMeanings[simple];
            return;
        }
        uint32_t value = four_hex();
        if (value >= 0xD800 && value < 0xDC00 && text_.substr(at_, 2) == "\\u") {
            const size_t before = at_;
            at_ += 2;
            const uint32_t second = four_hex();
            if (second >= 0xDC00 && second < 0xE000) {
                value = 0x10000 + ((value - 0xD800) << 10) + (second - 0xDC00);
            } else {
                at_ = before;
            }
        }
        append_utf8(value, out);
    }

    void string(std::string& out) {
        ++at_;
        for (;;) {
            const size_t begin = at_;
            while (at_ < text_.size()) {
                const auto c = static_cast<uint8_t>(text_[at_]);
                if (c == '"' || c == '\\' || c < 0x20 || c >= 0x80) break;
                ++at_;
            }
            out.append(text_, begin, at_ - begin);
            if (at_ >= text_.size()) fail("a string without end");
            const auto c = static_cast<uint8_t>(text_[at_]);
            if (c == '"') {
                ++at_;
                return;
            }
            if (c < 0x20) fail("a control character in a string");
            if (c == '\\') {
                ++at_;
                escape(out);
                continue;
            }
            const size_t size = character_size(text_, at_);
            if (size == 0) fail("no UTF-8");
            out.append(text_, at_, size);
            at_ += size;
        }
    }

    std::string_view text_;
    size_t at_ = 0;
    int64_t count_ = 0;
};

void append_text(std::string_view text, std::string& out) {
    // The length before the text keeps different values apart without escapes.
    out += std::to_string(text.size());
    out += ':';
    out += text;
}

void append_identity(const Value& value, std::string& out) {
    switch (value.kind) {
        case Value::Kind::kNull:
            out += 'n';
            break;
        case Value::Kind::kFalse:
            out += 'f';
            break;
        case Value::Kind::kTrue:
            out += 't';
            break;
        case Value::Kind::kNumber:
            out += value.number.negative ? '-' : '+';
            append_text(value.number.digits, out);
            out += std::to_string(value.number.exponent);
            out += ';';
            break;
        case Value::Kind::kString:
            out += 's';
            append_text(value.text, out);
            break;
        case Value::Kind::kArray:
            out += '[';
            for (const Value& item : value.items) append_identity(item, out);
            out += ']';
            break;
        case Value::Kind::kObject: {
            std::vector<const std::pair<std::string, Value>*> sorted;
            for (const auto& member : value.members) sorted.push_back(&member);
            std::ranges::sort(sorted,
                              [](const auto* a, const auto* b) { return a->first < b->first; });
            out += '{';
            for (const auto* member : sorted) {
                append_text(member->first, out);
                append_identity(member->second, out);
            }
            out += '}';
        }
    }
}

}  // namespace

const Value* Value::find(std::string_view key) const {
    for (const auto& [name, value] : members) {
        if (name == key) return &value;
    }
    return nullptr;
}

Value read(std::string_view text) { return Reader(text).document(); }

std::string identity(const Value& value) {
    std::string out;
    append_identity(value, out);
    return out;
}

}  // namespace sglite::json
