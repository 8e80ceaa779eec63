// The pool of formulas: interning, and the forms that constants take.
#include "formula.h"

#include <algorithm>

namespace sglite::json {
namespace {

constexpr size_t kFirstSlots = 256;

uint64_t mix(uint64_t hash, int32_t part) {
    hash = (hash ^ static_cast<uint32_t>(part)) * 0xBF58476D1CE4E5B9u;
    return hash ^ hash >> 29;
}

std::string key_of(const text::Decimal& value) {
    return (value.negative ? "-" : "") + value.digits + "e" + std::to_string(value.exponent);
}

bool is_group(Op op) { return op == Op::kAll || op == Op::kOne; }

// Throws Refused for surrogates, which stand in three bytes that UTF-8 never has.
void check_text(std::string_view text) {
    for (size_t i = text.find('\xED'); i < text.size(); i = text.find('\xED', i + 1)) {
        if (i + 2 >= text.size()) break;
        const auto second = static_cast<uint8_t>(text[i + 1]);
        if (second < 0xA0) continue;
        const int code = 0xD000 | (second & 0x3F) << 6 | (text[i + 2] & 0x3F);
        static constexpr char kHex[] = "0123456789abcdef";
        std::string spelled = "\\ud";
        for (const int shift : {8, 4, 0}) spelled += kHex[code >> shift & 15];
        throw Refused("the schema has the lone surrogate '" + spelled +
                      "', which is no character; remove it");
    }
}

}  // namespace

Formulas::Formulas() : slots_(kFirstSlots, -1) { nodes_.push_back({}); }

uint64_t Formulas::hash(const Node& node) const {
    uint64_t hash = mix(0x9E3779B97F4A7C15u, static_cast<int32_t>(node.op) * 2 + node.strict);
    if (is_group(node.op)) {
        for (const Lit part : parts(node)) hash = mix(hash, part);
        return hash;
    }
    return mix(mix(mix(hash, node.a), node.b), node.c);
}

bool Formulas::same(const Node& a, const Node& b) const {
    if (a.op != b.op || a.strict != b.strict) return false;
    if (is_group(a.op)) return std::ranges::equal(parts(a), parts(b));
    return a.a == b.a && a.b == b.b && a.c == b.c;
}

Lit Formulas::intern(const Node& node) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash(node) & mask;; at = (at + 1) & mask) {
        if (slots_[at] < 0) {
            slots_[at] = static_cast<int32_t>(nodes_.size());
            nodes_.push_back(node);
            if (nodes_.size() * 2 > slots_.size()) grow();
            return static_cast<Lit>(nodes_.size() - 1) * 2;
        }
        if (same(nodes_[slots_[at]], node)) {
            if (is_group(node.op)) parts_.resize(node.a);  // they stand there already
            return slots_[at] * 2;
        }
    }
}

void Formulas::grow() {
    slots_.assign(slots_.size() * 2, -1);
    const size_t mask = slots_.size() - 1;
    for (size_t i = 1; i < nodes_.size(); ++i) {
        size_t at = hash(nodes_[i]) & mask;
        while (slots_[at] >= 0) at = (at + 1) & mask;
        slots_[at] = static_cast<int32_t>(i);
    }
}

Lit Formulas::group(Op op, const std::vector<Lit>& parts, int32_t pointer) {
    const auto begin = static_cast<int32_t>(parts_.size());
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    return intern({op, false, begin, static_cast<int32_t>(parts.size()), 0, pointer});
}

Lit Formulas::all(std::vector<Lit> parts, int32_t pointer) {
    size_t kept = 0;
    for (const Lit part : parts) {
        if (part == kFalse) return kFalse;
        if (part == kTrue) continue;
        parts[kept++] = part;
    }
    parts.resize(kept);
    if (kept == 0) return kTrue;
    if (kept == 1) return parts[0];
    return group(Op::kAll, parts, pointer);
}

Lit Formulas::any(std::vector<Lit> parts, int32_t pointer) {
    for (Lit& part : parts) part = negated(part);
    return negated(all(std::move(parts), pointer));
}

Lit Formulas::exactly_one(const std::vector<Lit>& parts, int32_t pointer) {
    return parts.size() == 1 ? parts[0] : group(Op::kOne, parts, pointer);
}

Lit Formulas::atom(Op op, int32_t pointer, int32_t a, int32_t b, int32_t c) {
    return intern({op, false, a, b, c, pointer});
}

Lit Formulas::type(int32_t mask, int32_t pointer) {
    constexpr int32_t kEvery = (1 << kTypes) - 1;
    return mask == kEvery ? kTrue : mask == 0 ? kFalse : atom(Op::kType, pointer, mask);
}

