// SPDX-License-Identifier: Apache-2.0
// The CPU engine hands each operation to its free function. See cpu_engine.h.
#include "engine/cpu/cpu_engine.h"

#include <cstring>
#include <variant>

#include "engine/cpu/base/context.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/linear/weight.h"
#include "engine/cpu/pack/activations.h"

namespace gen::engine::cpu {

Result<std::shared_ptr<Engine>> CpuEngine::create(const EngineOptions& options) {
  if (options.pool == nullptr) {
    return error(Code::kInvalidArgument, "the cpu engine needs a thread pool");
  }
  const CpuLevel detected = detect_cpu_level();
  if (!cpu_level_runs(options.cpu_level, detected)) {
    return error(Code::kInvalidArgument,
                 "cpu level %s is not offered by this machine, which has %s",
                 cpu_level_name(options.cpu_level), cpu_level_name(detected));
  }
  return std::shared_ptr<Engine>(new CpuEngine(options));
}

Result<std::unique_ptr<Weight>> CpuEngine::prepare(WeightRole role,
                                                   std::span<const WeightSource> sources,
                                                   const std::shared_ptr<WeightMemory>& memory) {
  return CpuWeight::prepare(allocator_, *pool_, role, sources, kernels_, repack_, memory, dry_run_);
}

size_t CpuEngine::weight_bytes(WeightRole role,
                               std::span<const WeightSource> sources) const noexcept {
  return CpuWeight::tile_memory_bytes(role, sources, repack_);
}

Result<std::shared_ptr<WeightMemory>> CpuEngine::new_weight_memory(size_t bytes) {
  if (bytes == 0) return std::shared_ptr<WeightMemory>();
  GEN_ASSIGN(Buffer buffer, Buffer::allocate_large(allocator_, bytes));
  return std::shared_ptr<WeightMemory>(std::make_shared<TileMemory>(std::move(buffer)));
}

size_t CpuEngine::activation_bytes(uint32_t forms, int64_t cols) const noexcept {
  return packed_row_bytes(forms, cols);
}

Result<std::unique_ptr<Stream>> CpuEngine::new_stream() {
  return std::unique_ptr<Stream>(new CpuStream(allocator_));
}

Status CpuEngine::run(Stream& stream, const OpArgs& args) {
  CpuContext context{kernels_, *pool_, static_cast<CpuStream&>(stream), dry_run_, distance_};
  return std::visit([&](const auto& of) { return cpu::run(context, of); }, args);
}

Status CpuEngine::upload(Stream&, EnginePtr<std::byte> to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(Access::pointer(to, distance_), from, bytes);
  return {};
}

Status CpuEngine::download(Stream&, void* to, EnginePtr<const std::byte> from, size_t bytes) {
  if (bytes == 0) return {};
  if (dry_run_) {
    std::memset(to, 0, bytes);
  } else {
    std::memcpy(to, Access::pointer(from, distance_), bytes);
  }
  return {};
}

Status CpuEngine::finish(Stream&) { return {}; }

}  // namespace gen::engine::cpu
