// The forward pass, as one thread of it walks through it. Every thread walks through all of this;
// in each phase they divide output rows, tokens or attention work, never a sum, so that it makes no
// difference who computes what. Only what runs in a phase may follow the pointers of the step, see
// threads.h.
#pragma once

#include "kernel_attention.h"
#include "kernel_experts.h"
#include "kernel_math.h"
#include "kernel_matmul.h"
#include "kernel_phases.h"
#include "step.h"

namespace sglite {
namespace {

class StepThread : PhaseWalk {
  public:
    StepThread(const Step& step, Phases& phases)
        : PhaseWalk(phases),
          s_(step),
          m_(*step.model),
          mine_(step.scratch[phase_thread(phases)]),
          x_(step.x[0]) {}

    void run() {
        start();
        for (int i = 0; i < m_.layer_count; ++i) {
            // Behind the keys of the last layer only the tokens whose logits are wanted go on.
            const bool last = i == m_.layer_count - 1;
            const int count = last ? s_.logit_count : s_.tokens;
            const LayerWeights& layer = m_.layers[i];
            attention_input(layer, i);
            if (count == 0) return;
            attention(layer, i, last ? s_.last : s_.all);
            attention_output(layer, count);
            feed_forward(layer, count, last);
        }
        finish();
    }

  private:
    // ---- the residual stream --------------------------------------------------------------------

    // What happens to it between two products: x_out = x + y, y after the norm `post` where there
    // is one; and the input of the next product is the norm of x_out. Without y, x_out is x.
    struct Advance {
        const float* norm;
        const float* y = nullptr;
        const float* post = nullptr;
        const int32_t* chosen = nullptr;  // the token of x that each token of x_out is, if not all
        Need need = {};
    };

    void advance(const Advance& a, int token, float* x_out, const Input& in) const {
        const size_t at = static_cast<size_t>(token) * m_.width;
        const float* x = x_ + (a.chosen == nullptr ? at : a.chosen[token] * size_t(m_.width));
        if (a.y != nullptr) {
            const float* y = a.y + at;
            if (a.post != nullptr) {
                rms_norm(y, a.post, m_.width, m_.norm_epsilon, mine_.row);
                y = mine_.row;
            }
            for (int i = 0; i < m_.width; i += kLanes)
                store(x_out + at + i, add(load(x + i), load(y + i)));
            x = x_out + at;
        }
        rms_norm(x, a.norm, m_.width, m_.norm_epsilon, mine_.row);
        emit(mine_.row, m_.width, in, token, 0, a.need);
    }

    // Advances `count` tokens to x_out, then work(in, units, tokens) as in product_phase. For few
    // tokens each thread computes all of them for itself, and one keeps the new x.
    template <class Work>
    void advance_and_multiply(const Advance& a, int count, float* x_out, int units, int most,
                              Work work) {
        if (count > kPrivateTokens) {
            const Input in{s_.input.blocks, s_.input.floats, m_.width};
            token_phase(count, [&](int t) { advance(a, t, x_out, in); });
            product_phase(
                units, most, count, [] {}, [&](Range u, Range tokens) { work(in, u, tokens); });
        } else {
            Input in;
            const auto prepare = [&] {
                in = {mine_.blocks, mine_.floats, m_.width};
                for (int t = 0; t < count; ++t) advance(a, t, mine_.x, in);
            };
            product_phase(units, most, count, prepare, [&](Range u, Range tokens) {
                if (u.begin == 0 && a.y != nullptr) {
                    memcpy(x_out, mine_.x, sizeof(float) * count * m_.width);
                }
                work(in, u, tokens);
            });
        }
        if (a.y != nullptr) x_ = x_out;
    }

    // Where `count` tokens go from x_: others may still read that where each thread does it all.
    float* next_x(int count) const {
        return count > kPrivateTokens || x_ == s_.x[1] ? s_.x[0] : s_.x[1];
    }

    // ---- the parts of a step --------------------------------------------------------------------

    void multiply(const Matrix& matrix, const Input& in, Range panels, Range tokens, float* out,
                  size_t out_stride) const {
        for (int p = panels.begin; p < panels.end; ++p) {
            multiply_panel(m_, matrix, p, from_token(in, tokens.begin), tokens.end - tokens.begin,
                           out + tokens.begin * out_stride, out_stride);
        }
    }

