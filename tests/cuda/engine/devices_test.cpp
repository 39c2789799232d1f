// SPDX-License-Identifier: Apache-2.0
// Proves that the engine works on its own device whatever device the calling thread has, leaves
// that one as it was, and takes no memory of it; and that no device memory comes from anywhere but
// the table, that of products by cuBLASLt and of graphs included.
#include <cstdlib>

#include "cuda/emulator/emulator.h"
#include "cuda/engine/caller_stream.h"
#include "cuda/engine/linear_case.h"
#include "support/gpu_allocator.h"
#include "support/plan_side.h"

namespace gen::test {
namespace {

using cuda::PoolAllocator;

int current() {
  int device = -1;
  EXPECT_TRUE(cuda::device::current_device(&device).ok());
  return device;
}

size_t taken(int device) {
  EXPECT_TRUE(cuda::device::set_device(device).ok());
  size_t free = 0;
  size_t total = 0;
  EXPECT_TRUE(cuda::device::memory_info(&free, &total).ok());
  return total - free;
}

std::shared_ptr<engine::Engine> engine_of(int32_t device, const engine::GpuTable* table = nullptr) {
  engine::EngineOptions options;
  options.device = device;
  if (table != nullptr) options.gpu_allocator = {std::shared_ptr<void>(), table};
  return std::move(engine::create_engine(cuda::cuda_backend(), options)).value();
}

TEST(CudaDevices, TheCallersStaysTheCallers) {
  const TinyGraph tiny;
  for (const int own : {0, 1}) {
    const int callers = 1 - own;
    SCOPED_TRACE(own);
    cuda::emulator::configure({.devices = 2});
    ASSERT_TRUE(cuda::device::set_device(callers).ok());
    {
      const auto engine = engine_of(own);
      EXPECT_EQ(current(), callers) << "an engine";
      PlanSide side(tiny, engine, engine->memory());
      const auto cache = side.paged("q4");
      EXPECT_EQ(current(), callers) << "memory";
      for (const auto& tokens : {std::vector<int32_t>{1, 2, 3}, {4}, {5}, {6}, {7}}) {
        OwnedBatch batch;
        ASSERT_TRUE(batch.add(*cache, tokens).ok());
        EXPECT_FALSE(side.run(batch).empty());
        EXPECT_EQ(current(), callers) << "a step";
      }
      EXPECT_GT(static_cast<cuda::CudaEngine&>(*engine).graphs().captured, 0U);
      EXPECT_GT(taken(own), 0U);
      EXPECT_EQ(taken(callers), 0U);  // which makes it the thread's again
    }
    EXPECT_EQ(current(), callers) << "the end of all";
    auto pool = PoolAllocator::create(own);
    ASSERT_TRUE(pool.ok());
    const engine::GpuTable& table = pool.value()->table();
    void* at = nullptr;
    void* pinned = nullptr;
    ASSERT_EQ(table.allocate(table.user, 100, &at), 0);
    EXPECT_EQ(current(), callers) << "allocate";
    ASSERT_EQ(table.allocate_pinned(table.user, 16, &pinned), 0);
    EXPECT_EQ(current(), callers) << "allocate_pinned";
    EXPECT_EQ(table.copy(table.user, at, pinned, 16, 0), 0);
    EXPECT_EQ(current(), callers) << "copy";
    EXPECT_EQ(table.release_pinned(table.user, pinned), 0);
    EXPECT_EQ(table.release(table.user, at), 0);
    pool.value().reset();
    EXPECT_EQ(current(), callers) << "the end of an allocator";
    ASSERT_TRUE(cuda::device::set_device(0).ok());
  }
  cuda::emulator::configure({});
}

/// A thread that has used no device gets no context of the one that it has by default.
TEST(CudaDevices, NoContextOfAnotherDevice) {
  const TinyGraph tiny;
  cuda::emulator::configure({.devices = 3});
  {
    const auto engine = engine_of(1);
    PlanSide side(tiny, engine, engine->memory());
    const auto cache = side.paged("q4");
    OwnedBatch batch;
    ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{1, 2, 3}).ok());
    EXPECT_FALSE(side.run(batch).empty());
    const auto pool = PoolAllocator::create(1).value();
    EXPECT_TRUE(cuda::emulator::has_context(1));
    EXPECT_FALSE(cuda::emulator::has_context(0));
    EXPECT_EQ(current(), 0);
  }
  EXPECT_FALSE(cuda::emulator::has_context(0));
  {
    // A dry run has none at all until it asks how much memory there is.
    const auto queue = cuda::DeviceQueue::create(2, host_table(), true).value();
    void* at = nullptr;
    ASSERT_TRUE(queue->take(1000, &at).ok());
    queue->give_back(at);
    EXPECT_FALSE(cuda::emulator::has_context(2));
    EXPECT_TRUE(queue->free_bytes().ok());
    EXPECT_TRUE(cuda::emulator::has_context(2));
  }
  EXPECT_FALSE(cuda::emulator::has_context(0));
  cuda::emulator::configure({});
}

