// SPDX-License-Identifier: Apache-2.0
// See tensor_store.h. binary16 rounds to nearest even, with gradual underflow, overflow to infinity
// and a quiet NaN (tensor/half.h).
#include "cache/tensor_store.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "tensor/half.h"

namespace gen::cache {

Status TensorStore::check(int32_t num_layers, int32_t max_seq_len) {
  if (num_layers < 0 || num_layers > kMaxLayers) {
    return error(Code::kInvalidArgument, "%d layers are outside [0, %d]", num_layers, kMaxLayers);
  }
  if (max_seq_len < 1) {
    return error(Code::kInvalidArgument, "max_seq_len %d is below 1", max_seq_len);
  }
  return {};
}

Result<std::unique_ptr<TensorStore>> TensorStore::create(engine::KvFormat format,
                                                         int32_t num_layers, int32_t max_seq_len,
                                                         Allocator& allocator) {
  GEN_TRY(check(num_layers, max_seq_len));
  return std::unique_ptr<TensorStore>(new TensorStore(format, num_layers, max_seq_len, allocator));
}

size_t TensorStore::element_bytes() const noexcept {
  return format_ == engine::KvFormat::kF32 ? sizeof(float) : sizeof(uint16_t);
}

const TensorStore::Layer* TensorStore::find(int32_t layer) const noexcept {
  if (layer < 0 || static_cast<size_t>(layer) >= layers_.size()) return nullptr;
  return &layers_[static_cast<size_t>(layer)];
}

bool TensorStore::half_bytes(const TensorShape& shape, size_t* bytes) const noexcept {
  *bytes = element_bytes();
  return checked_mul(*bytes, static_cast<size_t>(shape.batch), bytes) &&
         checked_mul(*bytes, static_cast<size_t>(max_seq_len_), bytes) &&
         checked_mul(*bytes, static_cast<size_t>(shape.dim), bytes) &&
         checked_align_up(*bytes, size_t{64}, bytes);
}

Status TensorStore::update(int32_t index, const float* k, const float* v,
                           const TensorShape& shape) {
  if (find(index) == nullptr) {
    return error(Code::kOutOfRange, "layer %d outside a cache of %zu layers", index,
                 layers_.size());
  }
  if (shape.batch < 1 || shape.seq < 0 || shape.dim < 1) {
    return error(Code::kInvalidArgument, "shape [%d, %d, %d] is not [batch, seq, dim]", shape.batch,
                 shape.seq, shape.dim);
  }
  Layer& layer = layers_[static_cast<size_t>(index)];
  const bool same_shape = layer.batch == shape.batch && layer.dim == shape.dim;
  if (layer.cursor > 0 && !same_shape) {
    return error(Code::kInvalidArgument,
                 "layer %d holds batch %d, dim %d; the update has batch %d, dim %d", index,
                 layer.batch, layer.dim, shape.batch, shape.dim);
  }
  if (shape.seq > max_seq_len_ - layer.cursor) {
    return error(Code::kCacheFull, "layer %d holds %d of %d positions, no room for %d more", index,
                 layer.cursor.load(), max_seq_len_, shape.seq);
  }
  if (shape.seq == 0) return {};
  if (!same_shape || layer.buffer.data() == nullptr) {
    size_t half = 0;
    size_t bytes = 0;
    if (!half_bytes(shape, &half) || !checked_mul(half, size_t{2}, &bytes)) {
      return error(Code::kOutOfMemory, "batch %d, dim %d and %d positions overflow a size",
                   shape.batch, shape.dim, max_seq_len_);
    }
    if (bytes > layer.buffer.size()) {
      GEN_ASSIGN(layer.buffer, Buffer::allocate(allocator_, bytes));
    }
    layer.batch = shape.batch;
    layer.dim = shape.dim;
  }
  encode(layer, k, shape.seq, layer.buffer.data());
  encode(layer, v, shape.seq, layer.buffer.data() + layer.buffer.size() / 2);
  layer.cursor += shape.seq;
  note_agreement();
  return {};
}

void TensorStore::encode(const Layer& layer, const float* from, int32_t seq,
                         std::byte* to) const noexcept {
  const auto dim = static_cast<size_t>(layer.dim);
  const size_t count = static_cast<size_t>(seq) * dim;
  const size_t lane = static_cast<size_t>(max_seq_len_) * dim;
  const size_t start = static_cast<size_t>(layer.cursor) * dim;
  for (size_t b = 0; b < static_cast<size_t>(layer.batch); ++b, from += count) {
    std::byte* place = to + (b * lane + start) * element_bytes();
    if (format_ == engine::KvFormat::kF32) {
      std::memcpy(place, from, count * sizeof(float));
    } else {
      auto* halves = reinterpret_cast<uint16_t*>(place);
      for (size_t i = 0; i < count; ++i) halves[i] = f32_to_f16(from[i]);
    }
  }
}

void TensorStore::decode(const Layer& layer, const std::byte* from, float* to) const noexcept {
  const auto dim = static_cast<size_t>(layer.dim);
  const size_t count = static_cast<size_t>(layer.cursor) * dim;
  const size_t lane = static_cast<size_t>(max_seq_len_) * dim;
  for (size_t b = 0; b < static_cast<size_t>(layer.batch); ++b, to += count) {
    const std::byte* place = from + b * lane * element_bytes();
    if (format_ == engine::KvFormat::kF32) {
      std::memcpy(to, place, count * sizeof(float));
    } else {
      const auto* halves = reinterpret_cast<const uint16_t*>(place);
      for (size_t i = 0; i < count; ++i) to[i] = f16_to_f32(halves[i]);
    }
  }
}

TensorShape TensorStore::shape(int32_t index) const noexcept {
  const Layer* layer = find(index);
  if (layer == nullptr || layer->cursor == 0) return {};
  return {layer->batch, layer->cursor, layer->dim};
}

void TensorStore::get(int32_t index, float* k, float* v) const noexcept {
  const Layer* layer = find(index);
  if (layer == nullptr || layer->cursor == 0) return;
  if (k != nullptr) decode(*layer, layer->buffer.data(), k);
  if (v != nullptr) decode(*layer, layer->buffer.data() + layer->buffer.size() / 2, v);
}

TensorSpan TensorStore::view(int32_t index) const noexcept {
  const Layer* layer = find(index);
  if (layer == nullptr || layer->cursor == 0) return {};
  TensorSpan span;
  span.k = layer->buffer.data();
  span.v = layer->buffer.data() + layer->buffer.size() / 2;
  span.shape = {layer->batch, layer->cursor, layer->dim};
  span.seq_stride = static_cast<size_t>(layer->dim) * element_bytes();
  span.batch_stride = static_cast<size_t>(max_seq_len_) * span.seq_stride;
  return span;
}

int32_t TensorStore::layer_seq_len(int32_t index) const noexcept {
  const Layer* layer = find(index);
  return layer != nullptr ? layer->cursor.load() : 0;
}

void TensorStore::note_agreement() noexcept {
  if (layers_.empty()) return;
  const int32_t first = layers_[0].cursor;
  for (const Layer& layer : layers_) {
    if (layer.cursor != first) return;
  }
  agreed_ = first;
}

void TensorStore::truncate(int32_t n) noexcept {
  const int32_t keep = std::max(n, 0);
  for (Layer& layer : layers_) layer.cursor = std::min(layer.cursor.load(), keep);
  agreed_ = std::min(agreed_.load(), keep);
  note_agreement();
}

MemoryUse TensorStore::memory() const noexcept {
  MemoryUse use;
  for (const Layer& layer : layers_) {
    use.resident += layer.buffer.size();
    use.payload += 2 * element_bytes() * static_cast<size_t>(layer.batch) *
                   static_cast<size_t>(layer.cursor) * static_cast<size_t>(layer.dim);
  }
  use.metadata = sizeof(*this) + layers_.size() * sizeof(Layer);
  return use;
}

Result<std::unique_ptr<TensorStore>> TensorStore::clone() const {
  std::unique_ptr<TensorStore> copy(
      new TensorStore(format_, num_layers(), max_seq_len_, allocator_));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& from = layers_[i];
    Layer& to = copy->layers_[i];
    if (from.cursor == 0) continue;  // nothing to keep, and the next write may bring a new shape
    GEN_ASSIGN(to.buffer, Buffer::allocate(allocator_, from.buffer.size()));
    to.batch = from.batch;
    to.dim = from.dim;
    to.cursor = from.cursor.load();
    const size_t lane = static_cast<size_t>(max_seq_len_) * static_cast<size_t>(from.dim);
    const size_t used = static_cast<size_t>(from.cursor) * static_cast<size_t>(from.dim);
    for (size_t b = 0; b < static_cast<size_t>(from.batch); ++b) {
      for (size_t half : {size_t{0}, from.buffer.size() / 2}) {
        const size_t offset = half + b * lane * element_bytes();
        std::memcpy(to.buffer.data() + offset, from.buffer.data() + offset, used * element_bytes());
      }
    }
  }
  copy->agreed_ = agreed_.load();
  return copy;
}

}  // namespace gen::cache
