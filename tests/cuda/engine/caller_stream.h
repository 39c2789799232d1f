// SPDX-License-Identifier: Apache-2.0
// Streams and graphs of a program that uses the library, and device memory for caches: on the
// emulator, or with GEN_ON_DEVICE those of the machine's driver.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "engine/backend/registry.h"
#include "engine/memory/gpu_allocator.h"
#include "engine/memory/gpu_memory.h"
#ifdef GEN_ON_DEVICE
#include <dlfcn.h>
#else
#include "cuda/engine/cuda_engine.h"
#include "engine/backend/backend.h"
#endif

namespace gen::test {

#ifdef GEN_ON_DEVICE

/// The driver's functions; a missing one fails.
template <typename... Arguments>
void driver(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto call =
      reinterpret_cast<int (*)(Arguments...)>(library != nullptr ? dlsym(library, name) : nullptr);
  EXPECT_EQ(call != nullptr ? call(arguments...) : -1, 0) << name;
}

class CallerStream {
 public:
  CallerStream() { driver("cuStreamCreate", &stream_, 1U); }
  ~CallerStream() { driver("cuStreamDestroy_v2", stream_); }
  CallerStream(const CallerStream&) = delete;
  CallerStream& operator=(const CallerStream&) = delete;

  [[nodiscard]] void* get() const { return stream_; }
  void wait() { driver("cuStreamSynchronize", stream_); }
  void begin_capture() { driver("cuStreamBeginCapture_v2", stream_, 1); }
  /// What was captured since, to be started with replay().
  void* end_capture() {
    void* graph = nullptr;
    void* exec = nullptr;
    driver("cuStreamEndCapture", stream_, &graph);
    driver("cuGraphInstantiateWithFlags", &exec, graph, 0ULL);
    driver("cuGraphDestroy", graph);
    return exec;
  }
  void replay(void* exec) { driver("cuGraphLaunch", exec, stream_); }
  static void drop(void* exec) { driver("cuGraphExecDestroy", exec); }

 private:
  void* stream_ = nullptr;
};

inline Status append_by_backend(int32_t device, const engine::CountedAppend& append, void* stream) {
  return engine::append_on_device(device, append, stream);
}

#else

class CallerStream {
 public:
  CallerStream() { EXPECT_TRUE(cuda::device::stream_create(&stream_).ok()); }
  ~CallerStream() { static_cast<void>(cuda::device::stream_destroy(stream_)); }
  CallerStream(const CallerStream&) = delete;
  CallerStream& operator=(const CallerStream&) = delete;

  [[nodiscard]] void* get() const { return stream_; }
  void wait() { EXPECT_TRUE(cuda::device::stream_synchronize(stream_).ok()); }
  void begin_capture() { EXPECT_TRUE(cuda::device::capture_begin(stream_).ok()); }
  /// What was captured since, to be started with replay().
  void* end_capture() {
    cuda::device::Graph graph = nullptr;
    cuda::device::GraphExec exec = nullptr;
    EXPECT_TRUE(cuda::device::capture_end(stream_, &graph).ok());
    EXPECT_TRUE(cuda::device::graph_instantiate(graph, &exec).ok());
    EXPECT_TRUE(cuda::device::graph_destroy(graph).ok());
    return exec;
  }
  void replay(void* exec) {
    EXPECT_TRUE(
        cuda::device::graph_launch(static_cast<cuda::device::GraphExec>(exec), stream_).ok());
  }
  static void drop(void* exec) {
    EXPECT_TRUE(cuda::device::graph_exec_destroy(static_cast<cuda::device::GraphExec>(exec)).ok());
  }

 private:
  cuda::device::Stream stream_ = nullptr;
};

/// The registry would load a library; here the engine is linked in.
inline Status append_by_backend(int32_t device, const engine::CountedAppend& append, void* stream) {
  Status status;
  cuda::cuda_backend().append(device, &append, stream, &status);
  return status;
}

#endif

/// The device's own memory.
inline std::shared_ptr<const engine::GpuTable> device_table() {
#ifdef GEN_ON_DEVICE
  return std::move(engine::engine_row("cuda").value()->gpu_allocator(0)).value();
#else
  const std::shared_ptr<cuda::PoolAllocator> pool =
      std::move(cuda::PoolAllocator::create(0)).value();
  return {pool, &pool->table()};
#endif
}

/// Host memory as device -1.
inline const engine::GpuTable& host_table() {
  static const engine::GpuTable table = {
      sizeof(engine::GpuTable),
      nullptr,
      [](void*, size_t bytes, void** out) -> int32_t {
        *out = ::operator new(bytes, std::align_val_t{256});
        return 0;
      },
      [](void*, void* at) -> int32_t {
        ::operator delete(at, std::align_val_t{256});
        return 0;
      },
      [](void*, void* to, const void* from, size_t bytes, int32_t) -> int32_t {
        std::memcpy(to, from, bytes);
        return 0;
      },
      -1,
      nullptr,
      nullptr};
  return table;
}

/// An allocator table for caches whose calls fail on demand.
class TableAllocator final : public engine::GpuAllocator {
 public:
  explicit TableAllocator(const engine::GpuTable& table) : table_(table) {}

  int copies = 0;     // so far
  int fails_at = -1;  // index of the copy that fails

  Status allocate(size_t bytes, void** out) override {
    return told(table_.allocate(table_.user, bytes, out));
  }
  void release(void* at) noexcept override { static_cast<void>(table_.release(table_.user, at)); }
  Status copy_up(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, 0);
  }
  Status copy_down(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, 1);
  }
  Status copy_across(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes, 2);
  }
  Status append(const engine::CountedAppend& append, void* stream) override {
    const int32_t device = engine::gpu_allocator_device(table_);
    return device < 0 ? engine::append_on_device(device, append, stream)
                      : append_by_backend(device, append, stream);
  }

 private:
  static Status told(int32_t code) {
    return code == 0 ? Status() : error(static_cast<Code>(code), "status %d", code);
  }
  Status copy(void* to, const void* from, size_t bytes, int32_t kind) {
    if (copies++ == fails_at) return {Code::kDevice, "a copy fails"};
    return told(table_.copy(table_.user, to, from, bytes, kind));
  }

  const engine::GpuTable& table_;
};

}  // namespace gen::test
