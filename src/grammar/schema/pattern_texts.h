// SPDX-License-Identifier: Apache-2.0
// The JSON strings that are patterns, as the format "regex" requires. Groups nest, so this is a
// grammar, not an automaton.
#pragma once

#include "base/status.h"
#include "grammar/expression/dfa.h"
#include "grammar/expression/expression.h"
#include "grammar/schema/string_texts.h"

namespace gen::grammar {

/// The strings with their quotes; `empty`: whether the empty pattern is included. All of them are
/// valid (is_pattern). The following valid ones are left out, because no grammar can express all of
/// them:
/// - more than one named group, and names with characters beyond ASCII;
/// - back references other than those, outside of groups, to one of the first nine unnested groups
///  before them, or to the name of such a group if it is one lower-case letter;
/// - {n,m} with n from 100 on, unless m has more digits;
/// - in classes: ranges of which both ends are beyond ASCII and close to each other, ends written
///  as \u{…}, \0 after a hyphen, and escaped halves of surrogate pairs.
/// kGrammar if that exceeds the fuel.
Result<ExprId> pattern_texts(StringTexts& texts, Expressions& to, bool empty, const DfaFuel& fuel);

}  // namespace gen::grammar
