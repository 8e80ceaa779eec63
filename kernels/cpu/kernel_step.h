// The forward pass, as one thread of it sees it. Every thread runs all of this side by side with
// the others; they divide output rows, tokens or attention work, never a sum, and meet at barriers
// where one needs what another wrote.
#pragma once

#include "kernel_attention.h"
#include "kernel_math.h"
#include "kernel_matmul.h"
#include "step.h"

namespace sglite {
namespace {

struct Range {
    int begin, end;
};

inline Range share(int total, int thread, int threads) {
    return {static_cast<int>(static_cast<int64_t>(total) * thread / threads),
            static_cast<int>(static_cast<int64_t>(total) * (thread + 1) / threads)};
}

// Tokens that the products take at once, so that their activations stay in the second-level cache.
constexpr int kTokenBlock = 256;

class StepThread {
  public:
    StepThread(const Step& step, int thread)
        : s_(step), m_(*step.model), thread_(thread), mine_(step.scratch[thread]) {}

    void run() {
        start();
        for (int i = 0; i < m_.layer_count; ++i) layer(i);
        finish();
    }

  private:
    void meet() { barrier_wait(*s_.barrier); }

    // ---- the residual stream and what the next products read ------------------------------------

    // Few tokens: each thread keeps all of them for itself. Many: each thread does its share.
    static bool is_private(int count) { return count <= kPrivateTokens; }
    Range tokens_of(int count) const {
        return is_private(count) ? Range{0, count} : share(count, thread_, s_.threads);
    }
    void meet_if_shared(int count) {
        if (!is_private(count)) meet();
    }
    float* stream(int count, float* shared) const { return is_private(count) ? mine_.x : shared; }
    Input input(int count, int cols) const {
        if (is_private(count)) return {mine_.blocks, mine_.floats, cols};
        return {s_.blocks, s_.floats, cols};
    }

    struct Need {
        bool blocks = false;
        bool floats = false;
        void by(const ModelWeights& model, const Matrix& matrix) {
            (wants_int8(model, matrix) ? blocks : floats) = true;
        }
    };

    void emit(const float* x, int token, const Input& in, Need need) const {
        const size_t at = static_cast<size_t>(token) * in.cols;
        if (need.blocks) quantise(x, in.cols, in.blocks + at / kBlock);
        if (need.floats) memcpy(in.floats + at, x, sizeof(float) * in.cols);
    }

    // x_out = x_in (+ y, after its norm where there is one); then the norm before the products.
    void advance(const float* x_in, const float* y, const float* post_norm, float* x_out,
                 const float* norm, int token, const Input& in, Need need) const {
        const int width = m_.width;
        if (y != nullptr) {
            if (post_norm != nullptr) {
                rms_norm(y, post_norm, width, m_.norm_epsilon, mine_.row);
                y = mine_.row;
            }
            for (int i = 0; i < width; i += kLanes)
                store(x_out + i, add(load(x_in + i), load(y + i)));
        }
        rms_norm(x_out, norm, width, m_.norm_epsilon, mine_.row);
        emit(mine_.row, token, in, need);
    }

    // ---- products -------------------------------------------------------------------------------

    // out[:, 0 : rows] of the matrices side by side; the threads divide their panels.
    void multiply(const Matrix* const* matrices, int count, const Input& in, int tokens, float* out,
                  size_t out_stride) const {
        int panels = 0;
        for (int i = 0; i < count; ++i) panels += matrices[i]->panels();
        const Range mine = share(panels, thread_, s_.threads);
        for (int t = 0; t < tokens; t += kTokenBlock) {
            const int block = tokens - t < kTokenBlock ? tokens - t : kTokenBlock;
            const Input from = from_token(in, t);
            float* to = out + t * out_stride;
            int first = 0;
            for (int i = 0; i < count; ++i) {
                const Matrix& matrix = *matrices[i];
                const int begin = mine.begin > first ? mine.begin - first : 0;
                const int end =
                    mine.end - first < matrix.panels() ? mine.end - first : matrix.panels();
                for (int p = begin; p < end; ++p) {
                    multiply_panel(m_, matrix, p, from, block, to, out_stride);
                }
                first += matrix.panels();
                to += matrix.rows;
            }
        }
    }

