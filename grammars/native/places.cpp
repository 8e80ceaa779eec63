#include "places.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "walk.h"

namespace sglite {
namespace {

constexpr size_t kMaskMemory = 64 << 20;
constexpr size_t kMostIds = 64;  // above, setting single bits takes longer than copying all

// Appends the ids of the bits, unless these are more than `most`. False then.
bool list_ids(std::span<const uint32_t> bits, size_t most, std::vector<int32_t>& ids) {
    constexpr size_t kRun = 16;  // mostly there is nothing in so many words
    for (size_t begin = 0; begin < bits.size(); begin += kRun) {
        const size_t end = std::min(begin + kRun, bits.size());
        uint32_t any = 0;
        for (size_t word = begin; word < end; ++word) any |= bits[word];
        for (size_t word = begin; any != 0 && word < end; ++word) {
            for (uint32_t rest = bits[word]; rest != 0; rest &= rest - 1) {
                if (ids.size() == most) return false;
                ids.push_back(static_cast<int32_t>(32 * word) + std::countr_zero(rest));
            }
        }
    }
    return true;
}

}  // namespace

// Where a mask that many places share is kept: a cursor that stands nowhere.
Places::Cursor Places::shared_key(int32_t number) {
    Cursor key;
    key.at.at.fill(-1);
    key.offset = number;
    return key;
}

size_t Places::CursorHash::operator()(const Cursor& cursor) const {
    const auto prefix = static_cast<uint64_t>(cursor.prefix + 1) << 20;
    return PositionHash()(cursor.at) + (prefix + static_cast<uint64_t>(cursor.offset)) * 31;
}

Places::Places(std::unique_ptr<Machine> machine, const Vocabulary& vocabulary)
    : machine_(std::move(machine)), vocabulary_(vocabulary), table_(64, kNowhere) {}

bool Places::step(Cursor& cursor, uint8_t byte) {
    if (cursor.prefix < 0) return machine_->step(cursor.at, byte);
    const std::string& text = prefixes_[cursor.prefix].text;
    if (static_cast<uint8_t>(text[cursor.offset]) != byte) return false;
    if (++cursor.offset == static_cast<int32_t>(text.size())) cursor = {machine_->start()};
    return true;
}

bool Places::steps(Cursor& cursor, std::string_view text) {
    return std::ranges::all_of(text, [&](char c) { return step(cursor, static_cast<uint8_t>(c)); });
}

int32_t Places::cost_of(const Cursor& cursor) {
    return cursor.prefix < 0 ? machine_->cost(cursor.at)
                             : prefixes_[cursor.prefix].cost[cursor.offset];
}

PlaceId Places::intern(const Cursor& cursor) {
    const size_t mask = table_.size() - 1;
    size_t slot = CursorHash()(cursor) & mask;
    for (; table_[slot] != kNowhere; slot = (slot + 1) & mask) {
        if (places_[table_[slot]].cursor == cursor) return table_[slot];
    }
    const auto id = static_cast<PlaceId>(places_.size());
    table_[slot] = id;
    const bool complete = cursor.prefix < 0 && machine_->complete(cursor.at);
    Place& made = places_.emplace_back();
    made.cursor = cursor;
    made.complete = complete;
    if (2 * places_.size() > table_.size()) grow();
    return id;
}

void Places::grow() {
    table_.assign(2 * table_.size(), kNowhere);
    const size_t mask = table_.size() - 1;
    for (size_t id = 0; id < places_.size(); ++id) {
        size_t slot = CursorHash()(places_[id].cursor) & mask;
        while (table_[slot] != kNowhere) slot = (slot + 1) & mask;
        table_[slot] = static_cast<PlaceId>(id);
    }
}

// The bound within a prefix: the fewest tokens that spell the rest exactly, then the grammar.
int32_t Places::prefix_number(std::string_view text) {
    const auto known = prefix_numbers_.find(text);
    if (known != prefix_numbers_.end()) return known->second;
    const Trie& trie = vocabulary_.trie();
    std::vector<int32_t> cost(text.size() + 1, kUnreachable);
    cost.back() = machine_->cost(machine_->start());
    for (size_t begin = text.size(); begin-- > 0;) {
        uint32_t node = 0;
        for (size_t end = begin; end < text.size();) {
            node = trie.child(node, static_cast<uint8_t>(text[end++]));
            if (node == 0) break;
            if (trie.nodes()[node].strings == 0) continue;
            cost[begin] = std::min(cost[begin], add_cost(1, cost[end]));
        }
    }
    const auto number = static_cast<int32_t>(prefixes_.size());
    prefix_memory_ += 8 * text.size() + 160;
    prefixes_.push_back({std::string(text), std::move(cost)});
    prefix_numbers_.emplace(text, number);
    return number;
}

PlaceId Places::start(std::string_view prefix) {
    if (prefix.empty()) return intern({machine_->start()});
    return intern({{}, prefix_number(prefix), 0});
}

PlaceId Places::after(PlaceId place, std::string_view text) {
    Cursor cursor = places_[place].cursor;
    return steps(cursor, text) ? intern(cursor) : kNowhere;
}

bool Places::can_go_on(PlaceId place) {
    const Cursor& cursor = places_[place].cursor;
    return cursor.prefix >= 0 || machine_->can_go_on(cursor.at);
}

int32_t Places::cost(PlaceId place) {
    Place& at = places_[place];
    if (at.cost == kUnknown) at.cost = cost_of(at.cursor);
    return at.cost;
}

void Places::find_in_prefix(const Cursor& cursor, Mask& mask) {
    const Trie& trie = vocabulary_.trie();
    walk(
        trie, 0, cursor, [&](Cursor& at, uint8_t byte) { return step(at, byte); },
        [&](uint32_t node, const Cursor& at) {
            set_bits(trie, node, mask.bits.data());
            mask.highest = std::max(mask.highest, cost_of(at));
            return true;
        });
}

// The mask of a place if it or one of a place alike is there, else null.
Places::Kept* Places::known_mask(PlaceId place) {
    Place& at = places_[place];
    if (at.mask == nullptr) {
        Cursor key = at.cursor;
        if (key.prefix < 0) key.at = machine_->alike(key.at);
        const auto known = masks_.find(key);
        if (known == masks_.end()) return nullptr;
        at.mask = known->second.get();
    }
    at.mask->used = ++clock_;
    return at.mask;
}

Places::Kept& Places::mask_of(PlaceId place) {
    if (Kept* const known = known_mask(place)) return *known;
    Cursor key = places_[place].cursor;
    const int32_t same = key.prefix < 0 ? machine_->same_mask(key.at) : -1;
    if (same >= 0) {
        const Cursor shared = shared_key(same);
        if (const auto known = masks_.find(shared); known != masks_.end()) {
            places_[place].mask = known->second.get();
            known->second->used = ++clock_;
            return *known->second;
        }
    }
    Mask mask;
    mask.bits = std::move(scratch_);
    if (mask.bits.empty()) mask.bits.resize(vocabulary_.mask_words(), 0);
    scratch_.clear();
    if (key.prefix < 0) {
        machine_->find_mask(key.at, mask);
        key = same >= 0 ? shared_key(same) : Cursor{machine_->alike(key.at)};
    } else {
        find_in_prefix(key, mask);
    }
    auto kept = std::make_unique<Kept>();
    kept->count = kUnknown;
    kept->rise = mask.highest >= kUnreachable ? kUnreachable : mask.highest - cost(place);
    kept->used = ++clock_;
    if (list_ids(mask.bits, kMostIds, kept->ids)) {
        kept->count = static_cast<int32_t>(kept->ids.size());
        for (const int32_t id : kept->ids) mask.bits[id >> 5] = 0;
        scratch_ = std::move(mask.bits);
    } else {
        kept->ids = {};
        kept->bits = std::move(mask.bits);
    }
    if (mask_memory_ > kMaskMemory) evict();
    mask_memory_ += memory_of(*kept);
    places_[place].mask = kept.get();
    return *(masks_[key] = std::move(kept));
}

int32_t Places::count(PlaceId place) {
    Kept& kept = mask_of(place);
    if (kept.count == kUnknown) {
        kept.count = 0;
        for (const uint32_t word : kept.bits) kept.count += std::popcount(word);
    }
    return kept.count;
}

size_t Places::memory_of(const Kept& kept) const {
    return 4 * (kept.bits.size() + kept.ids.size()) + 192;
}

// Drops the half of the masks that was used longest ago.
void Places::evict() {
    std::vector<uint64_t> used;
    for (const auto& [key, kept] : masks_) used.push_back(kept->used);
    std::nth_element(used.begin(), used.begin() + used.size() / 2, used.end());
    const uint64_t middle = used[used.size() / 2];
    for (Place& place : places_) {
        if (place.mask != nullptr && place.mask->used < middle) place.mask = nullptr;
    }
    std::erase_if(masks_, [&](const auto& entry) {
        if (entry.second->used >= middle) return false;
        mask_memory_ -= memory_of(*entry.second);
        return true;
    });
}

// Whether every token of the mask keeps the bound below the budget. Where that is not known yet,
// false.
bool Places::all_within(PlaceId place, const Kept& kept, int32_t budget) {
    if (budget < 0) return true;
    const Place& at = places_[place];
    if (at.highest != kUnknown) return budget > at.highest;
    if (kept.rise < kUnreachable) return budget > add_cost(cost(place), kept.rise);
    return budget > machine_->farthest();
}

void Places::write(const Kept& kept, std::span<uint32_t> mask) {
    if (kept.bits.empty()) {
        std::memset(mask.data(), 0, mask.size_bytes());
        for (const int32_t id : kept.ids) mask[id >> 5] |= 1u << (id & 31);
    } else {
        std::memcpy(mask.data(), kept.bits.data(), mask.size_bytes());
    }
}

bool Places::fill_known(PlaceId place, std::span<uint32_t> mask, int32_t budget) {
    const Kept* const kept = known_mask(place);
    if (kept == nullptr || !all_within(place, *kept, budget)) return false;
    write(*kept, mask);
    return true;
}

void Places::fill(PlaceId place, std::span<uint32_t> mask, int32_t budget) {
    const Kept& kept = mask_of(place);
    if (all_within(place, kept, budget)) return write(kept, mask);
    fill_within(place, mask, budget);
}

// Finds the greatest bound behind any token on the way, for the next time.
void Places::fill_within(PlaceId place, std::span<uint32_t> mask, int32_t budget) {
    if (const Cursor& cursor = places_[place].cursor; cursor.prefix < 0) {
        Mask within;
        within.bits.resize(mask.size(), 0);
        if (machine_->find_within(cursor.at, budget, within)) {
            std::ranges::copy(within.bits, mask.begin());
            places_[place].highest = within.highest;
            return;
        }
    }
    std::memset(mask.data(), 0, mask.size_bytes());
    const Trie& trie = vocabulary_.trie();
    // In free text most tokens lead back to one position.
    Cursor last = places_[place].cursor;
    int32_t then = cost(place), highest = 0;
    walk(
        trie, 0, last, [&](Cursor& at, uint8_t byte) { return step(at, byte); },
        [&](uint32_t node, const Cursor& at) {
            if (!(at == last)) {
                last = at;
                then = cost_of(at);
            }
            highest = std::max(highest, then);
            if (then < budget) set_bits(trie, node, mask.data());
            return true;
        });
    places_[place].highest = highest;
}

int Places::forced_byte(PlaceId place) {
    Place& at = places_[place];
    if (at.forced != kUnknown) return at.forced;
    at.forced = kNoByte;
    if (at.complete) return at.forced;
    for (int value = 0; value < 256; ++value) {
        Cursor next = at.cursor;
        if (!step(next, static_cast<uint8_t>(value))) continue;
        if (at.forced != kNoByte) return at.forced = kNoByte;
        at.forced = static_cast<int16_t>(value);
    }
    return at.forced;
}

bool Places::unsettled(PlaceId place, std::string_view text, size_t from) {
    Cursor cursor = places_[place].cursor;
    if (!steps(cursor, text)) return false;
    const Trie& trie = vocabulary_.trie();
    const int64_t node = trie.find(text.substr(from));
    if (node < 0) return false;
    bool found = false;
    walk(
        trie, static_cast<uint32_t>(node), cursor,
        [&](Cursor& at, uint8_t byte) { return step(at, byte); },
        [&](uint32_t, const Cursor&) {
            found = true;
            return false;
        });
    return found;
}

size_t Places::memory() const {
    return machine_->memory() + places_.capacity() * sizeof(Place) + 4 * table_.capacity() +
           prefix_memory_;
}

}  // namespace sglite
