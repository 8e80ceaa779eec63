// A grammar that sequences share, and the position of one sequence in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "history.h"
#include "places.h"

namespace sglite {

class Matcher;

// Immutable for its users; inside, places and masks are found lazily under a lock. What was found
// is forgotten when it has grown too large, or when a search was given up in the midst of it: a new
// generation begins, with an empty machine, and matchers find their place in it again from the
// tokens that they accepted. Whatever asks a machine throws Refused where its searches do.
class Grammar : public std::enable_shared_from_this<Grammar> {
  public:
    // Throws Refused where the machine does.
    Grammar(std::shared_ptr<const Vocabulary> vocabulary, MakeMachine make);

    ~Grammar();
    Grammar(const Grammar&) = delete;
    Grammar& operator=(const Grammar&) = delete;

    // Throws Refused for a prefix that the vocabulary cannot spell byte by byte.
    Matcher matcher(std::string_view prefix);
    const Vocabulary& vocabulary() const { return *vocabulary_; }
    // Its machine, to stand inside of another one for the same vocabulary.
    const MakeMachine& machines() const { return make_; }

    // Whether some thread does what may take long.
    bool busy() const { return busy_.load(std::memory_order_relaxed) > 0; }
    // Rough size in bytes of what was found, masks left out. While another thread looks for more,
    // it is what it was before.
    size_t memory();
    // The same of all grammars that there are.
    static size_t memory_of_all() { return static_cast<size_t>(all_.load()); }
    // The size above which a new generation begins.
    void limit_memory(size_t bytes);
    uint32_t generation();

  private:
    friend class Matcher;

    // The lock of all that asks the machine.
    class Use {
      public:
        explicit Use(Grammar& grammar);
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
        ~Use();

      private:
        Grammar& grammar_;
        const std::lock_guard<std::mutex> lock_;
        const int thrown_;
    };

    PlaceId place_of(StepId step, const std::string* prefix);
    void renew();
    void renew_if_large();
    size_t count_memory();

    std::shared_ptr<const Vocabulary> vocabulary_;
    MakeMachine make_;
    static std::atomic<int64_t> all_;
    std::atomic<int> busy_ = 0;
    std::atomic<size_t> counted_ = 0;
    std::mutex mutex_;  // for all below
    std::unique_ptr<Places> places_;
    History history_;
    uint32_t generation_ = 0;
    bool spoiled_ = false;  // something was given up half found
    size_t limit_ = 192 << 20;
    size_t replayed_ = 0;  // bytes that replaying has found in this generation
};

// Matchers of one grammar may be used by different threads. One that several threads use at once
// goes on by what each of them accepts, in some order.
class Matcher {
  public:
    Matcher(std::shared_ptr<Grammar> grammar, std::string_view prefix);
    Matcher(const Matcher& other);
    Matcher& operator=(const Matcher&) = delete;
    ~Matcher();

    // `mask` has mask_words() words. Throws std::invalid_argument for another length. With
    // `budget` >= 0, only ids are set after which the bound on the rest is below it.
    void fill_mask(std::span<uint32_t> mask, int32_t budget);
    // The same, if it takes no time; else false.
    bool fill_known_mask(std::span<uint32_t> mask, int32_t budget);
    // False, and nothing changed, for a refused id.
    bool accept(int64_t id);
    // All or nothing.
    bool accept_all(std::span<const int64_t> ids);
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
    std::pair<uint32_t, int32_t> key() const;

    const Grammar& grammar() const { return *grammar_; }

    static constexpr size_t kMaxForced = 4096;

  private:
    PlaceId place() const { return grammar_->place_of(step_, prefix_.get()); }
    void check_length(std::span<uint32_t> mask) const;
    bool accept_locked(int64_t id);
    void rollback_locked(size_t count);

    std::shared_ptr<Grammar> grammar_;
    std::shared_ptr<const std::string> prefix_;  // null: none
    StepId step_;                                // under the grammar's lock, as the next two
    uint32_t length_ = 0;                        // accepted ids
    bool ended_ = false;                         // the last one is an eos id
};

}  // namespace sglite
