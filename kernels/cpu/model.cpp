#include "model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "dispatch.h"
#include "fence.h"
#include "formats.h"
#include "loader.h"

namespace sglite {
namespace {

int bounded(const char* name, int64_t value, int64_t low, int64_t high) {
    if (value < low || value > high) {
        throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                                    ", not in " + std::to_string(low) + ".." +
                                    std::to_string(high));
    }
    return static_cast<int>(value);
}

void require(bool holds, const std::string& message) {
    if (!holds) throw std::invalid_argument(message);
}

Isa choose_isa(const std::string& name) {
    const std::vector<Isa> isas = detect_isas();
    std::string names;
    for (const Isa& isa : isas) {
        if (name.empty() || name == isa.name) return isa;
        names += " " + std::string(isa.name);
    }
    throw std::invalid_argument("instruction set '" + name +
                                "' is not one of this machine's:" + names);
}

ModelWeights check_shapes(const ModelOptions& o) {
    constexpr int64_t kMost = 1 << 20;
    ModelWeights w;
    w.vocab_size = bounded("vocab_size", o.vocab_size, 1, 1 << 24);
    w.width = bounded("width", o.width, kBlock, kMost);
    w.ff_width = bounded("ff_width", o.ff_width, kBlock, kMost);
    w.heads = bounded("heads", o.heads, 1, 4096);
    w.kv_heads = bounded("kv_heads", o.kv_heads, 1, o.heads);
    w.head_dim = bounded("head_dim", o.head_dim, kPanelRows, 4096);
    w.layer_count =
        bounded("the number of layers", static_cast<int64_t>(o.windows.size()), 1, 4096);
    require(o.ropes.size() == o.windows.size(), "ropes and windows differ in length");
    require(w.width % kBlock == 0 && w.ff_width % kBlock == 0 && w.attention_width() % kBlock == 0,
            "width, ff_width and heads * head_dim must be multiples of 32");
    require(w.head_dim % kPanelRows == 0, "head_dim must be a multiple of 16");
    require(w.heads % w.kv_heads == 0, "heads must be a multiple of kv_heads");
    bounded("heads / kv_heads", w.group(), 1, kMaxGroup);
    bounded("heads * head_dim", static_cast<int64_t>(w.heads) * w.head_dim, 1, kMost);
    w.experts = bounded("experts", o.experts, 0, kMaxExperts);
    w.experts_used = bounded("experts_used", o.experts_used, w.experts == 0 ? 0 : 1,
                             std::min<int64_t>(o.experts, kMaxExpertsUsed));
    bounded("experts * ff_width", o.experts * o.ff_width, 0, 1 << 30);
    bounded("experts * width", o.experts * o.width, 0, 1 << 30);
    w.normalise_experts = o.normalise_experts;
    w.norm_epsilon = static_cast<float>(o.norm_epsilon);
    w.embedding_scale = static_cast<float>(o.embedding_scale);
    w.attention_scale = static_cast<float>(o.attention_scale);
    for (const auto& [cap, to] :
         {std::pair(o.attention_cap, &w.attention_cap), std::pair(o.logit_cap, &w.logit_cap)}) {
        require(std::isfinite(cap) && cap >= 0, "a cap must be a positive number, or 0 for none");
        *to = static_cast<float>(cap);
    }
    if (o.activation == "silu") {
        w.activation = Activation::Silu;
    } else if (o.activation == "gelu_tanh") {
        w.activation = Activation::GeluTanh;
    } else {
        throw std::invalid_argument("activation '" + o.activation +
                                    "' is not one of silu, gelu_tanh");
    }
    w.rope_interleaved = o.rope_interleaved;
    w.int8_activations = o.int8_activations;
    w.half_kv = o.half_kv;
    return w;
}

// Bump allocation out of the scratch memory: first with a null base to learn the size.
class Carver {
  public:
    explicit Carver(unsigned char* base) : base_(base) {}
    template <class T>
    T* take(size_t count) {
        const size_t at = used_, end = at + count * sizeof(T);
        used_ = (end + kFence + kCacheLine - 1) / kCacheLine * kCacheLine;
        if (base_ == nullptr) return nullptr;
        close_fence(base_ + end, used_ - end);
        return reinterpret_cast<T*>(base_ + at);
    }
    size_t used() const { return used_; }

