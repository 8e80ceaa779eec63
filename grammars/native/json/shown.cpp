#include "shown.h"

namespace sglite::json {
namespace {

constexpr size_t kLongest = 60;
constexpr size_t kMostNames = 12;

void append(std::string_view text, std::string& out) {
    static constexpr char kDigits[] = "0123456789abcdef";
    const auto escape = [&](uint32_t code) {
        out += "\\u";
        for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[code >> shift & 15];
    };
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<uint8_t>(text[i]);
        if (byte == 0xED && i + 2 < text.size() && static_cast<uint8_t>(text[i + 1]) >= 0xA0) {
            escape(0xD000u | (static_cast<uint8_t>(text[i + 1]) & 0x3Fu) << 6 |
                   (static_cast<uint8_t>(text[i + 2]) & 0x3Fu));
            i += 2;
        } else if (byte < 0x20) {
            escape(byte);
        } else {
            out += text[i];
        }
    }
}

void append(const Value& value, std::string& out) {
    switch (value.kind) {
        case Value::Kind::kNull:
            out += "null";
            return;
        case Value::Kind::kFalse:
            out += "false";
            return;
        case Value::Kind::kTrue:
            out += "true";
            return;
        case Value::Kind::kNumber:
            out += value.number.text();
            return;
        case Value::Kind::kString:
            out += '"';
            append(std::string_view(value.text), out);
            out += '"';
            return;
        case Value::Kind::kArray:
        case Value::Kind::kObject:
            break;
    }
    const bool is_array = value.kind == Value::Kind::kArray;
    out += is_array ? '[' : '{';
    const size_t begin = out.size();
    for (const Value& item : value.items) {
        if (out.size() > kLongest) break;
        if (out.size() > begin) out += ", ";
        append(item, out);
    }
    for (const auto& [key, inner] : value.members) {
        if (out.size() > kLongest) break;
        if (out.size() > begin) out += ", ";
        append(std::string_view('"' + key + "\": "), out);
        append(inner, out);
    }
    out += is_array ? ']' : '}';
}

std::string shortened(std::string text) {
    if (text.size() <= kLongest + 3) return text;
    size_t end = kLongest;
    while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
    return text.substr(0, end) + "...";
}

}  // namespace

std::string shown(const Value& value) {
    std::string out;
    append(value, out);
    return shortened(std::move(out));
}

std::string printable(std::string_view text) {
    std::string out;
    append(text, out);
    return out;
}

std::string plain(std::string_view text) { return shortened(printable(text)); }

std::string listed(const std::vector<std::string_view>& names) {
    std::string out;
    for (size_t i = 0; i < names.size() && i < kMostNames; ++i) {
        out += (i == 0 ? "\"" : ", \"") + plain(names[i]) + '"';
    }
    if (names.size() > kMostNames) {
        out += " and " + std::to_string(names.size() - kMostNames) + " more";
    }
    return out;
}

std::string listed(const std::vector<Value>& names) {
    std::vector<std::string_view> texts;
    for (const Value& name : names) texts.push_back(name.text);
    return listed(texts);
}

}  // namespace sglite::json
