// SPDX-License-Identifier: Apache-2.0
// Proves what is done to the CUDA engine's memory between steps, byte for byte against the host's:
// copies, fills, writes and reads; entries of every format copied, moved to other positions and
// pooled, with and without angles, over several layers, block tables and cells. Also that copies
// are never torn, however late kernels and copies run.
#include <algorithm>
#include <numeric>

#include "cuda/engine/kv_bench.h"

namespace gen::test {
namespace {

using engine::KvFormat;
using engine::KvRun;

/// Two layers of 100 entries each, filled.
struct Filled {
  Filled(OpBench& bench, KvFormat format) : kv(bench, shapes(format), 4) {
    AppendOptions options;
    options.n_heads = 4;
    for (size_t i = 0; i < 2; ++i) {
      options.seed = 3 + static_cast<uint32_t>(i);
      append_rows(bench, shapes(format)[i], kv.layers[i], {kv.rows(0, 100, 0)}, 100, options);
    }
  }
  static std::vector<KvShape> shapes(KvFormat format) {
    KvShape a;
    a.k_format = a.v_format = format;
    KvShape b = a;
    b.k_dim = 36;
    b.v_dim = 28;
    return {a, b};
  }
  KvBench kv;
};

Status on(OpBench& bench, const engine::MemoryOp& op) { return bench.engine().memory().run(op); }

TEST(CudaMemoryOps, EntriesAreCopied) {
  for (const KvFormat format : kEveryFormat) {
    SCOPED_TRACE(static_cast<int>(format));
    expect_same([&](OpBench& bench) {
      Filled filled(bench, format);
      KvBench other(bench, Filled::shapes(format), 5);
      const KvRun runs[] = {{0, 3, 30}, {95, 50, 1}, {7, 90, 10}};
      EXPECT_TRUE(on(bench, engine::KvCopyArgs{{filled.kv.layers, filled.kv.tables()},
                                               {other.layers, other.tables()},
                                               runs})
                      .ok());
      // Within one cache, runs that build on each other: a path of a tree moves down.
      const KvRun path[] = {{62, 61, 1}, {65, 62, 1}, {67, 63, 2}, {62, 80, 1}};
      const std::vector<int32_t> cells = [] {
        std::vector<int32_t> list;
        for (int32_t e = 60; e < 100; ++e) list.push_back(159 - e);
        return list;
      }();
      engine::KvTables tables = filled.kv.tables();
      tables.cells = cells;
      tables.first_cell = 60;
      EXPECT_TRUE(on(bench, engine::KvCopyArgs{{filled.kv.layers, tables},
                                               {filled.kv.layers, tables},
                                               path,
                                               engine::KvSides::kKeys})
                      .ok());
      EXPECT_TRUE(on(bench, engine::KvCopyArgs{{filled.kv.layers, tables},
                                               {filled.kv.layers, filled.kv.tables()},
                                               path,
                                               engine::KvSides::kValues})
                      .ok());
      auto seen = other.bytes_as_floats();
      const auto more = filled.kv.bytes_as_floats();
      seen.insert(seen.end(), more.begin(), more.end());
      return seen;
    });
  }
}

/// Angles of both kinds, for some of a head's elements.
struct Angles {
  std::vector<float> frequencies = {1.0F, 0.3F, 0.05F, 0.001F};
  engine::RopeTable adjacent = {engine::RopeKind::kAdjacent, 8, frequencies.data(), 1.0F};
  engine::RopeTable halves = {engine::RopeKind::kHalves, 8, frequencies.data(), 1.3F};
  engine::RopeTable none = {engine::RopeKind::kNone, 0, nullptr, 1.0F};
};

TEST(CudaMemoryOps, EntriesAreMovedToOtherPositions) {
  const Angles angles;
  for (const KvFormat format : kEveryFormat) {
    for (const int32_t n : {0, 1, 13, 40}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(format) << " by " << n);
      const int32_t turn = n == 13 ? 77 : std::max(n, 1);
      expect_same([&](OpBench& bench) {
        Filled filled(bench, format);
        const bool turned = format == KvFormat::kF32 || format == KvFormat::kF16;
        const engine::RopeTable* const ropes[] = {turned ? &angles.adjacent : nullptr,
                                                  turned && n != 1 ? &angles.halves : nullptr};
        EXPECT_TRUE(
            on(bench,
               engine::KvShiftArgs{{filled.kv.layers, filled.kv.tables()}, ropes, 5, n, 97, turn})
                .ok());
        return filled.kv.bytes_as_floats();
      });
    }
  }
}

TEST(CudaMemoryOps, EntriesArePooled) {
  const Angles angles;
  for (const KvFormat format : kEveryFormat) {
    SCOPED_TRACE(static_cast<int>(format));
    expect_same([&](OpBench& bench) {
      Filled filled(bench, format);
      const engine::RopeTable* const ropes[] = {&angles.halves, &angles.adjacent};
      const engine::RopeTable* const others[] = {nullptr, &angles.none};
      EXPECT_TRUE(
          on(bench, engine::KvPoolArgs{{filled.kv.layers, filled.kv.tables()}, ropes, 10, 8, 3})
              .ok());
      EXPECT_TRUE(
          on(bench, engine::KvPoolArgs{{filled.kv.layers, filled.kv.tables()}, others, 40, 3, 41})
              .ok());
      EXPECT_TRUE(
          on(bench, engine::KvPoolArgs{{filled.kv.layers, filled.kv.tables()}, ropes, 60, 1, 60})
              .ok());
      return filled.kv.bytes_as_floats();
    });
  }
}

TEST(CudaMemoryOps, RefusesToTurnKeysOfCodes) {
  OpBench bench(cuda_engine());
  const Angles angles;
  Filled filled(bench, KvFormat::kQ4);
  const engine::RopeTable* const ropes[] = {&angles.halves, nullptr};
  const Status status =
      on(bench, engine::KvShiftArgs{{filled.kv.layers, filled.kv.tables()}, ropes, 0, 1, 9, 1});
  EXPECT_EQ(status.code(), Code::kUnsupported);
}

TEST(CudaMemoryOps, BytesGoUpAndComeBack) {
  OpBench bench(cuda_engine());
  engine::EngineMemory& memory = bench.engine().memory();
  EXPECT_FALSE(memory.in_host());
  // Larger than what is staged at once.
  for (const size_t bytes : {size_t{1}, size_t{4097}, size_t{5} << 20, (size_t{20} << 20) + 3}) {
    auto buffer = memory.allocate(bytes);
    auto other = memory.allocate(bytes);
    ASSERT_TRUE(buffer.ok() && other.ok());
    EXPECT_EQ(buffer->data().address() % 64, 0U);
    EXPECT_EQ(memory.host(buffer->data()), nullptr);
    std::vector<uint32_t> sent((bytes + 3) / 4);
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint32_t>(i * 2654435761U);
    std::vector<uint32_t> got(sent.size());
    ASSERT_TRUE(memory.write(buffer->data(), sent.data(), bytes).ok());
    const size_t part = bytes / 2;
    ASSERT_TRUE(memory.fill(other->data(), std::byte{0xAB}, bytes).ok());
    ASSERT_TRUE(memory.copy(other->data(), buffer->data(), part).ok());
    ASSERT_TRUE(memory.read(got.data(), buffer->data(), bytes).ok());
    EXPECT_EQ(std::memcmp(got.data(), sent.data(), bytes), 0);
    ASSERT_TRUE(memory.read(got.data(), other->data(), bytes).ok());
    EXPECT_EQ(std::memcmp(got.data(), sent.data(), part), 0);
    const auto* const last = reinterpret_cast<const uint8_t*>(got.data()) + bytes - 1;
    EXPECT_EQ(*last, 0xAB);
  }
}

// The emulator runs nothing before somebody waits for it, so every copy is as late as can be: what
// is not held back by an event or by the queue's order would be seen here.

engine::EngineBuffer take(OpBench& bench, size_t bytes) {
  return std::move(bench.engine().memory().allocate(bytes)).value();
}
std::vector<uint32_t> words(size_t n, uint32_t first) {
  std::vector<uint32_t> made(n);
  std::iota(made.begin(), made.end(), first);
  return made;
}

TEST(CudaOrder, PinnedHalvesAreNotFilledBeforeTheyHaveBeenCopied) {
  OpBench bench(cuda_engine());
  engine::EngineMemory& memory = bench.engine().memory();
  const size_t n = (size_t{33} << 20) / sizeof(uint32_t) + 5;  // five pieces through two halves
  const engine::EngineBuffer buffer = take(bench, n * sizeof(uint32_t));
  std::vector<uint32_t> host = words(n, 1);
  ASSERT_TRUE(memory.write(buffer.data(), host.data(), n * sizeof(uint32_t)).ok());
  std::fill(host.begin(), host.end(), 0);  // the host bytes may go
  ASSERT_TRUE(memory.read(host.data(), buffer.data(), n * sizeof(uint32_t)).ok());
  EXPECT_TRUE(host == words(n, 1));
}

TEST(CudaOrder, CopiesComeBetweenTheKernelsBeforeAndAfterThem) {
  OpBench bench(cuda_engine());
  engine::EngineMemory& memory = bench.engine().memory();
  constexpr int64_t kN = 1000;
  const auto x = bench.put(std::vector<float>(kN, 1.0F));
  const auto y = bench.put(std::vector<float>(kN, -1.0F));
  const auto bytes = static_cast<size_t>(kN) * sizeof(float);
  const engine::AddArgs twice = {{x, 1, kN, kN}, {x, 1, kN, kN}, {x, 1, kN, kN}};
  auto stream = std::move(bench.engine().new_stream()).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bench.engine().run(*stream, twice).ok());
  ASSERT_TRUE(memory.copy(y.as<std::byte>(), x.as<const std::byte>(), bytes).ok());  // 8
  std::vector<float> host(kN, 5.0F);
  ASSERT_TRUE(memory.write(x.as<std::byte>(), host.data(), bytes).ok());
  std::fill(host.begin(), host.end(), 0.0F);
  ASSERT_TRUE(bench.engine().run(*stream, twice).ok());  // 10
  ASSERT_TRUE(memory.fill(x.as<std::byte>(), std::byte{0}, 4).ok());
  EXPECT_EQ(bench.get(y, kN), std::vector<float>(kN, 8.0F));
  std::vector<float> want(kN, 10.0F);
  want[0] = 0.0F;
  EXPECT_EQ(bench.get(x, kN), want);
}

