// The pool of states behind `Languages`.
//
// A state stands for the set of texts that may follow; a language is the state before its texts.
// States are interned by what they are made of, and simplified when they are made:
//
//   kLength   need, room, node      texts of need..room more characters, behind half a character
//   kWords    list, low, high, at   words low..high of a sorted list, behind byte `at`
//   kTree     nfa, (place, node, need, room)...
//   kTable    table, row
//   kBoth     states...             at least two
//   kEither   states...             at least two; all live unless conditional
//   kNot      state, node           texts that the state does not hold
//   kBounded  state, need, room     texts of the state of need..room more characters
//   kQuote    passages, at, need, room   the places of a document that have been read up to; `at`
//                                        is three numbers
//
// `node` is one of Spelled: how far a character has come. Whether a state is live is known from
// its making for most kinds; it is searched for kBoth, kNot and conditional patterns, and found
// from the lengths of texts for kBounded.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "classes.h"
#include "languages.h"
#include "lengths.h"
#include "nfa.h"
#include "passages.h"

namespace sglite::text {

enum class Kind : uint8_t {
    kLength,
    kWords,
    kTree,
    kTable,
    kBoth,
    kEither,
    kNot,
    kBounded,
    kQuote
};

// How rests are measured: by the weights of their bytes, or by their characters.
enum Measure : int { kWeight = 0, kCharacters = 1 };

constexpr TextState kAll = 0;  // before any text

struct State {
    Kind kind;
    bool accepting;
    int8_t live = 0;    // -1: no text follows; 0: not known
    int8_t onward = 0;  // whether anything can follow; -1: no, 0: not known
    // A conditional pattern has a part in it: states are made of others that may be dead.
    bool conditional = false;
    bool explored = false;  // it was conditional until all that follows was found
    int32_t classes;
    uint32_t first, size;      // its parts
    int32_t least[2]{-1, -1};  // per measure the least rest; -1: not known
    int32_t bound[2]{-1, -1};  // per measure a lower bound of it; -1: not asked for yet
    const uint8_t* of = nullptr;
    int32_t* row = nullptr;  // edges per class; made when first asked for
};

class Pool {
  public:
    explicit Pool(const Languages::Options& options);

    // -- edges (pool.cpp)
    TextState next(TextState state, uint8_t byte);
    TextState edge(TextState state, int byte_class);  // the same for a class
    bool live(TextState state);
    // The least rest of a live state.
    int32_t least(TextState state, Measure measure);
    // The first step of the lightest rest, where that is not empty.
    std::pair<uint8_t, TextState> lightest(TextState state);
    bool can_go_on(TextState state);
    bool accepts(TextState state) const { return states_[state].accepting; }
    const ByteClasses& classes(TextState state) const { return tables_[states_[state].classes]; }
    Kind kind(TextState state) const { return states_[state].kind; }
    std::span<const int32_t> parts(TextState state) const {
        return {parts_.data() + states_[state].first, states_[state].size};
    }
    int32_t part(TextState state, int i) const { return parts_[states_[state].first + i]; }
    size_t memory() const;

    // -- making states; kDeadText for those that are known to be dead
    TextState words(std::vector<std::string> texts);
    TextState length(int32_t need, int32_t room, int32_t node = kAnyCharacter);
    TextState table(Dfa dfa);
    TextState tree(const Regex& tree, bool search);                // (patterns.cpp)
    TextState quote(std::string_view document, bool whole_words);  // (quotes.cpp)
    TextState both(std::vector<TextState> states);                 // (logic.cpp)
    TextState either(std::vector<TextState> states);
    TextState complement(TextState state, int32_t node = kAnyCharacter);
    TextState bounded(TextState state, int32_t need, int32_t room);

    // -- what could need a search later (settle.cpp)
    void settle(TextState state);
    void trust(TextState state);
    void settle_together(const std::vector<TextState>& start);
    void lift_limits() { limited_ = false; }

    // -- bounds (reach.cpp)
    Reach reach(TextState state);
    struct Depth {
        int32_t deepest, closed;
    };
    Depth depth(TextState state);
    TextState clipped(TextState state);
    bool leaves_out(TextState state, size_t most, std::vector<std::string>& texts) const;

