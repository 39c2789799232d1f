// SPDX-License-Identifier: Apache-2.0
// See layered_store.h.
#include "cache/layered_store.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gen::cache {
namespace {

bool is_finite(float x) noexcept {
  constexpr uint32_t kExponent = 0x7F800000;
  return (std::bit_cast<uint32_t>(x) & kExponent) != kExponent;
}

/// Index of the first element that is not finite, or count.
size_t first_not_finite(const float* x, size_t count) noexcept {
  uint32_t found = 0;  // without a branch, so that the usual case runs in vectors
  for (size_t i = 0; i < count; ++i) found |= is_finite(x[i]) ? 0U : 1U;
  if (found == 0) return count;
  size_t at = 0;
  while (is_finite(x[at])) ++at;
  return at;
}

}  // namespace

Status LayeredStore::check(int32_t num_layers, int32_t max_seq_len) {
  if (num_layers < 0 || num_layers > kMaxLayers) {
    return error(Code::kInvalidArgument, "%d layers are outside [0, %d]", num_layers, kMaxLayers);
  }
  if (max_seq_len < 1) {
    return error(Code::kInvalidArgument, "max_seq_len %d is below 1", max_seq_len);
  }
  return {};
}

Status LayeredStore::check_update(int32_t layer, const TensorShape& shape) const {
  if (!has(layer)) {
    return error(Code::kOutOfRange, "layer %d outside a cache of %zu layers", layer,
                 lengths_.size());
  }
  if (shape.batch < 1 || shape.seq < 0 || shape.dim < 1) {
    return error(Code::kInvalidArgument, "shape [%d, %d, %d] is not [batch, seq, dim]", shape.batch,
                 shape.seq, shape.dim);
  }
  const TensorShape own = held(layer);
  if (own.seq > 0 && (own.batch != shape.batch || own.dim != shape.dim)) {
    return error(Code::kInvalidArgument,
                 "layer %d holds batch %d, dim %d; the update has batch %d, dim %d", layer,
                 own.batch, own.dim, shape.batch, shape.dim);
  }
  if (shape.seq > max_seq_len_ - own.seq) {
    return error(Code::kCacheFull, "layer %d holds %d of %d positions, no room for %d more", layer,
                 own.seq, max_seq_len_, shape.seq);
  }
  return {};
}

Status LayeredStore::check_finite(int32_t layer, const float* k, const float* v, size_t count) {
  for (const auto& [name, x] : {std::pair{"k", k}, std::pair{"v", v}}) {
    const size_t at = first_not_finite(x, count);
    if (at < count) {
      return error(Code::kInvalidArgument, "layer %d: %s[%zu] is %g, which this cache cannot keep",
                   layer, name, at, static_cast<double>(x[at]));
    }
  }
  return {};
}

TensorShape LayeredStore::held(int32_t layer) const noexcept {
  const Length& length = lengths_[static_cast<size_t>(layer)];
  return {length.batch, length.positions, length.dim};
}

TensorShape LayeredStore::shape(int32_t layer) const noexcept {
  if (layer_seq_len(layer) == 0) return {};
  return held(layer);
}

int32_t LayeredStore::layer_seq_len(int32_t layer) const noexcept {
  return has(layer) ? lengths_[static_cast<size_t>(layer)].positions.load() : 0;
}

void LayeredStore::advance(int32_t layer, const TensorShape& added) noexcept {
  Length& length = lengths_[static_cast<size_t>(layer)];
  length.batch = added.batch;
  length.dim = added.dim;
  length.positions += added.seq;
  note_agreement();
}

void LayeredStore::cut_layer(int32_t layer, int32_t n) noexcept {
  lengths_[static_cast<size_t>(layer)].positions = n;
}

void LayeredStore::settle() noexcept {
  int32_t least = agreed_;
  for (const Length& length : lengths_) least = std::min(least, length.positions.load());
  agreed_ = least;
  note_agreement();
}

void LayeredStore::cut(int32_t n) noexcept {
  const int32_t keep = std::max(n, 0);
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    cut_layer(layer, std::min(layer_seq_len(layer), keep));
  }
  settle();
}

void LayeredStore::copy_lengths(const LayeredStore& from) noexcept {
  for (size_t i = 0; i < lengths_.size(); ++i) {
    const Length& source = from.lengths_[i];
    if (source.positions == 0) continue;  // the next write may bring a new shape
    lengths_[i].batch = source.batch;
    lengths_[i].dim = source.dim;
    lengths_[i].positions = source.positions.load();
  }
  agreed_ = from.agreed_.load();
}

void LayeredStore::note_agreement() noexcept {
  if (lengths_.empty()) return;
  const int32_t first = lengths_[0].positions;
  for (const Length& length : lengths_) {
    if (length.positions != first) return;
  }
  agreed_ = first;
}

}  // namespace gen::cache
