// SPDX-License-Identifier: Apache-2.0
// A cache handle during one forward pass of a model, which may fail.
#pragma once

#include <memory>

#include "api/cache/kv_cache_handle.h"
#include "api/model/model_handle.h"
#include "base/status.h"
#include "cache/sequence/cache_trial.h"

namespace gen::api {

/// A model in a call that has entered it, whose handle may be freed meanwhile.
struct ModelInCall {
  std::shared_ptr<const ModelParts> parts;
  SharedCallbacks callbacks;
};

/// The model's form of a cache for one forward pass, made now if the cache has none yet, in memory
/// of the model's device if it is on one: then it is the handle's from keep_trial() on. kState for
/// a cache of tensors or of many sequences, kInvalidArgument if it was shaped for other layers. The
/// caller holds the in-use flag for as long as the trial lives.
Result<cache::CacheTrial> open_trial(const kv_cache& handle, const ModelInCall& model);

/// What a cache takes that gets its form in this pass: made before it, so that keeping cannot fail.
struct ShapedBy {
  std::unique_ptr<CacheForm> form;          // null: it has one
  std::shared_ptr<const ModelParts> model;  // where it lies on a device
  SharedCallbacks callbacks;
};
ShapedBy shaped_by(const kv_cache& handle, const ModelInCall& model);
/// The pass has succeeded: the cache keeps its form and what is in it.
void keep_trial(kv_cache& handle, ShapedBy by, cache::CacheTrial& trial) noexcept;

}  // namespace gen::api
