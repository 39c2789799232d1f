// SPDX-License-Identifier: Apache-2.0
// From the rows of a file to the tiles of ops/weight_tiles.h, on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/weight.h"
#include "quant/traits.h"

namespace gen::cuda {

/// Writes all of tile `tile` of a quantised source: tile_bytes(traits, source.cols) bytes. Threads:
/// any.
void pack_tile(const quant::Traits& traits, const engine::WeightSource& source, int64_t tile,
               std::byte* out) noexcept;

}  // namespace gen::cuda
