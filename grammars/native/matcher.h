// A grammar that sequences share, and the position of one sequence in it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "network.h"
#include "states.h"
#include "vocabulary.h"

namespace sglite {

class Matcher;

// Immutable for its users; inside, states and masks are found lazily under a lock.
class Grammar : public std::enable_shared_from_this<Grammar> {
  public:
    // Throws Refused.
    Grammar(std::shared_ptr<const Vocabulary> vocabulary, Network network, bool check_bytes);

    // Throws Refused for a prefix that the vocabulary cannot spell byte by byte.
    Matcher matcher(std::string_view prefix);
    const Vocabulary& vocabulary() const { return *vocabulary_; }
    // For reports: nodes and byte edges of the network.
    std::pair<size_t, size_t> shape() const;

  private:
    friend class Matcher;

    std::shared_ptr<const Vocabulary> vocabulary_;
    Network network_;
    std::mutex mutex_;
    // Replaced when it has grown too large; positions keep the one that they were found in.
    std::shared_ptr<States> states_;
    uint64_t generation_ = 0;
};

// Not thread-safe by itself; matchers of one grammar may be used by different threads.
class Matcher {
  public:
    Matcher(std::shared_ptr<Grammar> grammar, std::string_view prefix);

    // `mask` has mask_words() words. Throws std::invalid_argument for another length.
    void fill_mask(std::span<uint32_t> mask, int32_t budget);
    // False, and nothing changed, for a refused id.
    bool accept(int32_t id);
    // All or nothing.
    bool accept_all(std::span<const int32_t> ids);
    // Takes back the last `count` accepted ids. Throws std::invalid_argument for more than there
    // are.
    void rollback(size_t count);

    bool is_complete() const;
    bool is_finished() const;
    int32_t allowed_count() const;
    int32_t tokens_to_finish() const;
    // The bytes that must come next, up to a choice (at most kMaxForced).
    std::string forced_bytes() const;
    // Whether after `text`, which can follow here, a token that starts with text[from:] and is
    // longer can stand: then the ids from there on are not settled.
    bool unsettled(std::string_view text, size_t from) const;
    // Equal for equal positions of matchers of one grammar (not the other way round for ever).
    std::pair<uint64_t, int32_t> key() const;

    static constexpr size_t kMaxForced = 4096;

  private:
    struct Position {
        std::shared_ptr<States> states;
        StateId state;
        uint64_t generation;
    };

    Position current_states(const Position& from) const;
    bool accept_locked(int32_t id);
    void rollback_locked(size_t count);

    std::shared_ptr<Grammar> grammar_;
    Position at_;
    bool ended_ = false;  // an eos id was accepted
    std::vector<std::pair<Position, bool>> history_;
};

}  // namespace sglite
