// A flat hash index: finds the number of a thing that is stored elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sglite::text {

inline uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0xBF58476D1CE4E5B9u;
    return hash ^ hash >> 29;
}

class Index {
  public:
    // The stored number with this hash for which `same(number)` holds, or -1.
    template <typename Same>
    int32_t find(uint64_t hash, Same same) const {
        if (slots_.empty()) return -1;
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash & mask; slots_[at].number >= 0; at = (at + 1) & mask) {
            if (slots_[at].hash == hash && same(slots_[at].number)) return slots_[at].number;
        }
        return -1;
    }

    void add(uint64_t hash, int32_t number) {
        if (2 * (count_ + 1) > slots_.size()) grow();
        place({hash, number});
        ++count_;
    }

    size_t memory() const { return slots_.size() * sizeof(Slot); }

  private:
    struct Slot {
        uint64_t hash = 0;
        int32_t number = -1;
    };

    void place(Slot slot) {
        const size_t mask = slots_.size() - 1;
        size_t at = slot.hash & mask;
        while (slots_[at].number >= 0) at = (at + 1) & mask;
        slots_[at] = slot;
    }

    void grow() {
        std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.number >= 0) place(slot);
        }
    }

    std::vector<Slot> slots_;
    size_t count_ = 0;
};

}  // namespace sglite::text
