#include "lexer.h"

#include <algorithm>

namespace sglite::json {
namespace {

using text::kDeadText;
using text::LangId;
using text::TextState;

// Stages of a spelling. A spelling packs a stage, a count of digits or bytes, the value of the
// digits so far, and the payload of a high surrogate that waits for its other half.
enum Stage : int32_t {
    kAtBorder,
    kInCharacter,
    kSlash,
    kHex,
    kLowSlash,
    kLowU,
    kLowHex,
    kInNumber
};

struct Spelling {
    int32_t stage, count, value, high;

    int32_t packed() const { return stage | count << 3 | value << 5 | high << 17; }
};

Spelling unpack(int32_t packed) {
    return {packed & 7, packed >> 3 & 3, packed >> 5 & 0xFFF, packed >> 17};
}

int short_escape(uint8_t byte) {
    switch (byte) {
        case '"':
        case '\\':
        case '/':
            return byte;
        case 'b':
            return '\b';
        case 'f':
            return '\f';
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        case 't':
            return '\t';
        default:
            return -1;
    }
}

bool has_short_escape(uint32_t code) {
    return code == '\b' || code == '\f' || code == '\n' || code == '\r' || code == '\t';
}

int digit(uint8_t byte, bool upper) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    if (upper && byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
    return -1;
}

int to_utf8(uint32_t code, char* out) {
    if (code < 0x80) {
        out[0] = static_cast<char>(code);
        return 1;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out[0] = static_cast<char>((0xFF00 >> (more + 1) & 0xFF) | code >> (6 * more));
    for (int i = 1; i <= more; ++i) {
        out[i] = static_cast<char>(0x80 | (code >> (6 * (more - i)) & 0x3F));
    }
    return more + 1;
}

int continuation_bytes(uint8_t lead) {
    return lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
}

uint32_t from_pair(int32_t high, uint32_t low_unit) {
    return 0x10000 + (static_cast<uint32_t>(high) << 10) + (low_unit - 0xDC00);
}

}  // namespace

// Making states

LexId Lexer::begin(std::span<const LangId> lanes, int32_t spelling) {
    std::vector<int32_t> parts;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
        const TextState start = languages_.start(lanes[lane]);
        if (start == kDeadText) continue;
        parts.push_back(static_cast<int32_t>(lane));
        parts.push_back(start);
    }
    if (parts.empty()) return kDeadLex;
    return add_state(add_base(std::move(parts), -1), spelling);
}

BaseId Lexer::add_base(std::vector<int32_t> parts, int32_t plan) {
    parts.push_back(plan);
    const auto [place, fresh] = base_ids_.try_emplace(parts, static_cast<BaseId>(bases_.size()));
    if (fresh) {
        parts.pop_back();
        bases_.push_back({std::move(parts), plan});
    }
    return place->second;
}

LexId Lexer::add_state(BaseId base, int32_t spelling) {
    const uint64_t key = static_cast<uint64_t>(base) << 32 | static_cast<uint32_t>(spelling);
    const auto [place, fresh] = state_ids_.try_emplace(key, static_cast<LexId>(states_.size()));
    if (fresh) states_.push_back({base, spelling});
    return place->second;
}

int32_t* Lexer::make_row() {
    if (rows_left_ == 0) {
        rows_left_ = std::clamp<size_t>(rows_made_, 4, 64);
        rows_.push_back(std::make_unique_for_overwrite<int32_t[]>(256 * rows_left_));
        rows_made_ += rows_left_;
    }
    int32_t* const row = rows_.back().get() + 256 * --rows_left_;
    std::fill_n(row, 256, kUnknown);
    return row;
}

// Steps of the content

BaseId Lexer::next_content(BaseId base, uint8_t byte) {
    if (bases_[base].next == nullptr) bases_[base].next = make_row();
    const int32_t known = bases_[base].next[byte];
    if (known != kUnknown) return known;
    const BaseId found =
        bases_[base].plan < 0 ? find_content(base, byte) : find_key_content(base, byte);
    bases_[base].next[byte] = found;
    return found;
}

BaseId Lexer::find_content(BaseId base, uint8_t byte) {
    std::vector<int32_t> parts;
    for (size_t i = 0; i < bases_[base].parts.size(); i += 2) {
        const TextState to = languages_.next(bases_[base].parts[i + 1], byte);
        if (to == kDeadText) continue;
        parts.push_back(bases_[base].parts[i]);
        parts.push_back(to);
    }
    return parts.empty() ? kDeadLex : add_base(std::move(parts), -1);
}

// Steps of the spelling

int32_t Lexer::find_next(LexId lex, uint8_t byte) {
    const int32_t found = step(lex, byte);
    if (states_[lex].next == nullptr) states_[lex].next = make_row();
    states_[lex].next[byte] = found;
    return found;
}

int32_t Lexer::step(LexId lex, uint8_t byte) {
    const BaseId base = states_[lex].base;
    const Spelling at = unpack(states_[lex].spelling);
    switch (at.stage) {
        case kAtBorder:
            if (byte == '"') return accepted(base).empty() ? kDeadLex : kQuoted;
            if (byte == '\\') {
                return allows_escape(base) ? add_state(base, Spelling{kSlash, 0, 0, 0}.packed())
                                           : kDeadLex;
            }
            return byte < 0x20 ? kDeadLex : read_raw(base, continuation_bytes(byte), byte);
        case kInCharacter:
            return read_raw(base, at.count - 1, byte);
        case kSlash:
            return read_short(base, byte);
        case kLowSlash:
            return byte == '\\' ? add_state(base, Spelling{kLowU, 0, 0, at.high}.packed())
                                : kDeadLex;
        case kLowU:
            return byte == 'u' ? add_state(base, Spelling{kLowHex, 0, 0, at.high}.packed())
                               : kDeadLex;
        case kInNumber: {
            const BaseId to = next_content(base, byte);
            return to == kDeadLex ? kDeadLex : add_state(to, kNumber);
        }
        default:
            return read_hex(base, states_[lex].spelling, byte);
    }
}

LexId Lexer::read_raw(BaseId base, int32_t rest, uint8_t byte) {
    const BaseId to = next_content(base, byte);
    if (to == kDeadLex) return kDeadLex;
    return add_state(to, rest == 0 ? kBorder : Spelling{kInCharacter, rest, 0, 0}.packed());
}

LexId Lexer::read_short(BaseId base, uint8_t byte) {
    if (byte == 'u') {
        return allows_unit(base, 0, 0xFFFF) ? add_state(base, Spelling{kHex, 0, 0, 0}.packed())
                                            : kDeadLex;
    }
    const int code = short_escape(byte);
    if (code < 0 || (code == '/' && !any_)) return kDeadLex;
    return at_character(base, static_cast<uint32_t>(code));
}

LexId Lexer::read_hex(BaseId base, int32_t spelling, uint8_t byte) {
    Spelling at = unpack(spelling);
    const int value = digit(byte, any_);
    if (value < 0) return kDeadLex;
    const auto read = static_cast<uint32_t>(at.value << 4 | value);
    const int missing = 3 - at.count;
    const uint32_t low = read << (4 * missing), high = low + (1u << (4 * missing)) - 1;
    if (missing > 0) {
        const bool live = at.stage == kHex
                              ? allows_unit(base, low, high)
                              : high >= 0xDC00 && low <= 0xDFFF &&
                                    allows(base, from_pair(at.high, std::max(low, 0xDC00u)),
                                           from_pair(at.high, std::min(high, 0xDFFFu)));
        if (!live) return kDeadLex;
        return add_state(
            base, Spelling{at.stage, at.count + 1, static_cast<int32_t>(read), at.high}.packed());
    }
    if (at.stage == kLowHex) {
        return read < 0xDC00 || read > 0xDFFF ? kDeadLex
                                              : at_character(base, from_pair(at.high, read));
    }
    if (!allows_unit(base, read, read)) return kDeadLex;
    if (read < 0xD800 || read > 0xDFFF) return at_character(base, read);
    return add_state(base, Spelling{kLowSlash, 0, 0, static_cast<int32_t>(read - 0xD800)}.packed());
}

LexId Lexer::at_character(BaseId base, uint32_t code) {
    char bytes[4];
    const int count = to_utf8(code, bytes);
    for (int i = 0; i < count && base != kDeadLex; ++i) {
        base = next_content(base, static_cast<uint8_t>(bytes[i]));
    }
    return base == kDeadLex ? kDeadLex : add_state(base, kBorder);
}

int Lexer::content(LexId lex, uint8_t byte, char* out) const {
    const Spelling at = unpack(states_[lex].spelling);
    switch (at.stage) {
        case kAtBorder:
        case kInCharacter:
            if (at.stage == kAtBorder && byte == '\\') return 0;
            out[0] = static_cast<char>(byte);
            return 1;
        case kSlash:
            if (byte == 'u') return 0;
            out[0] = static_cast<char>(short_escape(byte));
            return 1;
        case kHex:
        case kLowHex: {
            if (at.count < 3) return 0;
            const auto unit = static_cast<uint32_t>(at.value << 4 | digit(byte, true));
            if (at.stage == kLowHex) return to_utf8(from_pair(at.high, unit), out);
            return unit >= 0xD800 && unit <= 0xDFFF ? 0 : to_utf8(unit, out);
        }
        default:
            return 0;
    }
}

// What can follow

bool Lexer::allows(BaseId base, uint32_t low, uint32_t high) {
    if (low > high) return false;
    const Base& at = bases_[base];
    if (at.plan < 0) {
        for (size_t i = 1; i < at.parts.size(); i += 2) {
            if (languages_.allows(at.parts[i], low, high)) return true;
        }
        return false;
    }
    const auto [first, last, depth, extra] = key(base);
    if (extra != kDeadText && languages_.allows(extra, low, high)) return true;
    char from[4], to[4];
    const std::string_view least(from, to_utf8(low, from)), most(to, to_utf8(high, to));
    const KeyPlan& plan = *plans_[at.plan];
    for (int32_t i = first; i < last; ++i) {
        if (!plan.is_allowed(i) || static_cast<int32_t>(plan.names[i].size()) <= depth) continue;
        // UTF-8 sorts as code points do.
        const auto bytes =
            static_cast<size_t>(continuation_bytes(static_cast<uint8_t>(plan.names[i][depth])) + 1);
        const std::string_view next = std::string_view(plan.names[i]).substr(depth, bytes);
        if (least <= next && next <= most) return true;
    }
    return false;
}

// Whether `\uXXXX` with a unit of [low, high] can begin a character.
bool Lexer::allows_unit(BaseId base, uint32_t low, uint32_t high) {
    if (!any_) {
        for (uint32_t code = low; code <= std::min(high, 0x1Fu); ++code) {
            if (!has_short_escape(code) && allows(base, code, code)) return true;
        }
        return false;
    }
    if (writes_all_ && reach(base).free > 0) return low < 0xDC00 || high > 0xDFFF;
    const uint32_t first = std::max(low, 0xD800u), last = std::min(high, 0xDBFFu);
    return allows(base, low, std::min(high, 0xD7FFu)) ||
           allows(base, std::max(low, 0xE000u), high) ||
           (first <= last &&
            allows(base, 0x10000 + ((first - 0xD800) << 10), 0x103FF + ((last - 0xD800) << 10)));
}

bool Lexer::allows_escape(BaseId base) {
    if (writes_all_ && reach(base).free > 0) return true;
    if (any_) return allows(base, 0, 0x10FFFF);
    return allows(base, 0, 0x1F) || allows(base, '"', '"') || allows(base, '\\', '\\');
}

text::Reach Lexer::reach(BaseId base) {
    const Base& at = bases_[base];
    if (at.plan >= 0) {
        const TextState extra = key(base).extra;
        // The names of the plan are no longer than what the extra keys allow anyway.
        return extra == kDeadText ? text::Reach{}
                                  : text::Reach{languages_.reach(extra).free, false};
    }
    text::Reach best{0, true};
    for (size_t i = 1; i < at.parts.size(); i += 2) {
        const text::Reach lane = languages_.reach(at.parts[i]);
        best.free = std::max(best.free, lane.free);
        best.hard = best.hard && lane.hard;
    }
    return best;
}

const std::vector<int32_t>& Lexer::accepted(BaseId base) {
    if (bases_[base].accepted) return *bases_[base].accepted;
    std::vector<int32_t> found;
    const Base& at = bases_[base];
    if (at.plan < 0) {
        for (size_t i = 0; i < at.parts.size(); i += 2) {
            if (languages_.accepts(at.parts[i + 1])) found.push_back(at.parts[i]);
        }
    } else {
        const auto [low, high, depth, extra] = key(base);
        const KeyPlan& plan = *plans_[at.plan];
        const bool listed = low < high && static_cast<int32_t>(plan.names[low].size()) == depth;
        const bool held =
            listed ? plan.is_allowed(low) : extra != kDeadText && languages_.accepts(extra);
        if (held) found.push_back(0);
    }
    bases_[base].accepted = std::make_unique<std::vector<int32_t>>(std::move(found));
    return *bases_[base].accepted;
}

bool Lexer::in_escape(LexId lex) const {
    const int32_t stage = unpack(states_[lex].spelling).stage;
    return stage >= kSlash && stage <= kLowHex;
}

const uint8_t* Lexer::classes(BaseId base) const {
    const std::vector<int32_t>& parts = bases_[base].parts;
    const bool alone = is_key(base) ? parts[0] == parts[1] : parts.size() == 2;
    return alone ? languages_.classes(parts.back()) : nullptr;
}

std::vector<std::pair<int32_t, TextState>> Lexer::lanes(BaseId base) const {
    std::vector<std::pair<int32_t, TextState>> found;
    const std::vector<int32_t>& parts = bases_[base].parts;
    for (size_t i = 0; i < parts.size(); i += 2) found.emplace_back(parts[i], parts[i + 1]);
    return found;
}

std::vector<Lexer::Ending> Lexer::endings(LexId lex) {
    std::vector<Ending> found;
    find_endings({lex, 0}, found);
    return found;
}

// Only control characters may need an escape by code point; of all others, one will do.
void Lexer::find_endings(const Ending& begun, std::vector<Ending>& found) {
    if (!in_escape(begun.lex)) return found.push_back(begun);
    const Spelling at = unpack(states_[begun.lex].spelling);
    const bool at_unit = at.stage == kHex && at.value <= 1;
    for (int byte = 0x22; byte < 0x80; ++byte) {
        const int32_t to = next(begun.lex, static_cast<uint8_t>(byte));
        if (to < 0) continue;
        char content[4];
        const int length = this->content(begun.lex, static_cast<uint8_t>(byte), content);
        find_endings({to, begun.bytes + 1, std::string(content, length)}, found);
        const bool others = at.stage == kSlash || (at_unit && at.count == 3) ||
                            (at_unit && at.count == 2 && byte == '0');
        if (!others) return;
    }
}

LexId Lexer::clipped(LexId lex) {
    const BaseId base = states_[lex].base;
    const BaseId to = clipped_base(base);
    return to == base ? lex : add_state(to, states_[lex].spelling);
}

BaseId Lexer::clipped_base(BaseId base) {
    std::vector<int32_t> parts = bases_[base].parts;
    const int32_t plan = bases_[base].plan;
    bool changed = false;
    for (size_t i = plan < 0 ? 1 : 3; i < parts.size(); i += 2) {
        if (parts[i] == kDeadText) continue;
        const TextState to = languages_.clipped(parts[i]);
        changed = changed || to != parts[i];
        parts[i] = to;
    }
    return changed ? add_base(std::move(parts), plan) : base;
}

size_t Lexer::memory() const {
    return states_.size() * (sizeof(State) + 64) + bases_.size() * (sizeof(Base) + 200) +
           rows_made_ * 1024 + plans_.size() * 512;
}

}  // namespace sglite::json
