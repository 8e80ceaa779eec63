// Schemas to formulas: the whole of a schema, and the keywords that combine others.
#include "reader.h"

#include "unevaluated.h"

namespace sglite::json {

Lit Reader::body(Lit schema) {
    const Node node = formulas_.node(schema);
    if (const Lit known = formulas_.body(node); known != kUnread) return known;
    const Lit found = read(formulas_.place(node));
    formulas_.set_body(node, found);
    return found;
}

Lit Reader::settled(Lit lit) {
    int32_t steps = 0;
    while (formulas_.node(lit).op == Op::kSchema) {
        const Lit inner = body(lit & ~1);
        if (formulas_.node(inner).op == Op::kSchema || node_of(inner) == 0) {
            lit = is_negated(lit) ? negated(inner) : inner;
        } else {
            break;
        }
        if (++steps > static_cast<int32_t>(formulas_.size())) {
            document_.refuse("the reference leads back to itself",
                             document_.pointers.inside(formulas_.node(lit).pointer, "$ref"));
        }
    }
    return lit;
}

Lit Reader::schema(const Keywords& keywords, Keyword keyword) {
    return formulas_.schema(keywords.schema(keyword));
}

std::vector<Lit> Reader::schemas(const Keywords& keywords, Keyword keyword) {
    std::vector<Lit> found;
    for (const Place& place : keywords.schemas(keyword)) found.push_back(formulas_.schema(place));
    return found;
}

// By value: the places of formulas move while others are found.
Lit Reader::read(Place place) {
    const Keywords keywords(document_, place);
    seen_.push_back(place);
    std::vector<Lit> parts;
    read_types(keywords, parts);
    read_numbers(keywords, parts);
    read_strings(keywords, parts);
    read_members(keywords, parts);
    read_items(keywords, parts);
    read_logic(keywords, parts);
    if (keywords.has(Keyword::kUnevaluatedProperties) || keywords.has(Keyword::kUnevaluatedItems)) {
        Unevaluated(document_, formulas_, texts_).read(keywords, parts);
    }
    return formulas_.all(std::move(parts), place.pointer);
}

void Reader::read_logic(const Keywords& keywords, std::vector<Lit>& parts) {
    for (const Keyword keyword : {Keyword::kRef, Keyword::kDynamicRef, Keyword::kRecursiveRef}) {
        if (keywords.has(keyword)) parts.push_back(formulas_.schema(keywords.target(keyword)));
    }
    const std::vector<Lit> all = schemas(keywords, Keyword::kAllOf);
    parts.insert(parts.end(), all.begin(), all.end());
    if (keywords.has(Keyword::kIf)) {
        const int32_t pointer = keywords.pointer(Keyword::kIf);
        const Lit condition = schema(keywords, Keyword::kIf);
        const Lit held = keywords.has(Keyword::kThen) ? schema(keywords, Keyword::kThen) : kTrue;
        const Lit other = keywords.has(Keyword::kElse) ? schema(keywords, Keyword::kElse) : kTrue;
        // Ways that exclude each other: many conditions on one key then leave few alternatives.
        if (held != kTrue || other != kTrue) {
            parts.push_back(formulas_.any({formulas_.all({condition, held}, pointer),
                                           formulas_.all({negated(condition), other}, pointer)},
                                          pointer));
        }
    }
    read_dependencies(keywords, Keyword::kDependencies, parts);
    read_dependencies(keywords, Keyword::kDependentRequired, parts);
    read_dependencies(keywords, Keyword::kDependentSchemas, parts);
    if (keywords.has(Keyword::kAnyOf)) {
        parts.push_back(
            formulas_.any(schemas(keywords, Keyword::kAnyOf), keywords.pointer(Keyword::kAnyOf)));
    }
    if (keywords.has(Keyword::kOneOf)) {
        parts.push_back(formulas_.exactly_one(schemas(keywords, Keyword::kOneOf),
                                              keywords.pointer(Keyword::kOneOf)));
    }
    if (keywords.has(Keyword::kNot)) parts.push_back(negated(schema(keywords, Keyword::kNot)));
}

void Reader::read_dependencies(const Keywords& keywords, Keyword keyword, std::vector<Lit>& parts) {
    for (const auto& member : keywords.members(keyword)) {
        const auto& [name, value] = member;
        const int32_t pointer = keywords.pointer(keyword, name);
        const Lit absent =
            formulas_.atom(Op::kMembers, pointer, formulas_.one_key(formulas_.name(name)), kFalse);
        if (keyword == Keyword::kDependentSchemas ||
            (keyword == Keyword::kDependencies &&
             (value.kind == Value::Kind::kObject || value.kind == Value::Kind::kFalse ||
              value.kind == Value::Kind::kTrue))) {
            const Lit then = formulas_.schema(keywords.named(keyword, member));
            parts.push_back(formulas_.any({absent, then}, pointer));
            continue;
        }
        std::vector<Lit> wanted;
        const auto want = [&](const Value& other) {
            if (other.kind != Value::Kind::kString) {
                document_.refuse("a dependency is a list of names", pointer);
            }
            wanted.push_back(formulas_.has(formulas_.name(other.text), pointer));
        };
        if (value.kind == Value::Kind::kArray) {
            for (const Value& other : value.items) want(other);
        } else {
            want(value);
        }
        parts.push_back(
            formulas_.any({absent, formulas_.all(std::move(wanted), pointer)}, pointer));
    }
}

}  // namespace sglite::json
