// The parser of regex.h, by recursive descent. Its parts: structure in regex.cpp, groups in
// regex_groups.cpp, escapes and brackets in regex_sets.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regex.h"

namespace sglite::text {

class Parser {
  public:
    // Throws Refused for what is no UTF-8 and for patterns past the limits.
    Parser(std::string_view pattern, Dialect dialect);
    Regex run();

  private:
    struct Flags {
        bool ignore_case = false, dot_all = false, ascii_only = false, verbose = false,
             multiline = false;
    };
    struct Count {
        int64_t low, high;
    };

    [[noreturn]] void refuse(const std::string& reason, size_t at) const;

    bool at_end() const { return at_ == pattern_.size(); }
    // The character `ahead` of the next one; 0x110000, which is none, behind the end.
    char32_t peek(size_t ahead = 0) const {
        return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : char32_t{0x110000};
    }
    bool follows(std::string_view text) const;
    bool take(std::string_view text);
    char32_t next(const char* inside);

    Regex either();
    Regex concat();
    void take_plain(Regex& tree);
    void skip_comments();
    Regex atom();
    Regex literal(char32_t code);
    Regex dot() const;
    Ranges line_ends() const;
    Regex line_start() const;
    Regex line_end() const;
    bool quantifier(Count& count);
    bool braces(Count& count);
    int64_t number();
    static Regex repeated(Regex part, const Count& count);

    Regex group(size_t start);
    Regex lookahead(size_t start, bool negative);
    Regex lookbehind(size_t start, bool negative);
    Regex looked_at(size_t start);
    void group_name(size_t start);
    // Whether the flags hold for all that follows, rather than for the group that they open.
    bool inline_flags(size_t start);
    void close(size_t start);

    Regex escape(size_t start);
    // What an escape stands for, inside or outside of brackets; the backslash is read.
    Ranges escaped_set(size_t start);
    Ranges named_set(char32_t letter) const;
    Ranges word_set() const;
    Ranges property_set(bool complement, size_t start);
    uint32_t octal(size_t start);
    uint32_t hexadecimal(size_t length, size_t start);
    uint32_t unicode_escape(size_t start);
    Regex brackets(size_t start);
    enum class Item { kCharacter, kProperty, kNamed };  // kNamed: \d, \w and the like
    // What stands next between brackets; only a single character can begin or end a range.
    Item bracket_item(size_t start, Ranges& set);
    void refuse_posix_class(size_t start) const;

    Regex chars(Ranges ranges);
    Ranges cased(Ranges ranges) const;

    std::u32string pattern_;
    size_t at_ = 0;
    bool python_;
    Flags flags_;
    int depth_ = 0;
    bool flags_may_come_ = true;  // nothing that matches was read so far
    size_t ranges_ = 0;           // in the whole tree
    std::vector<std::u32string> names_;
};

}  // namespace sglite::text
