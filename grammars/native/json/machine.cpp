#include "machine.h"

#include <algorithm>
#include <array>

#include "../writable.h"
#include "key_costs.h"

namespace sglite::json {
namespace {

bool is_space(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

text::Languages::Options options_for(const Vocabulary& vocabulary, const std::bitset<256>& barred) {
    text::Languages::Options options;
    options.barred = barred;
    for (int byte = 0; byte < 256; ++byte) {
        if (byte < 0x20) options.barred.reset(byte);  // always written as an escape
        const auto value = static_cast<uint8_t>(byte);
        const bool is_short = value == '"' || value == '\\' || value == '\n' || value == '\r' ||
                              value == '\t' || value == '\b' || value == '\f';
        options.weight[byte] = is_short ? 2 : byte < 0x20 ? 6 : 1;
    }
    options.longest_token = static_cast<int32_t>(vocabulary.longest());
    return options;
}

}  // namespace

// Which bytes can follow at a place at all: most of those that are asked for cannot.
const std::array<std::array<bool, 256>, JsonMachine::kDone + 1> JsonMachine::kFollows = [] {
    std::array<std::array<bool, 256>, kDone + 1> table{};
    const auto allow = [&](int place, std::string_view bytes) {
        for (const char c : bytes) table[place][static_cast<uint8_t>(c)] = true;
    };
    for (int place = kSpacedValue; place < kDone; ++place) allow(place, " \t\n\r");
    for (const int place : {kValue, kSpacedValue, kArrayBegin}) {
        allow(place, "\"{[ntf-0123456789");
    }
    allow(kLiteral, "aeflrstu");
    for (const int place : {kString, kKey}) table[place].fill(true);
    allow(kNumber, "0123456789.eE+-,}]");
    allow(kObjectBegin, "\"}");
    allow(kNextKey, "\"");
    allow(kColon, ":");
    allow(kMemberEnd, ",}");
    allow(kArrayBegin, "]");
    allow(kItemEnd, ",]");
    return table;
}();

// The costs of goals, as Goals has them.
class JsonMachine::Prices final : public Costs {
  public:
    explicit Prices(JsonMachine& machine)
        : Costs(machine.spelling_, machine.style_), machine_(machine) {
        limited = false;
    }

    int32_t goal(GoalId id) override {
        return id == kNever ? kUnreachable : machine_.goals_.goal(id).cost;
    }
    int32_t nth(GoalId id, int64_t others) override {
        return id == kNever ? kUnreachable : machine_.goals_.nth(id, others);
    }
    GoalId both(GoalId a, GoalId b) override { return machine_.goals_.both(a, b); }
    int64_t supply(GoalId id) override { return machine_.goals_.goal(id).supply; }