    void gate_up(const LayerWeights& layer, const Input& in, int tokens) const {
        const Range mine = share(layer.gate.panels(), thread_, s_.threads);
        float gate[kMaxTile * kPanelRows], up[kMaxTile * kPanelRows];
        for (int first = 0; first < tokens; first += kTokenBlock) {
            const int end = tokens - first < kTokenBlock ? tokens : first + kTokenBlock;
            for (int p = mine.begin; p < mine.end; ++p) {
                for (int t = first; t < end; t += kMaxTile) {
                    const int tile = end - t < kMaxTile ? end - t : kMaxTile;
                    const Input from = from_token(in, t);
                    multiply_columns(layer.gate, p, from, tile, gate);
                    multiply_columns(layer.up, p, from, tile, up);
                    for (int i = 0; i < tile; ++i) {
                        float* out = s_.hidden + static_cast<size_t>(t + i) * m_.ff_width;
                        gate16(m_.activation, gate + i * kPanelRows, up + i * kPanelRows,
                               out + p * kPanelRows);
                    }
                }
            }
        }
    }
    // One panel into a tile of 16 columns.
    void multiply_columns(const Matrix& matrix, int panel, const Input& in, int tokens,
                          float* out) const {
        multiply_panel(m_, matrix, panel, in, tokens, out - panel * kPanelRows, kPanelRows);
    }

    // ---- the parts of a step --------------------------------------------------------------------

    void start() {
        const int half = m_.head_dim / 2;
        const Range rotations = share(s_.tokens, thread_, s_.threads);
        for (int r = 0; r < m_.rope_count; ++r) {
            for (int t = rotations.begin; t < rotations.end; ++t) {
                float* cosines = rope(r, t);
                for (int i = 0; i < half; ++i) {
                    const float angle =
                        static_cast<float>(s_.positions[t]) * m_.inverse_frequencies[r * half + i];
                    cosines[i] = static_cast<float>(cos(static_cast<double>(angle)));
                    cosines[half + i] = static_cast<float>(sin(static_cast<double>(angle)));
                }
            }
        }
        const Range tokens = tokens_of(s_.tokens);
        float* x = stream(s_.tokens, s_.x);
        const F scale = set1(m_.embedding_scale);
        for (int t = tokens.begin; t < tokens.end; ++t) {
            float* row = x + static_cast<size_t>(t) * m_.width;
            embed_row(m_, s_.token_ids[t], row);
            for (int i = 0; i < m_.width; i += kLanes) store(row + i, mul(load(row + i), scale));
        }
        // No barrier: the first products follow one that also covers this.
    }

    float* rope(int base, int token) const {
        return s_.rope + (static_cast<size_t>(base) * s_.tokens + token) * m_.head_dim;
    }

    void layer(int index) {
        const LayerWeights& layer = m_.layers[index];
        attention_input(index);
        meet();
        rotate_and_keep(layer, index);
        meet();
        if (m_.half_kv) {
            attend<uint16_t>(layer, index);
        } else {
            attend<float>(layer, index);
        }
        meet();
        // Behind the attention of the last layer only the tokens whose logits are wanted go on.
        const bool last = index == m_.layer_count - 1;
        const int count = last ? s_.logit_count : s_.tokens;
        const int32_t* chosen = last ? s_.logit_tokens : nullptr;
        if (count == 0) return;
        attention_output(layer, count, chosen);
        meet();
        feed_forward(layer, count, chosen);
        meet();
    }

    void attention_input(int index) {
        const LayerWeights& layer = m_.layers[index];
        Need need;
        need.by(m_, layer.q);
        need.by(m_, layer.k);
        need.by(m_, layer.v);
        const Input in = input(s_.tokens, m_.width);
        const Range tokens = tokens_of(s_.tokens);
        float* x = stream(s_.tokens, s_.x);
        const float* post = index > 0 ? m_.layers[index - 1].post_feed_norm : nullptr;
        for (int t = tokens.begin; t < tokens.end; ++t) {
            float* row = x + static_cast<size_t>(t) * m_.width;
            const float* y = index > 0 ? s_.y + static_cast<size_t>(t) * m_.width : nullptr;
            advance(row, y, post, row, layer.attention_norm, t, in, need);
        }
        meet_if_shared(s_.tokens);
        const Matrix* const matrices[] = {&layer.q, &layer.k, &layer.v};
        multiply(matrices, 3, in, s_.tokens, s_.qkv, m_.qkv_width());
    }

    // Norms and rotates q and k; rounds k and v into the cache.
    void rotate_and_keep(const LayerWeights& layer, int index) {
        const Range tokens = share(s_.tokens, thread_, s_.threads);
        const int dim = m_.head_dim;
        for (int t = tokens.begin; t < tokens.end; ++t) {
            float* heads = s_.qkv + static_cast<size_t>(t) * m_.qkv_width();
            const float* cosines = rope(layer.rope, t);
            for (int h = 0; h < m_.heads + m_.kv_heads; ++h) {
                float* x = heads + h * dim;
                const float* norm = h < m_.heads ? layer.q_norm : layer.k_norm;
                if (norm != nullptr) rms_norm(x, norm, dim, m_.norm_epsilon, x);
                rotate(x, cosines, cosines + dim / 2, dim, m_.rope_interleaved);
            }
            for (int h = 0; h < m_.kv_heads; ++h) {
                const float* k = heads + (m_.heads + h) * dim;
                const float* v = k + m_.kv_heads * dim;
                if (m_.half_kv) {
                    keep<uint16_t>(index, h, t, k, v);
                } else {
                    keep<float>(index, h, t, k, v);
                }
            }
        }
    }

