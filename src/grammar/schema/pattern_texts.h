// SPDX-License-Identifier: Apache-2.0
// The JSON strings that are patterns: what the format "regex" asks for. Groups nest, so this is a
// grammar and no automaton.
#pragma once

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"
#include "grammar/schema/string_texts.h"

namespace gen::grammar {

/// With their quotes; `empty`: whether the empty pattern is one of them. All of them are valid
/// (is_pattern). These valid ones are left out, since no grammar can have them all:
/// - more than one group with a name, and names with characters beyond ASCII;
/// - back references but those outside of groups to one of the first nine groups before them that
///   are not in others, and to the name of such a group if it is one small letter;
/// - {n,m} of n from 100 on, unless m has more digits;
/// - in classes: ranges of which both ends are beyond ASCII and close to each other, ends written
///   as \u{…}, \0 behind a hyphen, and escaped halves of surrogate pairs.
/// kGrammar if that takes more than the fuel.
Result<ExprId> pattern_texts(StringTexts& texts, Expressions& to, bool empty, const DfaFuel& fuel);

}  // namespace gen::grammar