  private:
    unsigned char* base_;
    size_t used_ = 0;
};

void carve(Carver& from, Step& step, std::span<ThreadScratch> threads) {
    const ModelWeights& m = *step.model;
    const size_t tokens = step.tokens, logits = step.logit_count, cols = step.max_cols;
    for (float*& x : step.x) x = from.take<float>(tokens * m.width);
    step.x_last = from.take<float>(logits * m.width);
    step.y = from.take<float>(tokens * m.width);
    step.qkv = from.take<float>(tokens * m.qkv_width());
    step.rope = from.take<float>(m.rope_count * tokens * m.rope_dim);
    const auto take_input = [&](Input& input, size_t rows, size_t columns) {
        input.cols = static_cast<int>(columns);
        input.floats = from.take<float>(rows * columns);
        input.blocks = from.take<ActivationBlock>(rows * columns / kBlock);
    };
    const size_t rows = tokens * m.experts_used;
    take_input(step.input, tokens, cols);
    take_input(step.hidden, m.experts > 0 ? rows : tokens, m.ff_width);
    Routing& r = step.routing;
    r.logits = from.take<float>(tokens * m.experts);
    r.shares = from.take<float>(rows);
    r.rows = from.take<int32_t>(rows);
    r.tokens = from.take<int32_t>(rows);
    r.first = from.take<int32_t>(m.experts + 2);
    r.active = from.take<int32_t>(m.experts);
    take_input(r.input, rows, m.width);
    r.out = from.take<float>(rows * m.width);
    const size_t queries = static_cast<size_t>(kAttentionTokens) * m.group();
    for (ThreadScratch& thread : threads) {
        thread.x = from.take<float>(kPrivateTokens * static_cast<size_t>(m.width));
        thread.floats = from.take<float>(kPrivateTokens * cols);
        thread.blocks = from.take<ActivationBlock>(kPrivateTokens * cols / kBlock);
        thread.scores = from.take<float>(queries * kChunkKeys);
        thread.chunk_out = from.take<float>(queries * m.head_dim);
        thread.running_out = from.take<float>(queries * m.head_dim);
        thread.row = from.take<float>(cols);
    }
}

}  // namespace

void embed_row(const ModelWeights& model, int row, float* out) {
    const Format& format = *model.embedding_format;
    dequantise_row(format, model.embedding + row * format.row_bytes(model.width), model.width, out);
}

std::vector<std::string_view> available_isas() {
    std::vector<std::string_view> names;
    for (const Isa& isa : detect_isas()) names.push_back(isa.name);
    return names;
}

