#include "utf8.h"

#include "../refused.h"
#include "charset.h"

namespace sglite::text {

std::u32string decoded(std::string_view text) {
    std::u32string codes;
    codes.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<uint8_t>(text[i]);
        const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        bool good = lead < 0x80 || (lead >= 0xC2 && lead < 0xF5);
        good = good && i + length <= text.size();
        char32_t code = length == 1 ? lead : lead & (0x7F >> length);
        for (size_t k = 1; good && k < length; ++k) {
            const auto byte = static_cast<uint8_t>(text[i + k]);
            good = (byte & 0xC0) == 0x80;
            code = code << 6 | (byte & 0x3F);
        }
        constexpr char32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};
        if (!good || code < kFirst[length] || code > kLastCharacter) {
            throw Refused("the text is no UTF-8", "1:" + std::to_string(codes.size() + 1));
        }
        codes.push_back(code);
        i += length;
    }
    return codes;
}

void write_utf8(uint32_t c, std::string& out) {
    const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
    if (c < 0x80) return put(c);
    if (c < 0x800) {
        put(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        put(0xE0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3F));
    } else {
        put(0xF0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3F));
        put(0x80 | (c >> 6 & 0x3F));
    }
    put(0x80 | (c & 0x3F));
}

}  // namespace sglite::text
