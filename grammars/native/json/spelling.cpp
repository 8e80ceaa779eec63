#include "spelling.h"

#include <algorithm>

namespace sglite::json {
namespace {

constexpr int32_t kFarthest = 64;  // bytes; longer ends are priced by the byte

}  // namespace

std::string written(std::string_view text) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string found;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        const size_t place = std::string_view("\"\\\b\f\n\r\t").find(c);
        if (place != std::string_view::npos) {
            found += {'\\', "\"\\bfnrt"[place]};
        } else if (byte < 0x20) {
            found += "\\u00";
            found += {kDigits[byte >> 4], kDigits[byte & 15]};
        } else {
            found += c;
        }
    }
    return found;
}

// Per byte of a text, and at its end: the fewest tokens that spell the rest.
std::vector<int32_t> Spelling::fewest(std::string_view text) const {
    std::vector<int32_t> rest(text.size() + 1, 0);
    for (size_t from = text.size(); from-- > 0;) {
        // Where a byte is no token, nothing that can be written holds it.
        rest[from] = rest[from + 1] + 1;
        uint32_t node = 0;
        for (size_t to = from; tokens_ != nullptr && to < text.size(); ++to) {
            node = tokens_->child(node, static_cast<uint8_t>(text[to]));
            if (node == 0) break;
            if (tokens_->nodes()[node].strings == 0) continue;
            rest[from] = std::min(rest[from], rest[to + 1] + 1);
        }
    }
    return rest;
}

int32_t Spelling::of(std::string_view text) const { return fewest(text).front(); }

const std::vector<int32_t>& Spelling::rests(const std::string& content) {
    const auto [place, fresh] = rests_.try_emplace(content);
    std::vector<int32_t>& rests = place->second;
    if (!fresh) return rests;
    const std::vector<int32_t> all = fewest(written(content));
    size_t at = 0;
    for (const char& c : content) {
        rests.push_back(all[at]);
        at += written({&c, 1}).size();
    }
    rests.push_back(0);
    memory_ += 4 * rests.size() + content.size() + 120;
    return rests;
}

// The lightest end is found byte by byte, so that all states on the way to it share it.
int32_t Spelling::rest(text::TextState state) {
    const int32_t distance = languages_.distance(state);
    if (distance == 0 || distance > kFarthest || tokens_ == nullptr) return distance;
    std::vector<text::TextState> path;
    while (languages_.distance(state) > 0 && !steps_.contains(state)) {
        const auto [byte, to] = languages_.lightest(state);
        steps_.emplace(state, Step{byte, to, 0});
        path.push_back(state);
        state = to;
    }
    if (path.empty()) return steps_.at(state).cost;
    for (size_t i = path.size(); i-- > 0;) steps_.at(path[i]).cost = price(path[i]);
    return steps_.at(path[0]).cost;
}

// All states behind this one are priced.
int32_t Spelling::price(text::TextState from) const {
    int32_t best = kUnreachable;
    uint32_t node = 0;
    const Step* step = &steps_.at(from);
    for (bool first = true;; first = false) {
        const char c = static_cast<char>(step->byte);
        const std::string bytes = written({&c, 1});
        for (const char b : bytes) {
            node = tokens_->child(node, static_cast<uint8_t>(b));
            if (node == 0) break;
        }
        const auto next = steps_.find(step->to);
        const int32_t then = next == steps_.end() ? 0 : next->second.cost;
        if (first) best = static_cast<int32_t>(bytes.size()) + then;
        if (node == 0) return best;
        if (tokens_->nodes()[node].strings != 0) best = std::min(best, then + 1);
        if (next == steps_.end()) return best;
        step = &next->second;
    }
}

}  // namespace sglite::json