Model::Model(const ModelOptions& options, const std::vector<TensorView>& tensors)
    : weights_(check_shapes(options)),
      layers_(weights_.layer_count),
      context_length_(bounded("context_length", options.context_length, 1, 1 << 24)),
      pages_(bounded("pages", options.pages, 1, 1 << 24)),
      pool_(bounded("threads", options.threads, 1, 256)),
      thread_scratch_(pool_.size()) {
    ModelWeights& w = weights_;
    const Isa isa = choose_isa(options.isa);
    isa_ = isa.name;
    step_ = isa.step;
    max_cols_ = std::max({w.width, w.ff_width, w.attention_width()});

    Loader loader(tensors);
    std::vector<std::pair<const float**, size_t>> vectors;  // set once vectors_ stops growing
    const auto norm = [&](const std::string& name, int count, const float*& to) {
        vectors.emplace_back(&to, loader.values(name, count, vectors_));
    };
    take_ropes(options);
    for (int i = 0; i < w.layer_count; ++i) {
        LayerWeights& layer = layers_[i];
        const std::string prefix = "blk." + std::to_string(i) + ".";
        const auto matrix = [&](const char* name, int rows, int cols) -> const TensorView& {
            return loader.matrix(prefix + name + ".weight", rows, cols);
        };
        const int kv_width = w.kv_heads * w.head_dim;
        loader.plan(matrix("attn_q", w.attention_width(), w.width), layer.q);
        loader.plan(matrix("attn_k", kv_width, w.width), layer.k);
        loader.plan(matrix("attn_v", kv_width, w.width), layer.v);
        loader.plan(matrix("attn_output", w.width, w.attention_width()), layer.output);
        if (w.experts == 0) {
            loader.plan_pair(matrix("ffn_gate", w.ff_width, w.width), layer.gate,
                             matrix("ffn_up", w.ff_width, w.width), layer.up);
            loader.plan(matrix("ffn_down", w.width, w.ff_width), layer.down);
        } else {
            const auto all = [&](const char* name, int rows, int cols) -> const TensorView& {
                return loader.matrices(prefix + name + ".weight", w.experts, rows, cols);
            };
            loader.plan(matrix("ffn_gate_inp", w.experts, w.width), layer.router);
            loader.plan_pair(all("ffn_gate_exps", w.ff_width, w.width), layer.gate,
                             all("ffn_up_exps", w.ff_width, w.width), layer.up);
            loader.plan(all("ffn_down_exps", w.width, w.ff_width), layer.down);
        }
        norm(prefix + "attn_norm.weight", w.width, layer.attention_norm);
        norm(prefix + "ffn_norm.weight", w.width, layer.feed_norm);
        if (options.qkv_bias) {
            vectors.emplace_back(&layer.qkv_bias, loader.values(prefix + "attn_q.bias",
                                                                w.attention_width(), vectors_));
            loader.values(prefix + "attn_k.bias", kv_width, vectors_);
            loader.values(prefix + "attn_v.bias", kv_width, vectors_);
        }
        if (options.qk_norm) {
            norm(prefix + "attn_q_norm.weight", w.head_dim, layer.q_norm);
            norm(prefix + "attn_k_norm.weight", w.head_dim, layer.k_norm);
        }
        if (options.post_norms) {
            norm(prefix + "post_attention_norm.weight", w.width, layer.post_attention_norm);
            norm(prefix + "post_ffw_norm.weight", w.width, layer.post_feed_norm);
        }
        layer.window = bounded("window", options.windows[i], 0, 1 << 24);
        layer.rope = bounded("rope", options.ropes[i], -1, w.rope_count - 1);
    }
    norm("output_norm.weight", w.width, w.output_norm);
    const TensorView& embedding = loader.matrix("token_embd.weight", w.vocab_size, w.width);
    w.embedding = embedding.data.data();
    w.embedding_format = find_format(embedding.type);
    loader.plan(
        options.tied_output ? embedding : loader.matrix("output.weight", w.vocab_size, w.width),
        w.head);
    loader.check_all_used();
    for (const auto& [to, at] : vectors) *to = vectors_.data() + at;
    w.layers = layers_.data();
    packed_ = loader.pack(pool_);
    const double kv_bytes =
        static_cast<double>(kv_head_bytes()) * pages_ * w.layer_count * w.kv_heads;
    require(kv_bytes < 1e15, "so many pages cannot be addressed");
    kv_ = Memory(kv_head_bytes() * pages_ * w.layer_count * w.kv_heads, false);
}

void Model::take_ropes(const ModelOptions& o) {
    const size_t count = o.frequencies.size();
    weights_.rope_count = bounded("the number of rope kinds", static_cast<int64_t>(count), 0, 4096);
    require(o.magnitudes.size() == count, "magnitudes and frequencies differ in length");
    const size_t half = count == 0 ? 0 : o.frequencies[0].size();
    weights_.rope_dim = bounded("the number of values that rotate", 2 * static_cast<int64_t>(half),
                                0, weights_.head_dim);
    const auto take = [](double value, std::vector<float>& to) {
        to.push_back(static_cast<float>(value));
        require(std::isfinite(to.back()), "a rope's frequencies and magnitude must be finite");
    };
    for (size_t r = 0; r < count; ++r) {
        require(o.frequencies[r].size() == half, "ropes differ in their number of frequencies");
        for (const double frequency : o.frequencies[r]) take(frequency, frequencies_);
        take(o.magnitudes[r], magnitudes_);
    }
    weights_.frequencies = frequencies_.data();
    weights_.rope_magnitudes = magnitudes_.data();
}

size_t Model::kv_head_bytes() const {
    return static_cast<size_t>(2) * kPageSize * weights_.head_dim * (weights_.half_kv ? 2 : 4);
}

