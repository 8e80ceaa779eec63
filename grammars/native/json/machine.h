// JSON texts under a schema as a deterministic pushdown automaton over bytes.
//
// A position is a place in the syntax of JSON, the state of what is read there, and a frame: the
// value that this is part of, with all that follows it. Frames know which goals their value may
// meet ("lanes"); a finished value says which ones it met, and its frame goes on with those.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "../machine.h"
#include "containers.h"
#include "goals.h"
#include "lexer.h"
#include "pools.h"
#include "spelling.h"
#include "steady.h"

namespace sglite::json {

class JsonMachine final : public Machine {
  public:
    // Throws Refused, as Goals does.
    JsonMachine(Value schema, std::shared_ptr<const Vocabulary> vocabulary, const Style& style);
    ~JsonMachine() override;

    Position start() override;
    bool step(Position& at, uint8_t byte) override;
    bool complete(const Position& at) override;
    bool can_go_on(const Position& at) override;
    int32_t cost(const Position& at) override;
    Position alike(const Position& at) override;
    int32_t same_mask(const Position& at) override;
    void find_mask(const Position& at, Mask& mask) override;
    bool find_within(const Position& at, int32_t budget, Mask& mask) override;
    size_t memory() const override;

    const Goals& goals() const { return goals_; }

  private:
    // Throws Refused if a byte that some text can hold is no token of its own.
    void check_bytes();

    enum Place : int32_t {
        kValue,        // before a value, without white space
        kSpacedValue,  // before a value, behind a comma or a colon
        kLiteral,      // within true, false or null
        kString,
        kNumber,
        kObjectBegin,  // behind the opening brace
        kNextKey,      // behind a comma
        kKey,
        kColon,      // before the colon
        kMemberEnd,  // behind the value of a member
        kArrayBegin,
        kItemEnd,
        kDone,
    };
    // The parts of a Position. Its place also holds the white space so far, and how far a literal
    // is.
    enum Part { kPlace, kState, kFrame, kObject, kText, kRaw };
    static int32_t place_of(const Position& at) { return at.at[kPlace] & 0xFF; }
    static int32_t spaces_of(const Position& at) { return at.at[kPlace] >> 8 & 0xFF; }
    static int32_t extra_of(const Position& at) { return at.at[kPlace] >> 16; }

    struct Frame {
        enum Kind { kRoot, kMember, kItem } kind;
        int32_t state;       // of the object or array that this value is part of
        int32_t parent;      // the frame of that object or array
        int32_t mark;        // where the raw text of a value begins, if it is to be known
        int32_t key;         // of a member
        bool recording;      // whether raw text is kept within
        bool known = false;  // whether the rest is
        std::vector<GoalId> goals{};
        std::vector<std::vector<ObjectItem>> objects{};  // per lane: a member's object goes on so
        std::vector<std::vector<ArrayItem>> arrays{};
        std::vector<int32_t> below{};  // per lane: tokens to the end of everything, from its end
        LexId string = kUnset, number = kUnset;
        int32_t object = kUnset, array = kUnset;
    };
    static constexpr int32_t kUnset = -3;
    static constexpr int32_t kMostSpaces = 32;  // white space in a row, under "flexible"
    static const std::array<std::array<bool, 256>, kDone + 1> kFollows;

    class Prices;

    // Frames
    int32_t frame(Frame::Kind kind, int32_t state, int32_t key, int32_t parent, int32_t mark);
    int32_t member_frame(int32_t object, int32_t key, int32_t parent, int32_t raw = 0);
    bool is_watched(const Frame& frame) const;
    int32_t item_frame(int32_t array, int32_t parent, int32_t raw);
    Frame& known(int32_t id);
    template <typename Item>
    void set_lanes(Frame& frame, std::vector<Next<Item>> next,
                   std::vector<std::vector<Item>>& items);
    // Goes on behind the value of a frame that met these lanes.
    bool finish(Position& at, int32_t frame, const std::vector<int32_t>& lanes, int32_t raw);

