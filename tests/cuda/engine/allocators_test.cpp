// SPDX-License-Identifier: Apache-2.0
// Proves how the CUDA engine gets its memory and loses it: every byte through the injected table,
// nothing written beside a piece, all of it given back, lack of memory at any call an error that
// leaves everything usable, tables that are incomplete or wrong refused; and what a lost device, an
// old driver and a table of another build come to.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "cache/sequence/registry.h"
#include "cuda/emulator/emulator.h"
#include "cuda/engine/caller_stream.h"
#include "cuda/engine/device_queue.h"
#include "cuda/engine/op_bench.h"
#include "cuda/engine/staging.h"
#include "support/counting_new.h"
#include "support/gpu_allocator.h"
#include "support/tiny_graph.h"

namespace gen::test {
namespace {

using cuda::PoolAllocator;

std::shared_ptr<const engine::GpuTable> borrowed(const engine::GpuTable& table) {
  return {std::shared_ptr<void>(), &table};
}

/// A prompt and a step of a tiny model with a paged-like cache in the engine's memory.
Status generate(const engine::GpuTable& table, std::vector<float>* logits) {
  const TinyGraph tiny;
  engine::EngineOptions options;
  options.gpu_allocator = borrowed(table);
  GEN_ASSIGN(auto engine, engine::create_engine(cuda::cuda_backend(), options));
  graph::CompileOptions compile_options;
  compile_options.max_seq_len = 64;
  GEN_ASSIGN(auto plan, graph::compile(tiny.graph(), engine, compile_options));
  graph::WorkspacePool pool(engine);
  GEN_ASSIGN(auto cache, cache::make_cache("q4", tiny.layer_shapes(), 64, engine->memory()));
  for (const auto& tokens : {std::vector<int32_t>{1, 2, 3}, std::vector<int32_t>{4}}) {
    OwnedBatch batch;
    GEN_TRY(batch.add(*cache, tokens));
    batch.finish(tiny.shape().vocab);
    GEN_ASSIGN(auto workspace, pool.borrow());
    GEN_TRY(plan->run(batch.batch, *workspace));
    batch.commit();
    *logits = batch.results(tiny.shape().vocab);
  }
  return {};
}

TEST(CudaAllocators, EveryByteThroughTheTable) {
  auto pool = PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  std::vector<float> plain;
  ASSERT_TRUE(generate(pool.value()->table(), &plain).ok());
  TestGpuAllocator counting(pool.value()->table());
  std::vector<float> logits;
  const Status status = generate(counting.table(), &logits);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_GT(counting.calls, 5U);
  EXPECT_EQ(counting.live_bytes(), 0U);
  EXPECT_TRUE(same_bits(logits, plain));  // memory full of NaNs does not show
}

TEST(CudaAllocators, LackOfMemoryAtAnyCall) {
  auto pool = PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok());
  std::vector<float> want;
  ASSERT_TRUE(generate(pool.value()->table(), &want).ok());
  bool through = false;
  int failures = 0;
  for (size_t n = 0; n < 500 && !through; ++n) {
    TestGpuAllocator refusing(pool.value()->table());
    refusing.refused = n;
    std::vector<float> logits;
    Status status;
    try {
      status = generate(refusing.table(), &logits);
    } catch (const std::bad_alloc&) {
      status = Status(Code::kOutOfMemory, "as EngineMemory::run says");
    }
    through = refusing.calls <= n;
    if (!status.ok()) {
      EXPECT_EQ(status.code(), Code::kOutOfMemory) << n << ": " << status.message();
      ++failures;
    } else {
      EXPECT_TRUE(same_bits(logits, want)) << n;  // room for larger steps may be missing
    }
  }
  EXPECT_TRUE(through);
  EXPECT_GT(failures, 5);
}

TEST(CudaAllocators, AnEngineWorksOnAfterLackOfMemory) {
  auto pool = PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok());
  TestGpuAllocator refusing(pool.value()->table());
  engine::EngineOptions options;
  options.gpu_allocator = borrowed(refusing.table());
  auto engine = engine::create_engine(cuda::cuda_backend(), options);
  ASSERT_TRUE(engine.ok());
  auto kept = engine.value()->memory().allocate(1000);
  ASSERT_TRUE(kept.ok());
  refusing.refused = refusing.calls;
  auto none = engine.value()->memory().allocate(1000);
  EXPECT_EQ(none.status().code(), Code::kOutOfMemory);
  EXPECT_TRUE(engine.value()->memory().allocate(1000).ok());
  auto huge = engine.value()->memory().allocate(size_t{1} << 50);
  EXPECT_EQ(huge.status().code(), Code::kOutOfMemory) << huge.status().message();
  EXPECT_TRUE(engine.value()->memory().fill(kept->data(), std::byte{1}, 1000).ok());
}

