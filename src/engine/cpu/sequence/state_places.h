// SPDX-License-Identifier: Apache-2.0
// A layer of one sequence's state with pointers instead of addresses, for kernels.
#pragma once

#include <cstdint>

#include "engine/cpu/base/context.h"
#include "engine/state_rows.h"

namespace gen::engine::cpu {

/// See StateRows; all pointers are those of the layer.
struct StatePlaces {
  int64_t rows = 0;
  const float* read = nullptr;  // [cells] or null: zeros
  float* write = nullptr;       // [cells]
  const float* kept = nullptr;  // [unsettled][kept_stride]
  int64_t unsettled = 0;
  int64_t settled = 0;    // first rows that enter the state; the others are kept
  float* keep = nullptr;  // [rows - settled][kept_stride] or null
  int64_t kept_stride = 0;
};

inline StatePlaces state_places(const CpuContext& context, const StateRows& rows,
                                const StateLayer& layer) {
  const auto of_layer = [&](auto piece, int64_t first) {
    auto* const at = context.at(piece);
    return at == nullptr ? at : at + first;
  };
  return {rows.n_rows,
          of_layer(rows.read, layer.first),
          of_layer(rows.write, layer.first),
          of_layer(rows.kept, layer.kept),
          rows.unsettled,
          rows.keep ? rows.certain : rows.n_rows,
          of_layer(rows.keep, layer.kept),
          layer.kept_stride};
}

}  // namespace gen::engine::cpu
