// Finds and checks the tensors of a model, and lays out and packs its matrices.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats.h"
#include "model.h"

namespace sglite {

class Loader {
  public:
    explicit Loader(const std::vector<TensorView>& tensors);

    // `count` values as f32, appended to `out`; returns where they begin.
    size_t values(const std::string& name, int64_t count, std::vector<float>& out);
    const TensorView& matrix(const std::string& name, int64_t rows, int64_t cols);
    // `count` matrices, one below the other.
    const TensorView& matrices(const std::string& name, int64_t count, int64_t rows, int64_t cols);

    // Plans the matrix into the packed memory; `matrix.data` is set by `pack`.
    void plan(const TensorView& tensor, Matrix& matrix);
    // Two matrices of equal shape, panel by panel in turns where their kinds agree.
    void plan_pair(const TensorView& first, Matrix& a, const TensorView& second, Matrix& b);

    void check_all_used() const;
    Memory pack(ThreadPool& pool);

  private:
    struct Job {
        Matrix* matrix;
        const TensorView* tensor;
        const Format* format;
        size_t offset;
    };

    const TensorView& take(const std::string& name, const std::vector<int64_t>& shape);
    void describe(const TensorView& tensor, Matrix& matrix) const;
    size_t reserve(size_t bytes);

    std::map<std::string, const TensorView*> tensors_;
    std::set<std::string> used_;
    std::vector<Job> jobs_;
    std::vector<size_t> ends_;  // where what was reserved ends
    size_t size_ = 0;
};

}  // namespace sglite
