// SPDX-License-Identifier: Apache-2.0
// The CUDA engine under test: the linked one, on the emulator, or with GEN_ON_DEVICE that of
// libgenerate-cuda.so, on the machine's first device.
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

/// One engine for all tests, since a device takes long to start. It is never freed: at the end of
/// the program the driver may be unloaded.
inline std::shared_ptr<engine::Engine> cuda_engine() {
  static const auto* const shared = [] {
    auto made = engine::create_engine("cuda", {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return new std::shared_ptr<engine::Engine>(std::move(made).value());
  }();
  return *shared;
}

/// Engines made while it lives see a device with this many multiprocessors; a real device keeps its
/// own number.
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
