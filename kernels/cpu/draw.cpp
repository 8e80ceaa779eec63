// One row after the other: split the columns, weigh them, pick an outcome. The arithmetic is in
// draw_columns.h, the selection for the filters in draw_selection.h.
#include "draw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "draw_columns.h"
#include "draw_selection.h"

namespace sglite {
namespace {

// Depths below the top, in units of the temperature, at which a row is tallied.
constexpr float kDepths[Tally::kFloors] = {1.5f, 3, 5, 7.5f, 10, 14};

struct Filters {
    uint64_t top_k;  // 0 = off
    double top_p;
    double min_p;
    bool on() const { return top_k > 0 || top_p < 1 || min_p > 0; }
};

// Draws rows one after the other; holds the scratch that they share.
class Drawer {
  public:
    Drawer(const DrawBatch& batch, VectorSet set) : batch_(batch), passes_(passes_for(set)) {}

    const char* draw(int64_t row, int32_t& id, float& logprob) {
        if (const char* error = open(row)) return error;
        const float temperature = batch_.temperature[row];
        const bool has_ids = ids_.max > -kInf;
        if (has_ids) passes_.weigh(ids_, ids_.max, 1.0f, nullptr);
        const float top = std::max(ids_.max, end_logit_);
        double total = std::exp(static_cast<double>(end_logit_) - top);
        if (has_ids)
            total += static_cast<double>(ids_.weight) / kUnits *
                     std::exp(static_cast<double>(ids_.max) - top);

        if (temperature == 0)
            id = end_logit_ > ids_.max ? -1 : first_at_max();
        else
            id = sample(row, temperature, top);

        const float chosen = id < 0 ? end_logit_ : ids_.logits[id];
        const double log = static_cast<double>(chosen) - top - std::log(total);
        logprob = static_cast<float>(std::min(0.0, log));
        return nullptr;
    }

  private:
    // Splits the row's columns into ids and end outcome and finds their maxima.
    const char* open(int64_t row) {
        const int64_t blocks = (batch_.vocab + kBlock - 1) / kBlock;
        for (Columns* c : {&ids_, &end_}) {
            c->logits = batch_.logits + row * batch_.vocab;
            c->vocab = batch_.vocab;
            c->words.assign(static_cast<size_t>(blocks * kWords), 0);
            c->blocks.clear();
            c->max = -kInf;
            c->bad = false;
        }
        const uint32_t* mask = batch_.mask + row * batch_.mask_words;
        std::copy(mask, mask + batch_.mask_words, ids_.words.begin());
        const uint32_t tail = batch_.vocab % 32 == 0 ? ~uint32_t{0} : (1u << batch_.vocab % 32) - 1;
        ids_.words[static_cast<size_t>(batch_.mask_words - 1)] &= tail;
        if (batch_.end_rest[row]) {
            for (int64_t w = 0; w < batch_.mask_words; ++w)
                end_.words[static_cast<size_t>(w)] = ~ids_.words[static_cast<size_t>(w)];
            end_.words[static_cast<size_t>(batch_.mask_words - 1)] &= tail;
        }
        for (int32_t e = batch_.end_start[row]; e < batch_.end_start[row + 1]; ++e) {
            const int32_t id = batch_.end_ids[e];
            ids_.words[static_cast<size_t>(id / 32)] &= ~(1u << id % 32);
            end_.words[static_cast<size_t>(id / 32)] |= 1u << id % 32;
        }
        for (Columns* c : {&ids_, &end_}) {
            for (int64_t b = 0; b < blocks; ++b) {
                const uint32_t* words = c->words.data() + b * kWords;
                uint32_t any = 0;
                for (int w = 0; w < kWords; ++w) any |= words[w];
                if (any != 0) c->blocks.push_back({b * kBlock, -kInf, 0});
            }
            passes_.scan(*c);
            if (c->bad) return "a logit that counts is NaN or +inf";
        }
        if (ids_.blocks.empty() && end_.blocks.empty())
            return "the mask allows no id and there is no end outcome";
        end_logit_ = -kInf;
        if (end_.max > -kInf) {
            passes_.weigh(end_, end_.max, 1.0f, nullptr);
            end_logit_ =
                static_cast<float>(end_.max + std::log(static_cast<double>(end_.weight) / kUnits));
        }
        if (ids_.max == -kInf && end_logit_ == -kInf) return "every logit that counts is -inf";
        return nullptr;
    }

