// Attention over the paged cache. A query meets its keys in chunks of kChunkKeys absolute
// positions; each chunk is a softmax of its own, and the chunks are merged in ascending order. What
// a query computes depends on its own K, V and position only. Queries that read the same pages
// share the loads: the heads of a group, the tokens of a prompt, and sequences with a common
// prefix.
#pragma once

#include "kernel_math.h"
#include "kernel_matmul.h"
#include "step.h"

namespace sglite {
namespace {

constexpr int kRunPages = 4;  // pages that are loaded together
constexpr int kRunKeys = kRunPages * kPageSize;

// One piece of attention work: up to kAttentionTokens tokens and the query heads of one KV head, or
// part `part` of `parts` of these heads.
template <class Kv>
class Attention {
  public:
    Attention(const Step& step, const LayerWeights& layer, int layer_index, int kv_head, int part,
              int parts, const int32_t* tokens, const int32_t* rows, int count,
              const ThreadScratch& scratch)
        : step_(step),
          model_(*step.model),
          window_(layer.window),
          first_head_(kv_head * model_.group() + model_.group() * part / parts),
          tokens_(tokens),
          rows_(rows),
          count_(count),
          dim_(model_.head_dim),
          group_(kv_head * model_.group() + model_.group() * (part + 1) / parts - first_head_),
          scratch_(scratch) {
        const size_t head = static_cast<size_t>(layer_index) * model_.kv_heads + kv_head;
        page_bytes_ = page_bytes(model_.kv_type, dim_);
        cache_ = step.kv + head * step.kv_pages * page_bytes_;
    }

    // Writes its columns of `out` [rows, heads * head_dim].
    void run(const Input& out, Need need) {
        int first = last_key(0), last = 0;
        for (int i = 0; i < count_; ++i) {
            if (first_key(i) < first) first = first_key(i);
            if (last_key(i) > last) last = last_key(i);
        }
        for (int q = 0; q < count_ * group_; ++q) peaks_[q] = sums_[q] = 0.0f;
        for (int chunk = first / kChunkKeys; chunk <= last / kChunkKeys; ++chunk) {
            chunk_ = chunk * kChunkKeys;
            each_run<true>();
            for (int i = 0; i < count_; ++i) {
                if (!needs(i, chunk_, kChunkKeys)) continue;
                for (int g = 0; g < group_; ++g) softmax(i, i * group_ + g);
            }
            each_run<false>();
            for (int i = 0; i < count_; ++i) {
                if (!needs(i, chunk_, kChunkKeys)) continue;
                for (int g = 0; g < group_; ++g) merge(i, i * group_ + g);
            }
        }
        for (int i = 0; i < count_; ++i) {
            for (int g = 0; g < group_; ++g) write(i, g, out, need);
        }
    }

  private:
    static constexpr bool kCodes = sizeof(Kv) == 1;

    int last_key(int i) const { return step_.positions[tokens_[i]]; }
    int first_key(int i) const {
        const int first = last_key(i) - window_ + 1;
        return window_ > 0 && first > 0 ? first : 0;
    }
    bool needs(int i, int start, int keys) const {
        return start <= last_key(i) && start + keys > first_key(i);
    }

    // The pages of keys [start, start + kRunKeys); beyond the table the last page stands in, its
    // keys being masked.
    void run_pages(int i, int start, int32_t pages[kRunPages]) const {
        const int token = tokens_[i];
        const int last = step_.page_counts[token] - 1;
        for (int j = 0; j < kRunPages; ++j) {
            const int at = start / kPageSize + j;
            pages[j] = step_.token_pages[token][at < last ? at : last];
        }
    }

    // Visits the tokens of each run of kRunKeys keys, those with equal pages together.
    template <bool Scores>
    void each_run() {
        for (int start = chunk_; start < chunk_ + kChunkKeys; start += kRunKeys) {
            for (int i = 0; i < count_;) {
                if (!needs(i, start, kRunKeys)) {
                    ++i;
                    continue;
                }
                int32_t pages[kRunPages], others[kRunPages];
                run_pages(i, start, pages);
                int last = last_key(i);
                int j = i + 1;
                for (; j < count_ && needs(j, start, kRunKeys); ++j) {
                    run_pages(j, start, others);
                    if (memcmp(pages, others, sizeof pages) != 0) break;
                    if (last_key(j) > last) last = last_key(j);
                }
                const int keys = last - start + 1 < kRunKeys ? last - start + 1 : kRunKeys;
                visit<Scores>(pages, start - chunk_, keys, i * group_, j * group_);
                i = j;
            }
        }
    }

