// SPDX-License-Identifier: Apache-2.0
// The content of a cache of one sequence: tensors, or a model's cache. kv_cache_body.h owns it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "cache/memory_use.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/state_file.h"
#include "cache/tensor/tensor_provider.h"

namespace gen::api {

struct CacheLabel;

/// The name of a cache in errors: "this is a <whose><kind> cache".
struct CacheName {
  const char* whose = "";
  const char* kind = "";
};

struct LayerShapes {
  cache::TensorShape k;
  cache::TensorShape v;
};

/// The kind and contents of a saved state. The cache must outlive it.
struct SavedForm {
  cache::StateKind kind;
  cache::StateContents contents;
};

/// The base class itself is the form of a cache before its first write; it holds nothing.
class CacheForm {
 public:
  CacheForm() = default;
  virtual ~CacheForm() = default;
  CacheForm(const CacheForm&) = delete;
  CacheForm& operator=(const CacheForm&) = delete;

  // May be called from any thread. Layers are those of the label.
  [[nodiscard]] virtual int32_t seq_len() const noexcept { return 0; }
  [[nodiscard]] virtual int32_t layer_seq_len(int32_t /*layer*/) const noexcept { return 0; }
  [[nodiscard]] virtual int32_t kv_len(int32_t /*layer*/) const noexcept { return 0; }
  [[nodiscard]] virtual int32_t max_seq_len(const CacheLabel& label) const noexcept;
  [[nodiscard]] virtual CacheName name(const CacheLabel& label) const noexcept;

  // May be called during a call on the cache, for any layer.
  /// The shapes that get() copies; all 0 for a layer that is empty or does not exist.
  [[nodiscard]] virtual Result<LayerShapes> shapes(int32_t /*layer*/) const {
    return LayerShapes();
  }
  virtual Status get(int32_t /*layer*/, float* /*k*/, float* /*v*/) const { return {}; }
  [[nodiscard]] virtual Result<cache::TensorSpan> view(int32_t /*layer*/) const {
    return cache::TensorSpan();
  }
  [[nodiscard]] virtual Result<cache::TensorSpan> full_buffer(int32_t layer,
                                                              const CacheLabel& label) const;
  /// count is 0 if there is no such entry.
  [[nodiscard]] virtual cache::EntryPositions positions_of(int32_t /*layer*/,
                                                           int32_t /*entry*/) const {
    return {0, 0};
  }
  virtual Status truncate(int32_t /*n*/) { return {}; }
  virtual Status reset() { return truncate(0); }
  [[nodiscard]] virtual cache::MemoryUse memory() const noexcept { return {}; }
  [[nodiscard]] virtual bool holds_positions() const noexcept { return false; }
  [[nodiscard]] virtual Result<std::unique_ptr<CacheForm>> clone() const {
    return std::make_unique<CacheForm>();
  }
  [[nodiscard]] virtual Result<SavedForm> saved() const {
    return Status(Code::kState, "the cache has not been written to");
  }
  /// kState if the form cannot take rows of kv_cache_update, a state of tensors, or a state of a
  /// model's cache.
  [[nodiscard]] virtual Status takes_rows() const { return {}; }
  [[nodiscard]] virtual Status takes_tensors() const { return {}; }
  [[nodiscard]] virtual Status takes_model_cache() const { return {}; }

  /// Whether the model's cache is only as large as what was loaded needs, and may have to give way
  /// to a larger one.
  [[nodiscard]] virtual bool grows() const noexcept { return false; }
  /// Replaces the model's cache, for a form that owns it.
  virtual void replace(std::unique_ptr<cache::KvCache> /*cache*/) noexcept {}
  /// The content. Exactly one of these is not null; none before the first write.
  [[nodiscard]] virtual cache::TensorProvider* tensors() const noexcept { return nullptr; }
  [[nodiscard]] virtual cache::KvCache* model_cache() const noexcept { return nullptr; }
};

class TensorForm final : public CacheForm {
 public:
  explicit TensorForm(std::unique_ptr<cache::TensorProvider> store) noexcept
      : store_(std::move(store)) {}

