// SPDX-License-Identifier: Apache-2.0
// From expressions to machines.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "grammar/expression/expression.h"
#include "grammar/machine/machines.h"

namespace gen::grammar {

/// The result may match no text at all (Machines::matches). kGrammar if the machines would have
/// more than `max_edges`.
Result<Machines> build_machines(const Expressions& expressions, ExprId root, size_t max_edges);

}  // namespace gen::grammar