    // Queries [from, to) against one run of pages.
    template <bool Scores>
    void visit(const int32_t pages[kRunPages], int column, int keys, int from, int to) {
        const Kv* data[kRunPages];
        for (int j = 0; j < kRunPages; ++j) {
            data[j] = reinterpret_cast<const Kv*>(cache_ + pages[j] * page_bytes_);
        }
        while (from < to) {
            const int tile = to - from < kQueryTile ? to - from : kQueryTile;
            switch (tile) {
                case 1:
                    visit_tile<Scores, 1>(data, column, keys, from);
                    break;
                case 2:
                    visit_tile<Scores, 2>(data, column, keys, from);
                    break;
                case 3:
                    visit_tile<Scores, (kQueryTile < 3 ? 1 : 3)>(data, column, keys, from);
                    break;
                case 4:
                    visit_tile<Scores, (kQueryTile < 4 ? 1 : 4)>(data, column, keys, from);
                    break;
                case 5:
                    visit_tile<Scores, (kQueryTile < 5 ? 1 : 5)>(data, column, keys, from);
                    break;
                default:
                    visit_tile<Scores, (kQueryTile < 6 ? 1 : 6)>(data, column, keys, from);
                    break;
            }
            from += tile;
        }
    }

    template <bool Scores, int Q>
    void visit_tile(const Kv* const data[kRunPages], int column, int keys, int from) {
        if constexpr (Scores) {
            score_tile<Q>(data, column, keys, from);
        } else {
            value_tile<Q>(data, column, keys, from);
        }
    }

    // The scales of a page of codes, of K [16] and V [16].
    const float* scales_of(const Kv* page) const {
        return reinterpret_cast<const float*>(page + size_t{2} * kPageSize * dim_);
    }

    float* scores_of(int query) const {
        return scratch_.scores + static_cast<size_t>(query) * kChunkKeys;
    }
    const float* query_of(int query) const {
        const int head = first_head_ + query % group_;
        const size_t token = tokens_[query / group_];
        return step_.qkv + token * model_.qkv_width() + head * dim_;
    }

    template <int Q>
    void score_tile(const Kv* const data[kRunPages], int column, int keys, int from) {
        const float* query[Q];
#pragma GCC unroll 6
        for (int q = 0; q < Q; ++q) query[q] = query_of(from + q);
        constexpr int kStride = kScoreVectors * kLanes;
        for (int key = 0; key < keys; key += kStride) {
            const Kv* k[kScoreVectors];
#pragma GCC unroll 4
            for (int v = 0; v < kScoreVectors; ++v) {
                const int at = key + v * kLanes;
                k[v] = data[at / kPageSize] + at % kPageSize;
            }
            F acc[Q][kScoreVectors];
#pragma GCC unroll 6
            for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 4
                for (int v = 0; v < kScoreVectors; ++v) acc[q][v] = zero();
            }
            for (int d = 0; d < dim_; ++d) {
                F values[kScoreVectors];
#pragma GCC unroll 4
                for (int v = 0; v < kScoreVectors; ++v) values[v] = load(k[v] + d * kPageSize);
#pragma GCC unroll 6
                for (int q = 0; q < Q; ++q) {
                    const F x = set1(query[q][d]);
#pragma GCC unroll 4
                    for (int v = 0; v < kScoreVectors; ++v)
                        acc[q][v] = fma(values[v], x, acc[q][v]);
                }
            }
#pragma GCC unroll 6
            for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 4
                for (int v = 0; v < kScoreVectors; ++v) {
                    F score = acc[q][v];
                    if constexpr (kCodes) {
                        const int at = key + v * kLanes;
                        const float* scales = scales_of(data[at / kPageSize]);
                        score = mul(score, load(scales + at % kPageSize));
                    }
                    store(scores_of(from + q) + column + key + v * kLanes, score);
                }
            }
        }
    }

    // Scores of one query in this chunk -> weights exp(score - peak), 0 outside its keys.
    void softmax(int i, int query) {
        float* scores = scores_of(query);
        const int first = first_key(i) > chunk_ ? first_key(i) - chunk_ : 0;
        const int last =
            last_key(i) < chunk_ + kChunkKeys - 1 ? last_key(i) - chunk_ : kChunkKeys - 1;
        const F low = set1(static_cast<float>(first));
        const F high = set1(static_cast<float>(last));
        const F none = set1(-INFINITY);
        const F scale = set1(model_.attention_scale);
        const int begin = first / kLanes * kLanes;
        F most = none;
        for (int k = begin; k <= last; k += kLanes) {
            const F number = add(lane_numbers(), set1(static_cast<float>(k)));
            F score = mul(load(scores + k), scale);
            if (model_.attention_cap > 0) score = soft_cap(score, model_.attention_cap);
            const F x = keep_lanes(score, number, low, high, none);
            store(scores + k, x);
            most = max(x, most);
        }
        const float peak = max_lanes(most);
        const F shift = set1(peak);
        F sum = zero();
        int k = begin;
        for (; k <= last; k += kLanes) {
            const F weight = exp(sub(load(scores + k), shift));
            store(scores + k, weight);
            sum = add(sum, weight);
        }
        const int end = (last / kRunKeys + 1) * kRunKeys;
        for (; k < end; k += kLanes) store(scores + k, zero());
        for (k = first / kRunKeys * kRunKeys; k < begin; k += kLanes) store(scores + k, zero());
        chunk_peaks_[query] = peak;
        chunk_sums_[query] = sum_lanes(sum);
        float* out = chunk_out_of(query);
        for (int d = 0; d < dim_; d += kLanes) store(out + d, zero());
    }

