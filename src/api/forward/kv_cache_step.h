// SPDX-License-Identifier: Apache-2.0
// A sequence's cache, lent to the forward function of a caller's model for reading during one step.
#pragma once

#include <memory>

#include "api/cache/kv_cache_handle.h"

namespace gen::api {

class StepForm final : public ModelForm {
 public:
  void lend(cache::KvCache* cache, const cache::CachePlan* step) noexcept {
    cache_ = cache;
    step_ = step;
  }
  [[nodiscard]] CacheName name(const CacheLabel& label) const noexcept override {
    return {"session's ", label.traits.kind};
  }
  [[nodiscard]] cache::KvCache* model_cache() const noexcept override { return cache_; }
  [[nodiscard]] Result<SavedForm> saved() const override {
    return Status(Code::kState, "a cache within a step cannot be saved");
  }
  [[nodiscard]] Result<std::unique_ptr<CacheForm>> clone() const override {
    return Status(Code::kUnsupported, "a cache within a step has no clone");
  }

 protected:
  /// A new plan would end the plan of the step.
  [[nodiscard]] Result<cache::CachePlan> committed() const override { return *step_; }

 private:
  cache::KvCache* cache_ = nullptr;
  const cache::CachePlan* step_ = nullptr;
};

class StepCache final : public OneSequence {
 public:
  StepCache() noexcept : OneSequence(CacheLabel()) {}
  /// `cache` and the plan of its step must outlive the object.
  void lend(cache::KvCache* cache, const cache::CachePlan* step) {
    label_ = label_of(*cache);
    label_.traits.can_clone = false;
    form_.lend(cache, step);
    OneSequence::lend(&form_);
  }
  [[nodiscard]] const char* read_only() const noexcept override {
    return "a cache within a step is read-only";
  }
  [[nodiscard]] bool has_means() const noexcept override {
    return form_.model_cache()->traits().has_means;
  }
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override {
    return form_.clone().status();
  }

 private:
  StepForm form_;
};

/// A handle and its body in one object, since each step makes one for each sequence.
struct StepHandle {
  StepCache body;
  kv_cache handle;

  void lend(cache::KvCache* cache, const cache::CachePlan* step) {
    body.lend(cache, step);
    handle.body = std::shared_ptr<CacheBody>(std::shared_ptr<void>(), &body);
    handle.in_use = &body.in_use();
    handle.borrowed = true;
  }
};

}  // namespace gen::api
