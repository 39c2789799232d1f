// SPDX-License-Identifier: Apache-2.0
// See block_pool.h.
#include "cache/prefix/block_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gen::cache {
namespace {

constexpr size_t kSegmentBytes = size_t{1} << 20;

size_t sum_of(std::span<const BlockPart> parts) noexcept {
  size_t sum = 0;
  for (const BlockPart& part : parts) sum += part.bytes;
  return sum;
}

}  // namespace

BlockPool::BlockPool(std::span<const BlockPart> parts, int32_t block_size, size_t count) noexcept
    : parts_(parts.size()), block_bytes_(sum_of(parts)), block_size_(block_size), count_(count) {
  GEN_ASSERT(!parts.empty() && parts.size() <= kMaxBlockParts);
  for (size_t i = 0; i < parts.size(); ++i) {
    part_bytes_[i] = parts[i].bytes;
    memories_[i] = parts[i].memory;
  }
}

BlockPool::BlockPool(size_t block_bytes, int32_t block_size, size_t count,
                     engine::EngineMemory& memory, bool holds_tensors) noexcept
    : BlockPool(std::array{BlockPart{block_bytes, &memory}}, block_size, count) {
  holds_tensors_ = holds_tensors;
}

Status BlockPool::add_segment() {
  Segment segment;
  segment.count = std::min(segment_blocks(), count_ - made_);
  segment.blocks = std::make_unique<Block[]>(segment.count);
  for (size_t part = 0; part < parts_; ++part) {
    GEN_ASSIGN(segment.data[part], memory(part).allocate(segment.count * part_bytes_[part]));
  }
  Block* first = segment.blocks.get();
  const size_t count = segment.count;
  const auto& data = segments_.emplace(first, std::move(segment)).first->second.data;
  // In reverse, so that blocks are allocated in order.
  for (size_t i = count; i-- > 0;) {
    first[i].pool_ = this;
    for (size_t part = 0; part < parts_; ++part) {
      first[i].data_[part] = data[part].data() + static_cast<std::ptrdiff_t>(i * part_bytes_[part]);
    }
    put_back(&first[i]);
  }
  made_ += count;
  return {};
}

void BlockPool::put_back(Block* block) noexcept {
  block->next_free_ = free_;
  free_ = block;
}

Result<Block*> BlockPool::allocate() {
  Block* block = nullptr;
  GEN_TRY(allocate(std::span(&block, 1)));
  return block;
}

Status BlockPool::allocate(std::span<Block*> out) {
  for (;;) {
    Status full;
    {
      const std::lock_guard lock(mutex_);
      full = check_free(out.size());
      if (full.ok()) return take(out);
    }
    if (!reclaim(out.size())) return full;
  }
}

Status BlockPool::take(std::span<Block*> out) {
  // Adds segments first: on a failure they stay for the next call, and no block is taken.
  while (made_ - allocated_ < out.size()) GEN_TRY(add_segment());
  for (Block*& block : out) {
    block = std::exchange(free_, free_->next_free_);
    block->references_.store(1, std::memory_order_relaxed);
  }
  allocated_ += out.size();
  groups_[0].allocated += out.size();
  return {};
}

Status BlockPool::check_free(size_t wanted) const {
  if (wanted <= count_ - allocated_) return {};
  return error(Code::kPoolExhausted, "the pool has %zu of %zu blocks free, %zu wanted",
               count_ - allocated_, count_, wanted);
}

Status BlockPool::make_available(size_t wanted) {
  for (;;) {
    Status full;
    {
      const std::lock_guard lock(mutex_);
      full = check_free(wanted);
    }
    if (full.ok() || !reclaim(wanted)) return full;
  }
}

bool BlockPool::reclaim(size_t wanted) {
  if (wanted > count_) return false;
  const std::lock_guard lock(savers_mutex_);
  if (savers_.empty()) return false;
  const size_t free = available();
  if (free >= wanted) return true;  // another thread has freed enough meanwhile
  size_t lacking = wanted - free;
  size_t spare = 0;
  for (const BlockSaver* saver : savers_) spare += saver->spare();
  if (spare < lacking) return false;  // evicts nothing if that would not suffice
  size_t given = 0;
  for (BlockSaver* saver : savers_) {
    const size_t more = lacking > 0 ? saver->give_up(lacking) : 0;
    given += more;
    lacking -= std::min(more, lacking);
  }
  return given > 0;
}

size_t BlockPool::obtainable() {
  const std::lock_guard lock(savers_mutex_);
  size_t blocks = available();
  for (const BlockSaver* saver : savers_) blocks += saver->spare();
  return blocks;
}

