// The accepted tokens of all matchers of one grammar, as a forest: forks share what came before.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace sglite {

using StepId = uint32_t;

// One accepted token, and where it led. `place` means something in its generation only; a step is
// never of an older generation than the ones that follow it.
struct Step {
    static constexpr int32_t kBegin = -1;  // the token of the step before any text

    StepId before;
    int32_t token;
    int32_t place;
    uint32_t generation;
    uint32_t users;  // matchers that stand here, and steps that follow
};

// Steps live until nobody uses them. Not thread-safe.
class History {
  public:
    static constexpr StepId kNone = UINT32_MAX;

    Step& operator[](StepId id) { return blocks_[id / kBlock][id % kBlock]; }

    // The new step has one user, and is one of `before`.
    StepId add(StepId before, int32_t token, int32_t place, uint32_t generation) {
        if (free_ == kNone) grow();
        const StepId id = free_;
        Step& step = (*this)[id];
        free_ = step.before;
        step = {before, token, place, generation, 1};
        if (before != kNone) ++(*this)[before].users;
        return id;
    }
    void keep(StepId id) { ++(*this)[id].users; }
    void drop(StepId id) {
        while (id != kNone && --(*this)[id].users == 0) {
            const StepId before = (*this)[id].before;
            (*this)[id].before = free_;
            free_ = id;
            id = before;
        }
    }

  private:
    static constexpr StepId kBlock = 256;

    void grow() {
        const auto first = static_cast<StepId>(blocks_.size() * kBlock);
        blocks_.push_back(std::make_unique<Step[]>(kBlock));
        for (StepId i = kBlock; i-- > 0;) {
            (*this)[first + i].before = free_;
            free_ = first + i;
        }
    }

    std::vector<std::unique_ptr<Step[]>> blocks_;
    StepId free_ = kNone;  // unused steps, linked by `before`
};

}  // namespace sglite
