// JSON Schema for Python.
#include "bind_schema.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "json/machine.h"
#include "matcher.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace sglite {
namespace {

using json::Style;

Style style_of(bool declared_order, int whitespace, bool any_spelling) {
    return {declared_order, static_cast<Style::Whitespace>(whitespace), any_spelling};
}

json::Value read_schema(const std::string& text) {
    try {
        return json::read(text);
    } catch (const Refused& error) {
        throw Refused(std::string("the schema is not JSON: ") + error.what() + " at character " +
                      error.pointer);
    }
}

std::shared_ptr<Grammar> compile(const std::string& text, std::shared_ptr<Vocabulary> vocabulary,
                                 bool declared_order, int whitespace, bool any_spelling) {
    const nb::gil_scoped_release released;
    const Style style = style_of(declared_order, whitespace, any_spelling);
    std::shared_ptr<const Vocabulary> shared = std::move(vocabulary);
    const auto make = [text, shared, style]() -> std::unique_ptr<Machine> {
        return std::make_unique<json::JsonMachine>(read_schema(text), shared, style);
    };
    return std::make_shared<Grammar>(shared, make);
}

}  // namespace

void bind_schema(nb::module_& m) {
    m.def("json_schema", &compile, "schema"_a, "vocabulary"_a, "declared_order"_a, "whitespace"_a,
          "any_spelling"_a);
    m.def(
        "explain_json_schema",
        [](const std::string& text, bool declared_order, int whitespace, bool any_spelling) {
            const nb::gil_scoped_release released;
            text::Languages languages({});
            json::Spelling spelling(languages, nullptr);
            const json::Goals goals(read_schema(text), languages, spelling,
                                    style_of(declared_order, whitespace, any_spelling));
            return goals.explain();
        },
        "schema"_a, "declared_order"_a, "whitespace"_a, "any_spelling"_a);
}

}  // namespace sglite
