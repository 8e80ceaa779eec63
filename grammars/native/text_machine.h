// One language of texts as a machine: regular expressions.
#pragma once

#include <functional>
#include <optional>

#include "machine.h"
#include "text/languages.h"

namespace sglite {

using MakeLanguage = std::function<text::LangId(text::Languages&)>;

// Throws Refused for a language without texts that the vocabulary can write, and for one that uses
// a byte without a token of its own. The vocabulary must outlive the machines.
MakeMachine text_machines(MakeLanguage make, const Vocabulary& vocabulary);
// The same; nothing for a language without texts.
std::optional<MakeMachine> text_machines_of_any(MakeLanguage make, const Vocabulary& vocabulary);

}  // namespace sglite