    void start() {
        const int half = m_.rope_dim / 2;
        const F scale = set1(m_.embedding_scale);
        token_phase(s_.tokens, [&](int t) {
            for (int r = 0; r < m_.rope_count; ++r) {
                float* cosines = rope(r, t);
                const double magnitude = m_.rope_magnitudes[r];
                for (int i = 0; i < half; ++i) {
                    const float angle =
                        static_cast<float>(s_.positions[t]) * m_.frequencies[r * half + i];
                    const double wide = static_cast<double>(angle);
                    cosines[i] = static_cast<float>(magnitude * cos(wide));
                    cosines[half + i] = static_cast<float>(magnitude * sin(wide));
                }
            }
            float* row = x_ + static_cast<size_t>(t) * m_.width;
            embed_row(m_, s_.token_ids[t], row);
            for (int i = 0; i < m_.width; i += kLanes) store(row + i, mul(load(row + i), scale));
        });
    }

    float* rope(int kind, int token) const {
        return s_.rope + (static_cast<size_t>(kind) * s_.tokens + token) * m_.rope_dim;
    }

    void attention_input(const LayerWeights& layer, int index) {
        Advance a{layer.attention_norm};
        a.need.by(m_, layer.q);
        a.need.by(m_, layer.k);
        a.need.by(m_, layer.v);
        if (index > 0) {
            a.y = s_.y;
            a.post = m_.layers[index - 1].post_feed_norm;
        }
        const int heads = m_.heads + 2 * m_.kv_heads;
        advance_and_multiply(a, s_.tokens, next_x(s_.tokens), heads, heads,
                             [&](const Input& in, Range units, Range tokens) {
                                 for (int h = units.begin; h < units.end; ++h) {
                                     head_input(layer, index, h, in, tokens);
                                 }
                             });
    }

    // One head of q, k or v, with its bias: q and k are normed and rotated, k and v rounded into
    // the cache.
    void head_input(const LayerWeights& layer, int index, int head, const Input& in,
                    Range tokens) const {
        const int dim = m_.head_dim;
        const bool is_q = head < m_.heads, is_v = head >= m_.heads + m_.kv_heads;
        const Matrix& matrix = is_q ? layer.q : is_v ? layer.v : layer.k;
        const int first = is_q ? 0 : is_v ? m_.heads + m_.kv_heads : m_.heads;
        const int panels = dim / kPanelRows, panel = (head - first) * panels;
        multiply(matrix, in, {panel, panel + panels}, tokens, s_.qkv + first * dim, m_.qkv_width());
        const float* norm = is_q ? layer.q_norm : layer.k_norm;
        for (int t = tokens.begin; t < tokens.end; ++t) {
            float* x = s_.qkv + static_cast<size_t>(t) * m_.qkv_width() + head * dim;
            if (layer.qkv_bias != nullptr) add_to(x, layer.qkv_bias + head * dim, dim);
            if (!is_v && norm != nullptr) rms_norm(x, norm, dim, m_.norm_epsilon, x);
            if (!is_v && layer.rope >= 0) {
                const float* cosines = rope(layer.rope, t);
                rotate(x, cosines, cosines + m_.rope_dim / 2, m_.rope_dim, m_.rope_interleaved);
            }
            if (is_q) continue;
            if (m_.half_kv) {
                keep<uint16_t>(index, head - first, t, x, is_v);
            } else {
                keep<float>(index, head - first, t, x, is_v);
            }
        }
    }

    template <class Kv>
    void keep(int index, int kv_head, int token, const float* x, bool is_v) const {
        const int dim = m_.head_dim;
        const int position = s_.positions[token];
        const size_t page = (static_cast<size_t>(index) * m_.kv_heads + kv_head) * s_.kv_pages +
                            s_.token_pages[token][position / kPageSize];
        Kv* keys = reinterpret_cast<Kv*>(s_.kv) + page * 2 * kPageSize * dim;
        Kv* values = keys + kPageSize * dim + position % kPageSize * dim;
        keys += position % kPageSize;
        // Finite whatever comes in, so that a page cannot spoil its next owner through 0 *
        // infinity.
        const float limit = sizeof(Kv) == 2 ? 65504.0f : 3.4028234e38f;
        for (int d = 0; d < dim; d += kLanes) {
            const F finite = min(max(load(x + d), set1(-limit)), set1(limit));
            if (is_v) {
                store(values + d, finite);
                continue;
            }
            Kv column[kLanes];
            store(column, finite);
            for (int i = 0; i < kLanes; ++i) keys[(d + i) * kPageSize] = column[i];
        }
    }

