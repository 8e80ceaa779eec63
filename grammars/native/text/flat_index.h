// A hash table from keys to the numbers of states.
#pragma once

#include <cstdint>
#include <vector>

namespace sglite::text {

// `Key` has operator== and hash().
template <typename Key>
class FlatIndex {
  public:
    // The number known for the key, or -1.
    int32_t find(const Key& key) const { return slots_[place(key)].number; }
    // Of a key that is not known yet.
    void set(const Key& key, int32_t number) {
        if (2 * ++used_ >= slots_.size()) grow();
        slots_[place(key)] = {key, number};
    }

  private:
    struct Slot {
        Key key;
        int32_t number = -1;
    };

    size_t place(const Key& key) const {
        size_t at = key.hash() & (slots_.size() - 1);
        while (slots_[at].number >= 0 && !(slots_[at].key == key))
            at = (at + 1) & (slots_.size() - 1);
        return at;
    }
    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.number >= 0) slots_[place(slot.key)] = slot;
        }
    }

    std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two
    size_t used_ = 0;
};

}  // namespace sglite::text
