// States of lengths, lists of words, and automata given as a whole.
#include <algorithm>

#include "pool.h"

namespace sglite::text {
namespace {

bool begins_character(uint8_t byte) { return (byte & 0xC0) != 0x80; }

int32_t fewer(int32_t count) { return count == kEndless || count == 0 ? count : count - 1; }

}  // namespace

TextState Pool::length(int32_t need, int32_t room, int32_t node) {
    if (need > room) return kDeadText;
    if (need > 0 && spelled_.lightest(kAnyCharacter) == kUnreachable) return kDeadText;
    const int32_t parts[] = {need, room, node};
    return intern(Kind::kLength, parts, need == 0 && node == kAnyCharacter, true, plain_classes_);
}

TextState Pool::step_length(TextState state, uint8_t byte) {
    int32_t need = part(state, 0), room = part(state, 1);
    const int32_t node = part(state, 2);
    if (node == kAnyCharacter) {
        if (room == 0) return kDeadText;
        need = fewer(need);
        room = fewer(room);
    }
    const int32_t to = spelled_.step(node, byte);
    if (to < 0) return kDeadText;
    return length(need, room, to == kCharacterDone ? kAnyCharacter : to);
}

TextState Pool::words(std::vector<std::string> texts) {
    std::erase_if(texts, [&](const std::string& text) {
        int32_t node = kAnyCharacter;
        for (const char c : text) {
            node = spelled_.step(node, static_cast<uint8_t>(c));
            if (node < 0) return true;
            if (node == kCharacterDone) node = kAnyCharacter;
        }
        return node != kAnyCharacter;
    });
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    if (texts.empty()) return kDeadText;
    std::string key;
    for (const std::string& text : texts) key += std::to_string(text.size()) + ':' + text;
    const auto [known, fresh] = known_words_.try_emplace(std::move(key), words_.size());
    if (fresh) {
        ClassTables::Marks marks{};
        Words words{.texts = std::move(texts), .classes = 0};
        for (const std::string& text : words.texts) {
            int32_t characters = 0;
            for (const char c : text) {
                const auto byte = static_cast<uint8_t>(c);
                marks[byte] = byte + 1u;
                characters += begins_character(byte);
            }
            words.longest = std::max(words.longest, characters);
            source_memory_ += 2 * text.size() + sizeof(std::string);
        }
        words.classes = tables_.classes(marks);
        words_.push_back(std::move(words));
    }
    const int32_t list = known->second;
    return word(list, 0, static_cast<int32_t>(words_[list].texts.size()), 0);
}

TextState Pool::word(int32_t list, int32_t low, int32_t high, int32_t at) {
    const Words& words = words_[list];
    const int32_t parts[] = {list, low, high, at};
    const bool accepting = words.texts[low].size() == static_cast<size_t>(at);
    return intern(Kind::kWords, parts, accepting, true, words.classes);
}

TextState Pool::step_words(TextState state, uint8_t byte) {
    const int32_t list = part(state, 0), at = part(state, 3);
    const int32_t low = part(state, 1) + states_[state].accepting;
    const std::vector<std::string>& texts = words_[list].texts;
    const auto begin = texts.begin() + low, end = texts.begin() + part(state, 2);
    const auto first = std::partition_point(
        begin, end, [&](const std::string& text) { return static_cast<uint8_t>(text[at]) < byte; });
    const auto last = std::partition_point(first, end, [&](const std::string& text) {
        return static_cast<uint8_t>(text[at]) == byte;
    });
    if (first == last) return kDeadText;
    return word(list, static_cast<int32_t>(first - texts.begin()),
                static_cast<int32_t>(last - texts.begin()), at + 1);
}

int32_t Pool::least_of_words(TextState state, Measure measure) {
    const std::vector<std::string>& texts = words_[part(state, 0)].texts;
    int64_t best = kUnreachable - 1;
    for (int32_t i = part(state, 1); i < part(state, 2); ++i) {
        int64_t cost = 0;
        for (size_t k = static_cast<size_t>(part(state, 3)); k < texts[i].size() && cost < best;
             ++k) {
            const auto byte = static_cast<uint8_t>(texts[i][k]);
            cost += measure == kWeight ? options_.weight[byte] : begins_character(byte);
        }
        best = std::min(best, cost);
    }
    return static_cast<int32_t>(best);
}

TextState Pool::table(Dfa dfa) {
    if (dfa.edges.empty() || dfa.accepting.size() != dfa.edges.size()) return kDeadText;
    std::string key;
    const auto put = [&](int32_t value) {
        key.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    ClassTables::Marks marks{};
    for (size_t i = 0; i < dfa.edges.size(); ++i) {
        put(dfa.accepting[i] ? -1 : -2);
        for (const Dfa::Edge& edge : dfa.edges[i]) {
            put(edge.low << 8 | edge.high);
            put(edge.to);
            for (int byte = edge.low; byte <= edge.high; ++byte) {
                marks[byte] = mix(mix(marks[byte], i), static_cast<uint64_t>(edge.to) + 1);
            }
        }
    }
    const auto [known, fresh] = known_tables_.try_emplace(key, dfas_.size());
    if (!fresh) return table_row(known->second, 0);
    source_memory_ += 3 * key.size();
    Table table{.dfa = std::move(dfa), .classes = tables_.classes(marks)};
    std::vector<std::vector<std::pair<int32_t, Dfa::Edge>>> into(table.dfa.edges.size());
    for (size_t i = 0; i < table.dfa.edges.size(); ++i) {
        for (const Dfa::Edge& edge : table.dfa.edges[i]) {
            into[edge.to].push_back({static_cast<int32_t>(i), edge});
        }
    }
    // The lightest byte of each edge, then shortest paths from the accepting states backwards.
    for (const Measure measure : {kWeight, kCharacters}) {
        std::vector<int32_t>& least = table.least[measure];
        least.assign(into.size(), kUnreachable);
        std::vector<std::pair<int32_t, int32_t>> heap;  // cost, state
        const auto offer = [&](int32_t cost, int32_t state) {
            if (cost >= least[state]) return;
            least[state] = cost;
            heap.push_back({cost, state});
            std::push_heap(heap.begin(), heap.end(), std::greater<>());
        };
        for (size_t i = 0; i < into.size(); ++i) {
            if (table.dfa.accepting[i]) offer(0, static_cast<int32_t>(i));
        }
        while (!heap.empty()) {
            std::pop_heap(heap.begin(), heap.end(), std::greater<>());
            const auto [cost, state] = heap.back();
            heap.pop_back();
            if (cost != least[state]) continue;
            for (const auto& [from, edge] : into[state]) {
                for (int byte = edge.low; byte <= edge.high; ++byte) {
                    const auto b = static_cast<uint8_t>(byte);
                    if (options_.barred[b]) continue;
                    offer(add_cost(cost,
                                   measure == kWeight ? options_.weight[b] : begins_character(b)),
                          from);
                }
            }
        }
    }
    for (const int32_t characters : table.least[kCharacters]) {
        if (characters < kUnreachable) table.deepest = std::max(table.deepest, characters);
    }
    dfas_.push_back(std::move(table));
    return table_row(known->second, 0);
}

TextState Pool::table_row(int32_t table, int32_t row) {
    if (dfas_[table].least[kWeight][row] >= kUnreachable) return kDeadText;
    const int32_t parts[] = {table, row};
    return intern(Kind::kTable, parts, dfas_[table].dfa.accepting[row], true, dfas_[table].classes);
}

TextState Pool::step_table(TextState state, uint8_t byte) {
    const int32_t table = part(state, 0);
    for (const Dfa::Edge& edge : dfas_[table].dfa.edges[part(state, 1)]) {
        if (edge.low <= byte && byte <= edge.high) return table_row(table, edge.to);
    }
    return kDeadText;
}

}  // namespace sglite::text
