// Which experts each token takes, and its rows in the order of the experts. A token's choice
// depends on its own logits alone.
#pragma once

#include "kernel_math.h"
#include "step.h"

namespace sglite {
namespace {

// The shares of a token's experts, those with the largest logits, ties to the lower number; written
// with their numbers in ascending order, which is the order in which they are added up.
inline void choose_experts(const ModelWeights& model, const float* logits, int32_t* chosen,
                           float* shares) {
    const int used = model.experts_used;
    bool taken[kMaxExperts] = {};
    for (int i = 0; i < used; ++i) {
        int best = -1;  // one that is free also where all logits are NaN
        for (int e = 0; e < model.experts; ++e) {
            if (!taken[e] && (best < 0 || logits[e] > logits[best])) best = e;
        }
        taken[best] = true;
    }
    float peak = logits[0];
    for (int e = 1; e < model.experts; ++e) peak = logits[e] > peak ? logits[e] : peak;
    float all = 0.0f, theirs = 0.0f;
    int next = 0;
    for (int e = 0; e < model.experts; ++e) {
        const float share = exp1(logits[e] - peak);
        all += share;
        if (!taken[e]) continue;
        theirs += share;
        chosen[next] = e;
        shares[next++] = share;
    }
    for (int i = 0; i < used; ++i) shares[i] /= model.normalise_experts ? theirs : all;
}

// Chooses for `count` tokens and sorts what they chose by expert, then by token.
inline void route(const ModelWeights& model, const Routing& r, int count) {
    const int used = model.experts_used, pairs = count * used;
    int32_t* next = r.first + 1;  // where the next row of each expert goes; first is [experts + 2]
    for (int e = 0; e < model.experts + 2; ++e) r.first[e] = 0;
    for (int t = 0; t < count; ++t) {
        choose_experts(model, r.logits + static_cast<size_t>(t) * model.experts,
                       r.rows + static_cast<size_t>(t) * used,
                       r.shares + static_cast<size_t>(t) * used);
    }
    for (int i = 0; i < pairs; ++i) ++r.first[r.rows[i] + 2];
    int active = 0;
    for (int e = 0; e < model.experts; ++e) {
        if (r.first[e + 2] > 0) r.active[active++] = e;
        r.first[e + 2] += r.first[e + 1];
    }
    for (; active < model.experts; ++active) r.active[active] = -1;
    for (int i = 0; i < pairs; ++i) {
        const int row = next[r.rows[i]]++;
        r.tokens[row] = i / used;
        r.rows[i] = row;
    }
}

inline Matrix expert_of(const Matrix& all, int expert, int rows) {
    Matrix one = all;
    one.data += static_cast<size_t>(expert) * (rows / kPanelRows) * all.panel_stride;
    one.rows = rows;
    return one;
}

}  // namespace
}  // namespace sglite
