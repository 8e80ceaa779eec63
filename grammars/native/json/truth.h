// What a formula says of a type as a whole, and which atoms it surely demands.
#pragma once

#include "reader.h"

namespace sglite::json {

enum class Truth : uint8_t { kFalse, kTrue, kOpen };

// Bounds the time of a compilation.
class Work {
  public:
    void spend(int64_t steps = 1) {
        left_ -= steps;
        if (left_ < 0) throw Refused("the schema is too large to compile; make it smaller");
    }
    void refill() { left_ = kMost; }

  private:
    static constexpr int64_t kMost = 20'000'000;
    int64_t left_ = kMost;
};

class Truths {
  public:
    Truths(Document& document, Formulas& formulas, Reader& reader, Work& work)
        : document_(document), formulas_(formulas), reader_(reader), work_(work) {}

    // Whether values of the type satisfy the formula: all, none, or it depends. Throws Refused for
    // a schema that leads back to itself without a value between.
    Truth of(Lit lit, Type type);
    // The atoms of the type that hold in every value of it that satisfies the formula.
    void sure(Lit lit, Type type, std::vector<Lit>& atoms, int depth = 0);
    // Whether a set of keys holds a name.
    bool holds(const KeySet& keys, int32_t name, Texts& texts);

  private:
    Truth find(int32_t node, Type type);
    Truth of_group(const Node& node, Type type);

    Document& document_;
    Formulas& formulas_;
    Reader& reader_;
    Work& work_;
    std::vector<uint16_t> known_;  // per node two bits for each type: 0, or 1 + the truth
    std::vector<uint8_t> open_;    // per node a bit for each type that is in work
    int depth_ = 0;
};

constexpr int kDeepestFormula = 2000;

}  // namespace sglite::json