  [[nodiscard]] int32_t seq_len() const noexcept override { return store_->seq_len(); }
  [[nodiscard]] int32_t layer_seq_len(int32_t layer) const noexcept override {
    return store_->layer_seq_len(layer);
  }
  [[nodiscard]] int32_t kv_len(int32_t layer) const noexcept override {
    return store_->kv_len(layer);
  }
  [[nodiscard]] Result<LayerShapes> shapes(int32_t layer) const override {
    return LayerShapes{store_->shape(layer), store_->shape(layer)};
  }
  Status get(int32_t layer, float* k, float* v) const override { return store_->get(layer, k, v); }
  [[nodiscard]] Result<cache::TensorSpan> view(int32_t layer) const override;
  [[nodiscard]] Result<cache::TensorSpan> full_buffer(int32_t layer,
                                                      const CacheLabel& label) const override;
  [[nodiscard]] cache::EntryPositions positions_of(int32_t layer, int32_t entry) const override;
  Status truncate(int32_t n) override { return store_->truncate(n); }
  Status reset() override { return store_->reset(); }
  [[nodiscard]] cache::MemoryUse memory() const noexcept override { return store_->memory(); }
  [[nodiscard]] bool holds_positions() const noexcept override;
  [[nodiscard]] Result<std::unique_ptr<CacheForm>> clone() const override;
  [[nodiscard]] Result<SavedForm> saved() const override;
  [[nodiscard]] Status takes_model_cache() const override;
  [[nodiscard]] cache::TensorProvider* tensors() const noexcept override { return store_.get(); }

 private:
  std::unique_ptr<cache::TensorProvider> store_;
};

/// A model's cache, whoever owns it.
class ModelForm : public CacheForm {
 public:
  [[nodiscard]] int32_t seq_len() const noexcept override { return model_cache()->length(); }
  [[nodiscard]] int32_t layer_seq_len(int32_t /*layer*/) const noexcept override {
    return model_cache()->length();
  }
  [[nodiscard]] int32_t kv_len(int32_t /*layer*/) const noexcept override {
    return model_cache()->entries();
  }
  [[nodiscard]] Result<LayerShapes> shapes(int32_t layer) const override;
  Status get(int32_t layer, float* k, float* v) const override;
  [[nodiscard]] Result<cache::TensorSpan> view(int32_t layer) const override;
  [[nodiscard]] Result<cache::TensorSpan> full_buffer(int32_t layer,
                                                      const CacheLabel& label) const override;
  [[nodiscard]] cache::EntryPositions positions_of(int32_t layer, int32_t entry) const override;
  Status truncate(int32_t n) override { return model_cache()->truncate(n); }
  [[nodiscard]] cache::MemoryUse memory() const noexcept override {
    return model_cache()->memory();
  }
  [[nodiscard]] bool holds_positions() const noexcept override {
    return model_cache()->length() > 0;
  }
  [[nodiscard]] Result<std::unique_ptr<CacheForm>> clone() const override;
  [[nodiscard]] Result<SavedForm> saved() const override;
  [[nodiscard]] Status takes_rows() const override;
  [[nodiscard]] Status takes_tensors() const override;

 protected:
  /// A plan for reading the committed entries.
  [[nodiscard]] virtual Result<cache::CachePlan> committed() const {
    return model_cache()->plan(0);
  }

 private:
  [[nodiscard]] bool holds(int32_t layer) const noexcept;
};

/// A model's cache owned by the handle.
class OwnedForm final : public ModelForm {
 public:
  /// `cache` may be null if replace() is called before any other function.
  explicit OwnedForm(std::unique_ptr<cache::KvCache> cache, bool grows = false) noexcept
      : cache_(std::move(cache)), seen_(cache_.get()), grows_(grows) {}
  [[nodiscard]] bool grows() const noexcept override { return grows_; }
  void replace(std::unique_ptr<cache::KvCache> cache) noexcept override {
    seen_.store(cache.get(), std::memory_order_release);
    cache_ = std::move(cache);
  }

  [[nodiscard]] int32_t max_seq_len(const CacheLabel& label) const noexcept override;
  [[nodiscard]] CacheName name(const CacheLabel& label) const noexcept override;
  [[nodiscard]] cache::KvCache* model_cache() const noexcept override {
    return seen_.load(std::memory_order_acquire);
  }

 private:
  std::unique_ptr<cache::KvCache> cache_;
  std::atomic<cache::KvCache*> seen_;  // the cache as length getters read it, from any thread
  const bool grows_;
};

}  // namespace gen::api