Lit Formulas::member_count(int64_t low, int32_t pointer) {
    return low <= 0 ? kTrue : atom(Op::kMemberCount, pointer, static_cast<int32_t>(low));
}

Lit Formulas::item_count(int64_t low, int32_t pointer) {
    return low <= 0 ? kTrue : atom(Op::kItemCount, pointer, static_cast<int32_t>(low));
}

Lit Formulas::contains(int32_t begin, int64_t low, Lit lit, int32_t pointer) {
    if (low <= 0) return kTrue;
    if (lit == kTrue) return item_count(begin + low, pointer);
    if (lit == kFalse) return type(~bit(Type::kArray) & ((1 << kTypes) - 1), pointer);
    if (low == 1) return failing(atom(Op::kItems, pointer, begin, -1, negated(lit)));
    return atom(Op::kContains, pointer, begin, static_cast<int32_t>(low), lit);
}

Lit Formulas::contains_at_most(int32_t begin, int64_t high, Lit lit, int32_t pointer) {
    if (lit == kFalse) return kTrue;
    if (lit == kTrue) return failing(item_count(begin + high + 1, pointer));
    if (high == 0) return atom(Op::kItems, pointer, begin, -1, negated(lit));
    return failing(atom(Op::kContains, pointer, begin, static_cast<int32_t>(high) + 1, lit));
}

Lit Formulas::failing(Lit atom) {
    Node node = this->node(atom);
    node.strict = !node.strict;
    return intern(node) | (is_negated(atom) ? 0 : 1);
}

Lit Formulas::has(int32_t name, int32_t pointer) {
    return failing(atom(Op::kMembers, pointer, one_key(name), kFalse));
}

Lit Formulas::words(std::vector<std::string_view> words, int32_t pointer) {
    for (const std::string_view word : words) check_text(word);
    TextSet set{TextSet::Kind::kWords};
    set.words = std::move(words);
    set.pointer = pointer;
    return atom(Op::kText, pointer, text_set(std::move(set)));
}

Lit Formulas::constant(const Value& value, int32_t pointer) {
    std::vector<Lit> parts;
    switch (value.kind) {
        case Value::Kind::kNull:
            return type(bit(Type::kNull), pointer);
        case Value::Kind::kFalse:
            return type(bit(Type::kFalse), pointer);
        case Value::Kind::kTrue:
            return type(bit(Type::kTrue), pointer);
        case Value::Kind::kString:
            return all({type(bit(Type::kString), pointer), words({value.text}, pointer)}, pointer);
        case Value::Kind::kNumber: {
            const Type kind = value.number.is_integer() ? Type::kInteger : Type::kFraction;
            const int32_t id = list({value.number});
            return all({type(bit(kind), pointer), atom(Op::kListed, pointer, id)}, pointer);
        }
        case Value::Kind::kArray: {
            const auto size = static_cast<int32_t>(value.items.size());
            parts = {type(bit(Type::kArray), pointer), item_count(size, pointer)};
            for (int32_t i = 0; i < size; ++i) {
                const Lit item = constant(value.items[i], pointer);
                parts.push_back(atom(Op::kItems, pointer, i, i + 1, item));
            }
            parts.push_back(failing(item_count(int64_t{size} + 1, pointer)));
            break;
        }
        case Value::Kind::kObject: {
            parts = {type(bit(Type::kObject), pointer)};
            KeySet others;
            for (const auto& [key, inner] : value.members) {
                const int32_t name = this->name(key);
                others.names.push_back(name);
                const Lit member = constant(inner, pointer);
                parts.push_back(atom(Op::kMembers, pointer, one_key(name), member));
                parts.push_back(has(name, pointer));
            }
            std::ranges::sort(others.names);
            parts.push_back(atom(Op::kMembers, pointer, keys(std::move(others)), kFalse));
        }
    }
    return all(std::move(parts), pointer);
}

Lit Formulas::listed(const std::vector<Value>& values, int32_t pointer) {
    std::vector<Lit> ways;
    std::vector<std::string_view> texts;
    std::vector<text::Decimal> numbers;
    int32_t mask = 0, kinds = 0;
    for (const Value& value : values) {
        switch (value.kind) {
            case Value::Kind::kNull:
                mask |= bit(Type::kNull);
                break;
            case Value::Kind::kFalse:
                mask |= bit(Type::kFalse);
                break;
            case Value::Kind::kTrue:
                mask |= bit(Type::kTrue);
                break;
            case Value::Kind::kString:
                texts.push_back(value.text);
                break;
            case Value::Kind::kNumber:
                kinds |= bit(value.number.is_integer() ? Type::kInteger : Type::kFraction);
                numbers.push_back(value.number);
                break;
            default:
                ways.push_back(constant(value, pointer));
        }
    }
    if (mask != 0) ways.push_back(type(mask, pointer));
    if (!texts.empty()) {
        const Lit set = words(std::move(texts), pointer);
        ways.push_back(all({type(bit(Type::kString), pointer), set}, pointer));
    }
    if (!numbers.empty()) {
        std::ranges::sort(numbers, [](const auto& a, const auto& b) { return compare(a, b) < 0; });
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
        const int32_t id = list(std::move(numbers));
        ways.push_back(all({type(kinds, pointer), atom(Op::kListed, pointer, id)}, pointer));
    }
    return any(std::move(ways), pointer);
}

