// SPDX-License-Identifier: Apache-2.0
// See cuda_engine.h.
#include "cuda/engine/cuda_engine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <variant>
#include <vector>

#include "cuda/engine/weight_loader.h"
#include "cuda/ops/ops_run.h"
#include "cuda/ops/pairs.h"
#include "cuda/ops/weight/weight.h"
#include "engine/access.h"

namespace gen::cuda {
namespace {

/// The largest step that is padded: padding larger ones costs time, and they are rarely alike.
constexpr int64_t kMaxPadded = 64;

/// The largest step that is captured into a graph. In larger steps the host is ahead of the device
/// anyway, and the last steps of prompts rarely have equal lengths, so their graphs would only
/// evict others.
constexpr int64_t kMaxGraphRows = 256;
/// Rows of a prompt step per multiprocessor: products have tiles of about 128 rows by 128 outputs,
/// so weights of 2,048 outputs give each multiprocessor a tile.
constexpr uint32_t kRowsEach = 8;
constexpr uint32_t kLeastPromptRows = 256;
constexpr uint32_t kMaxPromptRows = 2048;

using engine::Access;

/// Pinned host memory of a step until it is finished.
class CudaStream final : public engine::Stream {
 public:
  explicit CudaStream(const engine::GpuTable& table) noexcept : up_(table), down_(table) {}

  [[nodiscard]] size_t bytes() const noexcept override { return 0; }

  struct Download {
    void* to = nullptr;
    const std::byte* pinned = nullptr;
    size_t bytes = 0;
  };
  Staging up_;
  Staging down_;
  std::vector<Download> downloads_;
};

/// The number of rows of a list of operations: those of its first product.
int64_t rows_of(std::span<const engine::OpArgs> list) noexcept {
  for (const engine::OpArgs& args : list) {
    if (const auto* linear = std::get_if<engine::LinearArgs>(&args)) return linear->x.rows;
  }
  return 0;
}

CudaStream& own(engine::Stream& stream) { return static_cast<CudaStream&>(stream); }

}  // namespace

Result<std::shared_ptr<engine::Engine>> CudaEngine::create(const engine::EngineOptions& options) {
  if (options.dry_run && options.gpu_allocator == nullptr) {
    return error(Code::kInvalidArgument, "a dry run of the cuda engine without an allocator");
  }
  std::shared_ptr<const engine::GpuTable> table = options.gpu_allocator;
  if (table == nullptr) {
    GEN_ASSIGN(const std::shared_ptr<PoolAllocator> own, PoolAllocator::create(options.device));
    table = {own, &own->table()};
  } else if (const int32_t of = engine::gpu_allocator_device(*table); of != options.device) {
    return error(Code::kInvalidArgument, "the GPU allocator is of device %d, the engine of %d", of,
                 options.device);
  }
  GEN_ASSIGN(auto queue, DeviceQueue::create(options.device, *table, options.dry_run));
  return std::shared_ptr<engine::Engine>(
      new CudaEngine(std::move(table), std::move(queue), options.pool));
}

size_t CudaEngine::weight_bytes(engine::WeightRole role,
                                std::span<const engine::WeightSource> sources) const noexcept {
  return WeightLoader::bytes(role, sources);
}

Result<std::shared_ptr<engine::WeightMemory>> CudaEngine::new_weight_memory(size_t bytes) {
  if (bytes == 0) return std::shared_ptr<engine::WeightMemory>();
  GEN_ASSIGN(engine::EngineBuffer buffer, memory_.allocate(bytes));
  return std::shared_ptr<engine::WeightMemory>(
      std::make_shared<DeviceWeightMemory>(std::move(buffer)));
}

bool CudaEngine::has_room(std::span<const size_t> pieces) {
  if (!queue_->dry_run()) return Engine::has_room(pieces);
  auto left = queue_->free_bytes();
  if (!left.ok()) return false;
  for (const size_t bytes : pieces) {
    if (bytes > left.value()) return false;
    left.value() -= bytes;
  }
  return true;
}

Result<std::unique_ptr<engine::Weight>> CudaEngine::prepare(
    engine::WeightRole role, std::span<const engine::WeightSource> sources,
    const std::shared_ptr<engine::WeightMemory>& memory) {
  return WeightLoader(*queue_, memory_, pool_.get()).load(role, sources, memory);
}

size_t CudaEngine::activation_bytes(uint32_t forms, int64_t cols) const noexcept {
  return forms == 0 ? 0 : row_layout(forms, cols).bytes;
}

Result<std::unique_ptr<engine::Stream>> CudaEngine::new_stream() {
  return std::unique_ptr<engine::Stream>(std::make_unique<CudaStream>(queue_->table()));
}

Status CudaEngine::run(engine::Stream&, const engine::OpArgs& args) {
  const DeviceQueue::Turn turn(*queue_);
  GEN_TRY(queue_->usable());
  return queue_->note(
      std::visit([this](const auto& of) { return cuda::run(queue_->context(), of); }, args));
}

Status CudaEngine::run_all(engine::Stream&, std::span<const engine::OpArgs> list) {
  const DeviceQueue::Turn turn(*queue_);
  GEN_TRY(queue_->usable());
  const auto run_list = [this](std::span<const engine::OpArgs> part) {
    return queue_->note(cuda::run_list(queue_->context(), part));
  };
  if (rows_of(list) > kMaxGraphRows) return run_list(list);
  if (!queue_->dry_run()) return graphs_.run(list, run_list);
  GEN_TRY(run_list(list));
  if (rows_of(list) == 1) graphs_.foresee(list);
  return {};
}

int64_t CudaEngine::step_rows(int64_t n) const noexcept {
  return n < 1 || n > kMaxPadded ? n
                                 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}

int64_t CudaEngine::room_rows(int64_t n) const noexcept {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(n, kMaxPadded))));
}

