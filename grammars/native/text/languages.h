// Sets of texts ("languages") and one lazily built deterministic automaton over all of them.
//
// Languages are interned: built from equal parts they are one number. Automata work on the bytes
// of UTF-8; only whole characters are ever read, never surrogates. Nothing here knows of JSON
// escapes, tokens or schemas.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../refused.h"
#include "passages.h"
#include "regex.h"

namespace sglite::text {

using LangId = int32_t;
constexpr LangId kNoText = 0;   // no text at all
constexpr LangId kAnyText = 1;  // every text

// A position in a language; the number alone says in which. Interned for the life of the pool.
using TextState = int32_t;
constexpr TextState kDeadText = -1;

// An automaton that is given as a whole. State 0 is the start; edges of one state do not overlap.
struct Dfa {
    struct Edge {
        uint8_t low, high;  // bytes, inclusive
        int32_t to;
    };
    std::vector<std::vector<Edge>> edges;
    std::vector<bool> accepting;
};

// How far any text may follow from a state: every text of up to `free` characters is the beginning
// of a rest (INT32_MAX: every text is); with `hard`, no longer text is.
struct Reach {
    int32_t free = 0;
    bool hard = false;
};

// Where a quote stands in its document.
struct Quoted {
    const Passages* passages;
    Passages::At at;
    Passages::Count count;
};

class Languages {
  public:
    struct Options {
        // Bytes that no text may hold (the vocabulary cannot write them).
        std::bitset<256> barred{};
        // What a byte adds to `distance`: at least 1.
        std::array<uint8_t, 256> weight{};  // 0 stands for 1
        // States that differ only further away than this many bytes are alike.
        int32_t longest_token = 32;
        // Above so many states of one search the language is refused.
        int32_t most_states = 50'000;
    };
    explicit Languages(const Options& options);
    ~Languages();

    // All of these throw Refused past the limits.
    LangId words(std::vector<std::string> texts);  // UTF-8, any order, duplicates allowed
    LangId length(int64_t low, int64_t high);      // code points; high -1: without end
    LangId regex(const Regex& tree, bool search);  // full match, or a match somewhere
    LangId pattern(std::string_view pattern, Dialect dialect, bool search);
    LangId automaton(Dfa dfa);
    // Passages of a document that are not empty.
    LangId quote(std::string_view document, bool whole_words);
    LangId both(std::vector<LangId> parts);    // of nothing: every text
    LangId either(std::vector<LangId> parts);  // of nothing: no text
    LangId complement(LangId language);

    bool contains(LangId language, std::string_view text);
    bool empty(LangId language) { return start(language) == kDeadText; }
    // How many texts there are, at most `limit`.
    int64_t count(LangId language, int64_t limit);
    // Some texts of the language, shortest first, at most `limit`: for reports and tests.
    std::vector<std::string> examples(LangId language, size_t limit);
    // Every byte that some text of the language holds.
    std::bitset<256> bytes(LangId language);

    // kDeadText for an empty language.
    TextState start(LangId language);
    // kDeadText where no text of the language begins so.
    TextState next(TextState state, uint8_t byte);
    bool accepts(TextState state);
    // Whether anything can follow.
    bool can_go_on(TextState state);
    // The weight of the lightest rest that ends in the language; never kUnreachable.
    int32_t distance(TextState state);
    // The first step of a lightest rest, where that is not empty.
    std::pair<uint8_t, TextState> lightest(TextState state);
    // Over all states that can follow, the greatest number of characters that the shortest rest
    // has; kUnreachable where it is not known.
    int32_t deepest(TextState state);
    // Only at the start of a character.
    Reach reach(TextState state);
    // Whether every text may follow but at most `most` ones, which are added to `texts` then.
    bool leaves_out(TextState state, size_t most, std::vector<std::string>& texts) const;
    // A state with the same next steps for texts of up to longest_token bytes.
    TextState clipped(TextState state);
    // What a state is that belongs to a quote alone, bounded in length or not.
    std::optional<Quoted> quoted(TextState state) const;
    // Per byte a class; those of one class lead to the same state.
    const uint8_t* classes(TextState state) const;
    // Whether a character of [low, high] can follow.
    bool allows(TextState state, uint32_t low, uint32_t high);

    // Finds what could need a search when texts of the language are read. Throws Refused where it
    // is too much.
    void settle(LangId language);
    // The same for every way to be in some of the languages and not in others.
    void settle(const std::vector<LangId>& languages);
    // Leaves out a language of ours that is known to need no long search.
    void trust(LangId language);
    // From here on no search is given up: all languages have been settled.
    void lift_limits();

    // Rough size in bytes.
    size_t memory() const;

  private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

}  // namespace sglite::text
