// SPDX-License-Identifier: Apache-2.0
// The tests of the CUDA engine on the machine's device. Ends with 3, and says why, where there is
// none; with 4 if a test fails. Arguments are GoogleTest's.
#include <gtest/gtest.h>

#include <cstdio>

#include "engine/backend/registry.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto row = gen::engine::engine_row("cuda");
  const char* const reason = row.ok() ? row.value()->why_not() : row.status().message();
  if (reason != nullptr) {
    std::printf("no device: %s\n", reason);
    return 3;
  }
  const auto device = row.value()->describe(0);
  std::printf("%s\n", device.ok() ? device.value().c_str() : device.status().message());
  return RUN_ALL_TESTS() == 0 ? 0 : 4;
}
