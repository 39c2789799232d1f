// SPDX-License-Identifier: Apache-2.0
// Operations on memory between steps: lists are laid out in one piece of pinned memory, which is
// uploaded before the kernel. See device_memory.h.
#include "cuda/engine/device_memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <variant>

#include "cuda/ops/cache/memory_ops.h"
#include "engine/access.h"

namespace gen::cuda {
namespace {

using engine::Access;

/// Lists that are uploaded together; their offsets are computed before memory is allocated.
class Lists {
 public:
  /// Reserves n elements; returns their offset.
  template <typename T>
  size_t reserve(size_t n) {
    const size_t place = bytes_;
    bytes_ = (bytes_ + n * sizeof(T) + 63) / 64 * 64;
    return place;
  }
  Status take(DeviceQueue& queue) {
    bytes_ = std::max<size_t>(bytes_, 64);
    Status status = queue.take_lists(bytes_, &pinned_, &device_);
    // As EngineMemory says of memory to work in.
    if (status.code() == Code::kOutOfMemory) throw std::bad_alloc();
    return status;
  }
  template <typename T>
  [[nodiscard]] const T* device(size_t place) const {
    return reinterpret_cast<const T*>(device_ + place);
  }
  template <typename T>
  [[nodiscard]] T* pinned(size_t place) const {
    return reinterpret_cast<T*>(pinned_ + place);
  }
  Status commit(DeviceQueue& queue) const { return queue.commit_lists(pinned_, device_, bytes_); }

 private:
  size_t bytes_ = 0;
  std::byte* pinned_ = nullptr;
  uint8_t* device_ = nullptr;
};

/// Layers and tables of entries in lists.
class EntriesList {
 public:
  EntriesList(const engine::KvEntries& entries, Lists* lists)
      : entries_(entries),
        layers_(lists->reserve<engine::KvLayer>(entries.layers.size())),
        blocks_(lists->reserve<uint64_t>(entries.tables.blocks.size())),
        cells_(lists->reserve<int32_t>(entries.tables.cells.size())) {}

  EntriesView fill(const Lists& lists) const {
    std::copy(entries_.layers.begin(), entries_.layers.end(),
              lists.pinned<engine::KvLayer>(layers_));
    uint64_t* block = lists.pinned<uint64_t>(blocks_);
    for (const auto& address : entries_.tables.blocks) *block++ = address.address();
    std::copy(entries_.tables.cells.begin(), entries_.tables.cells.end(),
              lists.pinned<int32_t>(cells_));
    return {lists.device<engine::KvLayer>(layers_), lists.device<uint64_t>(blocks_),
            entries_.tables.cells.empty() ? nullptr : lists.device<int32_t>(cells_),
            entries_.tables.first_cell};
  }

 private:
  const engine::KvEntries& entries_;
  size_t layers_;
  size_t blocks_;
  size_t cells_;
};

class TurnsList {
 public:
  TurnsList(engine::RopeTables ropes, Lists* lists)
      : ropes_(ropes), turns_(lists->reserve<TurnView>(ropes.size())) {
    size_t floats = 0;
    for (const engine::RopeTable* rope : ropes) floats += pairs_of(rope);
    angles_ = lists->reserve<float>(floats);
  }

  const TurnView* fill(const Lists& lists) const {
    float* to = lists.pinned<float>(angles_);
    const float* there = lists.device<float>(angles_);
    TurnView* turn = lists.pinned<TurnView>(turns_);
    for (const engine::RopeTable* rope : ropes_) {
      *turn = {};
      if (rope != nullptr) {
        const size_t pairs = pairs_of(rope);
        turn->inv_freq = there;
        turn->n_dims = static_cast<int32_t>(2 * pairs);
        turn->adjacent = rope->kind == engine::RopeKind::kAdjacent ? 1 : 0;
        if (pairs > 0) std::memcpy(to, rope->inv_freq, pairs * sizeof(float));
        to += pairs;
        there += pairs;
      }
      ++turn;
    }
    return lists.device<TurnView>(turns_);
  }

 private:
  static size_t pairs_of(const engine::RopeTable* rope) {
    if (rope == nullptr || rope->kind == engine::RopeKind::kNone) return 0;
    return static_cast<size_t>(rope->n_dims / 2);
  }