// Checks the plan and spreads it over its tokens.
void Model::arrange(const PlanView& plan) {
    const auto tokens = static_cast<int64_t>(plan.tokens.size());
    const auto rows = static_cast<int64_t>(plan.context_start.size());
    bounded("the number of tokens", tokens, 1, 1 << 20);
    for (const auto& [name, starts, total] :
         {std::tuple("query_start", plan.query_start, tokens),
          std::tuple("page_start", plan.page_start, static_cast<int64_t>(plan.pages.size()))}) {
        require(static_cast<int64_t>(starts.size()) == rows + 1 && starts.front() == 0 &&
                    starts.back() == total && std::is_sorted(starts.begin(), starts.end()),
                std::string(name) + " must ascend from 0 to " + std::to_string(total) + " in " +
                    std::to_string(rows + 1) + " entries");
    }
    for (int64_t i = 0; i < tokens; ++i) {
        require(plan.tokens[i] >= 0 && plan.tokens[i] < weights_.vocab_size,
                "tokens[" + std::to_string(i) + "] is " + std::to_string(plan.tokens[i]) +
                    ", the vocabulary has " + std::to_string(weights_.vocab_size));
    }
    for (size_t i = 0; i < plan.pages.size(); ++i) {
        require(plan.pages[i] >= 0 && plan.pages[i] < pages_,
                "pages[" + std::to_string(i) + "] is " + std::to_string(plan.pages[i]) +
                    ", there are " + std::to_string(pages_) + " pages");
    }
    for (size_t i = 0; i < plan.logit_tokens.size(); ++i) {
        const int64_t before = i == 0 ? -1 : plan.logit_tokens[i - 1];
        require(plan.logit_tokens[i] > before && plan.logit_tokens[i] < tokens,
                "logit_tokens must ascend within 0.." + std::to_string(tokens - 1));
    }
    if (plan.head_panels) {
        int64_t before = -1;
        require(!plan.head_panels->empty(), "head_panels names no panel");
        for (const int32_t panel : *plan.head_panels) {
            require(
                panel > before && panel < weights_.head.panels(),
                "head_panels must ascend within 0.." + std::to_string(weights_.head.panels() - 1));
            before = panel;
        }
    }
    positions_.resize(tokens);
    token_pages_.resize(tokens);
    page_counts_.resize(tokens);
    row_order_.resize(rows);
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t context = plan.context_start[r];
        const int64_t length = context + plan.query_start[r + 1] - plan.query_start[r];
        const std::string row = "row " + std::to_string(r);
        require(context >= 0 && length <= context_length_,
                row + " reaches position " + std::to_string(length) + ", the context holds " +
                    std::to_string(context_length_));
        const int64_t needed = (length + kPageSize - 1) / kPageSize;
        require(plan.page_start[r + 1] - plan.page_start[r] >= needed,
                row + " has " + std::to_string(plan.page_start[r + 1] - plan.page_start[r]) +
                    " pages and needs " + std::to_string(needed));
        for (int32_t t = plan.query_start[r]; t < plan.query_start[r + 1]; ++t) {
            positions_[t] = static_cast<int32_t>(context) + t - plan.query_start[r];
            token_pages_[t] = plan.pages.data() + plan.page_start[r];
            page_counts_[t] = static_cast<int32_t>(needed);
        }
        row_order_[r] = static_cast<int32_t>(r);
    }
    // Rows in the order of their block tables: those with a common beginning become neighbours.
    const auto table = [&](int32_t r) {
        return plan.pages.subspan(plan.page_start[r], plan.page_start[r + 1] - plan.page_start[r]);
    };
    std::sort(row_order_.begin(), row_order_.end(), [&](int32_t a, int32_t b) {
        const auto x = table(a), y = table(b);
        return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    });
    order_.clear();
    for (const int32_t r : row_order_) {
        for (int32_t t = plan.query_start[r]; t < plan.query_start[r + 1]; ++t) order_.push_back(t);
    }
    last_order_.clear();
    last_rows_.clear();
    for (const int32_t t : order_) {
        const auto at = std::lower_bound(plan.logit_tokens.begin(), plan.logit_tokens.end(), t);
        if (at == plan.logit_tokens.end() || *at != t) continue;
        last_order_.push_back(t);
        last_rows_.push_back(static_cast<int32_t>(at - plan.logit_tokens.begin()));
    }
}

// How attention is divided: some pieces more than threads, so that uneven ones even out.
Attendants Model::attendants(const std::vector<int32_t>& tokens, const int32_t* rows) const {
    const int count = static_cast<int>(tokens.size()), threads = pool_.size();
    const int64_t work = static_cast<int64_t>(count) * weights_.kv_heads;
    const auto piece =
        static_cast<int>(std::clamp<int64_t>(work / (3 * threads), 1, kAttentionTokens));
    const int pieces = std::max(1, (count + piece - 1) / piece);
    const int parts = std::clamp(threads / (pieces * weights_.kv_heads), 1, weights_.group());
    return {tokens.data(), rows, count, piece, parts};
}