    // -- questions about all texts (survey.cpp)
    int64_t count(TextState state, int64_t limit);
    std::vector<std::string> examples(TextState state, size_t limit);
    std::bitset<256> bytes(TextState state);
    bool allows(TextState state, int32_t node);
    Spelled& spelled() { return spelled_; }
    // Of a state of kQuote.
    Quoted quoted(TextState state) const;
    // All words of the list of a state of kWords.
    const std::vector<std::string>& list(TextState state) const {
        return words_[part(state, 0)].texts;
    }

  private:
    friend class Lengths;
    struct Words {
        std::vector<std::string> texts;
        int32_t classes;
        int32_t longest = 0;  // in characters
    };
    struct Table {
        Dfa dfa;
        int32_t classes;
        std::vector<int32_t> least[2]{};
        int32_t deepest = 0;
    };

    TextState intern(Kind kind, std::span<const int32_t> parts, bool accepting, bool live,
                     int32_t classes);
    int32_t* row(TextState state);
    TextState raw(TextState state, int byte_class);
    TextState member(TextState state, uint8_t byte);
    TextState step(TextState state, uint8_t byte);
    void spend(int64_t work);

    // Simple kinds (simple.cpp)
    TextState word(int32_t list, int32_t low, int32_t high, int32_t at);
    TextState step_length(TextState state, uint8_t byte);
    TextState step_words(TextState state, uint8_t byte);
    TextState step_table(TextState state, uint8_t byte);
    TextState table_row(int32_t table, int32_t row);
    int32_t least_of_words(TextState state, Measure measure);

    // Patterns (tree.cpp)
    struct Item {
        int32_t place, node, need, room;
        auto operator<=>(const Item&) const = default;
    };
    struct Closing;
    int32_t nfa(const Regex& tree, std::vector<Ranges> borders);
    TextState begin(int32_t nfa, Context context);
    TextState step_tree(TextState state, uint8_t byte);
    TextState collect(int32_t nfa, std::vector<std::pair<TextState, Item>>& items);
    TextState items(int32_t nfa, std::vector<Item>& items);
    int32_t over_items(TextState state, const std::vector<int32_t>& cost, Measure measure);
    int32_t closed_from(TextState state);
    TextState whole(const std::vector<const Regex*>& parts, bool from_start, bool to_end);

    // Quotes (quotes.cpp)
    TextState quote(int32_t number, Passages::At at, Passages::Count count);
    TextState step_quote(TextState state, uint8_t byte);

    // Logic (logic.cpp)
    TextState step_logic(TextState state, uint8_t byte);

    bool goes_round(TextState state);  // (survey.cpp)

    // Searches (search.cpp)
    int32_t known_least(TextState state, Measure measure);
    int32_t lower_bound(TextState state, Measure measure);
    int32_t find_lower_bound(TextState state, Measure measure);
    void search(TextState state, Measure measure);
    // Whether lengths decide if it is live; the inside of conditional states may not be settled.
    bool by_lengths(TextState state) const {
        return kind(state) == Kind::kBounded && !states_[state].conditional;
    }
    bool bounded_is_live(TextState state);

    // Settling (settle.cpp)
    bool is_cofinite(TextState state) const;
    bool is_open_ended(TextState state) const;
    void explore(TextState start);
    void settle_lengths(TextState inside, int32_t need, int32_t room);
    void check_counts(const Nfa& nfa) const;

    // Bounds (reach.cpp)
    struct Slack {
        int32_t open, closed;
    };
    Slack slack(TextState state);

    Languages::Options options_;
    Spelled spelled_;
    ClassTables tables_;
    int32_t plain_classes_;
    std::vector<State> states_;
    std::vector<int32_t> parts_;
    Index index_;
    std::vector<std::unique_ptr<int32_t[]>> rows_;
    size_t row_left_ = 0, row_memory_ = 0;
    int32_t* row_at_ = nullptr;
    std::vector<Words> words_;
    std::vector<Table> dfas_;
    std::vector<std::pair<std::unique_ptr<Passages>, int32_t>> quotes_;  // with their classes
    std::vector<std::unique_ptr<Nfa>> nfas_;
    std::unordered_map<std::string, int32_t> known_tables_, known_nfas_, known_words_;
    size_t source_memory_ = 0;
    std::unordered_set<TextState> settled_;
    bool limited_ = true;
    // For all languages together, as long as there are limits: edges that may be made beforehand,
    // and parts of states that may be looked at to make states.
    int64_t edges_left_ = 2'000'000, work_left_ = 12'000'000;
    Lengths lengths_;
};

}  // namespace sglite::text