int32_t CudaEngine::prompt_rows() const noexcept {
  const auto processors = static_cast<uint32_t>(std::max(queue_->properties().sm_count, 1));
  return static_cast<int32_t>(
      std::clamp(std::bit_floor(processors * kRowsEach), kLeastPromptRows, kMaxPromptRows));
}

StepGraphs::Counts CudaEngine::graphs() {
  const DeviceQueue::Turn turn(*queue_);
  return graphs_.counts();
}

Status CudaEngine::upload(engine::Stream& stream, engine::EnginePtr<std::byte> to, const void* from,
                          size_t bytes) {
  if (bytes == 0) return {};
  std::byte* pinned = nullptr;
  const DeviceQueue::Turn turn(*queue_);
  GEN_TRY(queue_->usable());
  GEN_TRY(own(stream).up_.take(bytes, &pinned));
  std::memcpy(pinned, from, bytes);
  return queue_->copy_up(Access::pointer(to), pinned, bytes);
}

Status CudaEngine::download(engine::Stream& stream, void* to,
                            engine::EnginePtr<const std::byte> from, size_t bytes) {
  if (bytes == 0) return {};
  std::byte* pinned = nullptr;
  const DeviceQueue::Turn turn(*queue_);
  GEN_TRY(queue_->usable());
  CudaStream& of = own(stream);
  of.downloads_.reserve(of.downloads_.size() + 1);
  GEN_TRY(of.down_.take(bytes, &pinned));
  GEN_TRY(queue_->copy_down(pinned, Access::pointer(from), bytes));
  of.downloads_.push_back({to, pinned, bytes});
  return {};
}

Status CudaEngine::finish(engine::Stream& stream) {
  CudaStream& of = own(stream);
  Status status;
  {
    const DeviceQueue::Turn turn(*queue_);
    status = queue_->finish();
  }
  if (status.ok()) {
    for (const CudaStream::Download& each : of.downloads_) {
      std::memcpy(each.to, each.pinned, each.bytes);
    }
  }
  of.downloads_.clear();
  of.up_.reset();
  of.down_.reset();
  return status;
}

}  // namespace gen::cuda
