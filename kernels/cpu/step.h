// What one forward step reads and writes, and the entry of each instruction set. Plain data, see
// layout.h.
#pragma once

#include "layout.h"

namespace sglite {

class Barrier;
class Counter;
struct Format;

void barrier_wait(Barrier& barrier);
int counter_take(Counter* counters, int index);  // 0, 1, 2, ...: each number to one caller

enum class Activation : uint8_t { Silu, GeluTanh };

struct LayerWeights {
    Matrix q, k, v, output, gate, up, down;
    const float* attention_norm = nullptr;
    const float* feed_norm = nullptr;
    const float* q_norm = nullptr;  // the next four may be absent
    const float* k_norm = nullptr;
    const float* post_attention_norm = nullptr;
    const float* post_feed_norm = nullptr;
    int window = 0;  // keys a token sees, itself included; 0 for all
    int rope = 0;    // index of its rotary base
};

struct ModelWeights {
    int vocab_size = 0;
    int width = 0;
    int ff_width = 0;
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    int layer_count = 0;
    int rope_count = 0;
    float norm_epsilon = 0;
    float embedding_scale = 1;
    float attention_scale = 1;
    Activation activation = Activation::Silu;
    bool rope_interleaved = false;
    bool int8_activations = true;
    bool half_kv = true;
    const LayerWeights* layers = nullptr;
    const float* inverse_frequencies = nullptr;  // [rope_count, head_dim / 2]
    const float* output_norm = nullptr;
    Matrix head;
    const Format* embedding_format = nullptr;
    const uint8_t* embedding = nullptr;  // rows as they lie in the file

    int group() const { return heads / kv_heads; }
    int qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
    int attention_width() const { return heads * head_dim; }
};

// Row `row` of the embedding matrix as f32 [width].
void embed_row(const ModelWeights& model, int row, float* out);

// Up to this many tokens every thread normalises and quantises all of them for itself, which is
// cheaper than to share the work and meet at a barrier.
constexpr int kPrivateTokens = 4;
constexpr int kAttentionTokens = 16;  // most tokens in one piece of attention work
constexpr int kMaxGroup = 64;         // most query heads of one KV head

// Memory of one thread.
struct ThreadScratch {
    float* x;                 // [kPrivateTokens, width]
    float* floats;            // [kPrivateTokens, max_cols]
    ActivationBlock* blocks;  // [kPrivateTokens, max_cols / 32]
    float* scores;            // [kAttentionTokens * group, kChunkKeys]
    float* chunk_out;         // [kAttentionTokens * group, head_dim]
    float* running_out;       // the same
    float* row;               // [max_cols]
};

struct Step {
    const ModelWeights* model;
    Barrier* barrier;
    Counter* counters;  // one a layer, all zero
    int threads;
    int tokens;
    int logit_count;
    const int32_t* token_ids;           // [tokens]
    const int32_t* positions;           // [tokens]
    const int32_t* const* token_pages;  // [tokens] -> block table of the token's sequence
    const int32_t* page_counts;         // [tokens]: entries of that table
    const int32_t* order;         // [tokens]: tokens so that those with common pages are neighbours
    int attention_tokens;         // tokens in one piece of attention work
    int attention_parts;          // into which a piece divides the query heads of its KV head
    const int32_t* logit_tokens;  // [logit_count]
    float* x;                     // [tokens, width], the residual stream
    float* x_last;                // [logit_count, width]
    float* y;                     // [tokens, width], what attention and feed-forward add to it
    float* qkv;                   // [tokens, qkv_width]
    float* attention;             // [tokens, heads * head_dim]
    float* hidden;                // [tokens, ff_width]
    float* rope;                  // [rope_count, tokens, head_dim]: cosines, then sines
    float* floats;                // [tokens, max_cols]
    ActivationBlock* blocks;      // [tokens, max_cols / 32]
    int max_cols;
    ThreadScratch* scratch;  // [threads]
    uint8_t* kv;             // [layer][kv head][page]: K [head_dim][16], V [16][head_dim]
    int kv_pages;
    float* logits;  // [logit_count, vocab_size]
};

// Runs thread `thread`'s part of the step; all threads of the step call it side by side.
using StepFunction = void (*)(const Step& step, int thread);

void step_portable(const Step& step, int thread);
#if defined(SGLITE_X86)
void step_avx2(const Step& step, int thread);
void step_avx512(const Step& step, int thread);
#endif

}  // namespace sglite
