// SPDX-License-Identifier: Apache-2.0
// The emulator finds what kernels and their callers do wrong, in whatever order things happen, and
// says it in one line that names kernel, block and thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/broken_kernels.h"
#include "cuda/device/launch.h"
#include "cuda/device_buffer.h"
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/unwritten.h"
#include "cuda/sample_kernels.h"
#include "support/sanitized.h"

namespace gen::test {
namespace {

using cuda::emulator::FailureWatch;

struct Case {
  Mistake what;
  const char* line;  // part of it
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.line; }

class Mistakes : public testing::TestWithParam<Case> {};

TEST_P(Mistakes, AreFoundInEveryOrder) {
  const float here[4] = {};
  const bool nowhere = GetParam().what == Mistake::kNoMemory;
  const auto* const host = nowhere ? reinterpret_cast<const float*>(uintptr_t{64}) : here;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    cuda::emulator::configure({.seed = seed});
    const FailureWatch watch;
    const DeviceStream stream;
    const DeviceArray<float> data(stream, std::vector<float>(100));
    GEN_EXPECT_OK(make_mistake(GetParam().what, data.get(), host, stream.get()));
    EXPECT_EQ(stream.synchronize(), cuda::device::kLaunchFailure);
    EXPECT_NE(watch.text().find(GetParam().line), std::string::npos) << watch.text();
    EXPECT_EQ(watch.text().find("kernel mistake, block (0,0,0)"), 0U) << watch.text();
    // The device stays lost.
    EXPECT_EQ(cuda::device::device_synchronize(), cuda::device::kLaunchFailure);
  }
  EXPECT_EQ(cuda::emulator::live_device_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    All, Mistakes,
    testing::Values(
        Case{Mistake::kNoBarrier, " shared memory, tile"},  // a race, or not there yet
        Case{Mistake::kNoBarrierBeforeReuse, "race: "},
        Case{Mistake::kNoBarrierInWarp, " shared memory, tile"},
        Case{Mistake::kUninitialised, "thread (3,0,0): reads uninitialised shared memory, tile"},
        Case{Mistake::kSharedBounds,
             "thread (63,0,0): out of bounds: 4 bytes at tile[64] of 64 elements"},
        Case{Mistake::kDynamicBounds, "out of bounds: 65 elements of 4 bytes from byte 0 of 256"},
        Case{Mistake::kGlobalBounds, "of an allocation of 400 bytes"},
        Case{Mistake::kNoMemory, "out of bounds: touches address 0x40, which is no device memory"},
        Case{Mistake::kBarrierByHalf, "at sync_threads, broken_kernels.cu:"},
        Case{Mistake::kBarrierAtTwoPlaces, "divergent barrier: at sync_threads"},
        Case{Mistake::kBarrierAfterExit, "thread (7,0,0) has exited"},
        Case{Mistake::kMaskWithoutSelf, "mask fffffffe, which lacks its own lane"},
        Case{Mistake::kTwoMasks, "divergent warp: shuffle_xor"},
        Case{Mistake::kTwoShuffles, "divergent warp: shuffle_"},
        Case{Mistake::kShuffleFromExited, "takes no part in the shuffle"},
        Case{Mistake::kBarrierInsteadOfShuffle, "thread (5,0,0)"},
        Case{Mistake::kNoCopyWait, "reads uninitialised shared memory, tile"},
        Case{Mistake::kCopyWaitTooShort, "reads uninitialised shared memory, tile"},
        Case{Mistake::kNoBarrierAfterCopyWait, " shared memory, tile"},
        Case{Mistake::kMisalignedLoad, "misaligned: 16 bytes at"},
        Case{Mistake::kMisalignedShared, "misaligned: tile begins at byte 8"},
        Case{Mistake::kPlainGridBarrier, "sync_grid at broken_kernels.cu"},
        Case{Mistake::kSpinsForEver, "spins for ever"},
        Case{Mistake::kHostMemory, "out of bounds: 16 bytes at address"}));

/// Which is looked for where it is asked for.
TEST(MistakesOfOrder, WhatNobodyHasWritten) {
  const Case cases[] = {
      {Mistake::kUnwrittenCopy, "reads uninitialised shared memory, tile"},
      {Mistake::kUnwrittenVector, "reads what nobody has written: byte 12 of an allocation of 256"},
      {Mistake::kUnwrittenCount, "thread (3,0,0): reads what nobody has written: byte 12 of"}};
  for (const Case& one : cases) {
    for (const bool asked : {false, true}) {
      SCOPED_TRACE(testing::Message() << one.line << ", asked " << asked);
      cuda::emulator::configure({.finds_unwritten = asked});
      const FailureWatch watch;
      const DeviceStream stream;
      const DeviceArray<float> data(stream, std::vector<float>(100));
      const DeviceArray<float> fresh(stream, 64);
      GEN_EXPECT_OK(make_mistake(one.what, data.get(), fresh.get(), stream.get()));
      EXPECT_EQ(stream.synchronize().ok(), !asked);
      EXPECT_EQ(watch.text().find(one.line) != std::string::npos, asked) << watch.text();
    }
  }
  cuda::emulator::configure({.finds_unwritten = true});
  {
    const FailureWatch watch;
    const DeviceStream stream;
    const DeviceArray<int32_t> fresh(stream, 64);
    GEN_EXPECT_OK(cuda::device::memset_async(fresh.get(), 0, 100, stream.get()));
    static_cast<void>(fresh.read());
    EXPECT_EQ(watch.text(),
              "a copy to the host of what nobody has written: byte 100 of an allocation of 256 "
              "bytes");
  }
  cuda::emulator::configure({});
}

// Memory counts as unwritten by what lies there. Who sends the very words has sent them all the
// same, from wherever to wherever.
TEST(MistakesOfOrder, WhateverIsSentIsWritten) {
  constexpr size_t kWords = 300;
  cuda::emulator::configure({.finds_unwritten = true});
  {
    const FailureWatch watch;
    const DeviceStream stream;
    const DeviceArray<uint32_t> memory(stream, kWords);
    std::vector<uint32_t> there(kWords);
    for (size_t i = 0; i < kWords; ++i) {
      there[i] = cuda::emulator::unwritten_word(reinterpret_cast<uintptr_t>(memory.get()) + 4 * i);
    }
    const auto copy = [&](void* to, const void* from, size_t bytes, cuda::device::CopyKind kind) {
      GEN_EXPECT_OK(cuda::device::copy_async(to, from, bytes, kind, stream.get()));
      EXPECT_TRUE(stream.synchronize().ok()) << watch.text();
    };
    for (size_t first = 0; first < kWords; first += 7) {
      std::vector<uint32_t> got(kWords);
      copy(memory.get() + first, &there[first], 4 * (kWords - first),
           cuda::device::CopyKind::kHostToDevice);
      copy(&got[first], memory.get() + first, 4 * (kWords - first),
           cuda::device::CopyKind::kDeviceToHost);
      EXPECT_TRUE(std::equal(got.begin() + static_cast<ptrdiff_t>(first), got.end(),
                             there.begin() + static_cast<ptrdiff_t>(first)));
    }
    // So it is in kernels, which may read a word that was sent before them.
    const DeviceArray<float> data(stream, std::vector<float>(100));
    for (const Mistake what :
         {Mistake::kUnwrittenCopy, Mistake::kUnwrittenVector, Mistake::kUnwrittenCount}) {
      const DeviceArray<float> fresh(stream, 64);
      for (size_t i = 0; i < 64; ++i) {
        there[i] = cuda::emulator::unwritten_word(reinterpret_cast<uintptr_t>(fresh.get()) + 4 * i);
      }
      copy(fresh.get(), there.data(), 256, cuda::device::CopyKind::kHostToDevice);
      GEN_EXPECT_OK(make_mistake(what, data.get(), fresh.get(), stream.get()));
      EXPECT_TRUE(stream.synchronize().ok()) << watch.text();
    }
  }
  cuda::emulator::configure({});
}

TEST(MistakesOfBounds, JustBeyondAnAllocation) {
  if (kSanitized) GTEST_SKIP() << "the address sanitizer sees it first";
  const FailureWatch watch;
  const DeviceStream stream;
  const DeviceArray<float> data(stream, std::vector<float>(100));
  GEN_EXPECT_OK(make_mistake(Mistake::kJustBeyond, data.get(), nullptr, stream.get()));
  EXPECT_EQ(stream.synchronize(), cuda::device::kLaunchFailure);
  EXPECT_EQ(watch.text(),
            "kernel mistake: out of bounds: wrote byte 404 of an allocation of 400 bytes");
}

TEST(MistakesOfBounds, FreedMemoryAndCopies) {
  const DeviceStream stream;
  int32_t* freed = nullptr;
  {
    const DeviceArray<int32_t> soon(stream, 300);
    freed = soon.get();
  }
  {
    const FailureWatch watch;
    GEN_EXPECT_OK(add(freed, freed, 300, 1, Start::kPlain, stream.get()));
    EXPECT_FALSE(stream.synchronize().ok());
    EXPECT_NE(watch.text().find("kernel add, block ("), std::string::npos) << watch.text();
    EXPECT_NE(watch.text().find("out of bounds: touches"), std::string::npos) << watch.text();
  }
  {
    const FailureWatch watch;
    GEN_EXPECT_OK(cuda::device::memset_async(freed, 0, 4, stream.get()));
    EXPECT_FALSE(stream.synchronize().ok());
    EXPECT_EQ(watch.text().find("a fill of 4 bytes at "), 0U) << watch.text();
  }
  const FailureWatch watch;
  const DeviceArray<int32_t> data(stream, 4);
  const std::vector<int32_t> more(5);
  GEN_EXPECT_OK(cuda::device::copy_async(data.get(), more.data(), 20,
                                         cuda::device::CopyKind::kHostToDevice, stream.get()));
  EXPECT_FALSE(stream.synchronize().ok());
  EXPECT_EQ(watch.text(), "a copy of 20 bytes to byte 0 of an allocation of 16 bytes");
}

TEST(MistakesOfLaunches, OverTheLimits) {
  const DeviceStream stream;
  const DeviceArray<int32_t> data(stream, 4);
  const auto refused = [&](const cuda::device::LaunchConfig& config, cuda::device::Error error) {
    const FailureWatch watch;
    EXPECT_EQ(cuda::device::launch(
                  +[](int) {}, config, 0),
              error);
    return watch.text();
  };
  EXPECT_EQ(refused({.name = "wide", .block = {1025}, .stream = stream.get()},
                    cuda::device::kInvalidConfiguration),
            "kernel wide: launched with blocks of (1025,1,1) threads, over 1024 or none");
  EXPECT_NE(refused({.name = "high", .grid = {1, 65536}, .stream = stream.get()},
                    cuda::device::kInvalidConfiguration)
                .find("(1,65536,1)"),
            std::string::npos);
  EXPECT_EQ(refused({.name = "big", .dynamic_shared_bytes = 232449, .stream = stream.get()},
                    cuda::device::kInvalidValue),
            "kernel big: launched with 232449 bytes of shared memory, over 232448");
  EXPECT_EQ(refused({.name = "many",
                     .grid = {33},
                     .block = {256},
                     .stream = stream.get(),
                     .cooperative = true},
                    cuda::device::kCooperativeTooLarge),
            "kernel many: launched with 33 cooperative blocks, over the 32 that fit at once");
  EXPECT_EQ(refused({.name = "astray"}, cuda::device::kInvalidHandle),
            "a call uses the default stream");
  // None of it costs the device.
  GEN_EXPECT_OK(stream.synchronize());
}

TEST(MistakesOfLaunches, OnAStreamOfAnotherDevice) {
  cuda::emulator::configure({.devices = 2});
  {
    const DeviceStream stream;
    GEN_EXPECT_OK(cuda::device::set_device(1));
    const FailureWatch watch;
    const cuda::device::LaunchConfig config = {.name = "elsewhere", .stream = stream.get()};
    EXPECT_EQ(cuda::device::launch(
                  +[](int) {}, config, 0),
              cuda::device::kInvalidHandle);
    EXPECT_EQ(watch.text(),
              "kernel elsewhere: launched with a stream of device 0, the thread's is 1");
    GEN_EXPECT_OK(cuda::device::set_device(0));
  }
  cuda::emulator::configure({});
}

TEST(MistakesDeathTest, TheHostTouchesDeviceMemory) {
  const DeviceStream stream;
  const DeviceArray<int32_t> data(stream, std::vector<int32_t>(100));
  GEN_EXPECT_OK(stream.synchronize());
  EXPECT_DEATH(std::printf("%d\n", *const_cast<volatile int32_t*>(data.get() + 1)),
               "emulator: the host touches device memory, byte 4 of an allocation of 400 bytes");
}

TEST(MistakesDeathTest, EndTheProcessWhereNobodyWatches) {
  const DeviceStream stream;
  const DeviceArray<float> data(stream, std::vector<float>(100));
  EXPECT_DEATH(
      {
        static_cast<void>(make_mistake(Mistake::kUninitialised, data.get(), nullptr, stream.get()));
        static_cast<void>(stream.synchronize());
      },
      "emulator: kernel mistake, block .0,0,0., thread .3,0,0.: reads uninitialised");
}

}  // namespace
}  // namespace gen::test
