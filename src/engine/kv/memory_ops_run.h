// SPDX-License-Identifier: Apache-2.0
// The operations of memory_ops.h on host memory.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "engine/kv_view.h"
#include "engine/memory_ops.h"

namespace gen::engine {

/// Runs an operation synchronously. A pointer is an address plus `distance`, see EngineOptions.
/// Throws std::bad_alloc only before anything is written.
Status run_memory_op(const MemoryOp& op, std::ptrdiff_t distance);

/// Entries [0, n) of a layer, with pointers instead of addresses.
KvView view_entries(const KvLayer& layer, const KvTables& tables, int32_t n,
                    std::ptrdiff_t distance) noexcept;

}  // namespace gen::engine