void BlockPool::add_saver(BlockSaver& saver) {
  const std::lock_guard lock(savers_mutex_);
  savers_.push_back(&saver);
}

void BlockPool::remove_saver(const BlockSaver& saver) noexcept {
  const std::lock_guard lock(savers_mutex_);
  savers_.erase(std::remove(savers_.begin(), savers_.end(), &saver), savers_.end());
}

Block* BlockPool::find(const Block* block) const {
  const auto after = segments_.upper_bound(block);
  if (after == segments_.begin()) return nullptr;
  const auto& [first, segment] = *std::prev(after);
  // Compares addresses as integers: a foreign pointer may have any value.
  const auto offset = reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(first);
  if (offset % sizeof(Block) != 0 || offset / sizeof(Block) >= segment.count) return nullptr;
  return &segment.blocks[offset / sizeof(Block)];
}

bool BlockPool::holds(const Block* block) const {
  const std::lock_guard lock(mutex_);
  const Block* found = find(block);
  return found != nullptr && found->references() > 0;
}

Status BlockPool::retain(std::span<Block* const> blocks) {
  const std::lock_guard lock(mutex_);
  for (const Block* block : blocks) {
    const Block* own = find(block);
    if (own == nullptr) return {Code::kState, "the block is not one of this pool's"};
    if (own->references() == 0) return {Code::kState, "the block is free"};
  }
  for (Block* block : blocks) block->references_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status BlockPool::release(Block* block) {
  const std::lock_guard lock(mutex_);
  Block* own = find(block);
  if (own == nullptr) return {Code::kState, "the block is not one of this pool's"};
  if (own->references() == 0) return {Code::kState, "the block is free already"};
  if (own->references_.fetch_sub(1, std::memory_order_acq_rel) > 1) return {};
  set_used(*own, 0);
  if constexpr (kPoisons) {
    try {
      for (size_t part = 0; part < parts_; ++part) {
        static_cast<void>(
            memory(part).fill(own->data_[part], std::byte{kPoison}, part_bytes_[part]));
      }
    } catch (...) {  // no memory for the queue; caches release blocks where nothing may throw
    }
  }
  put_back(own);
  --allocated_;
  --groups_[own->group_].allocated;
  own->group_ = 0;
  return {};
}

void BlockPool::set_used(Block& block, int32_t positions) noexcept {
  GEN_ASSERT(positions >= 0 && positions <= block_size_);
  const int32_t before = block.used_.exchange(positions, std::memory_order_relaxed);
  groups_[block.group_].used.fetch_add(positions - before, std::memory_order_relaxed);
}

void BlockPool::set_group(Block& block, size_t group) noexcept {
  GEN_ASSERT(group < kMaxBlockGroups && block.references() == 1 && block.used() == 0);
  --groups_[block.group_].allocated;
  block.group_ = static_cast<uint8_t>(group);
  ++groups_[group].allocated;
}

void BlockPool::raise_used(Block& block, int32_t positions) noexcept {
  GEN_ASSERT(positions >= 0 && positions <= block_size_);
  int32_t before = block.used();
  while (before < positions) {
    if (!block.used_.compare_exchange_weak(before, positions)) continue;
    groups_[block.group_].used.fetch_add(positions - before, std::memory_order_relaxed);
    return;
  }
}

size_t BlockPool::available() const noexcept { return count_ - allocated_; }

double BlockPool::unused_share(size_t allocated, int64_t used) const noexcept {
  if (allocated == 0) return 0;
  return 1.0 - static_cast<double>(used) / (static_cast<double>(allocated) * block_size_);
}

double BlockPool::fragmentation() const noexcept {
  int64_t used = 0;
  for (const GroupUse& group : groups_) used += group.used;
  return unused_share(allocated_, used);
}

double BlockPool::fragmentation(size_t group) const noexcept {
  return unused_share(groups_[group].allocated, groups_[group].used);
}

size_t BlockPool::resident_bytes() const noexcept { return made_ * block_bytes_; }

size_t BlockPool::segment_blocks() const noexcept {
  return std::max(kSegmentBytes / block_bytes_, size_t{1});
}

size_t BlockPool::made_for(size_t used) const noexcept {
  const size_t segments = (std::min(used, count_) + segment_blocks() - 1) / segment_blocks();
  return std::min(segments * segment_blocks(), count_);
}

Status BlockPool::set_memory(engine::EngineMemory& memory) {
  const std::lock_guard lock(mutex_);
  if (!segments_.empty()) {
    return {Code::kState, "the pool has given out blocks; its allocator is set before that"};
  }
  memories_[0] = &memory;
  return {};
}

}  // namespace gen::cache
