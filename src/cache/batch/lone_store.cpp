// SPDX-License-Identifier: Apache-2.0
// See lone_store.h.
#include "cache/batch/lone_store.h"

#include <algorithm>

#include "cache/batch/row_codec.h"
#include "cache/limits.h"

namespace gen::cache {

Status LoneStore::open() const {
  return closed_ ? error(Code::kState, "the %s cache is closed", kind_) : Status();
}

Status LoneStore::ready() const {
  GEN_TRY(open());
  if (allocator_ != nullptr) return {};
  return error(Code::kState, "the %s cache was not initialised", kind_);
}

Status LoneStore::configure(const SequenceConfig& config) {
  if (begun() || configured_) {
    return error(Code::kState, "the %s cache has its configuration already", kind_);
  }
  if (config.padding < 0) return error(Code::kInvalidArgument, "a padding of %d", config.padding);
  config_ = config;
  config_.padding = std::max(config.padding, 1);
  configured_ = true;
  return {};
}

Status LoneStore::init(const SequenceLimits& limits, Allocator& allocator) {
  if (begun()) return error(Code::kState, "the %s cache was initialised before", kind_);
  if (!keeps_rows(limits.type)) {
    return error(Code::kInvalidArgument, "rows of %s", dtype_name(limits.type));
  }
  GEN_TRY(prepare(limits));
  limits_ = limits;
  allocator_ = &allocator;
  return {};
}

Status LoneStore::set_layer(int32_t layer) {
  GEN_TRY(ready());
  if (layer < 0 || layer >= kMaxLayers) {
    return error(Code::kOutOfRange, "layer %d outside [0, %d)", layer, kMaxLayers);
  }
  layer_ = layer;
  return {};
}

Status LoneStore::set_quota(int32_t entries) {
  GEN_TRY(open());
  if (entries < 0) return error(Code::kInvalidArgument, "a quota of %d entries", entries);
  return {};
}

}  // namespace gen::cache
