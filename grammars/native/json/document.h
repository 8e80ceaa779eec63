// A JSON Schema document: where schemas stand, their drafts, and what references mean.
//
// Knows the keywords under which schemas stand, not what they demand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../refused.h"
#include "value.h"

namespace sglite::json {

enum class Draft : uint8_t { k4, k6, k7, k2019, k2020 };

// Places within the document, written as JSON pointers when somebody asks. Number 0 is the whole.
class Pointers {
  public:
    int32_t inside(int32_t parent, std::string_view key);  // `key` must live on
    int32_t inside(int32_t parent, size_t index);
    std::string text(int32_t pointer) const;

  private:
    struct Step {
        int32_t parent;
        std::string_view key;
        int64_t index;  // -1: `key` counts
    };
    std::vector<Step> steps_{{-1, {}, -1}};
};

// A schema as it stands in the document, within a resource and behind the resources that were
// entered on the way (as far as `$dynamicRef` can see them).
struct Place {
    const Value* schema = nullptr;
    int32_t resource = 0;
    int32_t scope = 0;
    int32_t pointer = 0;
};

class Document {
  public:
    // `schema` must live on. Throws Refused.
    explicit Document(const Value& schema);

    Pointers pointers;

    Place root();
    Draft draft(const Place& place) const { return resources_[place.resource].draft; }
    // A schema inside of another, under a keyword, and under a name or index of its value.
    Place inside(const Place& place, const Value& schema, std::string_view keyword);
    Place inside(const Place& place, const Value& schema, std::string_view keyword,
                 std::string_view name);
    Place inside(const Place& place, const Value& schema, std::string_view keyword, size_t index);
    // The schema that `$ref`, `$dynamicRef` or `$recursiveRef` means. Throws Refused.
    Place resolve(const Place& place, std::string_view keyword, const Value& reference);

    [[noreturn]] void refuse(const std::string& reason, int32_t pointer) const {
        throw Refused(reason, pointers.text(pointer));
    }

  private:
    struct Anchor {
        std::string_view name;
        const Value* schema;
        int32_t pointer;
        bool dynamic;
    };
    struct Resource {
        std::string uri;
        const Value* schema;
        int32_t pointer;
        Draft draft;
        std::vector<Anchor> anchors{};
    };
    struct Target {
        const Value* schema = nullptr;
        int32_t resource = 0;
        int32_t pointer = 0;
        std::string_view anchor{};  // the dynamic anchor that was named, if any
        bool dynamic = false;
    };
    // Per dynamic anchor the outermost resource that has it.
    using Scope = std::vector<std::pair<std::string_view, int32_t>>;

    void visit(const Value& schema, int32_t resource, int32_t pointer);
    void visit_inner(const Value& schema, int32_t resource, int32_t pointer);
    int32_t enter(const Value& schema, std::string_view id, int32_t resource, int32_t pointer);
    void add_anchor(Resource& resource, std::string_view name, const Value& schema, int32_t pointer,
                    bool dynamic);
    Place place(const Value& schema, const Place& parent, int32_t pointer);
    int32_t resource_of(const Value& schema, int32_t parent) const;
    int32_t scope_within(int32_t scope, int32_t resource);
    const Anchor* find_anchor(int32_t resource, std::string_view name) const;
    Target find(int32_t resource, const std::string& reference);
    Target find_pointer(int32_t resource, const std::string& fragment);

    std::vector<Resource> resources_;
    std::unordered_map<std::string, int32_t> by_uri_;
    std::unordered_map<const Value*, int32_t> roots_;  // of resources inside of the document
    std::vector<Scope> scopes_{{}};
    bool has_dynamic_ = false;
    std::vector<std::unordered_map<std::string_view, Target>> targets_;  // per resource
};

// Where schemas stand under a keyword.
enum class Holds : uint8_t { kNothing, kSchema, kSchemas, kNamed };
Holds holds_schemas(std::string_view keyword, const Value& value);

}  // namespace sglite::json
