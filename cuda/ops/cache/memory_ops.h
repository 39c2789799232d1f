// SPDX-License-Identifier: Apache-2.0
// Operations on cache entries between steps (engine/memory_ops.h), with their lists in device
// memory. Each is one .cu file.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "cuda/ops/context.h"
#include "engine/memory_ops.h"

namespace gen::cuda {

/// The block tables of entries, all in device memory.
struct EntriesView {
  const engine::KvLayer* layers = nullptr;
  const uint64_t* blocks = nullptr;
  const int32_t* cells = nullptr;
  int32_t first_cell = 0;
};

/// The rotary table of a layer's keys; n_dims below 0: they are not rotated.
struct TurnView {
  const float* inv_freq = nullptr;
  int32_t n_dims = -1;
  int32_t adjacent = 0;
};

/// One run. Runs are executed in order, since one may read what another wrote.
Status kv_copy(const OpContext& context, const EntriesView& from, const EntriesView& to,
               int32_t n_layers, engine::KvSides sides, const engine::KvRun& run);

/// `columns` is kv_columns() of the widest layer.
Status kv_shift(const OpContext& context, const EntriesView& entries, const TurnView* turns,
                int32_t n_layers, int32_t columns, int32_t first, int32_t n, int32_t end,
                int32_t turn);

/// `row_floats` are those of the widest layer's entry, of one side.
Status kv_pool(const OpContext& context, const EntriesView& entries, const TurnView* turns,
               int32_t n_layers, int32_t row_floats, int32_t first, int32_t n, int32_t to);

/// The larger of the number of bytes and the number of elements of an entry on one side: the
/// threads of kv_shift.
int32_t kv_columns(const engine::KvSideForm& form, int32_t heads);

}  // namespace gen::cuda