/// Kernels of a driver that has compiled them from older code lack what only newer devices have, so
/// the engine asks for none of it.
TEST(CudaDevices, KernelsOlderThanTheDevice) {
  struct Case {
    int major;
    int compiled_for;
    int32_t compute;
    bool programmatic;
  };
  for (const Case& c : {Case{9, 75, 75, false},
                        {9, 80, 80, false},
                        {9, 90, 90, true},
                        {10, 90, 90, true},
                        {12, 120, 120, true}}) {
    cuda::emulator::configure({.major = c.major, .compiled_for = c.compiled_for});
    {
      const auto pool = PoolAllocator::create(0).value();
      const auto queue = cuda::DeviceQueue::create(0, pool->table()).value();
      const cuda::DeviceQueue::Turn turn(*queue);
      EXPECT_EQ(queue->context().compute, c.compute) << c.major << ", " << c.compiled_for;
      EXPECT_EQ(queue->context().programmatic, c.programmatic);
    }
    cuda::emulator::configure({});
  }
}

/// The bytes that a table gave are all that the device lacks: its own pool has rounded none here.
TEST(CudaDevices, NoMemoryButThroughTheTable) {
  struct Counted {
    const engine::GpuTable* behind;
    size_t bytes = 0;
    std::map<void*, size_t> pieces = {};
  };
  auto pool = PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok());
  Counted counted = {&pool.value()->table()};
  engine::GpuTable table = *counted.behind;
  table.user = &counted;
  table.allocate = [](void* user, size_t bytes, void** out) -> int32_t {
    auto& of = *static_cast<Counted*>(user);
    const int32_t code = of.behind->allocate(of.behind->user, bytes, out);
    if (code != 0) return code;
    of.pieces[*out] = bytes;
    of.bytes += bytes;
    return 0;
  };
  table.release = [](void* user, void* at) -> int32_t {
    auto& of = *static_cast<Counted*>(user);
    of.bytes -= of.pieces[at];
    of.pieces.erase(at);
    return of.behind->release(of.behind->user, at);
  };
  table.copy = [](void* user, void* to, const void* from, size_t bytes, int32_t kind) -> int32_t {
    auto& of = *static_cast<Counted*>(user);
    return of.behind->copy(of.behind->user, to, from, bytes, kind);
  };
  table.allocate_pinned = nullptr;  // then the heap's
  table.release_pinned = nullptr;
  setenv("GEN_CUBLASLT", GEN_CUBLASLT_STUB, 1);
  const auto engine = engine_of(0, &table);
  {
    OpBench bench(engine);
    const Matrix w(DType::kBF16, 13, 96, 1);
    LinearCase c;
    c.weights = {&w};
    c.rows = 20;  // the stub refuses products without a workspace of 1 MiB
    const size_t before = counted.bytes;
    run(bench, c, random_row(20 * 96, 4));
    EXPECT_GE(counted.bytes, before + (size_t{1} << 20));
    EXPECT_EQ(cuda::emulator::live_device_bytes(), counted.bytes);
    const TinyGraph tiny;
    PlanSide side(tiny, engine, engine->memory());
    const auto cache = side.paged("fp16");
    for (int32_t token = 1; token < 7; ++token) {
      OwnedBatch batch;
      ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{token}).ok());
      side.run(batch);
      EXPECT_EQ(cuda::emulator::live_device_bytes(), counted.bytes);
    }
    EXPECT_GT(static_cast<cuda::CudaEngine&>(*engine).graphs().captured, 0U);
  }
  unsetenv("GEN_CUBLASLT");
}

}  // namespace
}  // namespace gen::test
