// SPDX-License-Identifier: Apache-2.0
// Proves how weights come to the device: tiles are bit for bit what the codecs give, for all
// formats, any bytes in them and odd sizes; sources that do not fit the buffers they go through,
// read by one thread or several; products right behind a weight; lack of memory at any call, a
// device that is lost.
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "cuda/emulator/emulator.h"
#include "cuda/engine/op_bench.h"
#include "cuda/engine/tile_packer.h"
#include "cuda/ops/weight/weight.h"
#include "cuda/ops/weight/weight_tiles.h"
#include "engine/access.h"
#include "support/gpu_allocator.h"
#include "cuda/ops/weight/device_type.h"

namespace gen::test {
namespace {

using cuda::DeviceWeight;
using engine::WeightRole;
using engine::WeightSource;

std::vector<std::byte> any_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random() & 0xFFU);
  return bytes;
}

struct Source {
  Source(DType type_in, int64_t rows_in, int64_t cols_in, uint32_t seed = 1)
      : type(type_in), rows(rows_in), cols(cols_in) {
    const DTypeInfo& info = *dtype_info(type);
    bytes =
        any_bytes(static_cast<size_t>(rows * cols) / info.block_elements * info.block_bytes, seed);
  }
  [[nodiscard]] WeightSource source() const { return {"w", type, rows, cols, bytes, false}; }

  DType type;
  int64_t rows;
  int64_t cols;
  std::vector<std::byte> bytes;
};

std::shared_ptr<engine::Engine> engine_with(int32_t threads) {
  engine::EngineOptions options;
  if (threads > 0) options.pool = ThreadPool::create(threads).value();
  auto made = engine::create_engine(cuda::cuda_backend(), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

/// What a source is on the device.
std::vector<std::byte> loaded(engine::Engine& engine, WeightRole role, const WeightSource& source) {
  auto weight = engine.prepare(role, {&source, 1}, nullptr);
  EXPECT_TRUE(weight.ok()) << weight.status().message();
  const auto& segment = static_cast<const DeviceWeight&>(*weight.value()).segments().front();
  const quant::Traits* const traits = quant::find_traits(cuda::device_type(source.type));
  const size_t bytes = segment.row_bytes != 0
                           ? segment.row_bytes * static_cast<size_t>(source.rows)
                           : cuda::tile_bytes(*traits, source.cols) *
                                 static_cast<size_t>(cuda::tiles_of(source.rows));
  std::vector<std::byte> got(bytes);
  const auto* const at = reinterpret_cast<const std::byte*>(segment.data);
  EXPECT_TRUE(engine.memory().read(got.data(), engine::engine_ptr(at), bytes).ok());
  return got;
}

std::vector<std::byte> tiles_of(const WeightSource& source) {
  const quant::Traits& traits = *quant::find_traits(cuda::device_type(source.type));
  const size_t each = cuda::tile_bytes(traits, source.cols);
  std::vector<std::byte> want(each * static_cast<size_t>(cuda::tiles_of(source.rows)));
  for (int64_t tile = 0; tile < cuda::tiles_of(source.rows); ++tile) {
    cuda::pack_tile(traits, source, tile, want.data() + static_cast<size_t>(tile) * each);
  }
  return want;
}

TEST(CudaWeights, TilesOfAllFormats) {
  const auto engine = engine_with(0);
  for (const quant::Traits& traits : quant::kTraits) {
    if (traits.stored != 0) continue;  // blocks of another type on the device: linear_test.cpp
    for (const int64_t rows : {1, 8, 9, 75}) {
      for (const int64_t blocks : {1, 3, 4, 35}) {
        SCOPED_TRACE(testing::Message()
                     << dtype_name(traits.type) << ", " << rows << ", " << blocks << " blocks");
        const Source w(traits.type, rows, blocks * traits.block, static_cast<uint32_t>(rows));
        ASSERT_TRUE(loaded(*engine, WeightRole::kLinear, w.source()) == tiles_of(w.source()));
      }
    }
  }
}

/// More than the buffers hold, whose last part is no whole tile.
TEST(CudaWeights, TilesInSeveralParts) {
  for (const int64_t rows : {2051, 9003}) {
    const Source w(DType::kQ8_0, rows, 4128);
    const auto want = tiles_of(w.source());
    for (const int32_t threads : {0, 1, 2, 5}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << threads << " threads");
      ASSERT_TRUE(loaded(*engine_with(threads), WeightRole::kLinear, w.source()) == want);
    }
  }
}

/// `n` pieces of bytes on the device, each filled with its own number.
void expect_numbered(const std::shared_ptr<cuda::DeviceQueue>& queue, const void* at, size_t n,
                     size_t piece) {
  std::vector<std::byte> got(n * piece);
  cuda::DeviceMemory memory(queue);
  const auto* const from = static_cast<const std::byte*>(at);
  ASSERT_TRUE(memory.read(got.data(), engine::engine_ptr(from), got.size()).ok());
  for (size_t i = 0; i < got.size(); i += piece / 4) {
    ASSERT_EQ(std::to_integer<size_t>(got[i]), i / piece) << i;
  }
}

/// What has been enqueued when a send fails reads its buffer later, so that is not written over.
TEST(CudaWeights, ASendThatFails) {
  constexpr size_t kPiece = size_t{64} << 10;
  enum class Fails { kStatus, kThrows, kNoEvent };
  for (const Fails fails : {Fails::kStatus, Fails::kThrows, Fails::kNoEvent}) {
    auto pool = cuda::PoolAllocator::create(0);
    ASSERT_TRUE(pool.ok());
    auto queue = cuda::DeviceQueue::create(0, pool.value()->table()).value();
    void* at = nullptr;
    ASSERT_TRUE(queue->take(4 * kPiece, &at).ok());
    const auto send = [&](int value) {
      const auto fill = [&](size_t, size_t, std::byte* to) { std::memset(to, value, kPiece); };
      const auto take = [&](size_t, size_t, const std::byte* pinned) -> Status {
        auto* const to = static_cast<std::byte*>(at) + static_cast<size_t>(value) * kPiece;
        GEN_TRY(queue->copy_up(to, pinned, kPiece));
        if (value != 0) return {};
        if (fails == Fails::kThrows) throw std::bad_alloc();
        if (fails == Fails::kStatus) return error(Code::kOutOfMemory, "no memory");
        cuda::emulator::fail_call(0, cuda::device::kInvalidValue);
        return {};
      };
      return queue->send_pieces({kPiece, 1, fill}, take);
    };
    {
      const cuda::DeviceQueue::Turn turn(*queue);
      if (fails == Fails::kThrows) {
        EXPECT_THROW(static_cast<void>(send(0)), std::bad_alloc);
      } else {
        EXPECT_FALSE(send(0).ok());
      }
      for (const int value : {1, 2, 3}) EXPECT_TRUE(send(value).ok());
    }
    expect_numbered(queue, at, 4, kPiece);
    queue->give_back(at);
  }
}

/// Where the copy or the wait for it fails no copy is under way any more into memory that goes.
TEST(CudaWeights, AReadThatFails) {
  constexpr size_t kBytes = 1000;
  auto pool = cuda::PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok());
  const auto queue = cuda::DeviceQueue::create(0, pool.value()->table()).value();
  cuda::DeviceMemory memory(queue);
  const engine::EngineBuffer buffer = std::move(memory.allocate(kBytes)).value();
  const std::vector<std::byte> want(kBytes, std::byte{7});
  ASSERT_TRUE(memory.write(buffer.data(), want.data(), kBytes).ok());
  std::vector<std::byte> got(kBytes);
  for (const uint64_t after : {0U, 1U}) {
    cuda::emulator::fail_call(after, cuda::device::kInvalidValue);
    EXPECT_EQ(memory.read(got.data(), buffer.data(), kBytes).code(), Code::kDevice);
    EXPECT_FALSE(cuda::emulator::forget_failing_call());
    {
      const cuda::DeviceQueue::Turn turn(*queue);
      EXPECT_TRUE(queue->finish().ok());
    }
    EXPECT_TRUE(memory.read(got.data(), buffer.data(), kBytes).ok());
    EXPECT_EQ(got, want);
    got.assign(kBytes, std::byte{0});
  }
}

