// SPDX-License-Identifier: Apache-2.0
// See paged_store.h.
#include "cache/tensor/paged_store.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "base/to_size.h"
#include "base/checked.h"
#include "tensor/half.h"

namespace gen::cache {
namespace {

size_t blocks_for(int32_t positions, int32_t block_size) noexcept {
  return (to_size(positions) + to_size(block_size) - 1) / to_size(block_size);
}

void encode(DType type, const float* from, size_t count, std::byte* to) noexcept {
  if (type == DType::kF32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  auto* halves = reinterpret_cast<uint16_t*>(to);
  for (size_t i = 0; i < count; ++i) halves[i] = f32_to_f16(from[i]);
}

void decode(DType type, const std::byte* from, size_t count, float* to) noexcept {
  if (type == DType::kF32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  const auto* halves = reinterpret_cast<const uint16_t*>(from);
  for (size_t i = 0; i < count; ++i) to[i] = f16_to_f32(halves[i]);
}

/// Table entries for blocks whose allocation may fail or throw; they are removed in that case.
struct Names {
  std::vector<Block*>* table;
  size_t keep;
  ~Names() { table->resize(keep); }
};

}  // namespace

Result<std::shared_ptr<TensorPool>> TensorPool::create(const BlockShape& shape,
                                                       int32_t max_memory_mb,
                                                       Allocator& allocator) {
  if (shape.layers < 1 || shape.block_size < 1 || shape.row_dim < 1 || max_memory_mb < 1) {
    return error(
        Code::kInvalidArgument,
        "a pool of %d layers, blocks of %d positions, rows of %d elements and %d MiB: each "
        "must be at least 1",
        shape.layers, shape.block_size, shape.row_dim, max_memory_mb);
  }
  if (std::find(std::begin(kTypes), std::end(kTypes), shape.type) == std::end(kTypes)) {
    return error(Code::kInvalidArgument, "a pool cannot hold elements of type %s",
                 dtype_name(shape.type));
  }
  const size_t budget = to_size(max_memory_mb) << 20;
  size_t bytes = 2 * shape.row_bytes();
  if (!checked_mul(bytes, to_size(shape.layers), &bytes) ||
      !checked_mul(bytes, to_size(shape.block_size), &bytes)) {
    return error(Code::kInvalidArgument, "a block of %d layers of %d rows of %d overflows a size",
                 shape.layers, shape.block_size, shape.row_dim);
  }
  if (bytes > budget) {
    return error(Code::kInvalidArgument,
                 "a block takes %zu bytes, more than the %d MiB of the pool", bytes, max_memory_mb);
  }
  return std::shared_ptr<TensorPool>(new TensorPool(shape, bytes, budget / bytes, allocator));
}

Status TensorPool::set_allocator(Allocator& allocator) {
  auto memory = std::make_unique<engine::HostMemory>(allocator);
  GEN_TRY(blocks_.set_memory(*memory));
  memory_ = std::move(memory);
  device_.reset();
  return {};
}

Status TensorPool::set_gpu_allocator(std::shared_ptr<engine::GpuAllocator> allocator) {
  auto memory = std::make_unique<engine::TableMemory>(std::move(allocator));
  GEN_TRY(blocks_.set_memory(*memory));
  device_ = std::move(memory);
  return {};
}

Result<std::unique_ptr<PagedStore>> PagedStore::create(std::shared_ptr<TensorPool> pool,
                                                       int32_t num_layers) {
  if (num_layers < 1 || num_layers > pool->shape().layers) {
    return error(Code::kInvalidArgument, "%d layers are outside [1, %d], the pool's", num_layers,
                 pool->shape().layers);
  }
  GEN_TRY(check(num_layers, INT32_MAX));
  return std::unique_ptr<PagedStore>(new PagedStore(std::move(pool), num_layers));
}

int32_t PagedStore::longest() const noexcept {
  int32_t most = 0;
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    most = std::max(most, layer_seq_len(layer));
  }
  return most;
}

Status PagedStore::check_row(int32_t batch, int32_t dim) const {
  const int32_t row_dim = pool_->shape().row_dim;
  if (batch < 1 || int64_t{batch} * dim != row_dim) {
    return error(Code::kInvalidArgument, "batch %d, dim %d do not make a row of the pool's %d",
                 batch, dim, row_dim);
  }
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    const TensorShape own = shape(layer);
    if (own.seq > 0 && (own.batch != batch || own.dim != dim)) {
      return error(Code::kInvalidArgument,
                   "layer %d holds batch %d, dim %d; the update has batch %d, dim %d", layer,
                   own.batch, own.dim, batch, dim);
    }
  }
  return {};
}

Status PagedStore::update(int32_t layer, const float* k, const float* v, const TensorShape& added) {
  GEN_TRY(check_update(layer, added));
  GEN_TRY(check_row(added.batch, added.dim));
  if (added.seq == 0) return {};
  const int32_t start = layer_seq_len(layer);
  GEN_TRY(make_writable(start, start + added.seq));
  const auto drop = [this] { drop_blocks(blocks_for(longest(), pool_->shape().block_size)); };
  Status written;
  try {
    written = write(layer, 0, added, start, k);
    if (written.ok()) written = write(layer, 1, added, start, v);
  } catch (...) {
    drop();
    throw;
  }
  if (!written.ok()) {
    drop();
    return written;
  }
  advance(layer, added);
  // The number of blocks is that of the longest layer.
  const size_t blocks = blocks_for(longest(), pool_->shape().block_size);
  for (size_t i = to_size(start / pool_->shape().block_size); i < blocks; ++i) {
    if (table_[i]->references() == 1) pool_->blocks().set_used(*table_[i], covered(i, longest()));
  }
  return {};
}

Status PagedStore::make_writable(int32_t start, int32_t end) {
  const size_t first = to_size(start / pool_->shape().block_size);
  const size_t last = blocks_for(end, pool_->shape().block_size);
  const size_t known = std::min(last, table_.size());
  std::vector<size_t> shared;
  for (size_t i = first; i < known; ++i) {
    if (table_[i]->references() > 1) shared.push_back(i);
  }
  const size_t grown = last - known;
  if (shared.empty() && grown == 0) return {};
  BlockPool& blocks = pool_->blocks();
  GEN_TRY(blocks.make_available(shared.size() + grown));  // before the table grows
  if (shared.empty()) {
    Names names{&table_, known};
    table_.resize(last);  // grows geometrically
    GEN_TRY(blocks.allocate(std::span(table_).subspan(known)));
    names.keep = last;
    return {};
  }
  table_.reserve(table_.size() + grown);
  std::vector<Block*> taken(shared.size() + grown);
  GEN_TRY(blocks.allocate(taken));
  for (size_t i = 0; i < shared.size(); ++i) {
    Status copied =
        blocks.memory().copy(taken[i]->data(), table_[shared[i]]->data(), blocks.block_bytes());
    if (copied.ok()) continue;
    for (Block* block : taken) static_cast<void>(blocks.release(block));
    return copied;
  }
  auto next = taken.begin();
  for (size_t i : shared) {
    Block* copy = *next++;
    blocks.set_used(*copy, table_[i]->used());
    static_cast<void>(blocks.release(std::exchange(table_[i], copy)));
  }
  table_.insert(table_.end(), next, taken.end());
  return {};
}

int32_t PagedStore::covered(size_t block, int32_t length) const noexcept {
  const size_t start = block * to_size(pool_->shape().block_size);
  return static_cast<int32_t>(
      std::min(to_size(length) - start, to_size(pool_->shape().block_size)));
}

void PagedStore::drop_blocks(size_t keep) noexcept {
  while (table_.size() > keep) {
    // Fails only if a caller released a reference that it did not own.
    static_cast<void>(pool_->blocks().release(table_.back()));
    table_.pop_back();
  }
}

engine::EnginePtr<std::byte> PagedStore::row(int32_t layer, size_t half,
                                             int32_t position) const noexcept {
  const BlockShape& shape = pool_->shape();
  const Block& block = *table_[to_size(position / shape.block_size)];
  const size_t offset = half * (pool_->blocks().block_bytes() / 2) +
                        shape.row_offset(layer, position % shape.block_size);
  return block.data() + static_cast<std::ptrdiff_t>(offset);
}

int32_t PagedStore::run_at(int32_t position, int32_t left) const noexcept {
  const int32_t size = pool_->shape().block_size;
  return std::min(left, size - position % size);
}

Status PagedStore::write(int32_t layer, size_t half, const TensorShape& added, int32_t start,
                         const float* from) {
  const BlockShape& shape = pool_->shape();
  engine::EngineMemory& memory = pool_->blocks().memory();
  const size_t dim = to_size(added.dim);
  std::vector<std::byte>& rows = staged_;
  for (int32_t done = 0, run = 0; done < added.seq; done += run) {
    run = run_at(start + done, added.seq - done);
    const engine::EnginePtr<std::byte> at = row(layer, half, start + done);
    std::byte* to = memory.host(at);
    const bool staged = to == nullptr;
    if (staged) {
      const size_t bytes = to_size(run) * shape.row_bytes();
      if (rows.size() < bytes) rows.resize(bytes);
      to = rows.data();
    }
    // With one channel rows are contiguous on both sides.
    const int32_t together = added.batch == 1 ? run : 1;
    for (int32_t i = 0; i < run; i += together) {
      for (size_t channel = 0; channel < to_size(added.batch); ++channel) {
        encode(shape.type, from + (channel * to_size(added.seq) + to_size(done + i)) * dim,
               dim * to_size(together),
               to + to_size(i) * shape.row_bytes() + channel * dim * shape.element_bytes());
      }
    }
    if (staged) GEN_TRY(memory.write(at, rows.data(), to_size(run) * shape.row_bytes()));
  }
  return {};
}

Status PagedStore::read(int32_t layer, size_t half, const TensorShape& all, float* to) const {
  const BlockShape& shape = pool_->shape();
  engine::EngineMemory& memory = pool_->blocks().memory();
  const size_t dim = to_size(all.dim);
  std::vector<std::byte> rows;
  for (int32_t done = 0, run = 0; done < all.seq; done += run) {
    run = run_at(done, all.seq - done);
    const engine::EnginePtr<std::byte> at = row(layer, half, done);
    const std::byte* from = memory.host(at);
    if (from == nullptr) {
      rows.resize(to_size(run) * shape.row_bytes());
      GEN_TRY(memory.read(rows.data(), at, rows.size()));
      from = rows.data();
    }
    const int32_t together = all.batch == 1 ? run : 1;
    for (int32_t i = 0; i < run; i += together) {
      for (size_t channel = 0; channel < to_size(all.batch); ++channel) {
        decode(shape.type,
               from + to_size(i) * shape.row_bytes() + channel * dim * shape.element_bytes(),
               dim * to_size(together),
               to + (channel * to_size(all.seq) + to_size(done + i)) * dim);
      }
    }
  }
  return {};
}

Status PagedStore::get(int32_t layer, float* k, float* v) const {
  const TensorShape all = shape(layer);
  if (all.seq == 0) return {};
  if (k != nullptr) GEN_TRY(read(layer, 0, all, k));
  return v != nullptr ? read(layer, 1, all, v) : Status();
}

Status PagedStore::truncate(int32_t n) {
  const int32_t keep = std::max(n, 0);
  if (keep >= longest()) return {};
  cut(keep);
  drop_blocks(blocks_for(keep, pool_->shape().block_size));
  if (!table_.empty() && table_.back()->references() == 1) {
    pool_->blocks().set_used(*table_.back(), covered(table_.size() - 1, keep));
  }
  return {};
}

LayeredStore::StateForm PagedStore::state_form() const noexcept {
  StateForm form = plain_form(pool_->shape().type);
  form.one_shape = true;
  return form;
}

bool PagedStore::saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept {
  *bytes = 2 * pool_->shape().element_bytes();
  return checked_mul(*bytes, to_size(shape.batch), bytes) &&
         checked_mul(*bytes, to_size(shape.seq), bytes) &&
         checked_mul(*bytes, to_size(shape.dim), bytes);
}

Status PagedStore::save_layer(int32_t layer, StateWriter& to) const {
  const TensorShape all = held(layer);
  engine::EngineMemory& memory = pool_->blocks().memory();
  const size_t row_bytes = pool_->shape().row_bytes();
  const size_t bytes = to_size(all.dim) * pool_->shape().element_bytes();
  for (size_t half : {size_t{0}, size_t{1}}) {
    std::vector<std::byte> rows;  // host copy of device rows
    if (!memory.in_host()) rows.resize(to_size(all.seq) * row_bytes);
    for (int32_t done = 0, run = 0; !rows.empty() && done < all.seq; done += run) {
      run = run_at(done, all.seq - done);
      GEN_TRY(memory.read(rows.data() + to_size(done) * row_bytes, row(layer, half, done),
                          to_size(run) * row_bytes));
    }
    for (size_t channel = 0; channel < to_size(all.batch); ++channel) {
      for (int32_t position = 0; position < all.seq; ++position) {
        const std::byte* const from = rows.empty() ? memory.host(row(layer, half, position))
                                                   : rows.data() + to_size(position) * row_bytes;
        GEN_TRY(to.write({from + channel * bytes, bytes}));
      }
    }
  }
  return {};
}

Status PagedStore::restore_layer(int32_t layer, const TensorShape& shape,
                                 std::span<const std::byte> bytes) {
  GEN_TRY(check_row(shape.batch, shape.dim));
  GEN_TRY(make_writable(0, shape.seq));
  engine::EngineMemory& memory = pool_->blocks().memory();
  const size_t row_bytes = pool_->shape().row_bytes();
  const size_t part = to_size(shape.dim) * pool_->shape().element_bytes();
  for (size_t half : {size_t{0}, size_t{1}}) {
    std::vector<std::byte> rows;  // host copy for device rows
    if (!memory.in_host()) rows.resize(to_size(shape.seq) * row_bytes);
    for (size_t channel = 0; channel < to_size(shape.batch); ++channel) {
      for (int32_t position = 0; position < shape.seq; ++position, bytes = bytes.subspan(part)) {
        std::byte* const to = rows.empty() ? memory.host(row(layer, half, position))
                                           : rows.data() + to_size(position) * row_bytes;
        std::memcpy(to + channel * part, bytes.data(), part);
      }
    }
    for (int32_t done = 0, run = 0; !rows.empty() && done < shape.seq; done += run) {
      run = run_at(done, shape.seq - done);
      GEN_TRY(memory.write(row(layer, half, done), rows.data() + to_size(done) * row_bytes,
                           to_size(run) * row_bytes));
    }
  }
  for (size_t i = 0; i < blocks_for(shape.seq, pool_->shape().block_size); ++i) {
    pool_->blocks().raise_used(*table_[i], covered(i, shape.seq));
  }
  return {};
}

MemoryUse PagedStore::memory() const noexcept {
  MemoryUse use;
  use.resident = table_.size() * pool_->blocks().block_bytes();
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    use.payload += 2 * to_size(layer_seq_len(layer)) * pool_->shape().row_bytes();
  }
  use.metadata =
      sizeof(*this) + bookkeeping_bytes() + table_.capacity() * sizeof(Block*) + staged_.capacity();
  return use;
}