    // Steps
    bool space(Position& at, uint8_t byte) const;
    bool settled(const Position& at) const;
    bool begin_value(Position& at, int32_t frame, uint8_t byte);
    bool step_literal(Position& at, uint8_t byte);
    bool step_string(Position& at, uint8_t byte);
    bool step_number(Position& at, uint8_t byte);
    bool step_key(Position& at, uint8_t byte);
    bool begin_key(Position& at);
    bool close_key(Position& at, int32_t key);
    bool close_object(Position& at);
    bool close_array(Position& at);
    int32_t key_text(const Position& at);

    // Costs
    int32_t cost_of_value(int32_t frame);
    int32_t cost_of_literal(const Position& at);
    int32_t cost_of_text(const Position& at);
    struct KeyCosts;
    KeyCosts& key_costs(int32_t object, int32_t frame);
    int32_t cost_of_key(LexId lex, int32_t object, const std::string& text, int32_t frame);
    int32_t cost_of_told_key(LexId lex, BaseId kinds, int32_t object, int32_t frame);
    Lexer::Key key_of(BaseId base, int32_t object);
    int32_t cost_of_names(const Lexer::Key& key, const KeyCosts& costs) const;
    BaseId kinds_behind(const KeyCosts& costs, std::string_view text);
    BaseId kinds_behind(BaseId kinds, std::string_view text);
    int32_t cost_of_extra_key(const std::string& begun, const KeyPlan& plan, int32_t object,
                              int32_t frame);
    text::TextState state_behind(text::LangId language, std::string_view text);
    int32_t cost_of_key_from(text::TextState state, const std::string& begun, const KeyPlan& plan,
                             int32_t object, int32_t frame);
    template <typename Item>
    int32_t cost_of_closing(const std::vector<Item>& items, int32_t frame, int32_t place);
    struct Span {
        int32_t least, most;
    };
    Span costs_inside(const Position& at);
    Span costs_of_keys_inside(const Position& at);

    // Masks
    bool fill_steady(const Position& at, Mask& mask);
    void walk_signs(const Position& at, const Trie& trie, Mask& mask);
    void walk_text(const Position& at, Mask& mask, int32_t budget);
    void price_inside(const Position& at, int32_t budget, const StringSlice& slice, Mask& mask);
    void price_unfinished(const Position& at, int32_t budget, const StringSlice& slice, Mask& mask);
    bool fill_string(const Position& at, Mask& mask, int32_t budget);
    bool fill_quote(const Position& at, Mask& mask, int32_t budget);
    void add_closings(const Position& at, const StringSlice& slice, Mask& mask, int32_t budget);
    std::vector<int32_t> tails_behind(const Position& at, BaseId base, std::string_view content,
                                      const StringSlice& slice, bool priced);
    bool contents_apart(const Position& at, std::vector<int32_t>& found);
    void fill_key(const Position& at, int32_t same, Mask& mask);
    bool is_text_free(int32_t frame);
    bool is_free(BaseId base);
    int32_t tails_behind_value(const Position& at, BaseId base);
    int32_t tails_behind_extra(const Position& at, const std::vector<int32_t>& apart,
                               const StringSlice& slice);

    const std::shared_ptr<const Vocabulary> vocabulary_;
    const Style style_;
    const std::bitset<256> barred_;  // bytes that the vocabulary cannot write
    std::unique_ptr<text::Languages> languages_;
    Spelling spelling_;
    Goals goals_;
    Lexer lexer_;
    Steadies steadies_;
    std::unique_ptr<Costs> prices_;
    Objects objects_;
    Arrays arrays_;
    Distinct distinct_;
    Chains keys_, raw_;
    Lists tails_, same_masks_;
    // Masks within keys by what may follow those that are none of the names.
    std::unordered_map<int32_t, std::vector<uint32_t>> extra_masks_;
    std::unordered_map<std::vector<int32_t>, int32_t, NumbersHash> known_tails_;
    std::deque<Frame> frames_;
    std::unordered_map<std::vector<int32_t>, int32_t, NumbersHash> frame_ids_;
    std::unordered_map<std::vector<int32_t>, Position, NumbersHash> finished_;
    std::unordered_map<uint64_t, std::unique_ptr<KeyCosts>> key_costs_;
    size_t memory_ = 0;
};

}  // namespace sglite::json
