// Goals of JSON Schemas, as far as tests drive them from Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "json/admits.h"
#include "json/goals.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace sglite {
namespace {

// The goals of one schema, with a pool of languages of their own.
struct Compiled {
    Compiled(const std::string& schema, bool declared_order, bool any_spelling)
        : languages(text::Languages::Options{}),
          spelling(languages, nullptr),
          goals(json::read(schema), languages, spelling,
                {declared_order, json::Style::Whitespace::kSingle, any_spelling}) {}

    text::Languages languages;
    json::Spelling spelling;
    json::Goals goals;
};

}  // namespace

void bind_goals(nb::module_& m) {
    nb::class_<Compiled>(m, "Goals")
        .def(nb::init<const std::string&, bool, bool>(), "schema"_a, "declared_order"_a = false,
             "any_spelling"_a = true)
        .def_prop_ro("root", [](const Compiled& c) { return c.goals.root(); })
        .def("cost", [](const Compiled& c, int32_t goal) { return c.goals.goal(goal).cost; })
        .def("supply", [](const Compiled& c, int32_t goal) { return c.goals.goal(goal).supply; })
        .def("both", [](Compiled& c, int32_t a, int32_t b) { return c.goals.both(a, b); })
        .def("admits", [](Compiled& c, int32_t goal, const std::string& value) {
            return json::admits(c.goals, c.languages, goal, json::read(value));
        });
    m.def("json_identity", [](const std::string& text) {
        const std::string found = json::identity(json::read(text));
        return nb::bytes(found.data(), found.size());
    });
}

}  // namespace sglite