  private:
    JsonMachine& machine_;
};

JsonMachine::JsonMachine(Value schema, std::shared_ptr<const Vocabulary> vocabulary,
                         const Style& style)
    : vocabulary_(std::move(vocabulary)),
      style_(style),
      barred_(barred_bytes(*vocabulary_)),
      languages_(std::make_unique<text::Languages>(options_for(*vocabulary_, barred_))),
      spelling_(*languages_, &vocabulary_->trie()),
      goals_(std::move(schema), *languages_, spelling_, style),
      lexer_(*languages_, style.any_spelling, barred_.none()),
      steadies_(lexer_, barred_),
      prices_(std::make_unique<Prices>(*this)),
      objects_(goals_, *languages_, lexer_, *prices_, distinct_, style.declared_order),
      arrays_(goals_, *prices_, distinct_),
      distinct_(goals_, *languages_, objects_, arrays_) {
    frames_.push_back({Frame::kRoot, -1, -1, 0, 0, false, true, {goals_.root()}, {}, {}, {0}});
    check_bytes();
    languages_->lift_limits();
}

JsonMachine::~JsonMachine() = default;

Position JsonMachine::start() {
    Position at;
    at.at[kPlace] = kValue;
    return at;
}

bool JsonMachine::complete(const Position& at) {
    if (place_of(at) == kDone) return true;
    return place_of(at) == kNumber && at.at[kFrame] == 0 &&
           !lexer_.accepted(lexer_.base(at.at[kState])).empty();
}

bool JsonMachine::can_go_on(const Position& at) {
    if (place_of(at) == kDone) return false;
    if (!complete(at)) return true;
    for (const char byte : std::string_view("0123456789.eE")) {
        Position to = at;
        if (step(to, static_cast<uint8_t>(byte))) return true;
    }
    return false;
}

// Frames

int32_t JsonMachine::frame(Frame::Kind kind, int32_t state, int32_t key, int32_t parent,
                           int32_t mark) {
    const auto [place, fresh] = frame_ids_.try_emplace({kind, state, key, parent, mark},
                                                       static_cast<int32_t>(frames_.size()));
    if (!fresh) return place->second;
    const bool recording =
        frames_[parent].recording || (kind == Frame::kItem && arrays_[state].unique);
    frames_.push_back({kind, state, parent, mark, key, recording});
    memory_ += sizeof(Frame) + 160;
    return place->second;
}

// Whether what follows depends on the value itself.
bool JsonMachine::is_watched(const Frame& frame) const {
    if (frame.kind == Frame::kRoot) return false;
    return frame.kind == Frame::kItem ? arrays_[frame.state].watched
                                      : objects_[frame.state].watched;
}

int32_t JsonMachine::member_frame(int32_t object, int32_t key, int32_t parent, int32_t raw) {
    const int32_t mark = objects_[object].watched ? raw : 0;
    const int32_t id = frame(Frame::kMember, object, key, parent, mark);
    Frame& made = frames_[id];
    if (!made.known) {
        made.known = true;
        set_lanes(made, objects_.member(object, keys_.text(key)), made.objects);
    }
    return id;
}

// The goals of an item may depend on all values before it, so they are found when it begins.
int32_t JsonMachine::item_frame(int32_t array, int32_t parent, int32_t raw) {
    const bool marked = arrays_[array].watched && frames_[parent].recording;
    return frame(Frame::kItem, array, 0, parent, marked ? raw : 0);
}

JsonMachine::Frame& JsonMachine::known(int32_t id) {
    Frame& at = frames_[id];
    if (!at.known) {
        at.known = true;
        set_lanes(at, arrays_.item(at.state), at.arrays);
    }
    return at;
}

template <typename Item>
void JsonMachine::set_lanes(Frame& frame, std::vector<Next<Item>> next,
                            std::vector<std::vector<Item>>& items) {
    std::vector<int32_t> below = known(frame.parent).below;
    for (auto& [goal, item] : next) {
        const auto lane =
            static_cast<size_t>(std::ranges::find(frame.goals, goal) - frame.goals.begin());
        if (lane == frame.goals.size()) {
            frame.goals.push_back(goal);
            items.emplace_back();
            frame.below.push_back(kUnreachable);
        }
        const int32_t rest = add_cost(item.close, below[item.lane]);
        frame.below[lane] = std::min(frame.below[lane], rest);
        items[lane].push_back(std::move(item));
    }
    memory_ += 64 * frame.goals.size() + 128 * next.size();
}

bool JsonMachine::finish(Position& at, int32_t id, const std::vector<int32_t>& lanes, int32_t raw) {
    if (lanes.empty()) return false;
    Frame& of = known(id);
    int32_t value = 0;
    if (is_watched(of)) value = distinct_.add(raw_.text(raw, of.mark));
    // Of numbers with great exponents this was not known before.
    const bool again = of.kind == Frame::kItem && arrays_[of.state].unique &&
                       std::ranges::binary_search(arrays_[of.state].used, value);
    const auto is_ruled_out = [&](const ArrayItem& item) { return again && item.shape->unique; };
    if (again && std::ranges::all_of(lanes, [&](int32_t lane) {
            return std::ranges::all_of(of.arrays[lane], is_ruled_out);
        })) {
        return false;
    }
    std::vector<int32_t> key{id, value};
    key.insert(key.end(), lanes.begin(), lanes.end());
    const auto [place, fresh] = finished_.try_emplace(std::move(key));
    if (fresh) {
        Position to;
        to.at[kFrame] = of.kind == Frame::kRoot ? id : of.parent;
        if (of.kind == Frame::kRoot) {
            to.at[kPlace] = kDone;
        } else if (of.kind == Frame::kMember) {
            std::vector<ObjectItem> items;
            for (const int32_t lane : lanes) {
                for (const ObjectItem& item : of.objects[lane]) {
                    items.push_back(objects_.agreed(item, keys_.text(of.key), value));
                }
            }
            to.at[kPlace] = kMemberEnd;
            to.at[kState] = objects_.intern(std::move(items));
        } else {
            std::vector<ArrayItem> items;
            std::vector<int32_t> used = arrays_[of.state].used;
            if (arrays_[of.state].unique) {
                used.insert(std::ranges::lower_bound(used, value), value);
            }
            for (const int32_t lane : lanes) {
                for (const ArrayItem& item : of.arrays[lane]) {
                    if (is_ruled_out(item)) continue;
                    items.push_back(arrays_.agreed(item, value, used));
                }
            }
            to.at[kPlace] = kItemEnd;
            to.at[kState] = arrays_.intern(std::move(items), std::move(used));
        }
        place->second = to;
        memory_ += 160;
    }
    at = place->second;
    if (frames_[at.at[kFrame]].recording) at.at[kRaw] = raw;
    return true;
}

// Steps

bool JsonMachine::space(Position& at, uint8_t byte) const {
    const int32_t before = spaces_of(at);
    if (style_.whitespace == Style::Whitespace::kFlexible) {
        if (!is_space(byte) || before >= kMostSpaces) return false;
    } else {
        const int32_t place = place_of(at);
        const bool here = style_.whitespace == Style::Whitespace::kSingle && before == 0 &&
                          (place == kSpacedValue || place == kNextKey);
        if (!here || byte != ' ') return false;
    }
    at.at[kPlace] += 1 << 8;
    return true;
}

// Whether the white space that must stand here does.
bool JsonMachine::settled(const Position& at) const {
    return style_.whitespace != Style::Whitespace::kSingle || spaces_of(at) == 1;
}

bool JsonMachine::step(Position& at, uint8_t byte) {
    const int32_t place = place_of(at);
    if (!kFollows[place][byte]) return false;
    const int32_t raw = at.at[kRaw];
    // A number ends before the byte that follows it.
    if (place == kNumber) return step_number(at, byte);
    if (frames_[at.at[kFrame]].recording) at.at[kRaw] = raw_.add(raw, byte);
    switch (place) {
        case kValue:
            return begin_value(at, at.at[kFrame], byte);
        case kSpacedValue:
            return space(at, byte) || (settled(at) && begin_value(at, at.at[kFrame], byte));
        case kLiteral:
            return step_literal(at, byte);
        case kString:
            return step_string(at, byte);
        case kKey:
            return step_key(at, byte);
        case kObjectBegin:
            if (byte == '}') return close_object(at);
            return byte == '"' ? begin_key(at) : space(at, byte);
        case kNextKey:
            if (byte == '"') return settled(at) && begin_key(at);
            return space(at, byte);
        case kColon:
            if (byte != ':') return space(at, byte);
            at.at[kPlace] = kSpacedValue;
            return true;
        case kMemberEnd:
            if (byte == '}') return close_object(at);
            if (byte != ',') return space(at, byte);
            at.at[kPlace] = kNextKey;
            return objects_.with_keys(at.at[kState]).key != kDeadLex;
        case kArrayBegin:
            if (byte == ']') return close_array(at);
            if (space(at, byte)) return true;
            if (!arrays_.has_item(at.at[kState])) return false;
            return begin_value(at, item_frame(at.at[kState], at.at[kFrame], raw), byte);
        case kItemEnd:
            if (byte == ']') return close_array(at);
            if (byte != ',') return space(at, byte);
            if (!arrays_.has_item(at.at[kState])) return false;
            at.at[kFrame] = item_frame(at.at[kState], at.at[kFrame], at.at[kRaw]);
            at.at[kPlace] = kSpacedValue;
            at.at[kState] = 0;
            return true;
        default:
            return false;
    }
}

bool JsonMachine::begin_value(Position& at, int32_t id, uint8_t byte) {
    Frame& of = known(id);
    if (of.recording && !frames_[at.at[kFrame]].recording) at.at[kRaw] = raw_.add(0, byte);
    at.at[kFrame] = id;
    const auto lanes = [&](auto part) {
        std::vector<text::LangId> found;
        for (const GoalId goal : of.goals) found.push_back(goals_.goal(goal).*part);
        return found;
    };
    switch (byte) {
        case '"':
            if (of.string == kUnset) of.string = lexer_.begin_string(lanes(&Goal::strings));
            at.at[kPlace] = kString;
            at.at[kState] = of.string;
            return of.string != kDeadLex;
        case '{':
            if (of.object == kUnset) of.object = objects_.begin(of.goals);
            at.at[kPlace] = kObjectBegin;
            at.at[kState] = of.object;
            return of.object >= 0;
        case '[':
            if (of.array == kUnset) of.array = arrays_.begin(of.goals);
            at.at[kPlace] = kArrayBegin;
            at.at[kState] = of.array;
            return of.array >= 0;
        case 'n':
        case 'f':
        case 't': {
            const int32_t which = byte == 'n' ? 0 : byte == 'f' ? 1 : 2;
            const auto part = byte == 'n'   ? &Goal::null
                              : byte == 'f' ? &Goal::falsity
                                            : &Goal::truth;
            at.at[kPlace] = kLiteral | (which << 3 | 1) << 16;
            at.at[kState] = 0;
            return std::ranges::any_of(of.goals, [&](GoalId g) { return goals_.goal(g).*part; });
        }
        default: {
            if (byte != '-' && (byte < '0' || byte > '9')) return false;
            if (of.number == kUnset) of.number = lexer_.begin_number(lanes(&Goal::numbers));
            if (of.number == kDeadLex) return false;
            at.at[kPlace] = kNumber;
            at.at[kState] = lexer_.next(of.number, byte);
            return at.at[kState] != kDeadLex;
        }
    }
}

bool JsonMachine::step_literal(Position& at, uint8_t byte) {
    const int32_t which = extra_of(at) >> 3, done = extra_of(at) & 7;
    const std::string_view literal = kLiterals[which];
    if (byte != static_cast<uint8_t>(literal[done])) return false;
    if (done + 1 < static_cast<int32_t>(literal.size())) {
        at.at[kPlace] += 1 << 16;
        return true;
    }
    const auto part = which == 0 ? &Goal::null : which == 1 ? &Goal::falsity : &Goal::truth;
    const int32_t id = at.at[kFrame];
    std::vector<int32_t> lanes;
    for (size_t lane = 0; lane < frames_[id].goals.size(); ++lane) {
        if (goals_.goal(frames_[id].goals[lane]).*part) lanes.push_back(static_cast<int32_t>(lane));
    }
    return finish(at, id, lanes, at.at[kRaw]);
}

bool JsonMachine::step_string(Position& at, uint8_t byte) {
    const LexId lex = at.at[kState];
    const int32_t to = lexer_.next(lex, byte);
    if (to == kQuoted)
        return finish(at, at.at[kFrame], lexer_.accepted(lexer_.base(lex)), at.at[kRaw]);
    at.at[kState] = to;
    return to != kDeadLex;
}

bool JsonMachine::step_number(Position& at, uint8_t byte) {
    const LexId lex = at.at[kState];
    const int32_t to = lexer_.next(lex, byte);
    if (to != kDeadLex) {
        at.at[kState] = to;
        if (frames_[at.at[kFrame]].recording) at.at[kRaw] = raw_.add(at.at[kRaw], byte);
        return true;
    }
    return finish(at, at.at[kFrame], lexer_.accepted(lexer_.base(lex)), at.at[kRaw]) &&
           step(at, byte);
}

// Keys. While a key may still be one of the plan's names, the names say how it begins; the text
// of any other is kept.

bool JsonMachine::begin_key(Position& at) {
    const ObjectState& object = objects_.with_keys(at.at[kState]);
    if (object.key == kDeadLex) return false;
    at.at[kPlace] = kKey;
    at.at[kObject] = at.at[kState];
    at.at[kState] = object.key;
    at.at[kText] = 0;
    return true;
}

// The chain of the key's content so far.
int32_t JsonMachine::key_text(const Position& at) {
    const BaseId base = lexer_.base(at.at[kState]);
    const Lexer::Key key = lexer_.key(base);
    if (key.low == key.high) return at.at[kText];
    const std::vector<std::string>& names = lexer_.plan_of(base).names;
    return keys_.add(0, std::string_view(names[key.low]).substr(0, key.depth));
}

bool JsonMachine::step_key(Position& at, uint8_t byte) {
    const LexId lex = at.at[kState];
    const int32_t to = lexer_.next(lex, byte);
    if (to == kDeadLex) return false;
    if (to == kQuoted) return close_key(at, key_text(at));
    const Lexer::Key key = lexer_.key(lexer_.base(to));
    if (key.low == key.high) {
        char bytes[4];
        const int count = lexer_.content(lex, byte, bytes);
        at.at[kText] = keys_.add(key_text(at), {bytes, static_cast<size_t>(count)});
    }
    at.at[kState] = to;
    return true;
}

bool JsonMachine::close_key(Position& at, int32_t key) {
    const int32_t frame = member_frame(at.at[kObject], key, at.at[kFrame], at.at[kRaw]);
    if (frames_[frame].goals.empty()) return false;
    const int32_t raw = at.at[kRaw];
    at = {};
    at.at[kPlace] = kColon;
    at.at[kFrame] = frame;
    at.at[kRaw] = raw;
    return true;
}

bool JsonMachine::close_object(Position& at) {
    return finish(at, at.at[kFrame], objects_[at.at[kState]].closing, at.at[kRaw]);
}

bool JsonMachine::close_array(Position& at) {
    return finish(at, at.at[kFrame], arrays_[at.at[kState]].closing, at.at[kRaw]);
}

size_t JsonMachine::memory() const {
    return memory_ + languages_->memory() + goals_.memory() + lexer_.memory() + spelling_.memory() +
           objects_.memory() + arrays_.memory() + distinct_.memory() +
           48 * (keys_.size() + raw_.size());
}

}  // namespace sglite::json
