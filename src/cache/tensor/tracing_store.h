// SPDX-License-Identifier: Apache-2.0
// A tensor store that passes everything on to another and records appends and reads:
// kv_cache_tracing_new of the C API. The interface is tensor_provider.h, the record trace_log.h.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cache/tensor/tensor_provider.h"
#include "engine/trace/trace_log.h"

namespace gen::cache {

/// The schema of a cache's operations. The keys of a layer are a tensor that each append replaces:
///   KVCacheAppendK  inputs: the keys before, if any, and the new rows; output: the keys after
///   KVCacheGetK     input: the keys; output: what was read
/// and the same with V for values. Attribute: layer. A cut replaces the tensor by one that no
/// operation made. Calls that fail or find nothing are not recorded; one that cannot be recorded
/// for want of memory is not made.
class TracingStore final : public TensorProvider {
 public:
  static constexpr const char* kKind = "tracing";

  TracingStore(std::shared_ptr<TensorProvider> real, std::shared_ptr<engine::TraceLog> log)
      : real_(std::move(real)),
        log_(std::move(log)),
        traits_(real_->traits()),
        sides_(static_cast<size_t>(real_->num_layers())) {
    traits_.kind = kKind;
    traits_.can_clone = false;  // two recorders of one store would not agree
  }

  [[nodiscard]] const TensorTraits& traits() const noexcept override { return traits_; }
  Status update(int32_t layer, const float* k, const float* v, const TensorShape& shape) override;
  Status get(int32_t layer, float* k, float* v) const override;
  Status truncate(int32_t n) override { return real_->truncate(n); }
  Status reset() override { return real_->reset(); }
  Status save(StateWriter& to) const override { return real_->save(to); }
  Status restore(StateReader& from) override { return real_->restore(from); }

  [[nodiscard]] TensorShape shape(int32_t layer) const noexcept override {
    return real_->shape(layer);
  }
  [[nodiscard]] const TensorViews* views() const noexcept override { return real_->views(); }
  [[nodiscard]] const TensorBuffers* buffers() const noexcept override { return real_->buffers(); }
  [[nodiscard]] TensorCounters* counters() noexcept override { return real_->counters(); }
  [[nodiscard]] const TensorCounters* counters() const noexcept override {
    return std::as_const(*real_).counters();
  }
  [[nodiscard]] uint64_t changes(int32_t layer) const noexcept override {
    return real_->changes(layer);
  }
  [[nodiscard]] int32_t seq_len() const noexcept override { return real_->seq_len(); }
  [[nodiscard]] int32_t layer_seq_len(int32_t layer) const noexcept override {
    return real_->layer_seq_len(layer);
  }
  [[nodiscard]] int32_t kv_len(int32_t layer) const noexcept override {
    return real_->kv_len(layer);
  }
  [[nodiscard]] int32_t entry_positions(int32_t layer, int32_t entry,
                                        int32_t* first) const noexcept override {
    return real_->entry_positions(layer, entry, first);
  }
  [[nodiscard]] int32_t num_layers() const noexcept override { return real_->num_layers(); }
  [[nodiscard]] int32_t max_seq_len() const noexcept override { return real_->max_seq_len(); }
  [[nodiscard]] MemoryUse memory() const noexcept override { return real_->memory(); }

 private:
  /// The tensors that a layer's keys and values were after so many changes; 0 for none.
  struct Sides {
    int64_t k = 0;
    int64_t v = 0;
    uint64_t changes = 0;
  };

  /// Numbers for what a layer holds, which is something: those that it has, or new ones.
  const Sides& name_sides(int32_t layer) const;

  std::shared_ptr<TensorProvider> real_;
  std::shared_ptr<engine::TraceLog> log_;
  TensorTraits traits_;
  mutable std::vector<Sides> sides_;  // reading gives numbers, too
};

}  // namespace gen::cache
