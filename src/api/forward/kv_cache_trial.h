// SPDX-License-Identifier: Apache-2.0
// A cache handle during one forward pass of a model, which may fail.
#pragma once

#include <memory>

#include "api/cache/kv_cache_handle.h"
#include "api/model/model_handle.h"
#include "base/status.h"
#include "cache/sequence/cache_trial.h"

namespace gen::api {

/// A model that a call has entered; its handle may be freed meanwhile.
struct ModelInCall {
  std::shared_ptr<const ModelParts> parts;
  SharedCallbacks callbacks;
};

/// The model's cache of a handle for one forward pass. If the cache has no form yet it is made now,
/// in the memory of the model's device if there is one; keep_trial() then gives it to the handle.
/// kState for a cache of tensors or of many sequences, kInvalidArgument if it was shaped for other
/// layers. The caller holds the in-use flag while the trial exists.
Result<cache::CacheTrial> open_trial(const kv_cache& handle, const ModelInCall& model);

/// What a cache without form keeps after the pass; allocated before it, so that keep_trial() cannot
/// fail.
struct ShapedBy {
  std::unique_ptr<CacheForm> form;          // null: the cache has a form already
  std::shared_ptr<const ModelParts> model;  // set if the cache is in device memory
  SharedCallbacks callbacks;
};
ShapedBy shaped_by(const kv_cache& handle, const ModelInCall& model);
/// To be called after a successful pass: the cache keeps its form and the new entries.
void keep_trial(kv_cache& handle, ShapedBy by, cache::CacheTrial& trial) noexcept;

}  // namespace gen::api