    template <class Kv>
    void keep(int index, int head, int token, const float* k, const float* v) const {
        const int dim = m_.head_dim;
        const int position = s_.positions[token];
        const size_t page = (static_cast<size_t>(index) * m_.kv_heads + head) * s_.kv_pages +
                            s_.token_pages[token][position / kPageSize];
        Kv* keys = reinterpret_cast<Kv*>(s_.kv) + page * 2 * kPageSize * dim;
        Kv* values = keys + kPageSize * dim + position % kPageSize * dim;
        keys += position % kPageSize;
        // Finite whatever comes in, so that a page cannot spoil its next owner through 0 *
        // infinity.
        const float limit = sizeof(Kv) == 2 ? 65504.0f : 3.4028234e38f;
        for (int d = 0; d < dim; d += kLanes) {
            Kv column[kLanes];
            store(column, min(max(load(k + d), set1(-limit)), set1(limit)));
            for (int i = 0; i < kLanes; ++i) keys[(d + i) * kPageSize] = column[i];
            store(values + d, min(max(load(v + d), set1(-limit)), set1(limit)));
        }
    }

    template <class Kv>
    void attend(const LayerWeights& layer, int index) {
        const int pieces = (s_.tokens + s_.attention_tokens - 1) / s_.attention_tokens;
        const int parts = s_.attention_parts;
        const int work_per_piece = m_.kv_heads * parts;
        for (;;) {
            const int work = counter_take(s_.counters, index);
            if (work >= pieces * work_per_piece) return;
            // The last tokens have the most keys: they go first.
            const int first = (pieces - 1 - work / work_per_piece) * s_.attention_tokens;
            const int left = s_.tokens - first;
            const int count = left < s_.attention_tokens ? left : s_.attention_tokens;
            const int head = work % work_per_piece / parts;
            Attention<Kv>(s_, layer, index, head, work % parts, parts, s_.order + first, count,
                          mine_)
                .run();
        }
    }

    void attention_output(const LayerWeights& layer, int count, const int32_t* chosen) {
        Need need;
        need.by(m_, layer.output);
        const int cols = m_.attention_width();
        const Input in = input(count, cols);
        const Range tokens = tokens_of(count);
        for (int t = tokens.begin; t < tokens.end; ++t) {
            const size_t from = chosen != nullptr ? chosen[t] : t;
            emit(s_.attention + from * cols, t, in, need);
        }
        meet_if_shared(count);
        const Matrix* const matrices[] = {&layer.output};
        multiply(matrices, 1, in, count, s_.y, m_.width);
    }

    void feed_forward(const LayerWeights& layer, int count, const int32_t* chosen) {
        Need need;
        need.by(m_, layer.gate);
        need.by(m_, layer.up);
        const Input in = input(count, m_.width);
        const Range tokens = tokens_of(count);
        const float* x_in = stream(s_.tokens, s_.x);
        float* x_out = stream(count, chosen != nullptr ? s_.x_last : s_.x);
        for (int t = tokens.begin; t < tokens.end; ++t) {
            const size_t from = chosen != nullptr ? chosen[t] : t;
            advance(x_in + from * m_.width, s_.y + static_cast<size_t>(t) * m_.width,
                    layer.post_attention_norm, x_out + static_cast<size_t>(t) * m_.width,
                    layer.feed_norm, t, in, need);
        }
        meet_if_shared(count);
        gate_up(layer, in, count);
        meet();
        Need down_need;
        down_need.by(m_, layer.down);
        const Input hidden = input(count, m_.ff_width);
        for (int t = tokens.begin; t < tokens.end; ++t) {
            emit(s_.hidden + static_cast<size_t>(t) * m_.ff_width, t, hidden, down_need);
        }
        meet_if_shared(count);
        const Matrix* const matrices[] = {&layer.down};
        multiply(matrices, 1, hidden, count, s_.y, m_.width);
    }

    void finish() {
        const int count = s_.logit_count;
        if (count == 0) return;
        Need need;
        need.by(m_, m_.head);
        const Input in = input(count, m_.width);
        const Range tokens = tokens_of(count);
        float* x = stream(count, s_.x_last);
        const float* post = m_.layers[m_.layer_count - 1].post_feed_norm;
        for (int t = tokens.begin; t < tokens.end; ++t) {
            float* row = x + static_cast<size_t>(t) * m_.width;
            advance(row, s_.y + static_cast<size_t>(t) * m_.width, post, row, m_.output_norm, t, in,
                    need);
        }
        meet_if_shared(count);
        const Matrix* const matrices[] = {&m_.head};
        multiply(matrices, 1, in, count, s_.logits, m_.vocab_size);
    }

    const Step& s_;
    const ModelWeights& m_;
    const int thread_;
    const ThreadScratch& mine_;
};

}  // namespace
}  // namespace sglite
