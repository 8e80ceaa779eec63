// The goals of one document: finding them, and the least costs at which they can be met.
#include "goals.h"

#include <algorithm>

#include "goals_inside.h"

namespace sglite::json {
namespace {

constexpr size_t kMostGoals = 200'000;

// What a character of a string adds to its length in bytes when it is written.
int32_t written_size(uint8_t byte) {
    const bool is_short = byte == '"' || byte == '\\' || (byte >= 8 && byte <= 13 && byte != 11);
    return is_short ? 2 : byte < 0x20 ? 6 : 1;
}

}  // namespace

Goals::Inside::Inside(Value whole, text::Languages& pool, const Style& options)
    : schema(std::move(whole)),
      languages(pool),
      style(options),
      document(schema),
      texts(document, formulas, languages),
      reader(document, formulas, texts),
      truths(document, formulas, reader, work),
      disjoint(formulas, truths, texts),
      expander(document, formulas, reader, truths, disjoint, work),
      scalars(document, formulas, reader, truths, expander, texts, languages, style.any_spelling),
      shapes(document, formulas, truths, texts, languages, *this) {
    comma = style.whitespace == Style::Whitespace::kSingle ? 2 : 1;
    texts.satisfying = [this](Lit lit) { return scalars.strings({lit}); };
}

// Interning

GoalId Goals::Inside::goal_of(std::vector<Lit> wanted) {
    size_t kept = 0;
    for (const Lit lit : wanted) {
        const Lit settled = reader.settled(lit);
        if (settled == kFalse) return kNever;
        if (settled != kTrue) wanted[kept++] = settled;
    }
    wanted.resize(kept);
    if (kept > 1) {
        std::ranges::sort(wanted);
        wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
        for (size_t i = 1; i < wanted.size(); ++i) {
            if (wanted[i] == negated(wanted[i - 1])) return kNever;
        }
    }
    const Lit single = wanted.empty() ? kTrue : wanted.size() == 1 ? wanted[0] : -1;
    if (single >= 0) {
        if (by_lit_.size() <= static_cast<size_t>(single)) {
            by_lit_.resize(formulas.size() * 2, kUnknown);
        }
        if (by_lit_[single] != kUnknown) return by_lit_[single];
    } else if (const auto known = ids_.find(wanted); known != ids_.end()) {
        return known->second;
    }
    if (found.size() == kMostGoals) {
        throw Refused("the schema is too large to compile; make it smaller");
    }
    const auto id = static_cast<GoalId>(found.size());
    if (single >= 0) {
        by_lit_[single] = id;
    } else {
        ids_.emplace(wanted, id);
    }
    lits.push_back(std::move(wanted));
    found.emplace_back().cost = kUnreachable;
    numbers.emplace_back();
    users_.emplace_back();
    queued_.push_back(false);
    return id;
}

GoalId Goals::Inside::both(GoalId a, GoalId b) {
    if (a == kNever || b == kNever) return kNever;
    if (a == b) return a;
    const auto [low, high] = std::minmax(a, b);
    const uint64_t key = static_cast<uint64_t>(low) << 32 | static_cast<uint32_t>(high);
    if (const auto known = pairs.find(key); known != pairs.end()) return known->second;
    std::vector<Lit> all = lits[a];
    all.insert(all.end(), lits[b].begin(), lits[b].end());
    const GoalId id = goal_of(std::move(all));
    pairs.emplace(key, id);
    return id;
}

// Finding

void Goals::Inside::discover(GoalId id) {
    Goal& goal = found[id];
    const std::vector<Lit> wanted = lits[id];
    work.spend(8);
    std::array<bool, kTypes> possible{};
    for (int t = 0; t < kTypes; ++t) {
        possible[t] = std::ranges::all_of(
            wanted, [&](Lit lit) { return truths.of(lit, static_cast<Type>(t)) != Truth::kFalse; });
    }
    const auto can = [&](Type type) { return possible[static_cast<size_t>(type)]; };
    goal.null = can(Type::kNull);
    goal.truth = can(Type::kTrue);
    goal.falsity = can(Type::kFalse);
    if (can(Type::kString)) {
        goal.strings = scalars.strings(wanted);
        if (languages.empty(goal.strings)) goal.strings = text::kNoText;
    }
    if (can(Type::kInteger) || can(Type::kFraction)) {
        Scalars::Found numbers = scalars.numbers(wanted);
        goal.numbers = languages.empty(numbers.language) ? text::kNoText : numbers.language;
        this->numbers[id] = std::move(numbers.ways);
    }
    if (can(Type::kObject)) {
        for (const Atoms& atoms : expander.run(wanted, Type::kObject)) {
            if (auto shape = shapes.object(atoms)) {
                shape->id = objects_++;
                found[id].objects.push_back(std::move(*shape));
            }
        }
    }
    if (can(Type::kArray)) {
        for (const Atoms& atoms : expander.run(wanted, Type::kArray)) {
            if (auto shape = shapes.array(atoms)) {
                has_unique_ = has_unique_ || shape->unique;
                shape->id = arrays_++;
                found[id].arrays.push_back(std::move(*shape));
            }
        }
    }
}

void Goals::Inside::settle() {
    const size_t first = finished_;
    for (;;) {
        solve();
        if (!drop_scarce()) break;
        for (size_t i = first; i < found.size(); ++i) found[i].cost = kUnreachable;
        supplies_.clear();
    }
    for (; finished_ < found.size(); ++finished_) finish(static_cast<GoalId>(finished_));
}

// Costs

int32_t Goals::Inside::goal(GoalId id) {
    if (id == kNever) return kUnreachable;
    use(id);
    return found[id].cost;
}

// The goal in work depends on this one.
void Goals::Inside::use(GoalId id) {
    if (evaluated_ == kNever || id == kNever || id < static_cast<GoalId>(finished_)) return;
    std::vector<GoalId>& users = users_[id];
    if (users.empty() || users.back() != evaluated_) users.push_back(evaluated_);
}

int32_t Goals::Inside::key(std::string_view key) {
    int32_t cost = 2 + comma;  // quotes, and a colon with its space
    for (const char c : key) cost += written_size(static_cast<uint8_t>(c));
    return cost;
}

void Goals::Inside::solve() {
    for (size_t checked = finished_; checked < found.size();) {
        for (; discovered_ < found.size(); ++discovered_) {
            discover(static_cast<GoalId>(discovered_));
        }
        // What a goal is made of was mostly found behind it.
        for (size_t i = found.size(); i > checked; --i) evaluate(static_cast<GoalId>(i - 1));
        checked = discovered_;
        while (!queue_.empty() && discovered_ == found.size()) {
            const GoalId id = queue_.back();
            queue_.pop_back();
            queued_[id] = false;
            evaluate(id);
        }
    }
}

void Goals::Inside::evaluate(GoalId id) {
    work.spend(4);
    evaluated_ = id;
    const Goal& goal = found[id];
    int32_t cost = goal.null || goal.truth ? 4 : goal.falsity ? 5 : kUnreachable;
    if (goal.strings != text::kNoText) {
        cost = std::min(cost, 2 + languages.distance(languages.start(goal.strings)));
    }
    if (goal.numbers != text::kNoText) {
        cost = std::min(cost, languages.distance(languages.start(goal.numbers)));
    }
    for (size_t i = 0; i < found[id].objects.size(); ++i) {
        cost = std::min(cost, cost_of(found[id].objects[i]));
    }
    for (size_t i = 0; i < found[id].arrays.size(); ++i) {
        cost = std::min(cost, cost_of(found[id].arrays[i]));
    }
    evaluated_ = kNever;
    if (cost >= found[id].cost) return;
    found[id].cost = cost;
    for (const GoalId user : users_[id]) {
        if (queued_[user]) continue;
        queued_[user] = true;
        queue_.push_back(user);
    }
}

int32_t Goals::Inside::cost_of(const ObjectShape& shape) {
    int64_t cost = 2, members = 0;
    work.spend(static_cast<int64_t>(shape.names.size()));
    for (size_t i = 0; i < shape.names.size(); ++i) {
        if (!shape.required[i]) continue;
        ++members;
        cost += static_cast<int64_t>(goal(shape.values[i])) + key(shape.names[i]) + comma;
        if (cost >= kUnreachable) return kUnreachable;
    }
    if (shape.some.empty() && members >= shape.low) {
        if (shape.high >= 0 && members > shape.high) return kUnreachable;
        return static_cast<int32_t>(cost);
    }
    for (const GoalId value : shape.values) use(value);
    for (const auto& extra : shape.extras) use(extra.value);
    const ObjectShape now = living(shape);
    return add_cost(1, cost_to_close(now, begin(now), languages, style.declared_order, *this));
}

int32_t Goals::Inside::cost_of(const ArrayShape& shape) {
    work.spend(static_cast<int64_t>(shape.first.size()));
    if (shape.low == 0 && shape.contains.empty()) return 2;
    for (const GoalId item : shape.first) use(item);
    use(shape.rest);
    for (const auto& part : shape.contains) use(part.holds), use(part.fails);
    const ArrayShape now = living(shape);
    return add_cost(1, cost_to_close(now, begin(now), *this));
}

// Without what cannot be met, or not as far as is known yet.
ObjectShape Goals::Inside::living(const ObjectShape& shape) const {
    ObjectShape now = shape;
    size_t kept = 0;
    for (size_t i = 0; i < shape.names.size(); ++i) {
        if (alive(shape.values[i]) == kNever && !shape.required[i]) continue;
        if (kept != i) now.names[kept] = std::move(now.names[i]);
        now.values[kept] = shape.values[i];
        now.required[kept] = shape.required[i];
        ++kept;
    }
    now.names.resize(kept);
    now.values.resize(kept);
    now.required.resize(kept);
    std::erase_if(now.extras, [&](const auto& extra) { return alive(extra.value) == kNever; });
    return now;
}

ArrayShape Goals::Inside::living(const ArrayShape& shape) const {
    ArrayShape now = shape;
    for (GoalId& item : now.first) item = alive(item);
    now.rest = alive(shape.rest);
    for (auto& part : now.contains) {
        part.holds = alive(part.holds);
        part.fails = alive(part.fails);
    }
    return now;
}

// Takes out arrays whose items cannot differ; whether there were any.
bool Goals::Inside::drop_scarce() {
    if (!has_unique_) return false;
    bool dropped = false;
    for (size_t i = finished_; i < found.size(); ++i) {
        dropped |= std::erase_if(found[i].arrays, [&](const ArrayShape& shape) {
                       if (!shape.unique || cost_of(shape) >= kUnreachable) return false;
                       return !check_unique(living(shape), *this);
                   }) > 0;
    }
    return dropped;
}

// Leaves the shapes that can be met, without the members and items that cannot.
void Goals::Inside::finish(GoalId id) {
    Goal& goal = found[id];
    std::erase_if(goal.objects, [&](ObjectShape& shape) { return cost_of(shape) >= kUnreachable; });
    std::erase_if(goal.arrays, [&](ArrayShape& shape) { return cost_of(shape) >= kUnreachable; });
    for (ObjectShape& shape : goal.objects) shape = living(shape);
    for (ArrayShape& shape : goal.arrays) shape = living(shape);
    goal.supply = has_unique_ && goal.cost < kUnreachable ? supply_of(id).count : kPlenty;
}

size_t Goals::Inside::memory() const {
    size_t bytes = formulas.memory() + pairs.size() * 64 + exceptions.size() * 160;
    bytes += found.size() * (sizeof(Goal) + 160);
    return bytes;
}

// The face

Goals::Goals(Value schema, text::Languages& languages, const Style& style)
    : inside_(std::make_unique<Inside>(std::move(schema), languages, style)) {
    inside_->root = inside_->goal_of({inside_->formulas.schema(inside_->document.root())});
    inside_->settle();
    inside_->root = inside_->alive(inside_->root);
    if (inside_->root == kNever) throw Refused("nothing can match");
}

Goals::~Goals() = default;

GoalId Goals::root() const { return inside_->root; }

const Goal& Goals::goal(GoalId id) const { return inside_->found[id]; }

GoalId Goals::both(GoalId a, GoalId b) {
    inside_->work.refill();
    const GoalId id = inside_->both(a, b);
    inside_->settle();
    return inside_->alive(id);
}

GoalId Goals::except(GoalId a, const Value& value) {
    Inside& inside = *inside_;
    const auto [place, fresh] = inside.exceptions.try_emplace({a, identity(value)}, kNever);
    if (fresh) {
        inside.work.refill();
        inside.kept.push_back(value);
        std::vector<Lit> lits = inside.lits[a];
        lits.push_back(negated(inside.formulas.constant(inside.kept.back(), 0)));
        const GoalId id = inside.goal_of(std::move(lits));
        inside.settle();
        place->second = inside.alive(id);
    }
    return place->second;
}

size_t Goals::memory() const { return inside_->memory(); }

}  // namespace sglite::json
