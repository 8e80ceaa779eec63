// How many tokens texts take: the currency of all bounds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../text/languages.h"
#include "../trie.h"

namespace sglite::json {

// How a text is written within a string, canonically.
std::string written(std::string_view text);

class Spelling {
  public:
    // Without tokens, every byte is one.
    Spelling(text::Languages& languages, const Trie* tokens)
        : languages_(languages), tokens_(tokens) {}

    // The fewest tokens that spell a text as it stands.
    int32_t of(std::string_view text) const;
    // Per byte of the content of a string, and at its end: the fewest that spell the rest.
    const std::vector<int32_t>& rests(const std::string& content);
    // A bound on those that lead from a state within a string to its end: some token that may
    // follow lowers it, where it is not 0.
    int32_t rest(text::TextState state);
    size_t memory() const { return 64 * steps_.size() + memory_; }

  private:
    struct Step {  // towards the lightest end
        uint8_t byte;
        text::TextState to;
        int32_t cost;
    };
    std::vector<int32_t> fewest(std::string_view text) const;
    int32_t price(text::TextState from) const;

    text::Languages& languages_;
    const Trie* const tokens_;
    std::unordered_map<std::string, std::vector<int32_t>> rests_;
    std::unordered_map<text::TextState, Step> steps_;
    size_t memory_ = 0;
};

}  // namespace sglite::json
