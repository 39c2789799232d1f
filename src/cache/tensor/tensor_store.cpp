// SPDX-License-Identifier: Apache-2.0
// See tensor_store.h. Conversion to binary16 rounds to nearest even, with gradual underflow,
// overflow to infinity and a quiet NaN (tensor/half.h).
#include "cache/tensor/tensor_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/checked.h"
#include "tensor/half.h"

namespace gen::cache {

Result<std::unique_ptr<TensorStore>> TensorStore::create(DType type, int32_t num_layers,
                                                         int32_t max_seq_len, Allocator& allocator,
                                                         const TensorTraits* traits) {
  GEN_ASSERT(std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes));
  GEN_TRY(check(num_layers, max_seq_len));
  const TensorTraits& plain = type == DType::kF32 ? kFp32Traits : kFp16Traits;
  return std::unique_ptr<TensorStore>(new TensorStore(type, traits != nullptr ? *traits : plain,
                                                      num_layers, max_seq_len, allocator));
}

size_t TensorStore::element_bytes() const noexcept {
  return type_ == DType::kF32 ? sizeof(float) : sizeof(uint16_t);
}

bool TensorStore::half_bytes(const TensorShape& shape, size_t* bytes) const noexcept {
  *bytes = element_bytes();
  return checked_mul(*bytes, static_cast<size_t>(shape.batch), bytes) &&
         checked_mul(*bytes, static_cast<size_t>(max_seq_len()), bytes) &&
         checked_mul(*bytes, static_cast<size_t>(shape.dim), bytes) &&
         checked_align_up(*bytes, kBufferAlign, bytes);
}

Status TensorStore::make_room(int32_t layer, const TensorShape& shape) {
  Buffer& buffer = buffers_[static_cast<size_t>(layer)];
  size_t half = 0;
  size_t bytes = 0;
  if (!half_bytes(shape, &half) || !checked_mul(half, size_t{2}, &bytes)) {
    return error(Code::kOutOfMemory, "batch %d, dim %d and %d positions overflow a size",
                 shape.batch, shape.dim, max_seq_len());
  }
  if (bytes > buffer.size()) {
    GEN_ASSIGN(buffer, Buffer::allocate(allocator_, bytes));
  }
  return {};
}

Status TensorStore::update(int32_t layer, const float* k, const float* v,
                           const TensorShape& shape) {
  GEN_TRY(check_update(layer, shape));
  if (shape.seq == 0) return {};
  const Buffer& buffer = buffers_[static_cast<size_t>(layer)];
  const TensorShape before = held(layer);
  if (before.batch != shape.batch || before.dim != shape.dim) GEN_TRY(make_room(layer, shape));
  encode(shape, before.seq, k, buffer.data());
  encode(shape, before.seq, v, buffer.data() + buffer.size() / 2);
  advance(layer, shape);
  return {};
}

LayeredStore::StateForm TensorStore::state_form() const noexcept { return plain_form(type_); }

bool TensorStore::saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept {
  *bytes = 2 * element_bytes();
  return checked_mul(*bytes, static_cast<size_t>(shape.batch), bytes) &&
         checked_mul(*bytes, static_cast<size_t>(shape.seq), bytes) &&
         checked_mul(*bytes, static_cast<size_t>(shape.dim), bytes);
}

Status TensorStore::save_layer(int32_t layer, StateWriter& to) const {
  const TensorShape all = held(layer);
  const Buffer& buffer = buffers_[static_cast<size_t>(layer)];
  const size_t row = static_cast<size_t>(all.dim) * element_bytes();
  for (size_t half : {size_t{0}, buffer.size() / 2}) {
    for (size_t b = 0; b < static_cast<size_t>(all.batch); ++b) {
      const std::byte* lane = buffer.data() + half + b * static_cast<size_t>(max_seq_len()) * row;
      GEN_TRY(to.write({lane, static_cast<size_t>(all.seq) * row}));
    }
  }
  return {};
}

Status TensorStore::restore_layer(int32_t layer, const TensorShape& shape,
                                  std::span<const std::byte> bytes) {
  GEN_TRY(make_room(layer, shape));
  const Buffer& buffer = buffers_[static_cast<size_t>(layer)];
  const size_t row = static_cast<size_t>(shape.dim) * element_bytes();
  const size_t count = static_cast<size_t>(shape.seq) * row;
  for (size_t half : {size_t{0}, buffer.size() / 2}) {
    for (size_t b = 0; b < static_cast<size_t>(shape.batch); ++b, bytes = bytes.subspan(count)) {
      std::byte* lane = buffer.data() + half + b * static_cast<size_t>(max_seq_len()) * row;
      std::memcpy(lane, bytes.data(), count);
    }
  }
  return {};
}