    void attention(const LayerWeights& layer, int index, const Attendants& who) {
        Need need;
        need.by(m_, layer.output);
        const Input out{s_.input.blocks, s_.input.floats, m_.attention_width()};
        // A head that ends within a block of 32 cannot be quantised by itself.
        const bool split = need.blocks && m_.head_dim % kBlock != 0;
        if (split) need = {false, true};
        if (m_.half_kv) {
            attend<uint16_t>(layer, index, who, out, need);
        } else {
            attend<float>(layer, index, who, out, need);
        }
        if (!split) return;
        token_phase(who.count, [&](int t) {
            emit(out.floats + static_cast<size_t>(t) * out.cols, out.cols, out, t, 0,
                 {true, false});
        });
    }

    template <class Kv>
    void attend(const LayerWeights& layer, int index, const Attendants& who, const Input& out,
                Need need) {
        const int pieces = (who.count + who.piece - 1) / who.piece;
        const int work_per_piece = m_.kv_heads * who.parts;
        phase(
            pieces * work_per_piece, [] {},
            [&](int work) {
                // The last tokens have the most keys: they go first.
                const int first = (pieces - 1 - work / work_per_piece) * who.piece;
                const int count = who.count - first < who.piece ? who.count - first : who.piece;
                const int head = work % work_per_piece / who.parts;
                Attention<Kv>(s_, layer, index, head, work % who.parts, who.parts,
                              who.tokens + first, who.rows + first, count, mine_)
                    .run(out, need);
            });
    }

    void attention_output(const LayerWeights& layer, int count) {
        const Input in{s_.input.blocks, s_.input.floats, m_.attention_width()};
        product(layer.output, in, count, s_.y, m_.width);
    }

    void product(const Matrix& matrix, const Input& in, int count, float* out, size_t out_stride) {
        product_phase(
            matrix.panels(), kMostPanels, count, [] {},
            [&](Range panels, Range tokens) {
                multiply(matrix, in, panels, tokens, out, out_stride);
            });
    }

    void feed_forward(const LayerWeights& layer, int count, bool last) {
        Advance a{layer.feed_norm, s_.y, layer.post_attention_norm};
        if (last) a.chosen = s_.logit_tokens;
        a.need.by(m_, layer.gate);
        a.need.by(m_, layer.up);
        float* x_out = last ? s_.x_last : next_x(count);
        if (m_.experts > 0) {
            a.need.by(m_, layer.router);
            experts(layer, a, count, x_out);
            return;
        }
        Need need;
        need.by(m_, layer.down);
        advance_and_multiply(a, count, x_out, s_.hidden.cols / kBlock, kMostPanels / 2,
                             [&](const Input& in, Range units, Range tokens) {
                                 for (int u = units.begin; u < units.end; ++u) {
                                     gate_up(layer.gate, layer.up, in, u, tokens, need);
                                 }
                             });
        product(layer.down, s_.hidden, count, s_.y, m_.width);
    }

    // The same with experts. How many of them have rows is known to the routing alone, so the
    // phases have room for all that can.
    void experts(const LayerWeights& layer, const Advance& a, int count, float* x_out) {
        const Routing& r = s_.routing;
        const Input in{s_.input.blocks, s_.input.floats, m_.width};
        token_phase(count, [&](int t) { advance(a, t, x_out, in); });
        x_ = x_out;
        product(layer.router, in, count, r.logits, m_.experts);
        phase(1, [] {}, [&](int) { route(m_, r, count); });
        const int rows = count * m_.experts_used;
        token_phase(rows, [&](int row) {
            const Input from = from_token(in, r.tokens[row]), to = from_token(r.input, row);
            memcpy(to.blocks, from.blocks, sizeof(ActivationBlock) * (m_.width / kBlock));
            memcpy(to.floats, from.floats, sizeof(float) * m_.width);
        });
        Need need;
        need.by(m_, layer.down);
        expert_phase(rows, m_.ff_width / kBlock, [&](int expert, Range units, Range own) {
            const Matrix gate = expert_of(layer.gate, expert, m_.ff_width);
            const Matrix up = expert_of(layer.up, expert, m_.ff_width);
            for (int u = units.begin; u < units.end; ++u) {
                gate_up(gate, up, r.input, u, own, need);
            }
        });
        expert_phase(rows, m_.width / kPanelRows, [&](int expert, Range panels, Range own) {
            const Matrix down = expert_of(layer.down, expert, m_.width);
            multiply(down, s_.hidden, panels, own, r.out, m_.width);
        });
        token_phase(count, [&](int t) {
            float* y = s_.y + static_cast<size_t>(t) * m_.width;
            for (int i = 0; i < m_.width; i += kLanes) store(y + i, zero());
            for (int j = t * m_.experts_used; j < (t + 1) * m_.experts_used; ++j) {
                const float* out = r.out + static_cast<size_t>(r.rows[j]) * m_.width;
                const F share = set1(r.shares[j]);
                for (int i = 0; i < m_.width; i += kLanes) {
                    store(y + i, fma(load(out + i), share, load(y + i)));
                }
            }
        });
    }

