#include "matcher.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace sglite {
namespace {

constexpr size_t kStatesMemory = 192 << 20;

}  // namespace

Grammar::Grammar(std::shared_ptr<const Vocabulary> vocabulary, Network network, bool check_bytes)
    : vocabulary_(std::move(vocabulary)), network_(std::move(network)) {
    finish(network_, *vocabulary_, check_bytes);
    states_ = std::make_shared<States>(network_, *vocabulary_);
}

Matcher Grammar::matcher(std::string_view prefix) {
    for (const char c : prefix) {
        const auto value = static_cast<uint8_t>(c);
        if (vocabulary_->has_single_byte(value)) continue;
        char name[8];
        std::snprintf(name, sizeof name, "0x%02X", value);
        throw Refused(std::string("the vocabulary has no token for the single byte ") + name +
                      " of the prefix");
    }
    return Matcher(shared_from_this(), prefix);
}

std::pair<size_t, size_t> Grammar::shape() const {
    size_t edges = 0;
    for (const Node& node : network_.nodes) edges += node.bytes.size();
    return {network_.nodes.size(), edges};
}

Matcher::Matcher(std::shared_ptr<Grammar> grammar, std::string_view prefix)
    : grammar_(std::move(grammar)) {
    const std::lock_guard lock(grammar_->mutex_);
    at_ = {grammar_->states_, grammar_->states_->start(prefix), grammar_->generation_};
}

// The position among states that may still grow. The lock is held.
Matcher::Position Matcher::current_states(const Position& from) const {
    Grammar& grammar = *grammar_;
    if (grammar.states_->memory() > kStatesMemory) {
        grammar.states_ = std::make_shared<States>(grammar.network_, *grammar.vocabulary_);
        ++grammar.generation_;
    }
    if (from.generation == grammar.generation_) return from;
    return {grammar.states_, grammar.states_->adopt(*from.states, from.state), grammar.generation_};
}

void Matcher::fill_mask(std::span<uint32_t> mask, int32_t budget) {
    if (mask.size() != grammar_->vocabulary().mask_words()) {
        throw std::invalid_argument("the mask has " + std::to_string(mask.size()) +
                                    " words, the vocabulary needs " +
                                    std::to_string(grammar_->vocabulary().mask_words()));
    }
    if (ended_) return std::fill(mask.begin(), mask.end(), 0);
    const std::lock_guard lock(grammar_->mutex_);
    at_.states->fill(at_.state, mask, budget);
    if (!at_.states->complete(at_.state)) return;
    for (const int32_t id : grammar_->vocabulary().eos_ids()) mask[id >> 5] |= 1u << (id & 31);
}

bool Matcher::accept_locked(int32_t id) {
    const Vocabulary& vocabulary = grammar_->vocabulary();
    if (ended_ || id < 0 || static_cast<size_t>(id) >= vocabulary.size()) return false;
    if (vocabulary.is_eos(id)) {
        if (!at_.states->complete(at_.state)) return false;
        history_.emplace_back(at_, ended_);
        ended_ = true;
        return true;
    }
    if (!vocabulary.is_text(id)) return false;
    Position to = current_states(at_);
    to.state = to.states->after(to.state, vocabulary.bytes(id));
    if (to.state == kDead) return false;
    history_.emplace_back(std::exchange(at_, std::move(to)), false);
    return true;
}

void Matcher::rollback_locked(size_t count) {
    if (count > history_.size()) {
        throw std::invalid_argument("cannot roll back " + std::to_string(count) + " ids, only " +
                                    std::to_string(history_.size()) + " were accepted");
    }
    if (count == 0) return;
    const size_t keep = history_.size() - count;
    at_ = std::move(history_[keep].first);
    ended_ = history_[keep].second;
    history_.resize(keep);
}

bool Matcher::accept(int32_t id) {
    const std::lock_guard lock(grammar_->mutex_);
    return accept_locked(id);
}

bool Matcher::accept_all(std::span<const int32_t> ids) {
    const std::lock_guard lock(grammar_->mutex_);
    for (size_t i = 0; i < ids.size(); ++i) {
        if (accept_locked(ids[i])) continue;
        rollback_locked(i);
        return false;
    }
    return true;
}

void Matcher::rollback(size_t count) {
    const std::lock_guard lock(grammar_->mutex_);
    rollback_locked(count);
}

bool Matcher::is_complete() const {
    const std::lock_guard lock(grammar_->mutex_);
    return at_.states->complete(at_.state);
}

bool Matcher::is_finished() const {
    const std::lock_guard lock(grammar_->mutex_);
    return ended_ || (at_.states->complete(at_.state) && !at_.states->can_go_on(at_.state));
}

int32_t Matcher::allowed_count() const {
    if (ended_) return 0;
    const std::lock_guard lock(grammar_->mutex_);
    const auto eos = static_cast<int32_t>(grammar_->vocabulary().eos_ids().size());
    return at_.states->allowed_count(at_.state) + (at_.states->complete(at_.state) ? eos : 0);
}

int32_t Matcher::tokens_to_finish() const {
    const std::lock_guard lock(grammar_->mutex_);
    return at_.states->cost(at_.state);
}

std::string Matcher::forced_bytes() const {
    std::string forced;
    if (ended_) return forced;
    const std::lock_guard lock(grammar_->mutex_);
    StateId state = at_.state;
    while (forced.size() < kMaxForced) {
        const int byte = at_.states->forced_byte(state);
        if (byte < 0) break;
        forced.push_back(static_cast<char>(byte));
        state = at_.states->next(state, static_cast<uint8_t>(byte));
    }
    return forced;
}

bool Matcher::unsettled(std::string_view text, size_t from) const {
    const std::lock_guard lock(grammar_->mutex_);
    const StateId after = at_.states->after(at_.state, text);
    return after != kDead && at_.states->extends(after, text.substr(from));
}

std::pair<uint64_t, int32_t> Matcher::key() const {
    return {at_.generation, ended_ ? -1 : at_.state};
}

}  // namespace sglite
