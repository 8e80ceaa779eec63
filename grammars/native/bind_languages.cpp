// The face of text/languages.h that tests drive from Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "text/formats.h"
#include "text/languages.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace sglite {
namespace {

using text::LangId;
using text::Languages;
using text::TextState;
using Edges = std::vector<std::vector<std::tuple<int, int, int32_t>>>;

Languages* make(const nb::bytes& barred, int32_t longest_token, int32_t most_states, int heavy,
                int weight) {
    Languages::Options options;
    for (size_t i = 0; i < barred.size(); ++i) {
        options.barred.set(static_cast<uint8_t>(barred.c_str()[i]));
    }
    options.longest_token = longest_token;
    options.most_states = most_states;
    if (heavy >= 0) options.weight.at(static_cast<size_t>(heavy)) = static_cast<uint8_t>(weight);
    return new Languages(options);
}

std::vector<std::string> strings(const std::vector<nb::bytes>& texts) {
    std::vector<std::string> out;
    for (const nb::bytes& text : texts) out.emplace_back(text.c_str(), text.size());
    return out;
}

LangId automaton(Languages& languages, const Edges& edges, const std::vector<bool>& accepting) {
    text::Dfa dfa;
    dfa.accepting = accepting;
    for (const auto& state : edges) {
        dfa.edges.emplace_back();
        for (const auto& [low, high, to] : state) {
            dfa.edges.back().push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), to});
        }
    }
    return languages.automaton(std::move(dfa));
}

}  // namespace

void bind_languages(nb::module_& m) {
    nb::class_<Languages>(m, "Languages")
        .def(nb::new_(&make), "barred"_a = nb::bytes("", 0), "longest_token"_a = 32,
             "most_states"_a = 50'000, "heavy"_a = -1, "weight"_a = 1)
        .def("words", [](Languages& l,
                         const std::vector<nb::bytes>& texts) { return l.words(strings(texts)); })
        .def("length", &Languages::length)
        .def("pattern",
             [](Languages& l, const std::string& pattern, bool python, bool search) {
                 return l.pattern(pattern, python ? text::Dialect::kPython : text::Dialect::kEcma,
                                  search);
             })
        .def("automaton", &automaton)
        .def("both", &Languages::both)
        .def("either", &Languages::either)
        .def("complement", &Languages::complement)
        .def("contains",
             [](Languages& l, LangId language, const nb::bytes& text) {
                 return l.contains(language, {text.c_str(), text.size()});
             })
        .def("count", &Languages::count)
        .def("examples",
             [](Languages& l, LangId language, size_t limit) {
                 std::vector<nb::bytes> out;
                 for (const std::string& text : l.examples(language, limit)) {
                     out.emplace_back(text.data(), text.size());
                 }
                 return out;
             })
        .def("bytes",
             [](Languages& l, LangId language) {
                 const std::bitset<256> all = l.bytes(language);
                 std::string out;
                 for (int byte = 0; byte < 256; ++byte) {
                     if (all[byte]) out += static_cast<char>(byte);
                 }
                 return nb::bytes(out.data(), out.size());
             })
        .def("start", &Languages::start)
        .def("next", &Languages::next)
        .def("accepts", &Languages::accepts)
        .def("can_go_on", &Languages::can_go_on)
        .def("distance", &Languages::distance)
        .def("reach",
             [](Languages& l, TextState state) {
                 const text::Reach reach = l.reach(state);
                 return nb::make_tuple(reach.free, reach.hard);
             })
        .def("clipped", &Languages::clipped)
        .def("allows", &Languages::allows)
        .def("memory", &Languages::memory);
    m.def("format_names", &text::format_names);
}

}  // namespace sglite
