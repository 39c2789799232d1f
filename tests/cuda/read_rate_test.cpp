// SPDX-License-Identifier: Apache-2.0
// The kernel whose rate gpu.sh compares with reads every word once.
#include "bench/read_rate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cuda/device_buffer.h"

namespace gen::test {
namespace {

TEST(ReadRate, EveryWordCountsOnce) {
  const DeviceStream stream;
  for (const size_t vectors : {size_t{1}, size_t{255}, size_t{2048}, size_t{3 * 2048 + 17}}) {
    std::vector<uint32_t> words(4 * vectors);
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761U);
    uint32_t expected = 0;
    for (const uint32_t word : words) expected += word;
    const DeviceArray<uint32_t> from(stream, words);
    for (const int blocks : {1, 2, 5}) {
      const DeviceArray<uint32_t> sum(stream, std::vector<uint32_t>{0});
      GEN_EXPECT_OK(launch_read_rate(from.get(), words.size() * sizeof(uint32_t), sum.get(), blocks,
                                     stream.get()));
      EXPECT_EQ(sum.read(), std::vector<uint32_t>{expected}) << vectors << ' ' << blocks;
    }
  }
}

}  // namespace
}  // namespace gen::test