void TensorStore::encode(const TensorShape& added, int32_t start, const float* from,
                         std::byte* to) const noexcept {
  const auto dim = static_cast<size_t>(added.dim);
  const size_t count = static_cast<size_t>(added.seq) * dim;
  const size_t lane = static_cast<size_t>(max_seq_len()) * dim;
  for (size_t b = 0; b < static_cast<size_t>(added.batch); ++b, from += count) {
    std::byte* place = to + (b * lane + static_cast<size_t>(start) * dim) * element_bytes();
    if (type_ == DType::kF32) {
      std::memcpy(place, from, count * sizeof(float));
    } else {
      auto* halves = reinterpret_cast<uint16_t*>(place);
      for (size_t i = 0; i < count; ++i) halves[i] = f32_to_f16(from[i]);
    }
  }
}

void TensorStore::decode(const TensorShape& shape, const std::byte* from,
                         float* to) const noexcept {
  const auto dim = static_cast<size_t>(shape.dim);
  const size_t count = static_cast<size_t>(shape.seq) * dim;
  const size_t lane = static_cast<size_t>(max_seq_len()) * dim;
  for (size_t b = 0; b < static_cast<size_t>(shape.batch); ++b, to += count) {
    const std::byte* place = from + b * lane * element_bytes();
    if (type_ == DType::kF32) {
      std::memcpy(to, place, count * sizeof(float));
    } else {
      const auto* halves = reinterpret_cast<const uint16_t*>(place);
      for (size_t i = 0; i < count; ++i) to[i] = f16_to_f32(halves[i]);
    }
  }
}

Status TensorStore::get(int32_t layer, float* k, float* v) const {
  const TensorShape all = shape(layer);
  if (all.seq == 0) return {};
  const Buffer& buffer = buffers_[static_cast<size_t>(layer)];
  if (k != nullptr) decode(all, buffer.data(), k);
  if (v != nullptr) decode(all, buffer.data() + buffer.size() / 2, v);
  return {};
}

TensorSpan TensorStore::view(int32_t layer) const noexcept {
  const int32_t length = layer_seq_len(layer);
  if (length == 0) return {};
  TensorSpan span = full_buffer(layer);
  span.shape.seq = length;
  return span;
}

TensorSpan TensorStore::full_buffer(int32_t layer) const noexcept {
  if (layer < 0 || layer >= num_layers() || held(layer).batch == 0) return {};
  TensorSpan span;
  span.shape = held(layer);
  span.shape.seq = max_seq_len();
  const Buffer& buffer = buffers_[static_cast<size_t>(layer)];
  span.k = buffer.data();
  span.v = buffer.data() + buffer.size() / 2;
  span.type = type_;
  span.seq_stride = static_cast<size_t>(span.shape.dim) * element_bytes();
  span.batch_stride = static_cast<size_t>(max_seq_len()) * span.seq_stride;
  return span;
}

Status TensorStore::truncate(int32_t n) {
  cut(n);
  return {};
}

MemoryUse TensorStore::memory() const noexcept {
  MemoryUse use;
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    const TensorShape all = shape(layer);
    use.resident += buffers_[static_cast<size_t>(layer)].size();
    use.payload += 2 * element_bytes() * static_cast<size_t>(all.batch) *
                   static_cast<size_t>(all.seq) * static_cast<size_t>(all.dim);
  }
  use.metadata = sizeof(*this) + bookkeeping_bytes() + buffers_.size() * sizeof(Buffer);
  return use;
}

Result<std::unique_ptr<TensorProvider>> TensorStore::clone() const {
  std::unique_ptr<TensorStore> copy(
      new TensorStore(type_, traits_, num_layers(), max_seq_len(), allocator_));
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    const TensorShape all = shape(layer);
    if (all.seq == 0) continue;  // empty; the next write may have another shape
    const Buffer& from = buffers_[static_cast<size_t>(layer)];
    Buffer& to = copy->buffers_[static_cast<size_t>(layer)];
    GEN_ASSIGN(to, Buffer::allocate(allocator_, from.size()));
    const size_t row = static_cast<size_t>(all.dim) * element_bytes();
    for (size_t b = 0; b < static_cast<size_t>(all.batch); ++b) {
      for (size_t half : {size_t{0}, from.size() / 2}) {
        const size_t offset = half + b * static_cast<size_t>(max_seq_len()) * row;
        std::memcpy(to.data() + offset, from.data() + offset, static_cast<size_t>(all.seq) * row);
      }
    }
  }
  copy->copy_lengths(*this);
  return std::unique_ptr<TensorProvider>(std::move(copy));
}

}  // namespace gen::cache