/// Threads that are slower than the device: nothing goes up before it is there, nor is written over
/// before it is up.
TEST(CudaWeights, SlowThreads) {
  auto pool = cuda::PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok());
  auto queue = cuda::DeviceQueue::create(0, pool.value()->table()).value();
  constexpr size_t kPiece = size_t{256} << 10;
  constexpr size_t kPieces = 101;  // four buffers, the last with an odd number
  const auto threads = ThreadPool::create(3).value();
  void* at = nullptr;
  ASSERT_TRUE(queue->take(kPieces * kPiece, &at).ok());
  {
    const cuda::DeviceQueue::Turn turn(*queue);
    const auto fill = [](size_t first, size_t n, std::byte* to) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      for (size_t i = 0; i < n; ++i) {
        std::memset(to + i * kPiece, static_cast<int>(first + i), kPiece);
      }
    };
    ASSERT_TRUE(queue->write_pieces(at, {kPiece, kPieces, fill}, threads.get()).ok());
  }
  expect_numbered(queue, at, kPieces, kPiece);
  queue->give_back(at);
}

/// Floats are rows padded with zeros to 16 bytes; what is looked up is as it is in the file.
TEST(CudaWeights, Rows) {
  const Source padded(DType::kF16, 4099, 1061);
  const Source whole(DType::kBF16, 2051, 2088);
  for (const int32_t threads : {0, 3}) {
    const auto engine = engine_with(threads);
    for (const Source* w : {&padded, &whole}) {
      const size_t row = w->bytes.size() / static_cast<size_t>(w->rows);
      const size_t pitch = (row + 15) / 16 * 16;
      std::vector<std::byte> want(pitch * static_cast<size_t>(w->rows));
      for (size_t i = 0; i < static_cast<size_t>(w->rows); ++i) {
        std::memcpy(want.data() + i * pitch, w->bytes.data() + i * row, row);
      }
      EXPECT_TRUE(loaded(*engine, WeightRole::kLinear, w->source()) == want);
      EXPECT_TRUE(loaded(*engine, WeightRole::kEmbedding, w->source()) == w->bytes);
    }
    const Source table(DType::kQ4_K, 9001, 2048);
    EXPECT_TRUE(loaded(*engine, WeightRole::kEmbedding, table.source()) == table.bytes);
  }
}

