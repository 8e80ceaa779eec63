// What was found of one machine so far: the places where matchers stand, and the masks there.
//
// Knows nothing of eos ids, matchers and locks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "machine.h"
#include "vocabulary.h"

namespace sglite {

// Dense; equal positions are one place.
using PlaceId = int32_t;
constexpr PlaceId kNowhere = -1;

class Places {
  public:
    Places(std::unique_ptr<Machine> machine, const Vocabulary& vocabulary);

    // The place before any text; with `prefix`, these bytes come first.
    PlaceId start(std::string_view prefix);
    // The place after a whole token or text, or kNowhere.
    PlaceId after(PlaceId place, std::string_view text);

    bool complete(PlaceId place) const { return places_[place].complete; }
    bool can_go_on(PlaceId place);
    // Upper bound on the tokens to a match; from 1 up, some token lowers it.
    int32_t cost(PlaceId place);
    // How many text ids may follow.
    int32_t count(PlaceId place);
    // Writes the text ids that may follow; with `budget` >= 0 those after which the bound is below
    // it.
    void fill(PlaceId place, std::span<uint32_t> mask, int32_t budget);
    // The same, if the mask is at hand; else false.
    bool fill_known(PlaceId place, std::span<uint32_t> mask, int32_t budget);
    // The only byte that can follow, or -1 where there is a choice (ending is one).
    int forced_byte(PlaceId place);
    // Whether after `text`, which can follow here, a token that starts with text[from:] and is
    // longer can stand.
    bool unsettled(PlaceId place, std::string_view text, size_t from);

    // Rough size in bytes without the masks, which are bounded on their own.
    size_t memory() const;

  private:
    static constexpr int16_t kUnknown = -2, kNoByte = -1;

    // A position of the machine, or one in a prefix that comes before it.
    struct Cursor {
        Position at{};
        int32_t prefix = -1;
        int32_t offset = 0;
        bool operator==(const Cursor&) const = default;
    };
    struct CursorHash {
        size_t operator()(const Cursor& cursor) const;
    };
    struct Prefix {
        std::string text;
        std::vector<int32_t> cost;  // per offset
    };
    // A mask as bits, or as ids where these are few.
    struct Kept {
        std::vector<uint32_t> bits;
        std::vector<int32_t> ids;
        int32_t count;  // of ids; kUnknown until it is asked for
        int32_t rise;   // no token raises the bound by more; kUnreachable: not known
        uint64_t used;
    };
    struct Place {
        Cursor cursor;
        Kept* mask = nullptr;
        int32_t cost = kUnknown;
        int32_t highest = kUnknown;  // no token leads to a greater bound
        int16_t forced = kUnknown;   // the byte, kNoByte where there is a choice
        bool complete = false;
    };

    static Cursor shared_key(int32_t number);
    bool step(Cursor& cursor, uint8_t byte);
    bool steps(Cursor& cursor, std::string_view text);
    int32_t cost_of(const Cursor& cursor);
    PlaceId intern(const Cursor& cursor);
    void grow();
    int32_t prefix_number(std::string_view text);

    Kept* known_mask(PlaceId place);
    Kept& mask_of(PlaceId place);
    void find_in_prefix(const Cursor& cursor, Mask& mask);
    bool all_within(PlaceId place, const Kept& kept, int32_t budget);
    void fill_within(PlaceId place, std::span<uint32_t> mask, int32_t budget);
    void write(const Kept& kept, std::span<uint32_t> mask);
    void evict();
    size_t memory_of(const Kept& kept) const;

    std::unique_ptr<Machine> machine_;
    const Vocabulary& vocabulary_;
    std::vector<Place> places_;
    std::vector<PlaceId> table_;  // open addressing; kNowhere: free
    std::vector<Prefix> prefixes_;
    std::map<std::string, int32_t, std::less<>> prefix_numbers_;
    size_t prefix_memory_ = 0;

    std::unordered_map<Cursor, std::unique_ptr<Kept>, CursorHash> masks_;
    size_t mask_memory_ = 0;
    std::vector<uint32_t> scratch_;  // [mask_words] zeros, or empty
    uint64_t clock_ = 0;
};

}  // namespace sglite
