// SPDX-License-Identifier: Apache-2.0
// See compressed_store.h.
#include "cache/tensor/compressed_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/to_size.h"
#include "base/checked.h"

namespace gen::cache {
namespace {

}  // namespace

Result<std::unique_ptr<CompressedStore>> CompressedStore::create(int32_t num_layers, int32_t chunk,
                                                                 Allocator& allocator) {
  GEN_TRY(check(num_layers, INT32_MAX));
  if (chunk < 1) return error(Code::kInvalidArgument, "chunk_size %d is below 1", chunk);
  return std::unique_ptr<CompressedStore>(new CompressedStore(num_layers, chunk, allocator));
}

float* CompressedStore::lane_of(const Layer& layer, size_t dim, size_t half, size_t lane) noexcept {
  return layer.buffer.as<float>() + half * (layer.buffer.size() / sizeof(float) / 2) +
         lane * layer.room * dim;
}

Status CompressedStore::grow(int32_t index, const TensorShape& shape, int32_t wanted) {
  Layer& layer = layers_[to_size(index)];
  const TensorShape before = held(index);
  const bool same = before.batch == shape.batch && before.dim == shape.dim;
  if (same && to_size(wanted) <= layer.room) return {};
  const size_t row = to_size(shape.batch) * to_size(shape.dim);
  const size_t reused = layer.buffer.size() / 2 / sizeof(float) / row;
  if (!same && to_size(wanted) <= reused) {
    layer.room = reused;
    return {};
  }
  // Doubles the room, so that each position is moved a bounded number of times.
  const size_t room = std::max(to_size(wanted), same ? 2 * layer.room : size_t{16});
  size_t half = sizeof(float);
  if (!checked_mul(half, to_size(shape.batch), &half) || !checked_mul(half, room, &half) ||
      !checked_mul(half, to_size(shape.dim), &half) ||
      !checked_align_up(half, kBufferAlign, &half) || half > SIZE_MAX / 2) {
    return error(Code::kOutOfMemory, "batch %d, dim %d and %zu entries overflow a size",
                 shape.batch, shape.dim, room);
  }
  Layer grown;
  grown.room = room;
  grown.retired.reserve(layer.retired.size() + 1);
  GEN_ASSIGN(grown.buffer, Buffer::allocate(allocator_, 2 * half));
  if (same) {
    const size_t dim = to_size(shape.dim);
    const size_t bytes = to_size(entries(before.seq)) * dim * sizeof(float);
    for (size_t lane = 0; lane < to_size(shape.batch); ++lane) {
      for (size_t part : {size_t{0}, size_t{1}}) {
        std::memcpy(lane_of(grown, dim, part, lane), lane_of(layer, dim, part, lane), bytes);
      }
    }
    std::move(layer.retired.begin(), layer.retired.end(), std::back_inserter(grown.retired));
    grown.retired.push_back(std::move(layer.buffer));
  }
  layer = std::move(grown);
  return {};
}

Status CompressedStore::update(int32_t index, const float* k, const float* v,
                               const TensorShape& shape) {
  GEN_TRY(check_update(index, shape));
  if (shape.seq == 0) return {};
  const int32_t length = layer_seq_len(index);
  GEN_TRY(grow(index, shape, entries(length + shape.seq)));
  const Layer& layer = layers_[to_size(index)];
  const size_t dim = to_size(shape.dim);
  for (size_t lane = 0; lane < to_size(shape.batch); ++lane) {
    const size_t from = lane * to_size(shape.seq) * dim;
    append(lane_of(layer, dim, 0, lane), dim, length, shape.seq, k + from);
    append(lane_of(layer, dim, 1, lane), dim, length, shape.seq, v + from);
  }
  advance(index, shape);
  return {};
}

void CompressedStore::append(float* lane, size_t dim, int32_t length, int32_t seq,
                             const float* x) const noexcept {
  while (seq > 0) {
    const size_t open = to_size(length % chunk_);
    const int32_t taken = std::min(seq, chunk_ - length % chunk_);
    float* first = lane + to_size(length / chunk_) * dim;  // rows of the open chunk, later its mean
    if (open + to_size(taken) < to_size(chunk_)) {
      std::memcpy(first + open * dim, x, to_size(taken) * dim * sizeof(float));
    } else {
      for (size_t d = 0; d < dim; ++d) {
        double sum = 0;
        for (size_t p = 0; p < open; ++p) sum += static_cast<double>(first[p * dim + d]);
        for (size_t p = 0; p < to_size(taken); ++p) sum += static_cast<double>(x[p * dim + d]);
        first[d] = static_cast<float>(sum / chunk_);
      }
    }
    length += taken;
    seq -= taken;
    x += to_size(taken) * dim;
  }
}

TensorShape CompressedStore::shape(int32_t layer) const noexcept {
  if (layer_seq_len(layer) == 0) return {};
  const TensorShape all = held(layer);
  return {all.batch, entries(all.seq), all.dim};
}

Status CompressedStore::get(int32_t layer, float* k, float* v) const {
  const TensorShape all = shape(layer);
  if (all.seq == 0) return {};
  const size_t dim = to_size(all.dim);
  const size_t count = to_size(all.seq) * dim;
  for (size_t lane = 0; lane < to_size(all.batch); ++lane) {
    const Layer& from = layers_[to_size(layer)];
    if (k != nullptr) std::copy_n(lane_of(from, dim, 0, lane), count, k + lane * count);
    if (v != nullptr) std::copy_n(lane_of(from, dim, 1, lane), count, v + lane * count);
  }
  return {};
}

TensorSpan CompressedStore::view(int32_t layer) const noexcept {
  TensorSpan span;
  span.shape = shape(layer);
  if (span.shape.seq == 0) return span;
  const Layer& from = layers_[to_size(layer)];
  span.k = from.buffer.data();
  span.v = from.buffer.data() + from.buffer.size() / 2;
  span.seq_stride = to_size(span.shape.dim) * sizeof(float);
  span.batch_stride = from.room * span.seq_stride;
  return span;
}

Status CompressedStore::truncate(int32_t n) {
  const int32_t keep = std::max(n, 0);
  const int32_t means = keep / chunk_;
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    const int32_t length = layer_seq_len(layer);
    if (length <= keep) continue;
    cut_layer(layer, means < length / chunk_ ? means * chunk_ : keep);
  }
  settle();
  return {};
}