/// A product may read weights before it waits for the kernel before it.
TEST(CudaWeights, ProductsRightBehind) {
  OpBench bench(engine_with(0));
  const quant::Format& format = *quant::find_format(DType::kQ8_0);
  constexpr int64_t kCols = 2048;
  const auto values = random_row(64 * kCols, 7);
  Source w(DType::kQ8_0, 64, kCols);
  format.encode(values.data(), w.bytes.data(), 64 * kCols);
  const WeightSource source = w.source();
  const auto x = bench.put(random_row(kCols, 3));
  auto first = bench.engine().prepare(WeightRole::kLinear, {&source, 1}, nullptr);
  ASSERT_TRUE(first.ok());
  const uint32_t forms = first.value()->activation_forms();
  const auto stride = static_cast<int64_t>(bench.engine().activation_bytes(forms, kCols));
  engine::LinearArgs args;
  args.x = {bench.room(stride / 4).as<std::byte>(), forms, 1, kCols};
  args.y = {bench.room(64), 1, 64, 64};
  bench.run(engine::PackArgs{{x, 1, kCols, kCols}, args.x});
  args.weight = first.value().get();
  bench.run(args);
  const auto want = bench.get(args.y.data, 64);
  for (int i = 0; i < 20; ++i) {
    auto again = bench.engine().prepare(WeightRole::kLinear, {&source, 1}, nullptr);
    ASSERT_TRUE(again.ok());
    args.weight = again.value().get();
    bench.run(args);
    ASSERT_TRUE(same_bits(bench.get(args.y.data, 64), want)) << i;
  }
}

/// At the first buffers of a weight, or at later ones; whoever fills them ends, too.
TEST(CudaWeights, ADeviceLostMeanwhile) {
  const Source w(DType::kQ8_0, 9003, 4128);
  const WeightSource source = w.source();
  for (const int32_t threads : {0, 4}) {
    for (const uint64_t after : {0U, 1U, 3U}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, after " << after << " kernels");
      cuda::emulator::Options options;
      options.lost_after = cuda::emulator::kernels_run() + 1 + after;
      cuda::emulator::configure(options);
      {
        const auto engine = engine_with(threads);
        auto made = engine->prepare(WeightRole::kLinear, {&source, 1}, nullptr);
        // The last kernels are only waited for by what comes next.
        if (made.ok()) {
          std::byte got{};
          const auto& segment = static_cast<const DeviceWeight&>(*made.value()).segments().front();
          const auto* const at = reinterpret_cast<const std::byte*>(segment.data);
          EXPECT_EQ(engine->memory().read(&got, engine::engine_ptr(at), 1).code(), Code::kDevice);
        } else {
          EXPECT_EQ(made.status().code(), Code::kDevice) << made.status().message();
        }
      }
      cuda::emulator::configure({});
    }
  }
}

TEST(CudaWeights, LackOfMemoryAtAnyCall) {
  auto pool = cuda::PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok());
  const Source w(DType::kQ5_K, 75, 512);
  const auto want = tiles_of(w.source());
  size_t refusals = 0;
  for (bool through = false; !through; ++refusals) {
    TestGpuAllocator refusing(pool.value()->table());
    {
      engine::EngineOptions options;
      options.gpu_allocator = {std::shared_ptr<void>(), &refusing.table()};
      auto engine = engine::create_engine(cuda::cuda_backend(), options);
      ASSERT_TRUE(engine.ok());
      refusing.refused = refusals;
      const WeightSource source = w.source();
      auto weight = engine.value()->prepare(WeightRole::kLinear, {&source, 1}, nullptr);
      through = weight.ok();
      if (!through) {
        EXPECT_EQ(weight.status().code(), Code::kOutOfMemory);
        EXPECT_TRUE(loaded(*engine.value(), WeightRole::kLinear, source) == want);
      }
    }
    EXPECT_EQ(refusing.live_bytes(), 0U);
  }
  EXPECT_EQ(refusals, 4U);  // refused: the weight, pinned memory, memory for what comes up
}

}  // namespace
}  // namespace gen::test
