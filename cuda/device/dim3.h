// SPDX-License-Identifier: Apache-2.0
// Dim3: sizes and places of grids, blocks and threads, on both sides.
#pragma once

namespace gen::cuda::device {

struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

}  // namespace gen::cuda::device
