// SPDX-License-Identifier: Apache-2.0
// Rotary embedding of one head outside of a forward pass, in double precision: for caches that move
// keys to other positions. Forward passes rotate by rope_append (ops.h).
#pragma once

#include "engine/ops.h"

namespace gen::engine {

/// Turns the first table.n_dims elements of x in place by `by` positions, which may be negative and
/// need not be whole. Cosines and sines are not multiplied by the table's magnitude: a key that is
/// turned has been by its first rotation.
void rope_turn(const RopeTable& table, double by, double* x) noexcept;

}  // namespace gen::engine
