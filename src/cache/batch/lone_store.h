// SPDX-License-Identifier: Apache-2.0
// The common part of those stores of sequence_store.h that are one cache and not a wrapper:
// settings before their first pass, and the checks of all calls.
#pragma once

#include "cache/batch/sequence_store.h"

namespace gen::cache {

class LoneStore : public SequenceStore {
 public:
  [[nodiscard]] const char* kind() const noexcept final { return kind_; }
  Status configure(const SequenceConfig& config) override;
  [[nodiscard]] bool configured() const noexcept final { return configured_; }
  Status init(const SequenceLimits& limits, Allocator& allocator) final;
  void undo_init() noexcept override { allocator_ = nullptr; }
  [[nodiscard]] bool begun() const noexcept final { return closed_ || allocator_ != nullptr; }
  void close() noexcept override { closed_ = true; }
  Status set_layer(int32_t layer) final;
  Status set_quota(int32_t entries) override;
  [[nodiscard]] DType mask_type() const noexcept final { return config_.mask_type; }

 protected:
  /// `kind` is static text.
  explicit LoneStore(const char* kind) noexcept : kind_(kind) {}

  /// The last part of init(): checks that the store is possible with these limits.
  virtual Status prepare(const SequenceLimits& limits) = 0;

  [[nodiscard]] Status open() const;   // kState once closed
  [[nodiscard]] Status ready() const;  // and before init()
  [[nodiscard]] const SequenceConfig& config() const noexcept { return config_; }
  [[nodiscard]] const SequenceLimits& limits() const noexcept { return limits_; }
  [[nodiscard]] Allocator& allocator() const noexcept { return *allocator_; }  // when ready()
  [[nodiscard]] int32_t layer_index() const noexcept { return layer_; }

 private:
  const char* kind_;
  SequenceConfig config_;
  SequenceLimits limits_;
  Allocator* allocator_ = nullptr;  // there from init() on
  int32_t layer_ = 0;
  bool configured_ = false;
  bool closed_ = false;
};

}  // namespace gen::cache
