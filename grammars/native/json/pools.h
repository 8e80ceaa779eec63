// Small pools that turn what is read into numbers: equal things have equal numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sglite::json {

struct NumbersHash {
    size_t operator()(const std::vector<int32_t>& key) const {
        uint64_t hash = 0x9E3779B97F4A7C15u ^ key.size();
        for (const int32_t part : key) {
            hash = (hash ^ static_cast<uint32_t>(part)) * 0xBF58476D1CE4E5B9u;
            hash ^= hash >> 31;
        }
        return hash;
    }
};

// Lists of numbers.
class Lists {
  public:
    int32_t add(const std::vector<int32_t>& list) {
        const auto [place, fresh] = ids_.try_emplace(list, static_cast<int32_t>(lists_.size()));
        if (fresh) lists_.push_back(&place->first);
        return place->second;
    }
    const std::vector<int32_t>& operator[](int32_t id) const { return *lists_[id]; }
    size_t size() const { return lists_.size(); }

  private:
    std::unordered_map<std::vector<int32_t>, int32_t, NumbersHash> ids_;
    std::vector<const std::vector<int32_t>*> lists_;
};

// Texts that grow byte by byte; 0 is the empty text.
class Chains {
  public:
    int32_t add(int32_t chain, uint8_t byte) {
        const uint64_t key = static_cast<uint64_t>(chain) << 8 | byte;
        const auto [place, fresh] = ids_.try_emplace(key, static_cast<int32_t>(links_.size() + 1));
        if (fresh) links_.push_back({chain, byte});
        return place->second;
    }
    int32_t add(int32_t chain, std::string_view text) {
        for (const char c : text) chain = add(chain, static_cast<uint8_t>(c));
        return chain;
    }
    // What was added to `from` to reach `chain`.
    std::string text(int32_t chain, int32_t from = 0) const {
        std::string found;
        for (; chain != from && chain != 0; chain = links_[chain - 1].before) {
            found.push_back(static_cast<char>(links_[chain - 1].byte));
        }
        std::ranges::reverse(found);
        return found;
    }
    size_t size() const { return links_.size(); }

  private:
    struct Link {
        int32_t before;
        uint8_t byte;
    };
    std::vector<Link> links_;
    std::unordered_map<uint64_t, int32_t> ids_;
};

}  // namespace sglite::json
