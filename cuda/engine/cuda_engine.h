// SPDX-License-Identifier: Apache-2.0
// The CUDA engine: operations are kernels (cuda/ops) on one queue of a device that all streams and
// the memory share. Read next: device_queue.h, ops_run.h.
#pragma once

#include <memory>
#include <string>

#include "cuda/engine/allocators.h"
#include "cuda/engine/device_memory.h"
#include "cuda/engine/device_queue.h"
#include "cuda/engine/step_graphs.h"
#include "engine/backend/backend.h"
#include "engine/engine.h"
#include "engine/engine_options.h"

namespace gen::cuda {

/// Immutable after creation. Threads: as for Engine; streams take turns on the queue.
class CudaEngine final : public engine::Engine {
 public:
  /// On options.device, with its own allocator where options.gpu_allocator is null.
  static Result<std::shared_ptr<engine::Engine>> create(const engine::EngineOptions& options);

  [[nodiscard]] const char* name() const noexcept override { return "cuda"; }
  [[nodiscard]] engine::EngineMemory& memory() noexcept override { return memory_; }

  [[nodiscard]] size_t weight_bytes(
      engine::WeightRole role,
      std::span<const engine::WeightSource> sources) const noexcept override;
  Result<std::shared_ptr<engine::WeightMemory>> new_weight_memory(size_t bytes) override;
  [[nodiscard]] bool has_room(std::span<const size_t> pieces) override;
  Result<std::unique_ptr<engine::Weight>> prepare(
      engine::WeightRole role, std::span<const engine::WeightSource> sources,
      const std::shared_ptr<engine::WeightMemory>& memory) override;
  [[nodiscard]] size_t activation_bytes(uint32_t forms, int64_t cols) const noexcept override;
  [[nodiscard]] bool packs_as_rows(uint32_t forms) const noexcept override {
    return forms == engine::kActF32;
  }
  [[nodiscard]] bool packs_in_place() const noexcept override { return true; }
  Result<std::unique_ptr<engine::Stream>> new_stream() override;

  [[nodiscard]] bool can(engine::Op op) const noexcept override { return is_engine_op(op); }
  Status run(engine::Stream& stream, const engine::OpArgs& args) override;
  [[nodiscard]] bool gathers() const noexcept override { return true; }
  [[nodiscard]] int64_t step_rows(int64_t n) const noexcept override;
  [[nodiscard]] int64_t room_rows(int64_t n) const noexcept override;
  [[nodiscard]] int32_t prompt_rows() const noexcept override;
  Status run_all(engine::Stream& stream, std::span<const engine::OpArgs> list) override;
  /// Counters of captured lists, for tests and profiles.
  [[nodiscard]] StepGraphs::Counts graphs();
  Status upload(engine::Stream& stream, engine::EnginePtr<std::byte> to, const void* from,
                size_t bytes) override;
  Status download(engine::Stream& stream, void* to, engine::EnginePtr<const std::byte> from,
                  size_t bytes) override;
  Status finish(engine::Stream& stream) override;

 private:
  CudaEngine(std::shared_ptr<const engine::GpuTable> table, std::shared_ptr<DeviceQueue> queue,
             std::shared_ptr<ThreadPool> pool) noexcept
      : table_(std::move(table)),
        queue_(std::move(queue)),
        memory_(queue_),
        graphs_(*queue_),
        pool_(std::move(pool)) {}

  std::shared_ptr<const engine::GpuTable> table_;  // outlives the queue
  std::shared_ptr<DeviceQueue> queue_;
  DeviceMemory memory_;
  StepGraphs graphs_;
  std::shared_ptr<ThreadPool> pool_;  // reads weights; may be null
};

/// Empty if there is a device, else a sentence that names the required driver version and the one
/// found. Called once, by the table's why_not.
std::string why_unavailable();

/// The table of this engine: see engine/backend/backend.h.
const gen_backend_v1& cuda_backend() noexcept;

}  // namespace gen::cuda
