// SPDX-License-Identifier: Apache-2.0
// Dim3: sizes and indices of grids, blocks and threads, on host and device.
#pragma once

namespace gen::cuda::device {

struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

}  // namespace gen::cuda::device
