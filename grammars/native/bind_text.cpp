// Faces of the parts under text/ that tests drive from Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "text/charset.h"
#include "text/regex.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace sglite {
namespace {

// (kind, ranges, parts, low, high)
nb::object tree_of(const text::Regex& tree) {
    constexpr const char* kNames[] = {"chars", "concat", "either",    "repeat",   "start",
                                      "end",   "ahead",  "not_ahead", "boundary", "inside"};
    nb::list parts;
    for (const text::Regex& part : tree.parts) parts.append(tree_of(part));
    nb::list ranges;
    for (const auto& [low, high] : tree.chars) ranges.append(nb::make_tuple(low, high));
    return nb::make_tuple(kNames[static_cast<int>(tree.kind)], ranges, parts, tree.low, tree.high);
}

}  // namespace

void bind_text(nb::module_& m) {
    m.def(
        "parse_regex",
        [](const std::string& pattern, bool python) {
            try {
                return tree_of(
                    text::parse(pattern, python ? text::Dialect::kPython : text::Dialect::kEcma));
            } catch (const Refused& refused) {
                throw Refused(std::string(refused.what()) + " @ " + refused.pointer);
            }
        },
        "pattern"_a, "python"_a);
}

}  // namespace sglite
