#include "matcher.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <vector>

namespace sglite {
namespace {

// Counts the threads that do what may take long.
class Busy {
  public:
    explicit Busy(std::atomic<int>& count) : count_(count) { ++count_; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    ~Busy() { --count_; }

  private:
    std::atomic<int>& count_;
};

}  // namespace

Grammar::Grammar(std::shared_ptr<const Vocabulary> vocabulary, MakeMachine make)
    : vocabulary_(std::move(vocabulary)),
      make_(std::move(make)),
      places_(std::make_unique<Places>(make_(), *vocabulary_)) {
    count_memory();
}

Grammar::~Grammar() { all_ -= static_cast<int64_t>(counted_.load()); }

std::atomic<int64_t> Grammar::all_ = 0;

size_t Grammar::count_memory() {
    const size_t now = places_->memory(), before = counted_;
    if (now != before) {
        counted_ = now;
        all_ += static_cast<int64_t>(now) - static_cast<int64_t>(before);
    }
    return now;
}

Grammar::Use::Use(Grammar& grammar)
    : grammar_(grammar), lock_(grammar.mutex_), thrown_(std::uncaught_exceptions()) {
    if (grammar.spoiled_) grammar.renew();
}

Grammar::Use::~Use() {
    if (std::uncaught_exceptions() > thrown_) grammar_.spoiled_ = true;
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

size_t Grammar::memory() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock ? count_memory() : counted_.load();
}

void Grammar::limit_memory(size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
}

uint32_t Grammar::generation() {
    const std::lock_guard lock(mutex_);
    return generation_;
}

// What living matchers need to be found again does not count: it would be needed at once.
void Grammar::renew_if_large() {
    if (count_memory() > limit_ + replayed_) renew();
}

void Grammar::renew() {
    places_ = std::make_unique<Places>(make_(), *vocabulary_);
    ++generation_;
    replayed_ = places_->memory();
    spoiled_ = false;
}

// The place of a step in the present generation.
PlaceId Grammar::place_of(StepId step, const std::string* prefix) {
    if (history_[step].generation == generation_) return history_[step].place;
    const size_t before = places_->memory();
    std::vector<StepId> behind;
    StepId at = step;
    while (at != History::kNone && history_[at].generation != generation_) {
        behind.push_back(at);
        at = history_[at].before;
    }
    PlaceId place = at == History::kNone ? kNowhere : history_[at].place;
    for (; !behind.empty(); behind.pop_back()) {
        Step& next = history_[behind.back()];
        if (next.token == Step::kBegin) {
            place = places_->start(prefix == nullptr ? "" : *prefix);
        } else if (!vocabulary_->is_eos(next.token)) {
            place = places_->after(place, vocabulary_->bytes(next.token));
        }
        next.place = place;
        next.generation = generation_;
    }
    replayed_ += places_->memory() - before;
    return place;
}

Matcher::Matcher(std::shared_ptr<Grammar> grammar, std::string_view prefix)
    : grammar_(std::move(grammar)) {
    if (!prefix.empty()) prefix_ = std::make_shared<const std::string>(prefix);
    const Grammar::Use use(*grammar_);
    step_ = grammar_->history_.add(History::kNone, Step::kBegin, grammar_->places_->start(prefix),
                                   grammar_->generation_);
}

Matcher::Matcher(const Matcher& other) : grammar_(other.grammar_), prefix_(other.prefix_) {
    const std::lock_guard lock(grammar_->mutex_);
    step_ = other.step_;
    length_ = other.length_;
    ended_ = other.ended_;
    grammar_->history_.keep(step_);
}

Matcher::~Matcher() {
    const std::lock_guard lock(grammar_->mutex_);
    grammar_->history_.drop(step_);
}

void Matcher::check_length(std::span<uint32_t> mask) const {
    const size_t words = grammar_->vocabulary().mask_words();
    if (mask.size() == words) return;
    throw std::invalid_argument("the mask has " + std::to_string(mask.size()) +
                                " words, the vocabulary needs " + std::to_string(words));
}

bool Matcher::fill_known_mask(std::span<uint32_t> mask, int32_t budget) {
    check_length(mask);
    const Grammar::Use use(*grammar_);
    if (ended_) {
        std::ranges::fill(mask, 0);
        return true;
    }
    const Step& step = grammar_->history_[step_];
    Places& places = *grammar_->places_;
    if (step.generation != grammar_->generation_) return false;
    if (!places.fill_known(step.place, mask, budget)) return false;
    if (places.complete(step.place)) grammar_->vocabulary().set_eos(mask);
    return true;
}

void Matcher::fill_mask(std::span<uint32_t> mask, int32_t budget) {
    check_length(mask);
    const Busy busy(grammar_->busy_);
    const Grammar::Use use(*grammar_);
    if (ended_) {
        std::ranges::fill(mask, 0);
        return;
    }
    grammar_->renew_if_large();
    const PlaceId at = place();
    grammar_->places_->fill(at, mask, budget);
    if (grammar_->places_->complete(at)) grammar_->vocabulary().set_eos(mask);
}

bool Matcher::accept_locked(int64_t id) {
    const Vocabulary& vocabulary = grammar_->vocabulary();
    if (ended_ || id < 0 || static_cast<size_t>(id) >= vocabulary.size()) return false;
    const auto token = static_cast<int32_t>(id);
    const bool ends = !vocabulary.is_text(token);
    if (ends && !vocabulary.is_eos(token)) return false;
    grammar_->renew_if_large();
    PlaceId at = place();
    if (ends ? !grammar_->places_->complete(at)
             : (at = grammar_->places_->after(at, vocabulary.bytes(token))) == kNowhere) {
        return false;
    }
    const StepId before = step_;
    step_ = grammar_->history_.add(before, token, at, grammar_->generation_);
    grammar_->history_.drop(before);  // the new step keeps it
    ++length_;
    ended_ = ends;
    return true;
}

void Matcher::rollback_locked(size_t count) {
    if (count == 0) return;
    StepId to = step_;
    for (size_t i = 0; i < count; ++i) to = grammar_->history_[to].before;
    grammar_->history_.keep(to);
    grammar_->history_.drop(step_);
    step_ = to;
    length_ -= static_cast<uint32_t>(count);
    ended_ = false;  // nothing is accepted behind an eos id
}

bool Matcher::accept(int64_t id) {
    const Grammar::Use use(*grammar_);
    return accept_locked(id);
}

bool Matcher::accept_all(std::span<const int64_t> ids) {
    const Grammar::Use use(*grammar_);
    size_t accepted = 0;
    try {
        while (accepted < ids.size() && accept_locked(ids[accepted])) ++accepted;
    } catch (const Refused&) {
        rollback_locked(accepted);
        throw;
    }
    if (accepted == ids.size()) return true;
    rollback_locked(accepted);
    return false;
}

void Matcher::rollback(size_t count) {
    const std::lock_guard lock(grammar_->mutex_);
    if (count > length_) {
        throw std::invalid_argument("cannot roll back " + std::to_string(count) + " ids, only " +
                                    std::to_string(length_) + " were accepted");
    }
    rollback_locked(count);
}

bool Matcher::is_complete() const {
    const Grammar::Use use(*grammar_);
    return grammar_->places_->complete(place());
}

bool Matcher::is_finished() const {
    const Grammar::Use use(*grammar_);
    if (ended_) return true;
    const PlaceId at = place();
    return grammar_->places_->complete(at) && !grammar_->places_->can_go_on(at);
}

int32_t Matcher::allowed_count() const {
    const Busy busy(grammar_->busy_);
    const Grammar::Use use(*grammar_);
    if (ended_) return 0;
    const auto eos = static_cast<int32_t>(grammar_->vocabulary().eos_ids().size());
    const PlaceId at = place();
    return grammar_->places_->count(at) + (grammar_->places_->complete(at) ? eos : 0);
}

int32_t Matcher::tokens_to_finish() const {
    const Grammar::Use use(*grammar_);
    return grammar_->places_->cost(place());
}

std::string Matcher::forced_bytes() const {
    std::string forced;
    const Grammar::Use use(*grammar_);
    if (ended_) return forced;
    PlaceId at = place();
    while (forced.size() < kMaxForced) {
        const int byte = grammar_->places_->forced_byte(at);
        if (byte < 0) break;
        const auto next = static_cast<char>(byte);
        forced.push_back(next);
        at = grammar_->places_->after(at, {&next, 1});
    }
    return forced;
}

bool Matcher::unsettled(std::string_view text, size_t from) const {
    const Grammar::Use use(*grammar_);
    return grammar_->places_->unsettled(place(), text, from);
}

std::pair<uint32_t, int32_t> Matcher::key() const {
    const Grammar::Use use(*grammar_);
    const PlaceId at = place();
    return {grammar_->generation_, ended_ ? -1 : at};
}

}  // namespace sglite