    int32_t first_at_max() {
        for (const Block& block : ids_.blocks) {
            if (block.max != ids_.max) continue;
            load<16>(ids_, block.start, loaded_);
            for (int i = 0; i < loaded_.count; ++i)
                if (loaded_.x[i] == ids_.max)
                    return static_cast<int32_t>(block.start + loaded_.column[i]);
        }
        return -1;
    }

    int32_t sample(int64_t row, float temperature, float top) {
        // Bounded, so that a difference of zero times the scale stays zero.
        const float scale = std::min(1.0f / temperature, std::numeric_limits<float>::max());
        const Filters filters{static_cast<uint64_t>(batch_.top_k[row]), batch_.top_p[row],
                              batch_.min_p[row]};
        uint64_t end_weight = 0;
        if (end_logit_ > -kInf) {
            std::fill(loaded_.x, loaded_.x + kPad, end_logit_);
            units<16>(loaded_.x, top, scale, weights_);
            end_weight = static_cast<uint64_t>(weights_[0]);
        }
        Tally tally = {};
        for (int f = 0; f < Tally::kFloors; ++f) {
            tally.floor[f] =
                static_cast<float>(top - static_cast<double>(kDepths[f]) * temperature);
            if (end_weight > 0 && end_logit_ >= tally.floor[f]) {
                tally.count[f] = 1;
                tally.weight[f] = end_weight;
            }
        }
        if (ids_.max == -kInf)
            ids_.weight = 0;
        else if (filters.on() || temperature != 1.0f || top != ids_.max)
            passes_.weigh(ids_, top, scale, filters.on() ? &tally : nullptr);
        const double uniform = batch_.uniform[row];
        if (!filters.on()) return walk(top, scale, uniform, end_weight);
        filter(filters, tally, top, scale, end_weight);
        uint64_t total = 0;
        for (const Candidate& c : candidates_) total += c.weight;
        const uint64_t target = point(uniform, total);
        uint64_t sum = 0;
        for (const Candidate& c : candidates_)
            if ((sum += c.weight) > target) return c.id;
        return -1;
    }

    // The unit that `uniform` points at. A double holds 53 bits: rounding must not reach the total.
    static uint64_t point(double uniform, uint64_t total) {
        const auto target = static_cast<uint64_t>(uniform * static_cast<double>(total));
        return std::min(target, total - 1);
    }

    int32_t walk(float top, float scale, double uniform, uint64_t end_weight) {
        uint64_t target = point(uniform, ids_.weight + end_weight);
        if (target >= ids_.weight) return -1;
        for (const Block& block : ids_.blocks) {
            if (target >= block.weight) {
                target -= block.weight;
                continue;
            }
            passes_.weigh_block(ids_, block, top, scale, loaded_, weights_);
            for (int i = 0; i < loaded_.count; ++i) {
                const auto weight = static_cast<uint64_t>(weights_[i]);
                if (target < weight) return static_cast<int32_t>(block.start + loaded_.column[i]);
                target -= weight;
            }
        }
        return -1;
    }