/// A dry run, since what is counted is the table's calls: nothing else allocates then.
TEST(CudaAllocators, LackOfHostMemoryLosesNoneOfTheDevice) {
  static int32_t live = 0;
  engine::GpuTable table = {};
  table.struct_size = sizeof table;
  table.allocate = [](void*, size_t bytes, void** out) -> int32_t {
    *out = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    ++live;
    return 0;
  };
  table.release = [](void*, void* at) -> int32_t {
    std::free(at);
    --live;
    return 0;
  };
  table.copy = [](void*, void*, const void*, size_t, int32_t) -> int32_t { return 0; };
  const auto queue = cuda::DeviceQueue::create(0, table, true).value();
  int32_t failures = 0;
  void* at = nullptr;
  for (size_t n = 0; at == nullptr && n < 100; ++n) {
    fail_new_at = news + n;
    try {
      EXPECT_TRUE(queue->take(100, &at).ok());
    } catch (const std::bad_alloc&) {
      ++failures;
    }
    fail_new_at = ~size_t{0};
    EXPECT_EQ(live, at != nullptr ? 1 : 0) << n;
  }
  EXPECT_GT(failures, 0);
  queue->give_back(at);
  EXPECT_EQ(live, 0);
  // A piece that there is no room to remember goes at once, and once.
  for (size_t n = 0; n < 3; ++n) {
    const auto fresh = cuda::DeviceQueue::create(0, table, true).value();
    void* pieces[2] = {};
    for (void*& piece : pieces) ASSERT_TRUE(fresh->take(100, &piece).ok());
    for (void* piece : pieces) {
      fail_new_at = news + n;
      fresh->give_back(piece);
      fail_new_at = ~size_t{0};
    }
    EXPECT_EQ(live, 0) << n;
  }
}

/// Lists of numbers are laid out in it.
TEST(CudaAllocators, PinnedMemoryAtOddAddressesIsRefusedAndGivenBack) {
  static int32_t live = 0;
  engine::GpuTable table = host_table();
  table.allocate_pinned = [](void*, size_t bytes, void** out) -> int32_t {
    *out = static_cast<std::byte*>(std::malloc(bytes + 8)) + 8;
    ++live;
    return 0;
  };
  table.release_pinned = [](void*, void* at) -> int32_t {
    std::free(static_cast<std::byte*>(at) - 8);
    --live;
    return 0;
  };
  {
    cuda::Staging staging(table);
    std::byte* at = nullptr;
    for (int32_t i = 0; i < 2; ++i) EXPECT_EQ(staging.take(100, &at).code(), Code::kDevice);
    EXPECT_EQ(live, 0);
  }
  EXPECT_EQ(live, 0);
}

TEST(CudaAllocators, TablesThatAreWrong) {
  auto pool = PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok());
  engine::EngineOptions options;
  engine::GpuTable table = pool.value()->table();
  options.gpu_allocator = borrowed(table);
  const auto refused = [&] {
    return engine::create_engine(cuda::cuda_backend(), options).status().code();
  };
  table.release = nullptr;
  EXPECT_EQ(refused(), Code::kInvalidArgument);
  table = pool.value()->table();
  table.struct_size = 16;
  EXPECT_EQ(refused(), Code::kInvalidArgument);
  table = pool.value()->table();
  options.device = 7;
  EXPECT_EQ(refused(), Code::kInvalidArgument);
  options.device = -1;
  EXPECT_EQ(refused(), Code::kInvalidArgument);
  EXPECT_EQ(PoolAllocator::create(7).status().code(), Code::kInvalidArgument);
}

TEST(CudaBackend, TablesOfOtherBuilds) {
  gen_backend_v1 table = cuda::cuda_backend();
  EXPECT_EQ(std::string(table.name), "cuda");
  table.build_id = "0 another";
  Status status = engine::create_engine(table, {}).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(std::string(status.message()).find("0 another"), std::string::npos);
  EXPECT_NE(std::string(status.message()).find(engine::backend_build_id()), std::string::npos);
  table = cuda::cuda_backend();
  table.struct_size = 8;
  EXPECT_EQ(engine::create_engine(table, {}).status().code(), Code::kUnsupported);
  table = cuda::cuda_backend();
  table.why_not = [] { return "it rains"; };
  status = engine::create_engine(table, {}).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(std::string(status.message()), "backend cuda: it rains");
}

