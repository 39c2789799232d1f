// SPDX-License-Identifier: Apache-2.0
// The CUDA engine that tests are of: the one that is linked in, on the emulator; with GEN_ON_DEVICE
// that of libgenerate-cuda.so, on the machine's first device.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "engine/engine.h"
#ifdef GEN_ON_DEVICE
#include "engine/backend/registry.h"
#else
#include "cuda/emulator/emulator.h"
#include "cuda/engine/cuda_engine.h"
#include "engine/backend/backend.h"
#endif

namespace gen::test {

#ifdef GEN_ON_DEVICE

/// One for all, as a device takes its time to begin. Nobody frees it: at the end of the program the
/// driver may be gone.
inline std::shared_ptr<engine::Engine> cuda_engine() {
  static const auto* const shared = [] {
    auto made = engine::create_engine("cuda", {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return new std::shared_ptr<engine::Engine>(std::move(made).value());
  }();
  return *shared;
}

/// Engines that are made while it lives see a device of so many processors; a real one has its own.
struct Processors {
  explicit Processors(int) {}
};

#else

inline std::shared_ptr<engine::Engine> cuda_engine() {
  auto made = engine::create_engine(cuda::cuda_backend(), {});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

class Processors {
 public:
  explicit Processors(int n) { cuda::emulator::configure({.sm_count = n}); }
  ~Processors() { cuda::emulator::configure({}); }
  Processors(const Processors&) = delete;
  Processors& operator=(const Processors&) = delete;
};

#endif

}  // namespace gen::test
