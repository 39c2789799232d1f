// SPDX-License-Identifier: Apache-2.0
// Sets of strings as automata over their UTF-8, in which they are combined; string_texts.h turns
// them into JSON texts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "grammar/expression/dfa.h"

namespace gen::grammar {

/// All strings of characters, without surrogates.
Dfa any_string();
Dfa string_set(std::span<const std::string> strings);
bool accepts(const Dfa& dfa, std::string_view text);
/// All of its strings, if there are at most `most`.
bool finite_strings(const Dfa& dfa, size_t most, std::vector<std::string>* out);
/// The lengths of its shortest and longest string, in characters; kUnbounded: no longest.
struct Lengths {
  uint32_t min = 0;
  uint32_t max = kUnbounded;
};
Lengths lengths_of(const Dfa& dfa);
/// Its strings of that length. kGrammar if that exceeds the fuel.
Result<Dfa> with_length(const Dfa& strings, Lengths size, const DfaFuel& fuel);
/// Whether that certainly takes more than `most` states, for a string of up to `longest`
/// characters.
bool takes_many_states(const Dfa& strings, uint32_t longest, size_t most);
/// Whether from each state a JSON text with the fewest characters to an end is also one with the
/// fewest bytes: a limit of characters then never makes the shortest text longer.
bool fewest_are_shortest(const Dfa& strings);

}  // namespace gen::grammar
