// SPDX-License-Identifier: Apache-2.0
// What the emulator keeps of a launch.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cuda/device/dim3.h"

namespace gen::cuda::emulator {

/// The kernel with its arguments; every thread calls it.
using KernelBody = std::function<void()>;

struct Launch {
  KernelBody body;
  std::string name;
  device::Dim3 grid;
  device::Dim3 block;
  size_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool programmatic = false;
};

}  // namespace gen::cuda::emulator
