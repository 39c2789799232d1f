// SPDX-License-Identifier: Apache-2.0
// See wrapper_store.h.
#include "cache/batch/wrapper_store.h"

#include <algorithm>
#include <string_view>

#include "cache/batch/encoder_store.h"

namespace gen::cache {

Result<std::shared_ptr<WrapperStore>> WrapperStore::create(Children children) {
  if (children.empty()) return error(Code::kInvalidArgument, "a wrapper of 0 caches");
  for (size_t i = 0; i < children.size(); ++i) {
    if (!children[i]->begun()) continue;
    return error(Code::kState, "cache %zu was initialised or closed on its own", i);
  }
  return std::shared_ptr<WrapperStore>(new WrapperStore(std::move(children)));
}

Status WrapperStore::configure(const SequenceConfig& config) {
  if (configured_ || begun_)
    return error(Code::kState, "the wrapper cache has its configuration already");
  // Encoder stores do not pad, whatever the others do.
  for (const auto& child : children_) {
    if (child->configured()) continue;
    SequenceConfig own = config;
    if (child->kind() == std::string_view(EncoderStore::kKind))
      own.padding = std::min(own.padding, 1);
    GEN_TRY(child->configure(own));
  }
  configured_ = true;
  return {};
}

Status WrapperStore::init(const SequenceLimits& limits, Allocator& allocator) {
  for (size_t i = 0; i < children_.size(); ++i) {
    Status status;
    try {
      status = children_[i]->init(limits, allocator);
    } catch (...) {
      for (size_t j = 0; j < i; ++j) children_[j]->undo_init();
      throw;
    }
    if (status.ok()) continue;
    for (size_t j = 0; j < i; ++j) children_[j]->undo_init();
    return status;
  }
  begun_ = true;
  return {};
}

void WrapperStore::undo_init() noexcept {
  begun_ = false;
  for (const auto& child : children_) child->undo_init();
}

void WrapperStore::close() noexcept {
  begun_ = true;
  for (const auto& child : children_) child->close();
}

Status WrapperStore::set_layer(int32_t layer) {
  for (const auto& child : children_) GEN_TRY(child->set_layer(layer));
  return {};
}

Status WrapperStore::set_layer_type(int32_t type) {
  if (type < 0 || static_cast<size_t>(type) >= children_.size()) {
    return error(Code::kOutOfRange, "layer type %d outside a wrapper of %zu caches", type,
                 children_.size());
  }
  type_ = static_cast<size_t>(type);
  return {};
}

Status WrapperStore::set_shift(ShiftKeys shift) {
  std::vector<ShiftKeys> copies(children_.size(), shift);
  for (size_t i = 0; i < children_.size(); ++i) {
    GEN_TRY(children_[i]->set_shift(std::move(copies[i])));
  }
  return {};
}

Status WrapperStore::set_quota(int32_t entries) {
  for (const auto& child : children_) GEN_TRY(child->set_quota(entries));
  return {};
}

Status WrapperStore::plan_start(const SequenceBatch& batch) {
  for (const auto& child : children_) GEN_TRY(child->plan_start(batch));
  return {};
}

void WrapperStore::commit_start() noexcept {
  for (const auto& child : children_) child->commit_start();
  type_ = 0;
}

Status WrapperStore::plan_copy_prefix(int32_t src, int32_t dst, int32_t length) {
  for (const auto& child : children_) GEN_TRY(child->plan_copy_prefix(src, dst, length));
  return {};
}

void WrapperStore::commit_copy_prefix() noexcept {
  for (const auto& child : children_) child->commit_copy_prefix();
}

Result<bool> WrapperStore::can_resume(int32_t sequence, int32_t position) const {
  for (const auto& child : children_) {
    GEN_ASSIGN(const bool can, child->can_resume(sequence, position));
    if (!can) return false;
  }
  return true;
}

Status WrapperStore::plan_remove(int32_t sequence, int32_t begin, int32_t end) {
  for (const auto& child : children_) GEN_TRY(child->plan_remove(sequence, begin, end));
  return {};
}

void WrapperStore::commit_remove() noexcept {
  for (const auto& child : children_) child->commit_remove();
}

Result<int32_t> WrapperStore::plan_compact(int32_t budget) {
  int32_t moves = 0;
  for (const auto& child : children_) {
    GEN_ASSIGN(const int32_t own, child->plan_compact(budget - moves));
    moves += own;
  }
  return moves;
}

void WrapperStore::commit_compact() noexcept {
  for (const auto& child : children_) child->commit_compact();
}

const EncoderItems* WrapperStore::encoder_items() const noexcept {
  const auto keeps = [](const auto& child) { return child->encoder_items() != nullptr; };
  return std::any_of(children_.begin(), children_.end(), keeps) ? this : nullptr;
}

Result<bool> WrapperStore::encoder_cached(int32_t sequence) const {
  for (const auto& child : children_) {
    const EncoderItems* const items = child->encoder_items();
    if (items == nullptr) continue;
    GEN_ASSIGN(const bool cached, items->encoder_cached(sequence));
    if (cached) return true;
  }
  return false;
}

MemoryUse WrapperStore::memory() const noexcept {
  MemoryUse use;
  use.metadata = sizeof(*this) + children_.capacity() * sizeof(children_[0]);
  for (const auto& child : children_) {
    const MemoryUse own = child->memory();
    use.resident += own.resident;
    use.payload += own.payload;
    use.metadata += own.metadata;
  }
  return use;
}

}  // namespace gen::cache
