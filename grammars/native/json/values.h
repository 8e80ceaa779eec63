// Values that were read within a text: equal ones have one number.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "value.h"

namespace sglite::json {

class Values {
  public:
    struct Entry {
        Value scalar{};  // of an array or an object only its kind
        std::vector<int32_t> items{};
        std::vector<std::pair<std::string, int32_t>> members{};  // by key

        Value::Kind kind() const { return scalar.kind; }
        // The number of the value at a key; -1: there is none.
        int32_t find(std::string_view key) const;
    };

    // The number of the value that a piece of a JSON text holds; commas and colons around it do not
    // matter. However deep it is, this neither recurses nor refuses.
    int32_t add(std::string_view text);
    const Entry& operator[](int32_t id) const { return entries_[id]; }
    size_t memory() const { return memory_; }

  private:
    int32_t intern(Entry entry);

    std::deque<Entry> entries_;
    std::unordered_map<std::string, int32_t> ids_;
    size_t memory_ = 0;
};

}  // namespace sglite::json
