// The module sglite.grammars._native; the Python front ends and wrappers document the faces.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "bind_matcher.h"
#include "bind_schema.h"
#include "bind_vocabulary.h"
#include "builder.h"
#include "matcher.h"
#include "network_machine.h"
#include "text/utf8.h"
#include "text_machine.h"
#include "vocabulary.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using sglite::Builder;
using sglite::Grammar;
using sglite::Vocabulary;

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// A GrammarError, whoever meets it: searches are given up in the midst of decoding, too.
void bind_refused(nb::module_& m) {
    const nb::object base = nb::module_::import_("sglite.errors").attr("GrammarError");
    nb::object type = nb::exception<sglite::Refused>(m, "Refused", base);
    nb::register_exception_translator(
        [](const std::exception_ptr& thrown, void* type) {
            try {
                std::rethrow_exception(thrown);
            } catch (const sglite::Refused& refused) {
                const nb::tuple arguments = nb::make_tuple(refused.what(), refused.pointer);
                PyErr_SetObject(static_cast<PyObject*>(type), arguments.ptr());
            }
        },
        type.ptr());
}

}  // namespace

namespace sglite {
void bind_goals(nb::module_& m);
void bind_languages(nb::module_& m);
void bind_text(nb::module_& m);
}  // namespace sglite

NB_MODULE(_native, m) {
    // A model in use when the interpreter ends is no leak that a user should hear of.
    nanobind::set_leak_warnings(false);
    m.doc() = "Token trie, networks over bytes, masks: the native part of sglite.grammars.";
    bind_refused(m);

    sglite::bind_vocabulary(m);
    sglite::bind_schema(m);

    nb::class_<Builder>(m, "Builder")
        .def(nb::init<std::shared_ptr<Vocabulary>>(), "vocabulary"_a)
        .def(
            "literal",
            [](Builder& b, const nb::bytes& text) { return b.literal(std::string(view(text))); },
            "text"_a)
        .def("characters", &Builder::characters, "ranges"_a, "complement"_a = false)
        .def("any_bytes", &Builder::any_bytes)
        .def("sequence", &Builder::sequence, "parts"_a)
        .def("choice", &Builder::choice, "parts"_a)
        .def("repeat", &Builder::repeat, "part"_a, "min"_a, "max"_a)
        .def(
            "pattern", [](Builder& b, const nb::bytes& text) { return b.pattern(view(text)); },
            "pattern"_a)
        .def(
            "until",
            [](Builder& b, const nb::bytes& marker) {
                return b.until(sglite::text::decoded(view(marker)));
            },
            "marker"_a)
        .def(
            "embed",
            [](Builder& b, const Grammar& grammar) {
                if (&grammar.vocabulary() != b.vocabulary().get()) {
                    throw std::invalid_argument("the grammar is for another vocabulary");
                }
                return b.embed(grammar.machines());
            },
            "grammar"_a)
        .def("rule", &Builder::rule, "name"_a)
        .def("call", &Builder::call, "rule"_a)
        .def("define", &Builder::define, "rule"_a, "body"_a)
        .def(
            "build",
            [](const Builder& b, int root, bool check_bytes, size_t most_edges) {
                const nb::gil_scoped_release released;
                auto make = sglite::network_machines(b.lay_out(root, most_edges), *b.vocabulary(),
                                                     check_bytes);
                return std::make_shared<Grammar>(b.vocabulary(), std::move(make));
            },
            "root"_a, "check_bytes"_a, "most_edges"_a = 20'000'000);

    sglite::bind_goals(m);
    sglite::bind_languages(m);
    sglite::bind_matcher(m);
    m.def(
        "compile_pattern",
        [](const nb::bytes& pattern, bool search, bool ecma,
           std::shared_ptr<Vocabulary> vocabulary) {
            const std::string_view text = view(pattern);
            const nb::gil_scoped_release released;
            auto tree = std::make_shared<const sglite::text::Regex>(sglite::text::parse(
                text, ecma ? sglite::text::Dialect::kEcma : sglite::text::Dialect::kPython));
            auto make = sglite::text_machines(
                [tree, search](sglite::text::Languages& languages) {
                    return languages.regex(*tree, search);
                },
                *vocabulary);
            return std::make_shared<Grammar>(std::move(vocabulary), std::move(make));
        },
        "pattern"_a, "search"_a, "ecma"_a, "vocabulary"_a);

    m.def(
        "compile_quote",
        [](const nb::bytes& document, bool whole_words, int64_t low, int64_t high,
           std::shared_ptr<Vocabulary> vocabulary) {
            const std::string_view text = view(document);
            const nb::gil_scoped_release released;
            auto make = sglite::text_machines(
                [kept = std::string(text), whole_words, low,
                 high](sglite::text::Languages& languages) {
                    return languages.both(
                        {languages.quote(kept, whole_words), languages.length(low, high)});
                },
                *vocabulary);
            return std::make_shared<Grammar>(std::move(vocabulary), std::move(make));
        },
        "document"_a, "whole_words"_a, "low"_a, "high"_a, "vocabulary"_a);

    m.def(
        "places_of_quote",
        [](const nb::bytes& passage, const nb::bytes& document, bool whole_words) {
            const auto found = sglite::text::places_of(view(passage), view(document), whole_words);
            return nb::make_tuple(found.first, found.count);
        },
        "passage"_a, "document"_a, "whole_words"_a);

    sglite::bind_text(m);
}
