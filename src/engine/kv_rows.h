// SPDX-License-Identifier: Apache-2.0
// Entries of a cache read one at a time, or copied to another cache of the same format: for all
// that is not a hot path, such as the C API's reads and clones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/kv_view.h"

namespace gen::engine {

/// Bytes of one element.
size_t kv_element_bytes(KvFormat format) noexcept;
/// Bytes of a tile of one head; false if that overflows.
bool kv_tile_bytes(KvFormat format, int32_t head_dim, size_t* bytes) noexcept;

/// Reads side.head_dim elements of a head.
void kv_get(const KvSide& side, int64_t entry, int32_t head, float* out) noexcept;
/// Copies entries [0, entries) of all heads. Both sides must have the same format, order, head_dim
/// and block size (or no blocks).
void kv_copy(const KvSide& from, const KvSide& to, int32_t heads, int64_t entries) noexcept;

}  // namespace gen::engine
