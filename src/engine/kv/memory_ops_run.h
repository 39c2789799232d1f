// SPDX-License-Identifier: Apache-2.0
// Operations of memory_ops.h where bytes are within the host's reach.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "engine/kv_view.h"
#include "engine/memory_ops.h"

namespace gen::engine {

/// Runs one to its end. Bytes lie `distance` from their addresses, see EngineOptions. Throws
/// std::bad_alloc before anything was written.
Status run_memory_op(const MemoryOp& op, std::ptrdiff_t distance);

/// Entries [0, n) of a layer with pointers in the place of addresses.
KvView view_entries(const KvLayer& layer, const KvTables& tables, int32_t n,
                    std::ptrdiff_t distance) noexcept;

}  // namespace gen::engine
