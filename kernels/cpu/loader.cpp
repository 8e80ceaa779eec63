#include "loader.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "fence.h"
#include "pack.h"

namespace sglite {
namespace {

int64_t rows_of(const std::vector<int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    }
    return text + "]";
}

}  // namespace

Loader::Loader(const std::vector<TensorView>& tensors) {
    for (const TensorView& tensor : tensors) {
        if (!tensors_.emplace(tensor.name, &tensor).second) {
            throw std::invalid_argument("tensor '" + tensor.name + "' appears twice");
        }
    }
}

const TensorView& Loader::take(const std::string& name, const std::vector<int64_t>& shape) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
        throw std::invalid_argument("tensor '" + name + "' is missing");
    }
    const TensorView& tensor = *found->second;
    if (tensor.shape != shape) {
        throw std::invalid_argument("tensor '" + name + "' has shape " + shape_text(tensor.shape) +
                                    ", the model's configuration needs " + shape_text(shape));
    }
    const Format* format = find_format(tensor.type);
    if (format == nullptr) {
        throw std::invalid_argument("tensor '" + name + "' has ggml type " +
                                    std::to_string(tensor.type) +
                                    ", which the cpu backend does not support");
    }
    const int64_t cols = shape.back();
    const int64_t rows = rows_of(shape);
    if (cols % format->block != 0) {
        throw std::invalid_argument("tensor '" + name + "' has rows of " + std::to_string(cols) +
                                    " values, not a multiple of the " +
                                    std::to_string(format->block) + " in a block of " +
                                    format->name);
    }
    const size_t bytes = format->row_bytes(static_cast<int>(cols)) * static_cast<size_t>(rows);
    if (tensor.data.size() != bytes) {
        throw std::invalid_argument("tensor '" + name + "' has " +
                                    std::to_string(tensor.data.size()) + " bytes of data, its " +
                                    format->name + " shape needs " + std::to_string(bytes));
    }
    used_.insert(name);
    return tensor;
}

size_t Loader::values(const std::string& name, int64_t count, std::vector<float>& out) {
    const TensorView& tensor = take(name, {count});
    const size_t begin = out.size();
    out.resize(begin + static_cast<size_t>(count));
    dequantise_row(*find_format(tensor.type), tensor.data.data(), static_cast<int>(count),
                   out.data() + begin);
    return begin;
}

const TensorView& Loader::matrix(const std::string& name, int64_t rows, int64_t cols) {
    return take(name, {rows, cols});
}

const TensorView& Loader::matrices(const std::string& name, int64_t count, int64_t rows,
                                   int64_t cols) {
    return take(name, {count, rows, cols});
}

void Loader::describe(const TensorView& tensor, Matrix& matrix) const {
    matrix.kind = find_format(tensor.type)->kind;
    matrix.rows = static_cast<int>(rows_of(tensor.shape));
    matrix.cols = static_cast<int>(tensor.shape.back());
    matrix.panel_stride = panel_bytes(matrix.kind, matrix.blocks());
}

size_t Loader::reserve(size_t bytes) {
    const size_t offset = size_;
    size_ += (bytes + kFence + kCacheLine - 1) / kCacheLine * kCacheLine;
    ends_.push_back(offset + bytes);
    return offset;
}

void Loader::plan(const TensorView& tensor, Matrix& matrix) {
    describe(tensor, matrix);
    const size_t offset = reserve(matrix.panel_stride * matrix.panels());
    jobs_.push_back({&matrix, &tensor, find_format(tensor.type), offset});
}

void Loader::plan_pair(const TensorView& first, Matrix& a, const TensorView& second, Matrix& b) {
    describe(first, a);
    describe(second, b);
    if (a.kind != b.kind) {
        plan(first, a);
        plan(second, b);
        return;
    }
    const size_t panel = a.panel_stride;
    a.panel_stride = b.panel_stride = 2 * panel;
    const size_t offset = reserve(2 * panel * a.panels());
    jobs_.push_back({&a, &first, find_format(first.type), offset});
    jobs_.push_back({&b, &second, find_format(second.type), offset + panel});
}

void Loader::check_all_used() const {
    for (const auto& [name, tensor] : tensors_) {
        if (!used_.contains(name)) {
            throw std::invalid_argument("tensor '" + name +
                                        "' has no place in the model's configuration");
        }
    }
}

Memory Loader::pack(ThreadPool& pool) {
    Memory memory(size_, true);
    for (const size_t end : ends_) close_fence(memory.data() + end, kFence);
    for (const Job& job : jobs_) job.matrix->data = memory.data() + job.offset;
    struct Piece {
        const Job* job;
        int begin, end;  // panels
    };
    constexpr int kPanels = 64;
    std::vector<Piece> pieces;
    for (const Job& job : jobs_) {
        const int panels = job.matrix->panels();
        for (int begin = 0; begin < panels; begin += kPanels) {
            pieces.push_back({&job, begin, std::min(begin + kPanels, panels)});
        }
    }
    struct Argument {
        const Piece* pieces;
        int count;
        unsigned char* data;
    };
    pool.run(Argument{pieces.data(), static_cast<int>(pieces.size()), memory.data()},
             [](const Argument& all, Phases& phases) {
                 phases.enter(all.count);
                 for (int i; (i = phases.claim()) >= 0;) {
                     const auto& [job, begin, end] = all.pieces[i];
                     pack_panels(*job->matrix, all.data + job->offset, *job->format,
                                 job->tensor->data.data(), begin, end);
                 }
                 phases.leave();
             });
    return memory;
}

}  // namespace sglite
