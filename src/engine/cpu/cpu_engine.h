// SPDX-License-Identifier: Apache-2.0
// The CPU engine. Each call is synchronous; its work is split over the thread pool. All levels give
// the same bits, with the exception named in base/kernels.h. Read next: kernel_table.h,
// base/ops_run.h.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "engine/cpu/kernel_table.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "engine/memory/host_memory.h"

namespace gen::engine::cpu {

/// Immutable after creation. Threads: as for Engine; calls on one pool take turns.
class CpuEngine final : public Engine {
 public:
  /// Uses the best kernels that run at options.cpu_level. Errors: kInvalidArgument without a pool
  /// or for a level that this machine does not run.
  static Result<std::shared_ptr<Engine>> create(const EngineOptions& options);

  [[nodiscard]] const char* name() const noexcept override { return "cpu"; }
  [[nodiscard]] EngineMemory& memory() noexcept override { return *memory_; }
  [[nodiscard]] bool reaches_host() const noexcept override { return distance_ == 0; }
  [[nodiscard]] const KernelTable& kernels() const noexcept { return kernels_; }

  [[nodiscard]] size_t weight_bytes(WeightRole role,
                                    std::span<const WeightSource> sources) const noexcept override;
  Result<std::shared_ptr<WeightMemory>> new_weight_memory(size_t bytes) override;
  Result<std::unique_ptr<Weight>> prepare(WeightRole role, std::span<const WeightSource> sources,
                                          const std::shared_ptr<WeightMemory>& memory) override;
  [[nodiscard]] size_t activation_bytes(uint32_t forms, int64_t cols) const noexcept override;
  Result<std::unique_ptr<Stream>> new_stream() override;

  [[nodiscard]] bool can(Op op) const noexcept override { return is_engine_op(op); }
  Status run(Stream& stream, const OpArgs& args) override;
  Status upload(Stream& stream, EnginePtr<std::byte> to, const void* from, size_t bytes) override;
  Status download(Stream& stream, void* to, EnginePtr<const std::byte> from, size_t bytes) override;
  Status finish(Stream& stream) override;

 private:
  explicit CpuEngine(const EngineOptions& options) noexcept
      : pool_(options.pool),
        allocator_(*options.allocator),
        own_memory_(*options.allocator),
        memory_(options.memory != nullptr ? options.memory : &own_memory_),
        distance_(options.distance),
        kernels_(kernel_table(options.cpu_level)),
        repack_(options.repack),
        dry_run_(options.dry_run) {}

  std::shared_ptr<ThreadPool> pool_;
  Allocator& allocator_;
  HostMemory own_memory_;
  EngineMemory* memory_;
  std::ptrdiff_t distance_;
  KernelTable kernels_;
  bool repack_;
  bool dry_run_;
};

}  // namespace gen::engine::cpu
