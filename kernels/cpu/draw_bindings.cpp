// The Python face of draw: checks every shape, parameter and id before a row is touched.
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "draw.h"

namespace sglite {

namespace nb = nanobind;

namespace {

template <class T, size_t N>
using Array = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("draw: " + what); }

VectorSet vector_set(const std::string& name) {
    constexpr std::pair<const char*, VectorSet> kSets[] = {{"avx512", VectorSet::avx512},
                                                           {"avx2", VectorSet::avx2},
                                                           {"portable", VectorSet::portable}};
    for (const auto& [known, set] : kSets)
        if ((name == "auto" || name == known) && supported(set)) return set;
    refuse("vectors must be auto, portable, avx2 or avx512 and the CPU must have them, got " +
           name);
}

void check_row(const DrawBatch& b, int64_t row, int64_t end_ids) {
    const auto bad = [row](const char* what) {
        refuse("row " + std::to_string(row) + ": " + what);
    };
    if (!(std::isfinite(b.temperature[row]) && b.temperature[row] >= 0))
        bad("temperature must be finite and >= 0");
    if (!(b.top_p[row] > 0 && b.top_p[row] <= 1)) bad("top_p must be in (0, 1]");
    if (b.top_k[row] < 0) bad("top_k must be >= 0 (0 switches it off)");
    if (!(b.min_p[row] >= 0 && b.min_p[row] <= 1)) bad("min_p must be in [0, 1]");
    if (!(b.uniform[row] >= 0 && b.uniform[row] < 1)) bad("uniform must be in [0, 1)");
    if (b.end_start[row] < 0 || b.end_start[row + 1] < b.end_start[row] ||
        b.end_start[row + 1] > end_ids)
        bad("end_start must ascend from 0 within end_ids");
    for (int32_t e = b.end_start[row]; e < b.end_start[row + 1]; ++e)
        if (b.end_ids[e] < 0 || b.end_ids[e] >= b.vocab) bad("an end id is outside the vocabulary");
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {kept->data(), {kept->size()}, owner};
}

nb::tuple draw(Array<float, 2> logits, Array<uint32_t, 2> mask, Array<float, 1> temperature,
               Array<float, 1> top_p, Array<int32_t, 1> top_k, Array<float, 1> min_p,
               Array<double, 1> uniform, Array<int32_t, 1> end_ids, Array<int32_t, 1> end_start,
               Array<uint8_t, 1> end_rest, const std::string& vectors) {
    const auto rows = logits.shape(0);
    const auto vocab = static_cast<int64_t>(logits.shape(1));
    if (vocab < 1 || vocab > kMaxDrawVocab)
        refuse("the vocabulary must have 1 to " + std::to_string(kMaxDrawVocab) + " ids, got " +
               std::to_string(vocab));
    if (mask.shape(0) != rows || static_cast<int64_t>(mask.shape(1)) != (vocab + 31) / 32)
        refuse("mask must be [" + std::to_string(rows) + ", " + std::to_string((vocab + 31) / 32) +
               "], got [" + std::to_string(mask.shape(0)) + ", " + std::to_string(mask.shape(1)) +
               "]");
    const std::pair<const char*, size_t> lengths[] = {{"temperature", temperature.shape(0)},
                                                      {"top_p", top_p.shape(0)},
                                                      {"top_k", top_k.shape(0)},
                                                      {"min_p", min_p.shape(0)},
                                                      {"uniform", uniform.shape(0)},
                                                      {"end_rest", end_rest.shape(0)}};
    for (const auto& [name, length] : lengths)
        if (length != rows)
            refuse(std::string(name) + " must have " + std::to_string(rows) + " entries, got " +
                   std::to_string(length));
    if (end_start.shape(0) != rows + 1)
        refuse("end_start must have " + std::to_string(rows + 1) + " entries, got " +
               std::to_string(end_start.shape(0)));
    // Copies: what was checked must not change while other threads run.
    const std::vector<int32_t> ends(end_ids.data(), end_ids.data() + end_ids.size());
    const std::vector<int32_t> starts(end_start.data(), end_start.data() + end_start.size());
    const DrawBatch batch{vocab,
                          static_cast<int64_t>(mask.shape(1)),
                          logits.data(),
                          mask.data(),
                          temperature.data(),
                          top_p.data(),
                          top_k.data(),
                          min_p.data(),
                          uniform.data(),
                          ends.data(),
                          starts.data(),
                          end_rest.data()};
    for (size_t row = 0; row < rows; ++row)
        check_row(batch, static_cast<int64_t>(row), static_cast<int64_t>(ends.size()));
    const VectorSet set = vector_set(vectors);
    std::vector<int32_t> ids(rows);
    std::vector<float> logprobs(rows);
    const char* error = nullptr;
    int64_t failed = 0;
    {
        nb::gil_scoped_release release;
        error = draw_rows(batch, set, 0, static_cast<int64_t>(rows), ids.data(), logprobs.data(),
                          &failed);
    }
    if (error != nullptr) refuse("row " + std::to_string(failed) + ": " + error);
    return nb::make_tuple(owned(std::move(ids)), owned(std::move(logprobs)));
}

}  // namespace

void bind_draw(nb::module_& m) {
    m.def(
        "draw", &draw, nb::arg("logits").noconvert(), nb::arg("mask").noconvert(),
        nb::arg("temperature").noconvert(), nb::arg("top_p").noconvert(),
        nb::arg("top_k").noconvert(), nb::arg("min_p").noconvert(), nb::arg("uniform").noconvert(),
        nb::arg("end_ids").noconvert(), nb::arg("end_start").noconvert(),
        nb::arg("end_rest").noconvert(), nb::arg("vectors") = "auto",
        "Draw one outcome a row: (ids int32 [L], logprobs float32 [L]); id -1 is the end outcome.\n"
        "\n"
        "The contract is that of Backend.draw and DrawRequest. `vectors` forces an instruction "
        "set\n"
        "(auto, portable, avx2, avx512); the result does not depend on it. Raises ValueError that\n"
        "names the argument or the row, TypeError for a wrong dtype or layout.");
}

}  // namespace sglite
