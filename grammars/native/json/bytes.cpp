// The bytes that texts under a schema can hold: each must be a token of its own.
#include <bitset>
#include <unordered_set>

#include "../writable.h"
#include "machine.h"

namespace sglite::json {
namespace {

std::bitset<256> bytes_of(std::string_view text) {
    std::bitset<256> found;
    for (const char c : text) found.set(static_cast<uint8_t>(c));
    return found;
}

// The bytes that write contents of these bytes within quotes.
std::bitset<256> written_bytes(const std::bitset<256>& content, bool any_spelling) {
    std::bitset<256> raw = content;
    for (int byte = 0; byte < 0x20; ++byte) raw.reset(byte);
    const bool controls = raw != content;
    std::bitset<256> used = raw | bytes_of("\"");
    if (controls || content['"'] || content['\\'] || any_spelling) used |= bytes_of("\\");
    if (controls || any_spelling) used |= bytes_of("bfnrtu0123456789abcdef");
    if (any_spelling) used |= bytes_of("/ABCDEF");
    return used;
}

}  // namespace

void JsonMachine::check_bytes() {
    std::bitset<256> known = barred_;
    for (int byte = 0; byte < 256; ++byte) {
        if (vocabulary_->has_single_byte(static_cast<uint8_t>(byte))) known.set(byte);
    }
    if (known.all()) return;
    std::bitset<256> used;
    const auto use = [&](std::string_view bytes) { used |= bytes_of(bytes); };
    const auto use_content = [&](const std::bitset<256>& bytes) {
        used |= written_bytes(bytes, style_.any_spelling);
    };
    if (style_.whitespace != Style::Whitespace::kCompact) use(" ");
    if (style_.whitespace == Style::Whitespace::kFlexible) use("\t\n\r");
    std::vector<GoalId> open{goals_.root()};
    std::unordered_set<GoalId> seen;
    while (!open.empty()) {
        const GoalId id = open.back();
        open.pop_back();
        if (id == kNever || !seen.insert(id).second) continue;
        const Goal& goal = goals_.goal(id);
        if (goal.null) use("null");
        if (goal.truth) use("true");
        if (goal.falsity) use("false");
        if (goal.strings != text::kNoText) use_content(languages_->bytes(goal.strings));
        if (goal.numbers != text::kNoText) used |= languages_->bytes(goal.numbers);
        for (const ObjectShape& shape : goal.objects) {
            use("{}");
            if (!shape.names.empty() || !shape.extras.empty()) use(":,");
            for (const std::string& name : shape.names) use_content(bytes_of(name));
            for (const auto& extra : shape.extras) {
                use_content(languages_->bytes(extra.keys));
                open.push_back(extra.value);
            }
            open.insert(open.end(), shape.values.begin(), shape.values.end());
        }
        for (const ArrayShape& shape : goal.arrays) {
            use("[],");
            open.insert(open.end(), shape.first.begin(), shape.first.end());
            open.push_back(shape.rest);
        }
    }
    check_single_bytes(*vocabulary_, used & ~barred_);
}

}  // namespace sglite::json
