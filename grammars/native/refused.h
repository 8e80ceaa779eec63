// Constraints that cannot be compiled.
#pragma once

#include <stdexcept>
#include <string>

namespace sglite {

// The message becomes the reason of a GrammarError. `pointer`: the place, a JSON pointer into a
// schema or the position in a pattern; empty for the whole.
class Refused : public std::runtime_error {
  public:
    explicit Refused(const std::string& reason, std::string at = "")
        : std::runtime_error(reason), pointer(std::move(at)) {}

    std::string pointer;
};

// Numbers of tokens and of bytes saturate here, which also means "cannot finish".
constexpr int32_t kUnreachable = 1 << 29;

// Adds costs that may be kUnreachable.
inline int32_t add_cost(int32_t a, int32_t b) {
    return a >= kUnreachable - b ? kUnreachable : a + b;
}

}  // namespace sglite
