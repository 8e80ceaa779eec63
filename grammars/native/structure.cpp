#include "structure.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "vocabulary.h"
#include "walk.h"

namespace sglite {
namespace {

enum class At : uint8_t { kAnywhere, kBefore, kBehind, kNumber, kString, kEscape, kLiteral };

struct Place {
    At at = At::kAnywhere;
    std::string_view rest{};  // of a literal
};

constexpr std::string_view kSpace = " \t\n\r", kNumber = "+-.eE0123456789";

bool has(std::string_view bytes, uint8_t byte) {
    return bytes.find(static_cast<char>(byte)) != bytes.npos;
}

bool step_value(Place& place, uint8_t byte) {
    for (const std::string_view literal : {"null", "true", "false"}) {
        if (byte != static_cast<uint8_t>(literal[0])) continue;
        place = {At::kLiteral, literal.substr(1)};
        return true;
    }
    if (byte == '{' || byte == '[')
        place = {At::kBefore};
    else if (byte == '}' || byte == ']')
        place = {At::kBehind};
    else if (byte == '"')
        place = {At::kString};
    else if (has(kNumber, byte))
        place = {At::kNumber};
    else
        return false;
    return true;
}

bool step_behind(Place& place, uint8_t byte) {
    if (byte == ',' || byte == ':')
        place = {At::kBefore};
    else if (byte == '}' || byte == ']')
        place = {At::kBehind};
    else
        return false;
    return true;
}

bool step(Place& place, uint8_t byte) {
    switch (place.at) {
        case At::kAnywhere:
            return has(kSpace, byte) || step_value(place, byte) || step_behind(place, byte);
        case At::kBefore:
            return has(kSpace, byte) || step_value(place, byte);
        case At::kBehind:
            return has(kSpace, byte) || step_behind(place, byte);
        case At::kNumber:
            if (has(kNumber, byte)) return true;
            place = {At::kBehind};
            return step(place, byte);
        case At::kString:
            if (byte == '"') place = {At::kBehind};
            if (byte == '\\') place = {At::kEscape};
            return byte >= 0x20;
        case At::kEscape:
            place = {At::kString};
            return byte >= 0x20;
        case At::kLiteral:
            if (byte != static_cast<uint8_t>(place.rest[0])) return false;
            place.rest.remove_prefix(1);
            if (place.rest.empty()) place = {At::kBehind};
            return true;
    }
    return false;
}

}  // namespace

Structure make_structure(const Vocabulary& vocabulary) {
    const Trie& trie = vocabulary.trie();
    std::vector<std::pair<std::string_view, int32_t>> all, signs;  // ascend, as the trie does
    Structure found;
    walk(trie, 0, Place{}, step, [&](uint32_t node, const Place&) {
        for (const int32_t id : trie.at(node)) {
            const std::string_view token = vocabulary.bytes(id);
            all.emplace_back(token, id);
            if (token.find_first_not_of(kSpace) == token.npos) {
                found.spaces.push_back({token.size(), id});
            } else {
                signs.emplace_back(token, id);
            }
        }
        return true;
    });
    std::ranges::stable_sort(found.spaces, {}, &Structure::Space::length);
    found.signs = Trie(signs);
    found.all = Trie(all);
    return found;
}

size_t Structure::memory() const {
    return spaces.size() * sizeof(Space) + signs.memory() + all.memory();
}

}  // namespace sglite
