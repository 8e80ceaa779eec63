// How the work of a phase is cut into chunks, and one thread's way through them.
#pragma once

#include "step.h"

namespace sglite {
namespace {

struct Range {
    int begin, end;
};

inline Range share(int total, int part, int parts) {
    return {static_cast<int>(static_cast<int64_t>(total) * part / parts),
            static_cast<int>(static_cast<int64_t>(total) * (part + 1) / parts)};
}

// Tokens that the products take at once, so that their activations stay in the second-level cache.
constexpr int kTokenBlock = 256;
// Chunks a thread that each phase is cut into, where it is long enough: few, for long sequential
// reads, but some more than one, for a thread that comes late to find something to take over.
constexpr int kChunks = 4;
constexpr int kMostPanels = 64;  // in a chunk

class PhaseWalk {
  protected:
    explicit PhaseWalk(Phases& phases) : phases_(phases), threads_(phase_threads(phases)) {}

    // work(i) for each of `chunks` chunks, each by one thread; prepare() first in each thread that
    // has some.
    template <class Prepare, class Work>
    void phase(int chunks, Prepare prepare, Work work) {
        phase_enter(phases_, chunks);
        int chunk = phase_claim(phases_);
        if (chunk >= 0) prepare();
        for (; chunk >= 0; chunk = phase_claim(phases_)) work(chunk);
        phase_leave(phases_);
    }

    template <class Work>
    void token_phase(int count, Work work) {
        const int chunks = count < kChunks * threads_ ? count : kChunks * threads_;
        phase(
            chunks, [] {},
            [&](int chunk) {
                const Range tokens = share(count, chunk, chunks);
                for (int t = tokens.begin; t < tokens.end; ++t) work(t);
            });
    }

    // work(units, tokens) for all units of weights and all tokens.
    template <class Prepare, class Work>
    void product_phase(int units, int most, int count, Prepare prepare, Work work) {
        const int blocks = (count + kTokenBlock - 1) / kTokenBlock;
        int parts = kChunks * threads_;
        if (parts < units / most) parts = (units / most + threads_ - 1) / threads_ * threads_;
        if (parts > units) parts = units;
        phase(blocks * parts, prepare, [&](int chunk) {
            const int first = chunk / parts * kTokenBlock;
            const int end = count - first < kTokenBlock ? count : first + kTokenBlock;
            work(share(units, chunk % parts, parts), Range{first, end});
        });
    }

    Phases& phases_;
    const int threads_;
};

}  // namespace
}  // namespace sglite