    // Leaves in candidates_ what the filters let through, in ascending order of ids, end last.
    void filter(const Filters& f, const Tally& tally, float top, float scale, uint64_t end_weight) {
        const uint64_t everything = ids_.weight + end_weight;
        const auto share = [](double p, uint64_t total) {
            const double wanted = std::ceil(p * static_cast<double>(total));
            return std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, total);
        };
        const double least = f.min_p * kUnits;  // the heaviest outcome weighs kUnits
        // What the filters keep is a prefix of the order by weight. Collect from the highest floor
        // that surely has it; for usual distributions that is a small part of the vocabulary.
        float floor = -kInf;
        for (int i = 0; i < Tally::kFloors && floor == -kInf; ++i) {
            const bool has_k = f.top_k > 0 && tally.count[i] >= f.top_k;
            const bool has_p =
                f.top_p < 1 && f.top_k == 0 && tally.weight[i] >= share(f.top_p, everything);
            // Weights are rounded, the floor is not: hence the slack. And top_p after top_k is a
            // share of the first k, all of which must be there.
            const bool has_min_p =
                f.min_p > 0 && !(f.top_k > 0 && f.top_p < 1) &&
                std::exp(-static_cast<double>(kDepths[i])) * 1.001 + 1 / kUnits < f.min_p;
            if (has_k || has_p || has_min_p) floor = tally.floor[i];
        }
        const uint64_t collected = collect(floor, top, scale, end_weight);
        if (f.top_k > 0 && f.top_k < candidates_.size())
            selection_.keep_first(candidates_, f.top_k, ~uint64_t{0});
        if (f.top_p < 1) {
            uint64_t total = everything;
            if (f.top_k > 0) {
                total = 0;
                for (const Candidate& c : candidates_) total += c.weight;
            }
            const uint64_t wanted = share(f.top_p, total);
            if (f.top_k > 0 || collected > wanted)
                selection_.keep_first(candidates_, candidates_.size(), wanted);
        }
        if (f.min_p > 0)
            std::erase_if(candidates_, [&](const Candidate& c) {
                return static_cast<double>(c.weight) < least;
            });
    }

    // Candidates with a logit of at least `floor`; returns their weight.
    uint64_t collect(float floor, float top, float scale, uint64_t end_weight) {
        candidates_.clear();
        uint64_t total = 0;
        for (const Block& block : ids_.blocks) {
            if (!(block.max >= floor) || block.max == -kInf) continue;
            passes_.weigh_block(ids_, block, top, scale, loaded_, weights_);
            const size_t before = candidates_.size();
            candidates_.resize(before + static_cast<size_t>(loaded_.count));
            Candidate* next = candidates_.data() + before;
            for (int i = 0; i < loaded_.count; ++i) {
                const auto weight = static_cast<uint64_t>(weights_[i]);
                *next = {order_key(loaded_.x[i]),
                         static_cast<int32_t>(block.start + loaded_.column[i]), weight};
                // Without a branch: which columns pass cannot be predicted.
                const bool in = loaded_.x[i] >= floor && loaded_.x[i] > -kInf;
                next += in;
                total += in ? weight : 0;
            }
            candidates_.resize(static_cast<size_t>(next - candidates_.data()));
        }
        if (end_weight > 0 && end_logit_ >= floor) {
            candidates_.push_back({order_key(end_logit_), -1, end_weight});
            total += end_weight;
        }
        return total;
    }

    const DrawBatch& batch_;
    const Passes& passes_;
    Columns ids_, end_;
    float end_logit_ = -kInf;  // log of the end outcome's total, rounded to float
    Loaded loaded_;
    alignas(64) int64_t weights_[kBlock];
    std::vector<Candidate> candidates_;
    Selection selection_;
};

}  // namespace

const char* draw_rows(const DrawBatch& batch, VectorSet set, int64_t first, int64_t last,
                      int32_t* ids, float* logprobs, int64_t* failed) {
    Drawer drawer(batch, set);
    for (int64_t row = first; row < last; ++row)
        if (const char* error = drawer.draw(row, ids[row], logprobs[row])) {
            *failed = row;
            return error;
        }
    return nullptr;
}

bool supported(VectorSet set) {
    switch (set) {
        case VectorSet::portable:
            return true;
#if SGLITE_X86
        case VectorSet::avx2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                   __builtin_cpu_supports("popcnt");
        case VectorSet::avx512:
            return supported(VectorSet::avx2) && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
#endif
        default:
            return false;
    }
}

}  // namespace sglite
