// A JSON Schema document: resources, anchors and references.
#include "document.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "uri.h"

namespace sglite::json {
namespace {

constexpr std::string_view kRecursive = "";  // the dynamic anchor that `$recursiveAnchor` makes

std::optional<Draft> named_draft(const Value& schema) {
    const Value* name = schema.find("$schema");
    if (name == nullptr || name->kind != Value::Kind::kString) return std::nullopt;
    static constexpr std::pair<std::string_view, Draft> kDrafts[] = {
        {"draft-04", Draft::k4},   {"draft-06", Draft::k6},   {"draft-07", Draft::k7},
        {"2019-09", Draft::k2019}, {"2020-12", Draft::k2020},
    };
    for (const auto& [part, draft] : kDrafts) {
        if (name->text.find(part) != std::string::npos) return draft;
    }
    return std::nullopt;
}

// The identifier that a schema gives itself, or empty.
std::string_view own_id(const Value& schema, Draft draft) {
    if (draft <= Draft::k7 && schema.find("$ref") != nullptr) return {};
    const Value* id = schema.find(draft == Draft::k4 ? "id" : "$id");
    return id != nullptr && id->kind == Value::Kind::kString ? std::string_view(id->text)
                                                             : std::string_view();
}

std::string without_fragment(std::string uri) {
    uri.resize(std::min(uri.size(), uri.find('#')));
    return uri;
}

}  // namespace

int32_t Pointers::inside(int32_t parent, std::string_view key) {
    steps_.push_back({parent, key, -1});
    return static_cast<int32_t>(steps_.size()) - 1;
}

int32_t Pointers::inside(int32_t parent, size_t index) {
    steps_.push_back({parent, {}, static_cast<int64_t>(index)});
    return static_cast<int32_t>(steps_.size()) - 1;
}

std::string Pointers::text(int32_t pointer) const {
    std::vector<const Step*> path;
    for (; pointer > 0; pointer = steps_[pointer].parent) path.push_back(&steps_[pointer]);
    std::string out;
    for (auto step = path.rbegin(); step != path.rend(); ++step) {
        out += '/';
        if ((*step)->index >= 0) {
            out += std::to_string((*step)->index);
            continue;
        }
        for (const char c : (*step)->key) {
            if (c == '~') {
                out += "~0";
            } else if (c == '/') {
                out += "~1";
            } else {
                out += c;
            }
        }
    }
    return out;
}

Holds holds_schemas(std::string_view keyword, const Value& value) {
    static const std::unordered_map<std::string_view, Holds> kKeywords = {
        {"properties", Holds::kNamed},
        {"patternProperties", Holds::kNamed},
        {"$defs", Holds::kNamed},
        {"definitions", Holds::kNamed},
        {"dependentSchemas", Holds::kNamed},
        {"dependencies", Holds::kNamed},
        {"allOf", Holds::kSchemas},
        {"anyOf", Holds::kSchemas},
        {"oneOf", Holds::kSchemas},
        {"prefixItems", Holds::kSchemas},
        {"items", Holds::kSchema},
        {"additionalItems", Holds::kSchema},
        {"additionalProperties", Holds::kSchema},
        {"not", Holds::kSchema},
        {"if", Holds::kSchema},
        {"then", Holds::kSchema},
        {"else", Holds::kSchema},
        {"contains", Holds::kSchema},
        {"propertyNames", Holds::kSchema},
        {"unevaluatedItems", Holds::kSchema},
        {"unevaluatedProperties", Holds::kSchema},
    };
    const auto found = kKeywords.find(keyword);
    if (found == kKeywords.end()) return Holds::kNothing;
    if (keyword == "items" && value.kind == Value::Kind::kArray) return Holds::kSchemas;
    return found->second;
}

Document::Document(const Value& schema) {
    const Draft draft = named_draft(schema).value_or(Draft::k2020);
    resources_.push_back({"", &schema, 0, draft});
    by_uri_.emplace("", 0);
    if (const std::string_view id = own_id(schema, draft); !id.empty() && id[0] != '#') {
        resources_[0].uri = without_fragment(join("", id));
        by_uri_.emplace(resources_[0].uri, 0);
    }
    visit_inner(schema, 0, 0);
    targets_.resize(resources_.size());
}

Place Document::root() { return {resources_[0].schema, 0, scope_within(0, 0), 0}; }

// Finds the resources and anchors in a schema that stands within `resource`.
void Document::visit(const Value& schema, int32_t resource, int32_t pointer) {
    if (schema.kind != Value::Kind::kObject) return;
    const std::string_view id =
        own_id(schema, named_draft(schema).value_or(resources_[resource].draft));
    if (!id.empty() && id[0] != '#') resource = enter(schema, id, resource, pointer);
    visit_inner(schema, resource, pointer);
}

int32_t Document::enter(const Value& schema, std::string_view id, int32_t resource,
                        int32_t pointer) {
    const auto number = static_cast<int32_t>(resources_.size());
    std::string uri = without_fragment(join(resources_[resource].uri, id));
    const Draft draft = named_draft(schema).value_or(resources_[resource].draft);
    by_uri_.emplace(uri, number);
    roots_.emplace(&schema, number);
    resources_.push_back({std::move(uri), &schema, pointer, draft});
    return number;
}

void Document::add_anchor(Resource& resource, std::string_view name, const Value& schema,
                          int32_t pointer, bool dynamic) {
    resource.anchors.push_back({name, &schema, pointer, dynamic});
    has_dynamic_ = has_dynamic_ || dynamic;
}

void Document::visit_inner(const Value& schema, int32_t resource, int32_t pointer) {
    const Draft draft = resources_[resource].draft;
    if (draft <= Draft::k7) {  // how these drafts write an anchor
        const std::string_view id = own_id(schema, draft);
        if (id.starts_with('#')) {
            add_anchor(resources_[resource], id.substr(1), schema, pointer, false);
        }
    }
    for (const auto& [keyword, value] : schema.members) {
        if (keyword.starts_with('$') && draft >= Draft::k2019) {
            if (value.kind == Value::Kind::kString && keyword == "$anchor") {
                add_anchor(resources_[resource], value.text, schema, pointer, false);
            } else if (value.kind == Value::Kind::kString && keyword == "$dynamicAnchor" &&
                       draft >= Draft::k2020) {
                add_anchor(resources_[resource], value.text, schema, pointer, true);
            } else if (value.kind == Value::Kind::kTrue && keyword == "$recursiveAnchor" &&
                       draft == Draft::k2019) {
                add_anchor(resources_[resource], kRecursive, schema, pointer, true);
            }
        }
        const Holds holds = holds_schemas(keyword, value);
        if (holds == Holds::kNothing) continue;
        const int32_t inner = pointers.inside(pointer, keyword);
        if (holds == Holds::kSchema) {
            visit(value, resource, inner);
        } else if (holds == Holds::kSchemas) {
            for (size_t i = 0; i < value.items.size(); ++i) {
                visit(value.items[i], resource, pointers.inside(inner, i));
            }
        } else {
            for (const auto& [name, part] : value.members) {
                visit(part, resource, pointers.inside(inner, name));
            }
        }
    }
}

int32_t Document::resource_of(const Value& schema, int32_t parent) const {
    if (roots_.empty()) return parent;
    const auto found = roots_.find(&schema);
    return found == roots_.end() ? parent : found->second;
}

// The scope behind entering a resource.
int32_t Document::scope_within(int32_t scope, int32_t resource) {
    if (!has_dynamic_) return 0;
    Scope wider = scopes_[scope];
    for (const Anchor& anchor : resources_[resource].anchors) {
        if (!anchor.dynamic) continue;
        const bool known = std::ranges::any_of(
            wider, [&](const auto& entry) { return entry.first == anchor.name; });
        if (!known) wider.emplace_back(anchor.name, resource);
    }
    std::ranges::sort(wider);
    const auto found = std::ranges::find(scopes_, wider);
    if (found != scopes_.end()) return static_cast<int32_t>(found - scopes_.begin());
    scopes_.push_back(std::move(wider));
    return static_cast<int32_t>(scopes_.size()) - 1;
}

Place Document::place(const Value& schema, const Place& parent, int32_t pointer) {
    const int32_t resource = resource_of(schema, parent.resource);
    const int32_t scope =
        resource == parent.resource ? parent.scope : scope_within(parent.scope, resource);
    return {&schema, resource, scope, pointer};
}

Place Document::inside(const Place& parent, const Value& schema, std::string_view keyword) {
    return place(schema, parent, pointers.inside(parent.pointer, keyword));
}

Place Document::inside(const Place& parent, const Value& schema, std::string_view keyword,
                       std::string_view name) {
    const int32_t outer = pointers.inside(parent.pointer, keyword);
    return place(schema, parent, pointers.inside(outer, name));
}

Place Document::inside(const Place& parent, const Value& schema, std::string_view keyword,
                       size_t index) {
    const int32_t outer = pointers.inside(parent.pointer, keyword);
    return place(schema, parent, pointers.inside(outer, index));
}

const Document::Anchor* Document::find_anchor(int32_t resource, std::string_view name) const {
    for (const Anchor& anchor : resources_[resource].anchors) {
        if (anchor.name == name) return &anchor;
    }
    return nullptr;
}

Document::Target Document::find_pointer(int32_t resource, const std::string& fragment) {
    const Resource& start = resources_[resource];
    Target target{start.schema, resource, start.pointer};
    for (size_t at = 0; at < fragment.size();) {
        const size_t end = std::min(fragment.find('/', at + 1), fragment.size());
        std::string key;
        for (size_t i = at + 1; i < end; ++i) {
            const char next = i + 1 < end ? fragment[i + 1] : '\0';
            if (fragment[i] == '~' && (next == '0' || next == '1')) {
                key += fragment[++i] == '0' ? '~' : '/';
            } else {
                key += fragment[i];
            }
        }
        at = end;
        const Value& value = *target.schema;
        if (value.kind == Value::Kind::kArray) {
            size_t index = value.items.size();
            const auto read = std::from_chars(key.data(), key.data() + key.size(), index);
            if (read.ec != std::errc() || read.ptr != key.data() + key.size()) return {};
            if (index >= value.items.size()) return {};
            target.schema = &value.items[index];
            target.pointer = pointers.inside(target.pointer, index);
        } else {
            const auto member = std::ranges::find(value.members, key,
                                                  [](const auto& entry) { return entry.first; });
            if (member == value.members.end()) return {};
            target.schema = &member->second;
            target.pointer = pointers.inside(target.pointer, member->first);
        }
        target.resource = resource_of(*target.schema, target.resource);
    }
    return target;
}

// What a reference within a resource means, dynamic scopes aside. Without a schema: nothing.
Document::Target Document::find(int32_t resource, const std::string& reference) {
    const size_t hash = std::min(reference.find('#'), reference.size());
    if (hash > 0) {
        const std::string uri = join(resources_[resource].uri, reference.substr(0, hash));
        const auto found = by_uri_.find(uri);
        if (found == by_uri_.end()) return {nullptr, -1};
        resource = found->second;
    }
    const std::string fragment =
        unquote(hash < reference.size() ? std::string_view(reference).substr(hash + 1) : "");
    if (fragment.empty() || fragment[0] == '/') return find_pointer(resource, fragment);
    const Anchor* anchor = find_anchor(resource, fragment);
    if (anchor == nullptr) return {};
    return {anchor->schema, resource, anchor->pointer, anchor->name, anchor->dynamic};
}

Place Document::resolve(const Place& place, std::string_view keyword, const Value& reference) {
    const auto where = [&] { return pointers.inside(place.pointer, keyword); };
    const auto quoted = [](std::string_view text) { return "'" + std::string(text) + "'"; };
    if (reference.kind != Value::Kind::kString) {
        refuse(quoted(keyword) + " must be a string", where());
    }
    auto& known = targets_[place.resource];
    auto found = known.find(reference.text);
    if (found == known.end()) {
        found = known.emplace(reference.text, find(place.resource, reference.text)).first;
    }
    Target target = found->second;
    if (target.schema == nullptr) {
        refuse("reference " + quoted(reference.text) +
                   (target.resource < 0 ? " leaves the document; put the schema under '$defs'"
                                        : " points to nothing"),
               where());
    }
    if (keyword == "$recursiveRef") {
        const Anchor* anchor = find_anchor(target.resource, kRecursive);
        if (anchor != nullptr && anchor->schema == target.schema) target.dynamic = true;
    }
    if (target.dynamic && keyword != "$ref") {
        for (const auto& [name, resource] : scopes_[place.scope]) {
            if (name != target.anchor) continue;
            const Anchor* outermost = find_anchor(resource, name);
            target.schema = outermost->schema;
            target.pointer = outermost->pointer;
            target.resource = resource;
        }
    }
    return {target.schema, target.resource, scope_within(place.scope, target.resource),
            target.pointer};
}

}  // namespace sglite::json
