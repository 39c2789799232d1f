// SPDX-License-Identifier: Apache-2.0
// From the rows of a file to the tiles of weight_tiles.h, on the device.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "cuda/ops/context.h"
#include "tensor/dtype.h"

namespace gen::cuda {

/// Rows of a quantised matrix as they lie in a file, at any even address.
struct FileRows {
  const uint8_t* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
};

/// Writes tiles_of(rows.rows) whole tiles, one after another. Whoever reads weights before it waits
/// for its predecessor must not follow at once: something that is no kernel comes between.
Status pack_tiles(const OpContext& context, DType type, const FileRows& rows, uint8_t* tiles);

}  // namespace gen::cuda