Step Model::prepare(const PlanView& plan, std::span<float> logits) {
    Step step{};
    step.model = &weights_;
    step.tokens = static_cast<int>(plan.tokens.size());
    step.logit_count = static_cast<int>(plan.logit_tokens.size());
    step.token_ids = plan.tokens.data();
    step.positions = positions_.data();
    step.token_pages = token_pages_.data();
    step.page_counts = page_counts_.data();
    step.all = attendants(order_, order_.data());
    step.last = attendants(last_order_, last_rows_.data());
    step.logit_tokens = plan.logit_tokens.data();
    step.max_cols = max_cols_;
    step.kv = kv_.data();
    step.kv_pages = pages_;
    if (plan.head_panels) {
        step.head_panels = plan.head_panels->data();
        step.head_count = static_cast<int>(plan.head_panels->size());
    }
    step.logits = logits.data();
    Carver measure(nullptr);
    carve(measure, step, thread_scratch_);
    if (measure.used() > scratch_.size()) scratch_ = Memory(measure.used(), true);
    open_fence(scratch_.data(), scratch_.size());
    Carver carver(scratch_.data());
    carve(carver, step, thread_scratch_);
    step.scratch = thread_scratch_.data();
    return step;
}

PlanView Model::keep(const PlanView& theirs) {
    PlanView plan = theirs;
    std::vector<std::span<const int32_t>*> parts{&plan.tokens,        &plan.query_start,
                                                 &plan.context_start, &plan.pages,
                                                 &plan.page_start,    &plan.logit_tokens};
    if (plan.head_panels) parts.push_back(&*plan.head_panels);
    plan_.clear();
    for (const auto* part : parts) plan_.insert(plan_.end(), part->begin(), part->end());
    size_t at = 0;
    for (auto* part : parts) {
        *part = std::span(plan_).subspan(at, part->size());
        at += part->size();
    }
    return plan;
}

void Model::forward(const PlanView& theirs, std::span<float> logits) {
    const std::lock_guard lock(mutex_);
    const PlanView plan = keep(theirs);
    require(logits.size() == plan.logit_tokens.size() * weights_.vocab_size,
            "the logits must be [" + std::to_string(plan.logit_tokens.size()) + ", " +
                std::to_string(weights_.vocab_size) + "]");
    arrange(plan);
    struct Argument {
        Step step;
        StepFunction walk;
    };
    pool_.run(Argument{prepare(plan, logits), step_},
              [](const Argument& all, Phases& phases) { all.walk(all.step, phases); });
}

void Model::check_page(int64_t page, const char* what) const {
    require(page >= 0 && page < pages_, "page " + std::to_string(page) + " " + what +
                                            ", there are " + std::to_string(pages_) + " pages");
}

void Model::copy_pages(std::span<const int32_t> theirs) {
    const std::lock_guard lock(mutex_);
    const std::vector<int32_t> pairs(theirs.begin(), theirs.end());
    for (const int32_t page : pairs) check_page(page, "to copy");
    const size_t bytes = kv_head_bytes();
    for (int head = 0; head < weights_.layer_count * weights_.kv_heads; ++head) {
        unsigned char* pages = kv_.data() + bytes * pages_ * head;
        for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
            if (pairs[i] == pairs[i + 1]) continue;
            memcpy(pages + bytes * pairs[i + 1], pages + bytes * pairs[i], bytes);
        }
    }
}

void Model::read_page(int64_t page, std::span<uint8_t> out) const {
    const std::lock_guard lock(mutex_);
    check_page(page, "to read");
    require(out.size() == page_bytes(), "a page has " + std::to_string(page_bytes()) +
                                            " bytes, not " + std::to_string(out.size()));
    const size_t bytes = kv_head_bytes();
    for (size_t head = 0; head * bytes < out.size(); ++head) {
        memcpy(out.data() + head * bytes, kv_.data() + bytes * (pages_ * head + page), bytes);
    }
}

void Model::write_page(int64_t page, std::span<const uint8_t> data) {
    const std::lock_guard lock(mutex_);
    check_page(page, "to write");
    require(data.size() == page_bytes(), "a page has " + std::to_string(page_bytes()) +
                                             " bytes, not " + std::to_string(data.size()));
    const size_t bytes = kv_head_bytes();
    for (size_t head = 0; head * bytes < data.size(); ++head) {
        memcpy(kv_.data() + bytes * (pages_ * head + page), data.data() + head * bytes, bytes);
    }
}

size_t Model::page_bytes() const {
    return kv_head_bytes() * weights_.layer_count * weights_.kv_heads;
}

}  // namespace sglite
