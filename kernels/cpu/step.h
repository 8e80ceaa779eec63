// What one forward step reads and writes, and the entry of each instruction set. Plain data, see
// layout.h.
#pragma once

#include "layout.h"

namespace sglite {

class Phases;
struct Format;

// The members of Phases, see threads.h, which the kernel units cannot include.
int phase_thread(const Phases& phases);
int phase_threads(const Phases& phases);
void phase_enter(Phases& phases, int chunks);
int phase_claim(Phases& phases);
void phase_leave(Phases& phases);

enum class Activation : uint8_t { Silu, GeluTanh };

struct LayerWeights {
    Matrix q, k, v, output;
    Matrix gate, up, down;  // with experts those of all, one below the other
    Matrix router;
    const float* attention_norm = nullptr;
    const float* feed_norm = nullptr;
    const float* qkv_bias = nullptr;  // [qkv_width]; it and the next four may be absent
    const float* q_norm = nullptr;
    const float* k_norm = nullptr;
    const float* post_attention_norm = nullptr;
    const float* post_feed_norm = nullptr;
    int window = 0;  // keys a token sees, itself included; 0 for all
    int rope = 0;    // index of its rotary frequencies; -1 where nothing rotates
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
    int rope_dim = 0;  // values of a head that rotate, from its first
    float norm_epsilon = 0;
    float embedding_scale = 1;
    float attention_scale = 1;
    float attention_cap = 0;  // 0 for none
    float logit_cap = 0;
    int experts = 0;  // feed-forwards of a layer, of which a token takes experts_used; 0: just one
    int experts_used = 0;
    bool normalise_experts = false;
    Activation activation = Activation::Silu;
    bool rope_interleaved = false;
    bool int8_activations = true;
    bool half_kv = true;
    const LayerWeights* layers = nullptr;
    const float* frequencies = nullptr;      // [rope_count, rope_dim / 2]
    const float* rope_magnitudes = nullptr;  // [rope_count]
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
// cheaper than a phase that shares the work.
constexpr int kPrivateTokens = 4;
constexpr int kAttentionTokens = 16;  // most tokens in one piece of attention work
constexpr int kMaxGroup = 64;         // most query heads of one KV head
constexpr int kMaxExperts = 1024;
constexpr int kMaxExpertsUsed = 64;

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

// The activations that the products read, in one of two forms: `blocks` for quantised weights and
// int8 activations, `floats` otherwise.
struct Input {
    ActivationBlock* blocks;
    float* floats;
    int cols;  // floats from one token to the next; cols / 32 blocks
};

// Tokens that attend, those with common pages next to each other.
struct Attendants {
    const int32_t* tokens;  // [count]
    const int32_t* rows;    // [count]: the row of the output that each token writes
    int count;
    int piece;  // tokens in one piece of attention work
    int parts;  // into which a piece divides the query heads of its KV head
};

// What the tokens of a layer do with its experts. Each pair of a token and one of its experts has a
// row; the rows of an expert lie together.
struct Routing {
    float* logits;    // [tokens, experts]
    float* shares;    // [tokens, used]
    int32_t* rows;    // [tokens, used]: their rows, experts ascending
    int32_t* tokens;  // [rows]: the token of each
    int32_t* first;   // [experts + 2]: the first row of each expert
    int32_t* active;  // [experts]: those with rows, ascending, then -1
    Input input;      // [rows, width]
    float* out;       // [rows, width]
};

struct Step {
    const ModelWeights* model;
    int tokens;
    int logit_count;
    const int32_t* token_ids;           // [tokens]
    const int32_t* positions;           // [tokens]
    const int32_t* const* token_pages;  // [tokens] -> block table of the token's sequence
    const int32_t* page_counts;         // [tokens]: entries of that table
    Attendants all;                     // the tokens in attention
    Attendants last;                    // the same in the last layer: those whose logits are wanted
    const int32_t* logit_tokens;        // [logit_count]
    float* x[2];                        // [tokens, width], the residual stream and its next state
    float* x_last;                      // [logit_count, width]
    float* y;      // [tokens, width], what attention and feed-forward add to it
    float* qkv;    // [tokens, qkv_width]
    float* rope;   // [rope_count, tokens, rope_dim]: cosines, then sines
    Input input;   // [tokens, width or heads * head_dim], what a product reads
    Input hidden;  // [tokens or rows of experts, ff_width], the same of the down projection
    Routing routing;
    int max_cols;
    ThreadScratch* scratch;  // [threads]
    uint8_t* kv;             // [layer][kv head][page]: K [head_dim][16], V [16][head_dim]
    int kv_pages;
    const int32_t* head_panels;  // [head_count]: those whose logits are wanted; null for all
    int head_count;
    float* logits;  // [logit_count, vocab_size]
};

// One thread's walk through the step.
using StepFunction = void (*)(const Step& step, Phases& phases);

void step_portable(const Step& step, Phases& phases);
#if defined(SGLITE_X86)
void step_avx2(const Step& step, Phases& phases);
void step_avx512(const Step& step, Phases& phases);
#endif

}  // namespace sglite
