// The Python face of probes, for benchmarks.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <stdexcept>

#include "dispatch.h"
#include "loader.h"
#include "threads.h"

namespace sglite {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Results = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

int checked_threads(int threads) {
    if (threads < 1 || threads > 256) throw std::invalid_argument("threads must be in 1..256");
    return threads;
}

// A packed matrix, and the threads that multiply with it.
class PyProbe {
  public:
    PyProbe(int type, const Bytes& data, int64_t rows, int64_t cols, int threads,
            const std::string& isa)
        : isa_(choose_isa(isa)),
          unused_(kProbeChunks * kCacheLine, true),
          pool_(checked_threads(threads)) {
        if (cols < kBlock || cols % kBlock != 0 || rows < 1 || rows > INT32_MAX) {
            throw std::invalid_argument("a matrix has rows, and columns in blocks of 32");
        }
        const std::vector<TensorView> tensors = {
            {"matrix", type, {rows, cols}, std::span(data.data(), data.size())}};
        Loader loader(tensors);
        loader.plan(loader.matrix("matrix", rows, cols), probe_.matrix);
        nb::gil_scoped_release release;
        packed_ = loader.pack(pool_);
        probe_.model = &model_;
        probe_.unused = unused_.data();
    }

    double multiply(const Values& x, const Results& out) {
        Matrix& matrix = probe_.matrix;
        const size_t tokens = x.shape(0), cols = matrix.cols, rows = matrix.rows;
        if (tokens < 1 || tokens > 1 << 16 || x.shape(1) != cols || out.shape(0) != tokens ||
            out.shape(1) != rows) {
            throw std::invalid_argument("x must be [tokens, cols] and out [tokens, rows]");
        }
        nb::gil_scoped_release release;
        const Memory floats(tokens * cols * sizeof(float), true);
        const Memory blocks(tokens * cols / kBlock * sizeof(ActivationBlock), true);
        probe_.x = x.data();
        probe_.out = out.data();
        probe_.tokens = static_cast<int>(tokens);
        probe_.input = {reinterpret_cast<ActivationBlock*>(blocks.data()),
                        reinterpret_cast<float*>(floats.data()), matrix.cols};
        run(ProbeKind::Quantise);
        return run(ProbeKind::Product);
    }

    double read_rate() {
        nb::gil_scoped_release release;
        return static_cast<double>(packed_.size()) / run(ProbeKind::Read);
    }

    double dot_rate() {
        nb::gil_scoped_release release;
        return 8.0 * isa_.lanes * kProbeDots * kProbeChunks / run(ProbeKind::Dots);
    }

    size_t size() const { return packed_.size(); }

  private:
    // Seconds.
    double run(ProbeKind kind) {
        struct Argument {
            Probe probe;
            ProbeFunction walk;
        };
        probe_.kind = kind;
        const auto start = std::chrono::steady_clock::now();
        pool_.run(Argument{probe_, isa_.probe}, [](const Argument& argument, Phases& phases) {
            argument.walk(argument.probe, phases);
        });
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    Isa isa_;
    ModelWeights model_;
    Memory packed_, unused_;
    Probe probe_{};
    ThreadPool pool_;  // last, so that its threads end before what they may look at
};

}  // namespace

void bind_probe(nb::module_& m) {
    nb::class_<PyProbe>(m, "Probe")
        .def(nb::init<int, const Bytes&, int64_t, int64_t, int, const std::string&>(), "type"_a,
             "data"_a, "rows"_a, "cols"_a, nb::kw_only(), "threads"_a, "isa"_a = "")
        .def("multiply", &PyProbe::multiply, "x"_a.noconvert(), "out"_a.noconvert())
        .def("read_rate", &PyProbe::read_rate)
        .def("dot_rate", &PyProbe::dot_rate)
        .def_prop_ro("size", &PyProbe::size);
}

}  // namespace sglite