    // work(expert, units, rows) for all units of weights of every expert that has rows.
    template <class Work>
    void expert_phase(int rows, int units, Work work) {
        const int groups = rows < m_.experts ? rows : m_.experts;
        int parts = (kChunks * threads_ + groups - 1) / groups;
        if (parts > units) parts = units;
        phase(
            groups * parts, [] {},
            [&](int chunk) {
                const int expert = s_.routing.active[chunk / parts];
                if (expert < 0) return;
                const int32_t* first = s_.routing.first + expert;
                for (int begin = first[0]; begin < first[1]; begin += kTokenBlock) {
                    const int end = first[1] - begin < kTokenBlock ? first[1] : begin + kTokenBlock;
                    work(expert, share(units, chunk % parts, parts), Range{begin, end});
                }
            });
    }

    // Columns [32 * block, 32 * block + 32) of the hidden state.
    void gate_up(const Matrix& gates, const Matrix& ups, const Input& in, int block, Range tokens,
                 Need need) const {
        constexpr int kPanels = kBlock / kPanelRows;
        float gate[kMaxTile * kPanelRows], up[kMaxTile * kPanelRows], both[kMaxTile * kBlock];
        for (int t = tokens.begin; t < tokens.end; t += kMaxTile) {
            const int tile = tokens.end - t < kMaxTile ? tokens.end - t : kMaxTile;
            const Input from = from_token(in, t);
            for (int p = 0; p < kPanels; ++p) {
                multiply_columns(gates, block * kPanels + p, from, tile, gate);
                multiply_columns(ups, block * kPanels + p, from, tile, up);
                for (int i = 0; i < tile; ++i) {
                    gate16(m_.activation, gate + i * kPanelRows, up + i * kPanelRows,
                           both + i * kBlock + p * kPanelRows);
                }
            }
            for (int i = 0; i < tile; ++i) {
                emit(both + i * kBlock, kBlock, s_.hidden, t + i, block * kBlock, need);
            }
        }
    }
    // One panel into a tile of 16 columns.
    void multiply_columns(const Matrix& matrix, int panel, const Input& in, int tokens,
                          float* out) const {
        multiply_panel(m_, matrix, panel, in, tokens, out - panel * kPanelRows, kPanelRows);
    }

    void finish() {
        Advance a{m_.output_norm, s_.y, m_.layers[m_.layer_count - 1].post_feed_norm};
        a.need.by(m_, m_.head);
        const int count = s_.logit_count;
        const auto work = [&](const Input& in, Range panels, Range tokens) {
            multiply(m_.head, in, panels, tokens, s_.logits, m_.vocab_size);
            if (m_.logit_cap > 0) cap_logits(panels, tokens);
        };
        // Nothing comes behind this, so its x may go anywhere but to x_.
        if (s_.head_panels == nullptr) {
            advance_and_multiply(a, count, s_.x[0], m_.head.panels(), kMostPanels, work);
            return;
        }
        advance_and_multiply(a, count, s_.x[0], s_.head_count, kMostPanels,
                             [&](const Input& in, Range units, Range tokens) {
                                 for (int u = units.begin; u < units.end; ++u) {
                                     const int panel = s_.head_panels[u];
                                     work(in, {panel, panel + 1}, tokens);
                                 }
                             });
    }

    void cap_logits(Range panels, Range tokens) const {
        const int begin = panels.begin * kPanelRows;
        const int whole = panels.end * kPanelRows;
        const int end = whole < m_.vocab_size ? whole : m_.vocab_size;
        for (int t = tokens.begin; t < tokens.end; ++t) {
            float* logits = s_.logits + static_cast<size_t>(t) * m_.vocab_size;
            for (int i = begin; i < end; i += kLanes) {
                float some[kLanes] = {};
                const int count = end - i < kLanes ? end - i : kLanes;
                memcpy(some, logits + i, sizeof(float) * count);
                store(some, soft_cap(load(some), m_.logit_cap));
                memcpy(logits + i, some, sizeof(float) * count);
            }
        }
    }

    const Step& s_;
    const ModelWeights& m_;
    const ThreadScratch& mine_;
    float* x_;  // the residual stream as the open phase finds it
};

}  // namespace
}  // namespace sglite