bool CompressedStore::saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept {
  *bytes = 2 * sizeof(float);
  return checked_mul(*bytes, to_size(shape.batch), bytes) &&
         checked_mul(*bytes, to_size(entries(shape.seq)), bytes) &&
         checked_mul(*bytes, to_size(shape.dim), bytes);
}

Status CompressedStore::save_layer(int32_t layer, StateWriter& to) const {
  const TensorShape all = shape(layer);
  const size_t count = to_size(all.seq) * to_size(all.dim);
  for (size_t half : {size_t{0}, size_t{1}}) {
    for (size_t lane = 0; lane < to_size(all.batch); ++lane) {
      const float* from = lane_of(layers_[to_size(layer)], to_size(all.dim), half, lane);
      GEN_TRY(to.write(std::as_bytes(std::span(from, count))));
    }
  }
  return {};
}

Status CompressedStore::restore_layer(int32_t layer, const TensorShape& shape,
                                      std::span<const std::byte> bytes) {
  GEN_TRY(grow(layer, shape, entries(shape.seq)));
  const size_t dim = to_size(shape.dim);
  const size_t part = to_size(entries(shape.seq)) * dim * sizeof(float);
  for (size_t half : {size_t{0}, size_t{1}}) {
    for (size_t lane = 0; lane < to_size(shape.batch); ++lane, bytes = bytes.subspan(part)) {
      std::memcpy(lane_of(layers_[to_size(layer)], dim, half, lane), bytes.data(), part);
    }
  }
  return {};
}

int32_t CompressedStore::entry_positions(int32_t layer, int32_t entry,
                                         int32_t* first) const noexcept {
  *first = 0;
  const int32_t length = layer_seq_len(layer);
  if (entry < 0 || entry >= entries(length)) return 0;
  const int32_t means = length / chunk_;
  *first = entry < means ? entry * chunk_ : means * chunk_ + entry - means;
  return entry < means ? chunk_ : 1;
}

MemoryUse CompressedStore::memory() const noexcept {
  MemoryUse use;
  use.metadata = sizeof(*this) + bookkeeping_bytes() + layers_.size() * sizeof(Layer);
  for (int32_t index = 0; index < num_layers(); ++index) {
    const Layer& layer = layers_[to_size(index)];
    const TensorShape all = shape(index);
    use.resident += layer.buffer.size();
    for (const Buffer& buffer : layer.retired) use.resident += buffer.size();
    use.metadata += layer.retired.capacity() * sizeof(Buffer);
    use.payload += 2 * sizeof(float) * to_size(all.batch) * to_size(all.seq) * to_size(all.dim);
  }
  return use;
}

Result<std::unique_ptr<TensorProvider>> CompressedStore::clone() const {
  std::unique_ptr<CompressedStore> copy(new CompressedStore(num_layers(), chunk_, allocator_));
  for (int32_t index = 0; index < num_layers(); ++index) {
    const TensorShape all = shape(index);
    if (all.seq == 0) continue;  // empty; the next write may have another shape
    const Layer& from = layers_[to_size(index)];
    Layer& to = copy->layers_[to_size(index)];
    GEN_ASSIGN(to.buffer, Buffer::allocate(allocator_, from.buffer.size()));
    to.room = from.room;
    const size_t dim = to_size(all.dim);
    for (size_t lane = 0; lane < to_size(all.batch); ++lane) {
      for (size_t half : {size_t{0}, size_t{1}}) {
        std::copy_n(lane_of(from, dim, half, lane), to_size(all.seq) * dim,
                    lane_of(to, dim, half, lane));
      }
    }
  }
  copy->copy_lengths(*this);
  return std::unique_ptr<TensorProvider>(std::move(copy));
}

}  // namespace gen::cache
