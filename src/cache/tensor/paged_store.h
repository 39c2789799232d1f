// SPDX-License-Identifier: Apache-2.0
// Tensors in blocks of a pool: kv_cache_paged_new of the C API. One store is one sequence; it holds
// a table of blocks that all its layers share, and any number of stores may share a pool and, by
// reference, blocks. The interface is tensor_provider.h, the pool block_pool.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/prefix/block_pool.h"
#include "cache/tensor/layered_store.h"
#include "engine/memory/host_memory.h"
#include "engine/memory/table_memory.h"

namespace gen::cache {

/// What lies in a block of tensors: keys in its first half, values in its second, each
/// [layer][position][row], a row holding the channels of one position one after the other.
struct BlockShape {
  int32_t layers = 0;
  int32_t block_size = 0;  // positions
  int32_t row_dim = 0;     // batch * dim of what is stored
  DType type = DType::kF32;

  [[nodiscard]] size_t element_bytes() const noexcept {
    return type == DType::kF32 ? sizeof(float) : sizeof(uint16_t);
  }
  [[nodiscard]] size_t row_bytes() const noexcept {
    return static_cast<size_t>(row_dim) * element_bytes();
  }
  /// Offset of a row in a half.
  [[nodiscard]] size_t row_offset(int32_t layer, int32_t position) const noexcept {
    return (static_cast<size_t>(layer) * static_cast<size_t>(block_size) +
            static_cast<size_t>(position)) *
           row_bytes();
  }
};

/// A pool and what its blocks hold.
class TensorPool {
 public:
  static constexpr DType kTypes[] = {DType::kF32, DType::kF16};

  /// As many blocks as fit max_memory_mb * 2^20 bytes. kInvalidArgument for numbers below 1, a type
  /// that is none of kTypes, and a budget below one block, telling what one takes. `allocator`
  /// must outlive the pool.
  static Result<std::shared_ptr<TensorPool>> create(const BlockShape& shape, int32_t max_memory_mb,
                                                    Allocator& allocator);

  [[nodiscard]] const BlockShape& shape() const noexcept { return shape_; }
  [[nodiscard]] BlockPool& blocks() noexcept { return blocks_; }
  /// kState once a block has been allocated.
  Status set_allocator(Allocator& allocator);
  /// The same with memory of a device: blocks then lie there, and are written and read by copies.
  Status set_gpu_allocator(std::shared_ptr<engine::GpuAllocator> allocator);

 private:
  TensorPool(const BlockShape& shape, size_t block_bytes, size_t count, Allocator& allocator)
      : shape_(shape),
        memory_(std::make_unique<engine::HostMemory>(allocator)),
        blocks_(block_bytes, shape.block_size, count, *memory_, true) {}

  BlockShape shape_;
  std::unique_ptr<engine::HostMemory> memory_;
  std::unique_ptr<engine::TableMemory> device_;  // in its place
  BlockPool blocks_;
};

inline constexpr TensorTraits kPagedTraits = {.kind = "paged"};
inline constexpr TensorTraits kPagedFp16Traits = {.kind = "paged", .dtype = "fp16", .lossy = true};

/// Invariant: the table holds one reference to each of its blocks, and covers the longest layer.
/// What is written goes to blocks that no other holds: a shared one is copied first. An update
/// takes all blocks that it needs before it writes anything. On a device rows are laid out in host
/// memory, and a block's go there together.
class PagedStore final : public LayeredStore, public TensorCopies {
 public:
  /// kInvalidArgument unless num_layers is in [1, the pool's layers].
  static Result<std::unique_ptr<PagedStore>> create(std::shared_ptr<TensorPool> pool,
                                                    int32_t num_layers);
  PagedStore(const PagedStore&) = delete;
  PagedStore& operator=(const PagedStore&) = delete;
  ~PagedStore() override { drop_blocks(0); }

  [[nodiscard]] const TensorTraits& traits() const noexcept override {
    return pool_->shape().type == DType::kF32 ? kPagedTraits : kPagedFp16Traits;
  }
  /// batch * dim must be the pool's row_dim, and batch and dim the same in all layers. Also
  /// kPoolExhausted.
  Status update(int32_t layer, const float* k, const float* v, const TensorShape& shape) override;
  Status get(int32_t layer, float* k, float* v) const override;
  /// Gives blocks back that hold no position any more.
  Status truncate(int32_t n) override;
  /// Blocks held, whether or not others hold them too.
  [[nodiscard]] MemoryUse memory() const noexcept override;
  /// A fork: shares all blocks. The cost is that of their number.
  [[nodiscard]] const TensorCopies* copies() const noexcept override { return this; }
  [[nodiscard]] Result<std::unique_ptr<TensorProvider>> clone() const override;
  /// The same with its type.
  [[nodiscard]] Result<std::unique_ptr<PagedStore>> copied() const;

  /// Block i holds positions [i * block_size, (i + 1) * block_size).
  [[nodiscard]] std::span<Block* const> block_table() const noexcept { return table_; }
  /// Takes one reference to each block over and makes every layer `positions` long. kState if the
  /// store is not empty or a block is not an allocated one of the pool; kInvalidArgument for too
  /// few blocks, a block twice, positions below 1, or a batch and dim that do not make a row.
  Status inject(std::span<Block* const> blocks, int32_t positions, int32_t batch, int32_t dim);

 protected:
  [[nodiscard]] StateForm state_form() const noexcept override;
  [[nodiscard]] bool saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept override;
  /// Keys, then values, as [batch, seq, dim].
  Status save_layer(int32_t layer, StateWriter& to) const override;
  Status restore_layer(int32_t layer, const TensorShape& shape,
                       std::span<const std::byte> bytes) override;
  void drop_restored() noexcept override { drop_blocks(0); }

 private:
  PagedStore(std::shared_ptr<TensorPool> pool, int32_t num_layers)
      : LayeredStore(num_layers, INT32_MAX), pool_(std::move(pool)) {}

  [[nodiscard]] int32_t longest() const noexcept;
  [[nodiscard]] Status check_row(int32_t batch, int32_t dim) const;
  /// Blocks that writing positions [start, end) takes: new ones, and copies of shared ones.
  Status make_writable(int32_t start, int32_t end);
  /// Positions of the first `length` that lie in a block.
  [[nodiscard]] int32_t covered(size_t block, int32_t length) const noexcept;
  /// Gives back all blocks from the `keep`th on.
  void drop_blocks(size_t keep) noexcept;
  Status write(int32_t layer, size_t half, const TensorShape& added, int32_t start,
               const float* from);
  Status read(int32_t layer, size_t half, const TensorShape& all, float* to) const;
  /// Positions from `position` on, of `left`, whose rows follow each other.
  [[nodiscard]] int32_t run_at(int32_t position, int32_t left) const noexcept;
  /// Where a position's row lies in a half.
  [[nodiscard]] engine::EnginePtr<std::byte> row(int32_t layer, size_t half,
                                                 int32_t position) const noexcept;

  std::shared_ptr<TensorPool> pool_;
  std::vector<Block*> table_;
  std::vector<std::byte> staged_;  // rows of a run, on their way to a device; kept for the next
};

}  // namespace gen::cache
