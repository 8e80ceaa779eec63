// The Python face of Vocabulary.
#include "bind_vocabulary.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "vocabulary.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace sglite {
namespace {

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

auto copy(std::span<const uint32_t> mask) {
    return to_array(std::vector<uint32_t>(mask.begin(), mask.end()));
}

void make(Vocabulary* self, const nb::list& tokens, const std::vector<int32_t>& eos,
          const std::vector<int32_t>& special) {
    std::vector<std::string> copied;
    copied.reserve(tokens.size());
    for (const nb::handle token : tokens) copied.emplace_back(view(nb::cast<nb::bytes>(token)));
    const nb::gil_scoped_release released;
    new (self) Vocabulary(std::move(copied), eos, special);
}

// The ids in the trie of a slice, each with the string that leads to it.
std::vector<std::string> spelled(const Trie& trie) {
    std::vector<std::string> strings;
    std::string path;
    for (uint32_t node = 0; node < trie.size(); ++node) {
        const TrieNode& n = trie.nodes()[node];
        if (node != 0) path.resize(n.depth - 1);
        if (node != 0) path.push_back(static_cast<char>(n.byte));
        for (size_t i = 0; i < trie.at(node).size(); ++i) strings.push_back(path);
    }
    return strings;
}

// The closing tokens as (content, tail, id), read content by content and checked tail by tail.
nb::list closings(const Vocabulary& vocabulary, bool any_spelling) {
    const StringSlice& slice = vocabulary.string_slice(any_spelling);
    const std::vector<std::string> contents = spelled(slice.contents), tails = spelled(slice.tails);
    nb::list rows;
    for (size_t i = 0; i < contents.size(); ++i) {
        for (const auto& [tail, id] : slice.closings(static_cast<int32_t>(i))) {
            if (std::ranges::find(slice.closed_by(tail), id) == slice.closed_by(tail).end()) {
                throw std::logic_error("a closing token is missing under its tail");
            }
            rows.append(nb::make_tuple(to_bytes(contents[i]), to_bytes(tails[tail]), id));
        }
    }
    return rows;
}

const Slice& slice_of(const Vocabulary& vocabulary, std::optional<bool> any_spelling) {
    if (!any_spelling) return vocabulary.text_slice();
    return vocabulary.string_slice(*any_spelling);
}

}  // namespace

void bind_vocabulary(nb::module_& m) {
    nb::class_<Vocabulary>(m, "Vocabulary")
        .def("__init__", &make, "tokens"_a, "eos"_a, "special"_a)
        .def_prop_ro("size", &Vocabulary::size)
        .def_prop_ro("mask_words", &Vocabulary::mask_words)
        .def_prop_ro("memory", &Vocabulary::memory)
        .def("text_mask", [](const Vocabulary& v) { return copy(v.text_mask()); })
        .def(
            "tokens_beginning",
            [](const Vocabulary& v, const nb::bytes& text) {
                return to_array(v.tokens_beginning(view(text)));
            },
            "text"_a)
        .def(
            "extends",
            [](const Vocabulary& v, const nb::bytes& tail) { return v.extends(view(tail)); },
            "tail"_a)
        .def(
            "inside",
            [](const Vocabulary& v, std::optional<bool> any_spelling, int64_t characters) {
                return copy(slice_of(v, any_spelling).at_most(characters));
            },
            "any_spelling"_a.none(), "characters"_a)
        .def("closings", &closings, "any_spelling"_a);
}

}  // namespace sglite
