// SPDX-License-Identifier: Apache-2.0
// Host memory that the emulator itself lacks: a launch then fails as one that a device has no
// memory for, and a kernel that runs takes its device with it; neither ends the process.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cuda/device_buffer.h"
#include "cuda/emulator/emulator.h"
#include "cuda/sample_kernels.h"
#include "support/counting_new.h"

namespace gen::test {
namespace {

using namespace cuda::device;

constexpr int kElements = 100;
constexpr size_t kNever = ~size_t{0};

template <typename Call>
auto with_failing_new(size_t after, const Call& call) {
  fail_new_at = news + after;
  const auto result = call();
  fail_new_at = kNever;
  return result;
}

TEST(HostMemory, ALaunchFailsAndTheNextDoesNot) {
  const DeviceStream stream;
  bool whole = false;
  size_t after = 0;
  for (; after < 50 && !whole; ++after) {
    SCOPED_TRACE(after);
    const DeviceArray<int32_t> from(stream, std::vector<int32_t>(kElements, 3));
    const DeviceArray<int32_t> to(stream, std::vector<int32_t>(kElements));
    const auto launch = [&] {
      return add(from.get(), to.get(), kElements, 10, Start::kPlain, stream.get());
    };
    const Error failed = with_failing_new(after, launch);
    whole = failed.ok();
    if (!whole) {
      EXPECT_EQ(failed, kOutOfMemory);
      GEN_EXPECT_OK(launch());
    }
    EXPECT_EQ(to.read(), std::vector<int32_t>(kElements, 13));
  }
  EXPECT_TRUE(whole);
  EXPECT_GT(after, 1U);
}

TEST(HostMemory, AKernelThatRunsTakesItsDeviceWithIt) {
  bool whole = false;
  size_t lost = 0;
  for (size_t after = 0; after < 500 && !whole; ++after) {
    SCOPED_TRACE(after);
    const cuda::emulator::FailureWatch watch;
    const DeviceStream stream;
    const DeviceArray<int32_t> from(stream, std::vector<int32_t>(kElements, 3));
    const DeviceArray<int32_t> to(stream, std::vector<int32_t>(kElements));
    GEN_EXPECT_OK(stream.synchronize());
    GEN_EXPECT_OK(add(from.get(), to.get(), kElements, 10, Start::kPlain, stream.get()));
    const Error ended = with_failing_new(after, [&] { return stream.synchronize(); });
    whole = ended.ok();
    EXPECT_EQ(watch.text(), "");
    if (whole) continue;
    EXPECT_EQ(ended, kLaunchFailure);
    EXPECT_TRUE(ended.sticky());
    ++lost;
  }
  EXPECT_TRUE(whole);
  EXPECT_GT(lost, 0U);
}

}  // namespace
}  // namespace gen::test