TEST(CudaOrder, MemoryThatIsGivenBackStaysUntilItHasBeenRead) {
  OpBench bench(cuda_engine());
  engine::EngineMemory& memory = bench.engine().memory();
  constexpr size_t kWords = 3000;
  constexpr size_t kBytes = kWords * sizeof(uint32_t);
  const engine::EngineBuffer kept = take(bench, 4 * kBytes);
  for (uint32_t i = 0; i < 4; ++i) {
    engine::EngineBuffer passing = take(bench, kBytes);
    const std::vector<uint32_t> from = words(kWords, 100 * i);
    ASSERT_TRUE(memory.write(passing.data(), from.data(), kBytes).ok());
    ASSERT_TRUE(
        memory.copy(kept.data() + static_cast<std::ptrdiff_t>(i * kBytes), passing.data(), kBytes)
            .ok());
  }  // given back while the copy from it waits
  for (uint32_t i = 0; i < 4; ++i) {
    std::vector<uint32_t> got(kWords);
    ASSERT_TRUE(
        memory.read(got.data(), kept.data() + static_cast<std::ptrdiff_t>(i * kBytes), kBytes)
            .ok());
    EXPECT_TRUE(got == words(kWords, 100 * i));
  }
}

}  // namespace
}  // namespace gen::test
