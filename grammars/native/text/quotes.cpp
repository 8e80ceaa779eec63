// States of quotes: places in a document.
#include <algorithm>

#include "pool.h"

namespace sglite::text {

TextState Pool::quote(std::string_view document, bool whole_words) {
    size_t number = 0;
    while (number < quotes_.size() && (quotes_[number].first->document() != document ||
                                       quotes_[number].first->whole_words() != whole_words)) {
        ++number;
    }
    if (number == quotes_.size()) {
        auto passages =
            std::make_unique<Passages>(document, whole_words, options_.barred, options_.weight);
        ClassTables::Marks marks{};
        for (int byte = 0; byte < 256; ++byte) {
            if (passages->bytes()[byte]) marks[byte] = static_cast<uint64_t>(byte) + 1;
        }
        source_memory_ += passages->memory();
        quotes_.emplace_back(std::move(passages), tables_.classes(marks));
    }
    return quote(static_cast<int32_t>(number), quotes_[number].first->start(), {1, kEndless});
}

TextState Pool::quote(int32_t number, Passages::At at, Passages::Count count) {
    const auto& [passages, classes] = quotes_[number];
    if (count.need > count.room || Passages::is_empty(at) || !passages->is_live(at, count)) {
        return kDeadText;
    }
    const int32_t parts[] = {number, at.low, at.high, at.depth, count.need, count.room};
    return intern(Kind::kQuote, parts, count.need == 0 && passages->can_end(at), true, classes);
}

Quoted Pool::quoted(TextState state) const {
    const auto all = parts(state);
    return {quotes_[all[0]].first.get(), {all[1], all[2], all[3]}, {all[4], all[5]}};
}

TextState Pool::step_quote(TextState state, uint8_t byte) {
    auto [passages, at, count] = quoted(state);
    if ((byte & 0xC0) != 0x80) {
        if (count.room == 0) return kDeadText;
        count.need = std::max(count.need - 1, 0);
        count.room -= count.room != kEndless;
    }
    return quote(part(state, 0), passages->step(at, byte), count);
}

}  // namespace sglite::text
