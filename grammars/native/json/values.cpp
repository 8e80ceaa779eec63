// Values that were read within a text.
#include "values.h"

#include <algorithm>

namespace sglite::json {
namespace {

// Where the scalar at `at` ends.
size_t end_of_scalar(std::string_view text, size_t at) {
    if (text[at] != '"') return std::min(text.find_first_of(",:]} \t\n\r", at), text.size());
    for (++at; text[at] != '"'; ++at) at += text[at] == '\\';
    return at + 1;
}

// Numbers of any size, as far as anyone could write them.
Value scalar(std::string_view text) {
    constexpr int64_t kAnyExponent = int64_t{1} << 57;
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9')) return read(text);
    constexpr size_t kMostDigits = 17;  // of an exponent
    Value number{Value::Kind::kNumber};
    std::string held(text);
    const size_t letter = held.find_first_of("eE");
    if (letter != std::string::npos) {
        size_t digits = held.find_first_of("0123456789", letter);
        digits = std::min(held.find_first_not_of('0', digits), held.size() - 1);
        if (held.size() - digits > kMostDigits) held.resize(digits + kMostDigits);
    }
    number.number = text::decimal(held, kAnyExponent);
    return number;
}

}  // namespace

int32_t Values::Entry::find(std::string_view key) const {
    const auto found = std::ranges::lower_bound(
        members, key, {}, [](const auto& m) -> std::string_view { return m.first; });
    return found != members.end() && found->first == key ? found->second : -1;
}

int32_t Values::add(std::string_view text) {
    struct Open {
        Entry entry;
        std::string key{};
        bool has_key = false;
    };
    std::vector<Open> open;
    size_t at = 0;
    for (;;) {
        at = text.find_first_not_of(",: \t\n\r", at);
        const char first = text[at];
        Entry done;
        if (first == '{' || first == '[') {
            open.push_back({});
            open.back().entry.scalar.kind =
                first == '{' ? Value::Kind::kObject : Value::Kind::kArray;
            ++at;
            continue;
        }
        if (first == '}' || first == ']') {
            done = std::move(open.back().entry);
            open.pop_back();
            ++at;
        } else {
            const size_t end = end_of_scalar(text, at);
            done.scalar = scalar(text.substr(at, end - at));
            at = end;
            const bool is_object =
                !open.empty() && open.back().entry.kind() == Value::Kind::kObject;
            if (is_object && !open.back().has_key) {
                open.back().key = std::move(done.scalar.text);
                open.back().has_key = true;
                continue;
            }
        }
        const int32_t id = intern(std::move(done));
        if (open.empty()) return id;
        Open& into = open.back();
        if (into.entry.kind() == Value::Kind::kArray) {
            into.entry.items.push_back(id);
        } else {
            into.entry.members.emplace_back(std::move(into.key), id);
            into.has_key = false;
        }
    }
}

int32_t Values::intern(Entry entry) {
    std::ranges::sort(entry.members);
    std::string key;
    const auto put = [&](int32_t id) { key.append(reinterpret_cast<const char*>(&id), sizeof id); };
    if (entry.kind() == Value::Kind::kArray) {
        key = "[";
        for (const int32_t item : entry.items) put(item);
    } else if (entry.kind() == Value::Kind::kObject) {
        key = "{";
        for (const auto& [name, value] : entry.members) {
            put(static_cast<int32_t>(name.size()));
            key += name;
            put(value);
        }
    } else {
        key = "=" + identity(entry.scalar);
    }
    const auto [place, fresh] =
        ids_.try_emplace(std::move(key), static_cast<int32_t>(entries_.size()));
    if (fresh) {
        memory_ += sizeof(Entry) + 128 + 3 * place->first.size();
        entries_.push_back(std::move(entry));
    }
    return place->second;
}

}  // namespace sglite::json
