// The Python faces of Grammar and Matcher. What a step of decoding calls takes its arguments by
// hand: the general conversions take longer than the work.
#include "bind_matcher.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "matcher.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace sglite {
namespace {

using Masks = nb::ndarray<uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Budgets = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr int64_t kMostBudget = INT32_MAX;

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// Any Python integer; those beyond 64 bits saturate. Throws TypeError for what is none.
int64_t to_integer(nb::handle value) {
    nb::object index;
    if (!PyLong_Check(value.ptr())) {
        index = nb::steal(PyNumber_Index(value.ptr()));
        if (!index.is_valid()) throw nb::python_error();
        value = index;
    }
    int overflow = 0;
    const int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow != 0) return overflow > 0 ? INT64_MAX : INT64_MIN;
    return number;
}

int32_t to_budget(nb::handle budget) {
    if (budget.is_none()) return -1;
    const int64_t tokens = to_integer(budget);
    if (tokens >= 0) return static_cast<int32_t>(std::min(tokens, kMostBudget));
    throw std::invalid_argument("the budget must be >= 0 tokens, got " + std::to_string(tokens));
}

[[noreturn]] void refuse_mask(nb::handle mask) {
    PyErr_Clear();
    std::string got = nb::cast<std::string>(nb::str(mask.type().attr("__name__")));
    if (nb::hasattr(mask, "dtype") && nb::hasattr(mask, "strides")) {
        got = nb::cast<std::string>(nb::str("{} of shape {} with strides {}, writeable: {}")
                                        .format(mask.attr("dtype"), mask.attr("shape"),
                                                mask.attr("strides"),
                                                mask.attr("flags").attr("writeable")));
    }
    throw nb::type_error(
        ("a mask is a writeable, C-contiguous numpy array of uint32 in one dimension, got " + got)
            .c_str());
}

// The memory of a mask while it lives.
class MaskView {
  public:
    explicit MaskView(nb::handle mask) {
        if (PyObject_GetBuffer(mask.ptr(), &buffer_, PyBUF_WRITABLE | PyBUF_ND | PyBUF_FORMAT)) {
            refuse_mask(mask);
        }
        const std::string_view format = buffer_.format == nullptr ? "B" : buffer_.format;
        const bool fits = format == "I" || (sizeof(long) == 4 && format == "L");
        if (!fits || buffer_.ndim != 1 || buffer_.itemsize != 4) {
            PyBuffer_Release(&buffer_);
            refuse_mask(mask);
        }
    }
    MaskView(const MaskView&) = delete;
    MaskView& operator=(const MaskView&) = delete;
    ~MaskView() { PyBuffer_Release(&buffer_); }

    std::span<uint32_t> words() const {
        return {static_cast<uint32_t*>(buffer_.buf), static_cast<size_t>(buffer_.len) / 4};
    }

  private:
    Py_buffer buffer_;
};

// Holds on to the GIL for what takes less time than giving it back, unless another thread is at
// work on the same grammar for longer.
class Released {
  public:
    explicit Released(const Matcher& matcher) {
        if (matcher.grammar().busy()) released_.emplace();
    }

  private:
    std::optional<nb::gil_scoped_release> released_;
};

void fill_mask(Matcher& matcher, nb::handle mask, nb::handle budget) {
    const int32_t tokens = to_budget(budget);
    const MaskView memory(mask);
    if (!matcher.grammar().busy() && matcher.fill_known_mask(memory.words(), tokens)) return;
    const nb::gil_scoped_release released;
    matcher.fill_mask(memory.words(), tokens);
}

bool accept_all(Matcher& matcher, const nb::sequence& ids) {
    std::vector<int64_t> numbers;
    for (const nb::handle id : ids) numbers.push_back(to_integer(id));
    const Released released(matcher);
    return matcher.accept_all(numbers);
}

void rollback(Matcher& matcher, int64_t count) {
    if (count < 0) {
        throw std::invalid_argument("cannot roll back " + std::to_string(count) + " ids");
    }
    const Released released(matcher);
    matcher.rollback(static_cast<size_t>(count));
}

void fill_masks(const std::vector<Matcher*>& matchers, const Masks& masks, const Budgets& budgets) {
    if (masks.shape(0) != matchers.size() || budgets.shape(0) != matchers.size()) {
        throw std::invalid_argument("fill_masks needs a row of masks and a budget per matcher: " +
                                    std::to_string(matchers.size()) + " matchers, " +
                                    std::to_string(masks.shape(0)) + " rows, " +
                                    std::to_string(budgets.shape(0)) + " budgets");
    }
    if (std::ranges::find(matchers, nullptr) != matchers.end()) {
        throw std::invalid_argument("fill_masks needs matchers, got None");
    }
    const nb::gil_scoped_release released;
    for (size_t i = 0; i < matchers.size(); ++i) {
        matchers[i]->fill_mask({masks.data() + i * masks.shape(1), masks.shape(1)},
                               budgets.data()[i]);
    }
}

}  // namespace

void bind_matcher(nb::module_& m) {
    nb::class_<Grammar>(m, "Grammar")
        .def_prop_ro("memory", &Grammar::memory)
        .def_static("memory_of_all", &Grammar::memory_of_all)
        .def_prop_ro("generation", &Grammar::generation)
        .def("limit_memory", &Grammar::limit_memory, "bytes"_a);

    nb::class_<Matcher>(m, "Matcher")
        .def(
            "__init__",
            [](Matcher* self, Grammar& grammar, const nb::bytes& prefix) {
                new (self) Matcher(grammar.matcher(view(prefix)));
            },
            "grammar"_a, "prefix"_a)
        .def(
            "__init__", [](Matcher* self, const Matcher& other) { new (self) Matcher(other); },
            "other"_a)
        .def("fill_mask", &fill_mask, "mask"_a, "budget"_a.none() = nb::none())
        .def(
            "accept",
            [](Matcher& matcher, nb::handle token_id) {
                const int64_t id = to_integer(token_id);
                const Released released(matcher);
                return matcher.accept(id);
            },
            "token_id"_a)
        .def("accept_tokens", &accept_all, "token_ids"_a)
        .def("rollback", &rollback, "count"_a)
        .def_prop_ro("is_complete",
                     [](const Matcher& matcher) {
                         const Released released(matcher);
                         return matcher.is_complete();
                     })
        .def_prop_ro("is_finished",
                     [](const Matcher& matcher) {
                         const Released released(matcher);
                         return matcher.is_finished();
                     })
        .def("allowed_count", &Matcher::allowed_count, nb::call_guard<nb::gil_scoped_release>())
        .def("tokens_to_finish",
             [](const Matcher& matcher) {
                 const Released released(matcher);
                 return matcher.tokens_to_finish();
             })
        .def("forced_bytes",
             [](const Matcher& matcher) {
                 std::string forced;
                 {
                     const Released released(matcher);
                     forced = matcher.forced_bytes();
                 }
                 return nb::bytes(forced.data(), forced.size());
             })
        .def(
            "unsettled",
            [](const Matcher& matcher, const nb::bytes& text, size_t from) {
                if (from > text.size()) throw std::invalid_argument("`from` is behind the text");
                return matcher.unsettled(view(text), from);
            },
            "text"_a, "begin"_a)
        .def("key", &Matcher::key);

    m.def("fill_masks", &fill_masks, "matchers"_a, nb::arg("masks").noconvert(),
          nb::arg("budgets").noconvert());
}

}  // namespace sglite
