// The module sglite.grammars._native; the Python front ends and wrappers document the faces.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "builder.h"
#include "matcher.h"
#include "vocabulary.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using sglite::Builder;
using sglite::Grammar;
using sglite::Matcher;
using sglite::Spelling;
using sglite::Vocabulary;

using Mask = nb::ndarray<uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Masks = nb::ndarray<uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Budgets = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::bytes to_bytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }

template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_array(std::vector<T> values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    const size_t shape[1] = {kept->size()};
    T* data = kept->data();
    nb::capsule owner(kept.release(),
                      [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {data, 1, shape, owner};
}

Spelling spelling_of(int number) {
    if (number < 0 || number > 2) throw std::invalid_argument("spellings are numbered 0 to 2");
    return static_cast<Spelling>(number);
}

void fill_masks(const std::vector<Matcher*>& matchers, const Masks& masks, const Budgets& budgets) {
    if (masks.shape(0) != matchers.size() || budgets.shape(0) != matchers.size()) {
        throw std::invalid_argument("fill_masks needs a row of masks and a budget per matcher: " +
                                    std::to_string(matchers.size()) + " matchers, " +
                                    std::to_string(masks.shape(0)) + " rows, " +
                                    std::to_string(budgets.shape(0)) + " budgets");
    }
    const nb::gil_scoped_release released;
    for (size_t i = 0; i < matchers.size(); ++i) {
        matchers[i]->fill_mask({masks.data() + i * masks.shape(1), masks.shape(1)},
                               budgets.data()[i]);
    }
}

}  // namespace

NB_MODULE(_native, m) {
    // A model in use when the interpreter ends is no leak that a user should hear of.
    nanobind::set_leak_warnings(false);
    m.doc() = "Token trie, networks over bytes, masks: the native part of sglite.grammars.";
    nb::exception<sglite::Refused>(m, "Refused");

    nb::class_<Vocabulary>(m, "Vocabulary")
        .def(
            "__init__",
            [](Vocabulary* self, const nb::list& tokens, const std::vector<int32_t>& eos,
               const std::vector<int32_t>& special) {
                std::vector<std::string> copied;
                copied.reserve(tokens.size());
                for (const nb::handle token : tokens) {
                    copied.emplace_back(view(nb::cast<nb::bytes>(token)));
                }
                new (self) Vocabulary(std::move(copied), eos, special);
            },
            "tokens"_a, "eos"_a, "special"_a)
        .def_prop_ro("size", &Vocabulary::size)
        .def_prop_ro("mask_words", &Vocabulary::mask_words)
        .def("text_mask",
             [](const Vocabulary& v) {
                 const auto mask = v.text_mask();
                 return to_array(std::vector<uint32_t>(mask.begin(), mask.end()));
             })
        .def(
            "tokens_beginning",
            [](const Vocabulary& v, const nb::bytes& text) {
                return to_array(v.tokens_beginning(view(text)));
            },
            "text"_a)
        .def(
            "extends",
            [](const Vocabulary& v, const nb::bytes& tail) { return v.extends(view(tail)); },
            "tail"_a);

    nb::class_<Builder>(m, "Builder")
        .def(nb::init<>())
        .def(
            "literal",
            [](Builder& b, const nb::bytes& text) { return b.literal(std::string(view(text))); },
            "text"_a)
        .def(
            "characters",
            [](Builder& b, sglite::Ranges ranges, int spelling) {
                return b.characters(std::move(ranges), spelling_of(spelling));
            },
            "ranges"_a, "spelling"_a)
        .def("any_bytes", &Builder::any_bytes)
        .def("sequence", &Builder::sequence, "parts"_a)
        .def("choice", &Builder::choice, "parts"_a)
        .def("repeat", &Builder::repeat, "part"_a, "min"_a, "max"_a)
        .def(
            "automaton",
            [](Builder& b, int states, int start, const std::vector<int>& accepting,
               const std::vector<std::tuple<int, int, sglite::Ranges>>& edges, int spelling) {
                return b.automaton(states, start, accepting, edges, spelling_of(spelling));
            },
            "states"_a, "start"_a, "accepting"_a, "edges"_a, "spelling"_a)
        .def("free_order", &Builder::free_order, "items"_a, "extra"_a, "separator"_a, "close"_a)
        .def("rule", &Builder::rule, "name"_a)
        .def("call", &Builder::call, "rule"_a)
        .def("define", &Builder::define, "rule"_a, "body"_a)
        .def(
            "build",
            [](const Builder& b, int root, std::shared_ptr<Vocabulary> vocabulary, bool check_bytes,
               size_t most_edges) {
                const nb::gil_scoped_release released;
                return std::make_shared<Grammar>(std::move(vocabulary), b.lay_out(root, most_edges),
                                                 check_bytes);
            },
            "root"_a, "vocabulary"_a, "check_bytes"_a, "most_edges"_a = 20'000'000);

    nb::class_<Grammar>(m, "Grammar")
        .def(
            "matcher", [](Grammar& g, const nb::bytes& prefix) { return g.matcher(view(prefix)); },
            "prefix"_a)
        .def("shape", &Grammar::shape);

    nb::class_<Matcher>(m, "Matcher")
        .def("fork", [](const Matcher& m) { return Matcher(m); })
        .def(
            "fill_mask",
            [](Matcher& m, const Mask& mask, int32_t budget) {
                const nb::gil_scoped_release released;
                m.fill_mask({mask.data(), mask.shape(0)}, budget);
            },
            nb::arg("mask").noconvert(), "budget"_a)
        .def("accept", &Matcher::accept, "id"_a)
        .def(
            "accept_all",
            [](Matcher& m, const std::vector<int32_t>& ids) { return m.accept_all(ids); }, "ids"_a)
        .def("rollback", &Matcher::rollback, "count"_a)
        .def_prop_ro("is_complete", &Matcher::is_complete)
        .def_prop_ro("is_finished", &Matcher::is_finished)
        .def("allowed_count", &Matcher::allowed_count, nb::call_guard<nb::gil_scoped_release>())
        .def("tokens_to_finish", &Matcher::tokens_to_finish)
        .def("forced_bytes", [](const Matcher& m) { return to_bytes(m.forced_bytes()); })
        .def(
            "unsettled",
            [](const Matcher& m, const nb::bytes& text, size_t from) {
                if (from > text.size()) throw std::invalid_argument("`from` is behind the text");
                return m.unsettled(view(text), from);
            },
            "text"_a, "begin"_a)
        .def("key", &Matcher::key);

    m.def("fill_masks", &fill_masks, "matchers"_a, nb::arg("masks").noconvert(),
          nb::arg("budgets").noconvert());
}
