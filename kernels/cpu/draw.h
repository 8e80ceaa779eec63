// Drawing one outcome per row of logits, under a mask, with a virtual end outcome.
//
// Knows nothing of sequences, grammars or random generators: the uniform numbers come from outside.
#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

namespace sglite {

// The largest vocabulary for which a sum of weights cannot overflow (see draw.cpp).
inline constexpr int64_t kMaxDrawVocab = int64_t{1} << 21;

enum class VectorSet { portable, avx2, avx512 };

// Whether this build has code for the set and this CPU runs it.
bool supported(VectorSet set);

// Arrays of L rows, all validated by the caller except the values of the logits.
struct DrawBatch {
    int64_t vocab;
    int64_t mask_words;        // words in a row of `mask`: ceil(vocab / 32)
    const float* logits;       // [L, vocab]
    const uint32_t* mask;      // [L, mask_words]; bits at or above `vocab` are ignored
    const float* temperature;  // [L], 0 = greedy
    const float* top_p;        // [L], 1 = off
    const int32_t* top_k;      // [L], 0 = off
    const float* min_p;        // [L], 0 = off
    const double* uniform;     // [L], in [0, 1)
    const int32_t* end_ids;    // flat
    const int32_t* end_start;  // [L + 1] into end_ids
    const uint8_t* end_rest;   // [L]
};

// Draws the rows [first, last). Writes ids (-1 = the end outcome) and log probabilities. A row's
// result has the same bits whatever the other rows hold and whichever vector set computes it.
// Returns nullptr, or what is wrong with row *failed. Safe to call from several threads.
const char* draw_rows(const DrawBatch& batch, VectorSet set, int64_t first, int64_t last,
                      int32_t* ids, float* logprobs, int64_t* failed);

void bind_draw(nanobind::module_& m);

}  // namespace sglite
