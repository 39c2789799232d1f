// SPDX-License-Identifier: Apache-2.0
// The wrapper of sequence_store.h: one cache for each type of layer, driven together. All of them
// plan an operation before any commits it, so that none is ahead of the others when one fails.
#pragma once

#include <memory>
#include <vector>

#include "cache/batch/sequence_store.h"

namespace gen::cache {

class WrapperStore final : public SequenceStore, private LayerTypes, private EncoderItems {
 public:
  using Children = std::vector<std::shared_ptr<SequenceStore>>;
  /// kInvalidArgument without children, kState for a child that was initialised or closed before.
  static Result<std::shared_ptr<WrapperStore>> create(Children children);

  [[nodiscard]] const char* kind() const noexcept override { return "wrapper"; }
  /// For the children that have none of their own.
  Status configure(const SequenceConfig& config) override;
  [[nodiscard]] bool configured() const noexcept override { return configured_; }
  Status init(const SequenceLimits& limits, Allocator& allocator) override;
  void undo_init() noexcept override;
  [[nodiscard]] bool begun() const noexcept override { return begun_; }
  void close() noexcept override;
  Status set_layer(int32_t layer) override;
  [[nodiscard]] LayerTypes* layer_types() noexcept override { return this; }
  Status set_shift(ShiftKeys shift) override;
  Status set_quota(int32_t entries) override;
  Status plan_start(const SequenceBatch& batch) override;
  /// Also goes back to layer type 0.
  void commit_start() noexcept override;
  Status put(const PutRows& k, const PutRows& v, int32_t n) override {
    return current().put(k, v, n);
  }
  Result<HistoryShape> shape() override { return current().shape(); }
  Status get(float* k, float* v, void* mask) override { return current().get(k, v, mask); }
  [[nodiscard]] DType mask_type() const noexcept override { return current().mask_type(); }
  Status set_causal(std::span<const int32_t> except) override {
    return current().set_causal(except);
  }
  Status plan_copy_prefix(int32_t src, int32_t dst, int32_t length) override;
  void commit_copy_prefix() noexcept override;
  [[nodiscard]] Result<bool> can_resume(int32_t sequence, int32_t position) const override;
  Status plan_remove(int32_t sequence, int32_t begin, int32_t end) override;
  void commit_remove() noexcept override;
  Result<int32_t> plan_compact(int32_t budget) override;
  void commit_compact() noexcept override;
  /// If a child has them.
  [[nodiscard]] const EncoderItems* encoder_items() const noexcept override;
  [[nodiscard]] MemoryUse memory() const noexcept override;

 private:
  explicit WrapperStore(Children children) noexcept : children_(std::move(children)) {}
  Status set_layer_type(int32_t type) override;
  [[nodiscard]] size_t layer_type() const noexcept override { return type_; }
  /// In any child.
  [[nodiscard]] Result<bool> encoder_cached(int32_t sequence) const override;
  [[nodiscard]] SequenceStore& current() const noexcept { return *children_[type_]; }

  Children children_;
  bool configured_ = false;
  bool begun_ = false;  // initialised or closed
  size_t type_ = 0;
};

}  // namespace gen::cache
