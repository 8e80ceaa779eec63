// Faces of the leaves under text/ that tests drive from Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "text/formats.h"
#include "text/numbers.h"
#include "text/regex.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace sglite {
namespace {

using text::NumberSpec;

// (kind, ranges, parts, low, high)
nb::object tree_of(const text::Regex& tree) {
    constexpr const char* kNames[] = {"chars",    "concat", "either", "repeat",
                                      "start",    "end",    "ahead",  "not_ahead",
                                      "boundary", "inside", "behind", "not_behind"};
    nb::list parts;
    for (const text::Regex& part : tree.parts) parts.append(tree_of(part));
    nb::list ranges;
    for (const auto& [low, high] : tree.chars) ranges.append(nb::make_tuple(low, high));
    return nb::make_tuple(kNames[static_cast<int>(tree.kind)], ranges, parts, tree.low, tree.high);
}

nb::object parse_regex(const std::string& pattern, bool python) {
    try {
        return tree_of(
            text::parse(pattern, python ? text::Dialect::kPython : text::Dialect::kEcma));
    } catch (const Refused& refused) {
        throw Refused(std::string(refused.what()) + " @ " + refused.pointer);
    }
}

std::optional<text::Bound> bound_of(const std::optional<std::string>& value, bool excluded) {
    if (!value) return std::nullopt;
    return text::Bound{text::decimal(*value), excluded};
}

NumberSpec spec_of(int kind, const std::optional<std::string>& low, bool above,
                   const std::optional<std::string>& high, bool below,
                   const std::vector<std::string>& multiples,
                   const std::vector<std::string>& not_multiples) {
    NumberSpec spec;
    spec.kind = static_cast<NumberSpec::Kind>(kind);
    spec.low = bound_of(low, above);
    spec.high = bound_of(high, below);
    for (const std::string& unit : multiples) spec.multiples.push_back(text::decimal(unit));
    for (const std::string& unit : not_multiples) spec.not_multiples.push_back(text::decimal(unit));
    return spec;
}

// Per state: its edges and whether it accepts. Of no numbers: no states.
nb::list automaton_of(const NumberSpec& spec, bool any) {
    nb::list states;
    const std::optional<text::Dfa> dfa = text::number_automaton(spec, any);
    for (size_t i = 0; dfa && i < dfa->edges.size(); ++i) {
        nb::list edges;
        for (const auto& [low, high, to] : dfa->edges[i]) {
            edges.append(nb::make_tuple(low, high, to));
        }
        states.append(nb::make_tuple(edges, static_cast<bool>(dfa->accepting[i])));
    }
    return states;
}

}  // namespace

void bind_text(nb::module_& m) {
    m.def("parse_regex", &parse_regex, "pattern"_a, "python"_a);

    // Whether each text is of the format; nothing for names that are none.
    m.def(
        "in_format",
        [](const std::string& name,
           const std::vector<std::string>& texts) -> std::optional<std::vector<bool>> {
            text::Languages languages({});
            const std::optional<text::LangId> language = text::format(languages, name);
            if (!language) return std::nullopt;
            std::vector<bool> found;
            for (const std::string& text : texts) {
                found.push_back(languages.contains(*language, text));
            }
            return found;
        },
        "name"_a, "texts"_a);

    m.def("decimal_text", [](const std::string& number) { return text::decimal(number).text(); });
    m.def("compare_decimals", [](const std::string& a, const std::string& b) {
        return text::compare(text::decimal(a), text::decimal(b));
    });
    m.def("is_multiple", [](const std::string& value, const std::string& unit) {
        return text::is_multiple(text::decimal(value), text::decimal(unit));
    });
    nb::class_<NumberSpec>(m, "NumberSpec")
        .def(
            "__init__",
            [](NumberSpec* self, int kind, const std::optional<std::string>& low, bool above,
               const std::optional<std::string>& high, bool below,
               const std::vector<std::string>& multiples,
               const std::vector<std::string>& not_multiples) {
                new (self)
                    NumberSpec(spec_of(kind, low, above, high, below, multiples, not_multiples));
            },
            "kind"_a, "low"_a = nb::none(), "above"_a = false, "high"_a = nb::none(),
            "below"_a = false, "multiples"_a = std::vector<std::string>(),
            "not_multiples"_a = std::vector<std::string>())
        .def("automaton", &automaton_of, "any"_a)
        .def("count", [](const NumberSpec& spec, int64_t most) { return count_values(spec, most); })
        .def("holds", [](const NumberSpec& spec, const std::string& value) {
            return text::holds(spec, text::decimal(value));
        });
}

}  // namespace sglite