Result<std::unique_ptr<PagedStore>> PagedStore::copied() const {
  std::unique_ptr<PagedStore> copy(new PagedStore(pool_, num_layers()));
  copy->table_.reserve(table_.size());
  for (Block* block : table_) {
    GEN_TRY(pool_->blocks().retain(block));
    copy->table_.push_back(block);
  }
  copy->copy_lengths(*this);
  return copy;
}

Result<std::unique_ptr<TensorProvider>> PagedStore::clone() const {
  GEN_ASSIGN(std::unique_ptr<TensorProvider> made, copied());
  return made;
}

Status PagedStore::inject(std::span<Block* const> blocks, int32_t positions, int32_t batch,
                          int32_t dim) {
  if (longest() > 0) {
    return error(Code::kState, "the cache holds %d positions; blocks go into an empty one",
                 longest());
  }
  if (positions < 1) {
    return error(Code::kInvalidArgument, "%d positions to inject are below 1", positions);
  }
  const int32_t size = pool_->shape().block_size;
  if (blocks_for(positions, size) > blocks.size()) {
    return error(Code::kInvalidArgument, "%zu blocks of %d positions do not hold %d", blocks.size(),
                 size, positions);
  }
  GEN_TRY(check_row(batch, dim));
  std::vector<Block*> table(blocks.begin(), blocks.end());
  std::sort(table.begin(), table.end(), std::less<>());
  if (std::adjacent_find(table.begin(), table.end()) != table.end()) {
    return {Code::kInvalidArgument, "a block is given twice"};
  }
  table.assign(blocks.begin(), blocks.end());
  for (size_t i = 0; i < table.size(); ++i) {
    if (!pool_->blocks().holds(table[i])) {
      return error(Code::kState, "block %zu is not an allocated one of the cache's pool", i);
    }
  }
  table_ = std::move(table);
  for (size_t i = 0; i < blocks_for(positions, size); ++i) {
    pool_->blocks().raise_used(*table_[i], covered(i, positions));
  }
  for (int32_t layer = 0; layer < num_layers(); ++layer) advance(layer, {batch, positions, dim});
  return {};
}

}  // namespace gen::cache