TEST(CudaAllocators, ADryRunTakesNothingOfTheDevice) {
  cuda::emulator::Options machine;
  machine.device_bytes = size_t{1} << 20;
  cuda::emulator::configure(machine);
  engine::GpuTable table = host_table();
  table.device = 0;
  engine::EngineOptions options;
  options.dry_run = true;
  EXPECT_EQ(cuda::CudaEngine::create(options).status().code(), Code::kInvalidArgument);
  options.gpu_allocator = borrowed(table);
  auto engine = std::move(cuda::CudaEngine::create(options)).value();
  const size_t fitting[] = {size_t{600} << 10, size_t{400} << 10};
  const size_t too_much[] = {size_t{600} << 10, size_t{500} << 10};
  EXPECT_TRUE(engine->has_room(fitting));  // of the device, whatever the table gives
  EXPECT_FALSE(engine->has_room(too_much));
  const uint64_t kernels = cuda::emulator::kernels_run();
  auto buffer = std::move(engine->memory().allocate(size_t{8} << 20)).value();
  std::memset(reinterpret_cast<void*>(buffer.data().address()), 7, 64);
  auto stream = std::move(engine->new_stream()).value();
  const auto x = buffer.data().as<float>();
  EXPECT_TRUE(engine->memory().fill(buffer.data(), std::byte{1}, 64).ok());
  EXPECT_TRUE(engine->run(*stream, engine::AddArgs{{x, 1, 4, 4}, {x, 1, 4, 4}, {x, 1, 4, 4}}).ok());
  uint32_t got[2] = {1, 1};
  EXPECT_TRUE(engine->download(*stream, &got[0], buffer.data(), 4).ok());
  EXPECT_TRUE(engine->finish(*stream).ok());
  EXPECT_TRUE(engine->memory().read(&got[1], buffer.data(), 4).ok());
  EXPECT_EQ(got[0], 0U);
  EXPECT_EQ(got[1], 0U);
  EXPECT_EQ(*reinterpret_cast<const unsigned char*>(buffer.data().address()), 7);  // untouched
  EXPECT_EQ(cuda::emulator::kernels_run(), kernels);
  EXPECT_EQ(cuda::emulator::live_device_bytes(), 0U);
  stream.reset();
  buffer.reset();
  engine.reset();
  cuda::emulator::configure({});
}

TEST(CudaBackend, SaysWhyNot) {
  EXPECT_EQ(cuda::why_unavailable(), "");
  cuda::emulator::Options options;
  options.driver_version = 0;
  cuda::emulator::configure(options);
  EXPECT_EQ(cuda::why_unavailable(),
            "no driver was found, and this build needs one for CUDA 13.0 or newer");
  options.driver_version = 12040;
  cuda::emulator::configure(options);
  EXPECT_EQ(cuda::why_unavailable(),
            "the driver is for CUDA 12.4, and this build needs one for CUDA 13.0 or newer");
  options = {};
  options.devices = 0;
  cuda::emulator::configure(options);
  EXPECT_EQ(cuda::why_unavailable(),
            "no CUDA-capable device is detected (the driver is for CUDA 13.0, and this build needs "
            "one for CUDA 13.0 or newer)");
  cuda::emulator::configure({});
}

TEST(CudaBackend, ALostDeviceIsLost) {
  auto engine = cuda_engine();
  {
    OpBench bench(engine);
    auto buffer = std::move(engine->memory().allocate(64)).value();
    const auto x = bench.put(std::vector<float>(16, 1.0F));
    const engine::AddArgs args = {{x, 1, 16, 16}, {x, 1, 16, 16}, {x, 1, 16, 16}};
    bench.run(args);
    cuda::emulator::break_device(cuda::device::kIllegalAddress);
    for (int32_t i = 0; i < 2; ++i) {
      const Status status = bench.try_run(args);
      EXPECT_EQ(status.code(), Code::kDevice) << status.message();
      EXPECT_EQ(engine->memory().fill(buffer.data(), std::byte{0}, 64).code(), Code::kDevice);
      float got = 0.0F;
      EXPECT_EQ(engine->memory().read(&got, buffer.data(), 4).code(), Code::kDevice);
      EXPECT_EQ(engine->memory().allocate(64).status().code(), Code::kDevice);
    }
    OpBench cpu(cpu_engine());  // others go on
    const auto y = cpu.put(std::vector<float>(16, 1.0F));
    cpu.run(engine::AddArgs{{y, 1, 16, 16}, {y, 1, 16, 16}, {y, 1, 16, 16}});
    EXPECT_EQ(cpu.get(y, 1)[0], 2.0F);
  }
  engine.reset();  // giving back succeeds
  cuda::emulator::configure({});
  OpBench again(cuda_engine());
}

}  // namespace
}  // namespace gen::test