Lit Formulas::schema(const Place& place) {
    if (place.schema->kind == Value::Kind::kTrue) return kTrue;
    if (place.schema->kind == Value::Kind::kFalse) return kFalse;
    if (place.schema->kind == Value::Kind::kObject && place.schema->members.empty()) return kTrue;
    const uint64_t key =
        mix(reinterpret_cast<uintptr_t>(place.schema) * 0x9E3779B97F4A7C15u, place.scope);
    std::vector<Lit>& same = by_schema_[key];
    for (const Lit lit : same) {
        const Place& known = schemas_[node(lit).a].place;
        if (known.schema == place.schema && known.scope == place.scope) return lit;
    }
    schemas_.push_back({place});
    const Lit lit = atom(Op::kSchema, place.pointer, static_cast<int32_t>(schemas_.size()) - 1);
    same.push_back(lit);
    return lit;
}

int32_t Formulas::name(std::string_view name) {
    const auto [place, fresh] = by_name_.try_emplace(name, static_cast<int32_t>(names_.size()));
    if (fresh) {
        check_text(name);
        names_.push_back(name);
        one_key_.push_back(-1);
    }
    return place->second;
}

int32_t Formulas::text_set(TextSet set) {
    const auto id = static_cast<int32_t>(texts_.size());
    const auto kind = static_cast<char>('0' + static_cast<int>(set.kind));
    std::string key(1, kind);
    switch (set.kind) {
        case TextSet::Kind::kPattern:
        case TextSet::Kind::kFormat:
            key += set.text;
            break;
        case TextSet::Kind::kQuote:
            key += set.whole_words ? 'w' : 'c';
            key += set.text;
            break;
        case TextSet::Kind::kLength:
            key += std::to_string(set.low) + "," + std::to_string(set.high);
            break;
        case TextSet::Kind::kSatisfying:
            key += std::to_string(set.lit);
            break;
        case TextSet::Kind::kWords:
            for (const std::string_view word : set.words) {
                key += std::to_string(word.size());
                key += ':';
                key += word;
            }
    }
    const auto [place, fresh] = by_text_.try_emplace(std::move(key), id);
    if (fresh) texts_.push_back(std::move(set));
    return place->second;
}

int32_t Formulas::one_key(int32_t name) {
    if (one_key_[name] < 0) {
        one_key_[name] = static_cast<int32_t>(keys_.size());
        keys_.push_back({name});
    }
    return one_key_[name];
}

int32_t Formulas::keys(KeySet set) {
    std::vector<int32_t> key = set.names;
    for (const auto* part : {&set.with, &set.without}) {
        key.push_back(-1);
        key.insert(key.end(), part->begin(), part->end());
    }
    const auto [place, fresh] =
        by_keys_.try_emplace(std::move(key), static_cast<int32_t>(keys_.size()));
    if (fresh) keys_.push_back(std::move(set));
    return place->second;
}

int32_t Formulas::number(const text::Decimal& value) {
    const auto [place, fresh] =
        by_number_.try_emplace(key_of(value), static_cast<int32_t>(numbers_.size()));
    if (fresh) numbers_.push_back(value);
    return place->second;
}

int32_t Formulas::list(std::vector<text::Decimal> values) {
    std::string key;
    for (const text::Decimal& value : values) key += key_of(value) + ",";
    const auto [place, fresh] =
        by_list_.try_emplace(std::move(key), static_cast<int32_t>(lists_.size()));
    if (fresh) lists_.push_back(std::move(values));
    return place->second;
}

size_t Formulas::memory() const {
    return nodes_.capacity() * sizeof(Node) + slots_.capacity() * sizeof(int32_t) +
           parts_.capacity() * sizeof(Lit) + schemas_.capacity() * sizeof(Schema) +
           by_schema_.size() * 96 + names_.size() * 96 + texts_.size() * (sizeof(TextSet) + 96) +
           keys_.size() * sizeof(KeySet) + numbers_.size() * (sizeof(text::Decimal) + 96);
}

}  // namespace sglite::json
