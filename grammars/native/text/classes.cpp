#include "classes.h"

#include <algorithm>

namespace sglite::text {
namespace {

// Parts small marks from the numbers that they are mixed with.
constexpr uint64_t kSalt = 0x9E3779B97F4A7C15u;

// The parts of UTF-8 between which a set of any characters tells apart; 0: in no text.
uint8_t utf8_part(int byte) {
    constexpr std::pair<int, int> kFirst[] = {
        {0x00, 1}, {0x80, 2}, {0x90, 3}, {0xA0, 4}, {0xC0, 0},  {0xC2, 5},  {0xE0, 6},
        {0xE1, 7}, {0xED, 8}, {0xEE, 7}, {0xF0, 9}, {0xF1, 10}, {0xF4, 11}, {0xF5, 0}};
    int part = 0;
    for (const auto& [first, value] : kFirst) {
        if (byte >= first) part = value;
    }
    return static_cast<uint8_t>(part);
}

}  // namespace

ClassTables::ClassTables(const std::bitset<256>& barred, const std::array<uint8_t, 256>& weight)
    : weight_(weight) {
    for (int byte = 0; byte < 256; ++byte) utf8_[byte] = barred[byte] ? 0 : utf8_part(byte);
}

int32_t ClassTables::classes(const Marks& marks) {
    auto table = std::make_unique<ByteClasses>();
    std::array<uint64_t, 256> first{};
    uint64_t hash = 0;
    for (int byte = 0; byte < 256; ++byte) {
        if (utf8_[byte] != 0) {
            const uint64_t mark = mix(mix(marks[byte], kSalt), utf8_[byte]);
            int found = 1;
            while (found < table->count && first[found] != mark) ++found;
            if (found == table->count) {
                first[table->count++] = mark;
                table->lightest[found] = static_cast<uint8_t>(byte);
            }
            if (weight_[byte] < weight_[table->lightest[found]]) {
                table->lightest[found] = static_cast<uint8_t>(byte);
            }
            table->of[byte] = static_cast<uint8_t>(found);
        }
        hash = mix(hash, table->of[byte]);
    }
    const int32_t known =
        index_.find(hash, [&](int32_t id) { return tables_[id]->of == table->of; });
    if (known >= 0) return known;
    for (int c = 1; c < table->count; ++c) {
        const uint8_t byte = table->lightest[c];
        table->cost[0][c] = weight_[byte];
        table->cost[1][c] = (byte & 0xC0) != 0x80;
    }
    const auto id = static_cast<int32_t>(tables_.size());
    tables_.push_back(std::move(table));
    index_.add(hash, id);
    return id;
}

int32_t ClassTables::common(int32_t a, int32_t b) {
    if (a == b) return a;
    if (a > b) std::swap(a, b);
    const uint64_t hash = mix(static_cast<uint64_t>(a) + 1, static_cast<uint64_t>(b));
    const int32_t known =
        pair_index_.find(hash, [&](int32_t i) { return pairs_[i].a == a && pairs_[i].b == b; });
    if (known >= 0) return pairs_[known].result;
    Marks marks;
    for (int byte = 0; byte < 256; ++byte) {
        marks[byte] = static_cast<uint64_t>(tables_[a]->of[byte]) << 8 | tables_[b]->of[byte];
    }
    const int32_t result = classes(marks);
    pair_index_.add(hash, static_cast<int32_t>(pairs_.size()));
    pairs_.push_back({a, b, result});
    return result;
}

}  // namespace sglite::text
