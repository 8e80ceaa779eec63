// A loaded model: packed weights, KV pages, threads, and the one call that runs a step.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memory.h"
#include "step.h"
#include "threads.h"

namespace sglite {

// A tensor of the file; `shape` has the rows first, as numpy has it.
struct TensorView {
    std::string name;
    int type = 0;
    std::vector<int64_t> shape;
    std::span<const uint8_t> data;
};

struct ModelOptions {
    int64_t vocab_size, context_length, width, ff_width, heads, kv_heads, head_dim;
    double norm_epsilon, embedding_scale, attention_scale;
    double attention_cap, logit_cap;  // 0 for none
    int64_t experts, experts_used;    // 0 for none
    bool normalise_experts;
    std::string activation;  // "silu" | "gelu_tanh"
    bool rope_interleaved, qkv_bias, qk_norm, post_norms, tied_output;
    std::vector<int64_t> windows;                  // one a layer, 0 for all keys
    std::vector<int64_t> ropes;                    // one a layer: which of the next, -1 for none
    std::vector<std::vector<double>> frequencies;  // all of one length
    std::vector<double> magnitudes;                // one for each of these
    int64_t pages, threads;
    bool half_kv, int8_activations;
    std::string isa;  // "" for the best that this machine has
};

// The arrays of a StepPlan, see runtime/plan.py.
struct PlanView {
    std::span<const int32_t> tokens, query_start, context_start, pages, page_start, logit_tokens;
    std::optional<std::span<const int32_t>> head_panels{};
};

// Names that ModelOptions::isa may have here, the best one first.
std::vector<std::string_view> available_isas();

class Model {
  public:
    // Checks and packs everything; afterwards only the data of token_embd.weight is read again.
    // Throws std::invalid_argument with the name of what is wrong.
    Model(const ModelOptions& options, const std::vector<TensorView>& tensors);

    // Writes float32 [logit_tokens, vocab_size]; with a plan that has head_panels only the columns
    // of these, 16 each. Throws std::invalid_argument for a plan that does not hold together,
    // before anything is written.
    void forward(const PlanView& theirs, std::span<float> logits);
    void copy_pages(std::span<const int32_t> theirs);
    // K and V of one page over all layers, [page_bytes()].
    void read_page(int64_t page, std::span<uint8_t> out) const;
    void write_page(int64_t page, std::span<const uint8_t> data);

    std::string_view isa() const { return isa_; }
    int threads() const { return pool_.size(); }
    const ModelWeights& weights() const { return weights_; }

  private:
    void take_ropes(const ModelOptions& options);
    size_t kv_head_bytes() const;  // of one page
    size_t page_bytes() const;     // over all layers and heads
    void check_page(int64_t page, const char* what) const;
    // A copy that nobody else writes to between the checks and the step.
    PlanView keep(const PlanView& theirs);
    void arrange(const PlanView& plan);
    Attendants attendants(const std::vector<int32_t>& tokens, const int32_t* rows) const;
    Step prepare(const PlanView& plan, std::span<float> logits);

    ModelWeights weights_;
    std::vector<LayerWeights> layers_;
    std::vector<float> frequencies_, magnitudes_;
    std::vector<float> vectors_;  // norms and biases
    Memory packed_;
    Memory kv_;
    int64_t context_length_;
    int pages_;
    int max_cols_;
    std::string_view isa_;
    StepFunction step_;
    ThreadPool pool_;
    mutable std::mutex mutex_;

    // Of the step that runs; kept between steps to save allocations.
    Memory scratch_;
    std::vector<ThreadScratch> thread_scratch_;
    std::vector<int32_t> plan_, positions_, page_counts_, order_, row_order_, last_order_,
        last_rows_;
    std::vector<const int32_t*> token_pages_;
};

}  // namespace sglite