    float* chunk_out_of(int query) const {
        return scratch_.chunk_out + static_cast<size_t>(query) * dim_;
    }
    float* running_out_of(int query) const {
        return scratch_.running_out + static_cast<size_t>(query) * dim_;
    }

    template <int Q>
    void value_tile(const Kv* const data[kRunPages], int column, int keys, int from) {
        int d = 0;
        for (; d + 4 * kLanes <= dim_; d += 4 * kLanes) {
            value_columns<Q, (kScoreVectors < 4 ? 2 : 4)>(data, column, keys, from, d);
            if constexpr (kScoreVectors < 4) {
                value_columns<Q, 2>(data, column, keys, from, d + 2 * kLanes);
            }
        }
        for (; d < dim_; d += kLanes) value_columns<Q, 1>(data, column, keys, from, d);
    }

    template <int Q, int Vectors>
    void value_columns(const Kv* const data[kRunPages], int column, int keys, int from, int d) {
        const float* weights[Q];
        F acc[Q][Vectors];
#pragma GCC unroll 6
        for (int q = 0; q < Q; ++q) {
            weights[q] = scores_of(from + q) + column;
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) {
                acc[q][v] = load(chunk_out_of(from + q) + d + v * kLanes);
            }
        }
        for (int key = 0; key < keys; ++key) {
            const Kv* row = data[key / kPageSize] + (kPageSize + key % kPageSize) * dim_ + d;
            // V [16][head_dim] follows K, which has just as many values.
            F values[Vectors];
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) values[v] = load(row + v * kLanes);
#pragma GCC unroll 6
            for (int q = 0; q < Q; ++q) {
                float share = weights[q][key];
                if constexpr (kCodes) {
                    share *= scales_of(data[key / kPageSize])[kPageSize + key % kPageSize];
                }
                const F weight = set1(share);
#pragma GCC unroll 4
                for (int v = 0; v < Vectors; ++v) acc[q][v] = fma(values[v], weight, acc[q][v]);
            }
        }
#pragma GCC unroll 6
        for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) {
                store(chunk_out_of(from + q) + d + v * kLanes, acc[q][v]);
            }
        }
    }

    void merge(int i, int query) {
        const float* in = chunk_out_of(query);
        float* out = running_out_of(query);
        if (chunk_ <= first_key(i)) {  // its first chunk
            for (int d = 0; d < dim_; d += kLanes) store(out + d, load(in + d));
            peaks_[query] = chunk_peaks_[query];
            sums_[query] = chunk_sums_[query];
            return;
        }
        const float a = peaks_[query], b = chunk_peaks_[query];
        const float peak = a > b ? a : b;
        const F old_factor = exp(set1(a - peak)), new_factor = exp(set1(b - peak));
        for (int d = 0; d < dim_; d += kLanes) {
            store(out + d, fma(load(in + d), new_factor, mul(load(out + d), old_factor)));
        }
        sums_[query] = first_lane(
            fma(set1(chunk_sums_[query]), new_factor, mul(set1(sums_[query]), old_factor)));
        peaks_[query] = peak;
    }

    void write(int i, int g, const Input& out, Need need) {
        const int query = i * group_ + g;
        float* values = running_out_of(query);
        const F sum = set1(sums_[query]);
        for (int d = 0; d < dim_; d += kLanes) store(values + d, div(load(values + d), sum));
        emit(values, dim_, out, rows_[i], (first_head_ + g) * dim_, need);
    }

    const Step& step_;
    const ModelWeights& model_;
    const int window_;
    const int first_head_;
    const int32_t* tokens_;
    const int32_t* rows_;
    const int count_;
    const int dim_;
    const int group_;
    const ThreadScratch& scratch_;
    size_t page_bytes_;
    const uint8_t* cache_;
    int chunk_ = 0;
    float peaks_[kAttentionTokens * kMaxGroup];
    float sums_[kAttentionTokens * kMaxGroup];
    float chunk_peaks_[kAttentionTokens * kMaxGroup];
    float chunk_sums_[kAttentionTokens * kMaxGroup];
};

}  // namespace
}  // namespace sglite