  engine::RopeTables ropes_;
  size_t turns_;
  size_t angles_;
};

bool plain(engine::KvFormat format) {
  return format == engine::KvFormat::kF32 || format == engine::KvFormat::kF16;
}

}  // namespace

Status DeviceMemory::run(const engine::MemoryOp& op) {
  const DeviceQueue::Turn turn(*queue_);
  GEN_TRY(queue_->usable());
  return queue_->note(std::visit([this](const auto& args) { return run_one(args); }, op));
}

Status DeviceMemory::write(engine::EnginePtr<std::byte> to, const void* from, size_t bytes) {
  const DeviceQueue::Turn turn(*queue_);
  return queue_->write(Access::pointer(to), from, bytes);
}

Status DeviceMemory::read(void* to, engine::EnginePtr<const std::byte> from, size_t bytes) {
  if (bytes == 0) return {};
  Staging staging(queue_->table());
  std::byte* pinned = nullptr;
  const DeviceQueue::Turn turn(*queue_);
  GEN_TRY(queue_->usable());
  GEN_TRY(staging.take(bytes, &pinned));
  GEN_TRY(queue_->copy_down(pinned, Access::pointer(from), bytes));
  GEN_TRY(queue_->finish());
  std::memcpy(to, pinned, bytes);
  return {};
}

Status DeviceMemory::take(size_t bytes, engine::EnginePtr<std::byte>* out) {
  void* made = nullptr;
  GEN_TRY(queue_->take(bytes, &made));
  *out = engine::engine_ptr(static_cast<std::byte*>(made));
  return {};
}

void DeviceMemory::give_back(engine::EnginePtr<std::byte> at, size_t) noexcept {
  queue_->give_back(Access::pointer(at));
}

Status DeviceMemory::run_one(const engine::CopyArgs& args) {
  return queue_->copy(Access::pointer(args.to), Access::pointer(args.from), args.bytes);
}

Status DeviceMemory::run_one(const engine::FillArgs& args) {
  return queue_->fill(Access::pointer(args.at), static_cast<int32_t>(args.value), args.bytes);
}

Status DeviceMemory::run_one(const engine::KvCopyArgs& args) {
  GEN_ASSERT(args.from.layers.size() == args.to.layers.size());
  if (args.from.layers.empty()) return {};
  Lists lists;
  const EntriesList from(args.from, &lists);
  const EntriesList to(args.to, &lists);
  GEN_TRY(lists.take(*queue_));
  const EntriesView source = from.fill(lists);
  const EntriesView target = to.fill(lists);
  GEN_TRY(lists.commit(*queue_));
  for (const engine::KvRun& run : args.runs) {
    if (run.count <= 0) continue;
    GEN_TRY(kv_copy(queue_->context(), source, target,
                    static_cast<int32_t>(args.from.layers.size()), args.sides, run));
  }
  return {};
}

Status DeviceMemory::run_one(const engine::KvShiftArgs& args) {
  const std::span<const engine::KvLayer> layers = args.entries.layers;
  GEN_ASSERT(args.n >= 0 && args.turn > 0 && args.ropes.size() == layers.size());
  if (layers.empty() || args.first + args.n >= args.end) return {};
  int32_t columns = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (args.ropes[i] != nullptr && !plain(layers[i].k.format)) {
      return error(Code::kUnsupported, "the cuda engine does not turn keys of format %d",
                   static_cast<int>(layers[i].k.format));
    }
    columns = std::max({columns, kv_columns(layers[i].k, layers[i].kv_heads),
                        kv_columns(layers[i].v, layers[i].kv_heads)});
  }
  Lists lists;
  const EntriesList entries(args.entries, &lists);
  const TurnsList turns(args.ropes, &lists);
  GEN_TRY(lists.take(*queue_));
  const EntriesView view = entries.fill(lists);
  const TurnView* const turned = turns.fill(lists);
  GEN_TRY(lists.commit(*queue_));
  return kv_shift(queue_->context(), view, turned, static_cast<int32_t>(layers.size()), columns,
                  args.first, args.n, args.end, args.turn);
}

Status DeviceMemory::run_one(const engine::KvPoolArgs& args) {
  const std::span<const engine::KvLayer> layers = args.entries.layers;
  GEN_ASSERT(args.n > 0 && args.ropes.size() == layers.size());
  if (layers.empty()) return {};
  int32_t floats = 0;
  for (const engine::KvLayer& layer : layers) {
    floats = std::max(floats, layer.kv_heads * std::max(layer.k.head_dim, layer.v.head_dim));
  }
  Lists lists;
  const EntriesList entries(args.entries, &lists);
  const TurnsList turns(args.ropes, &lists);
  GEN_TRY(lists.take(*queue_));
  const EntriesView view = entries.fill(lists);
  const TurnView* const turned = turns.fill(lists);
  GEN_TRY(lists.commit(*queue_));
  return kv_pool(queue_->context(), view, turned, static_cast<int32_t>(layers.size()), floats,
                 args.first, args.n, args.to);
}

}  // namespace gen::cuda
