// SPDX-License-Identifier: Apache-2.0
// See device_store.h. An update first copies rows after the valid ones, then the counters, and only
// then changes the lengths: if a copy fails, the valid rows are unchanged.
#include "cache/tensor/device_store.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "tensor/half.h"

namespace gen::cache {

Result<std::unique_ptr<DeviceStore>> DeviceStore::create(
    DType type, int32_t num_layers, int32_t max_seq_len,
    std::shared_ptr<engine::GpuAllocator> allocator) {
  GEN_TRY(check(num_layers, max_seq_len));
  std::unique_ptr<DeviceStore> made(
      new DeviceStore(type, num_layers, max_seq_len, 0, std::move(allocator)));
  GEN_TRY(made->take_counters());
  return made;
}

Result<std::unique_ptr<DeviceStore>> DeviceStore::create_fixed(
    DType type, int32_t num_layers, int32_t max_seq_len, int32_t dim,
    std::shared_ptr<engine::GpuAllocator> allocator) {
  GEN_TRY(check(num_layers, max_seq_len));
  std::unique_ptr<DeviceStore> made(
      new DeviceStore(type, num_layers, max_seq_len, dim, std::move(allocator)));
  for (int32_t layer = 0; layer < num_layers; ++layer) {
    GEN_TRY(made->make_room(layer, {1, max_seq_len, dim}));
  }
  GEN_TRY(made->take_counters());
  return made;
}

Status DeviceStore::take_counters() {
  constexpr int32_t kZeros[3] = {0, 0, 0};
  static_assert(sizeof kZeros == sizeof(engine::AppendCounter));
  const size_t bytes = one_word() ? sizeof(kZeros) : 2 * sizeof(int32_t);
  GEN_ASSIGN(counters_, engine::GpuBuffer::allocate(*allocator_, bytes));
  return allocator_->copy_up(counters_.at(), kZeros, bytes);
}

const TensorTraits& DeviceStore::traits() const noexcept {
  if (one_word()) return type_ == DType::kF32 ? kGpuFp32Traits : kGpuFp16Traits;
  return type_ == DType::kF32 ? kDeviceFp32Traits : kDeviceFp16Traits;
}

size_t DeviceStore::element_bytes() const noexcept {
  return type_ == DType::kF32 ? sizeof(float) : sizeof(uint16_t);
}

Status DeviceStore::make_room(int32_t layer, const TensorShape& shape) {
  Layer& of = layers_[static_cast<size_t>(layer)];
  size_t bytes = element_bytes();
  if (!checked_mul(bytes, static_cast<size_t>(shape.batch), &bytes) ||
      !checked_mul(bytes, static_cast<size_t>(max_seq_len()), &bytes) ||
      !checked_mul(bytes, static_cast<size_t>(shape.dim), &bytes)) {
    return error(Code::kOutOfMemory, "batch %d, dim %d and %d positions overflow a size",
                 shape.batch, shape.dim, max_seq_len());
  }
  if (bytes <= of.k.size()) return {};
  GEN_ASSIGN(auto k, engine::GpuBuffer::allocate(*allocator_, bytes));
  GEN_ASSIGN(auto v, engine::GpuBuffer::allocate(*allocator_, bytes));
  of.k = std::move(k);
  of.v = std::move(v);
  return {};
}

Status DeviceStore::check_shape(const TensorShape& shape) const {
  if (!one_word() || (shape.batch == 1 && shape.dim == fixed_dim_)) return {};
  return error(Code::kInvalidArgument, "batch %d, dim %d for a cache of batch 1, dim %d",
               shape.batch, shape.dim, fixed_dim_);
}

Status DeviceStore::write(const engine::GpuBuffer& to, int32_t start, const void* from,
                          const TensorShape& shape, From where) {
  const size_t row = static_cast<size_t>(shape.dim) * element_bytes();
  const size_t count = static_cast<size_t>(shape.seq) * static_cast<size_t>(shape.dim);
  for (size_t b = 0; b < static_cast<size_t>(shape.batch); ++b) {
    void* const place =
        to.at((b * static_cast<size_t>(max_seq_len()) + static_cast<size_t>(start)) * row);
    const float* lane = static_cast<const float*>(from) + b * count;
    const size_t bytes = count * sizeof(float);
    if (type_ == DType::kF32) {
      GEN_TRY(where == From::kDevice ? allocator_->copy_across(place, lane, bytes)
                                     : allocator_->copy_up(place, lane, bytes));
      continue;
    }
    GEN_TRY(write_halves(static_cast<std::byte*>(place), lane, count, where));
  }
  return {};
}

Status DeviceStore::write_halves(std::byte* to, const float* from, size_t count, From where) {
  constexpr size_t kAtOnce = size_t{1} << 16;  // limits the size of the buffer
  const size_t most = std::min(count, kAtOnce);
  if (halves_.size() < most) halves_.resize(most);
  // There is no engine to round values: data on the device is copied to the host and back.
  if (where == From::kDevice && floats_.size() < most) floats_.resize(most);
  for (size_t done = 0; done < count; done += most) {
    const size_t n = std::min(most, count - done);
    const float* next = from + done;
    if (where == From::kDevice) {
      GEN_TRY(allocator_->copy_down(floats_.data(), next, n * sizeof(float)));
      next = floats_.data();
    }
    std::transform(next, next + n, halves_.begin(), f32_to_f16);
    GEN_TRY(
        allocator_->copy_up(to + done * sizeof(uint16_t), halves_.data(), n * sizeof(uint16_t)));
  }
  return {};
}

Status DeviceStore::read(const engine::GpuBuffer& from, const TensorShape& shape,
                         std::vector<std::byte>* to) const {
  const size_t row = static_cast<size_t>(shape.dim) * element_bytes();
  const size_t bytes = static_cast<size_t>(shape.seq) * row;
  to->resize(static_cast<size_t>(shape.batch) * bytes);
  for (size_t b = 0; b < static_cast<size_t>(shape.batch); ++b) {
    const void* const place = from.at(b * static_cast<size_t>(max_seq_len()) * row);
    GEN_TRY(allocator_->copy_down(to->data() + b * bytes, place, bytes));
  }
  return {};
}

void DeviceStore::decode(const std::vector<std::byte>& from, float* to) const {
  if (type_ == DType::kF32) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  for (size_t at = 0; at < from.size(); at += sizeof(uint16_t), ++to) {
    uint16_t half = 0;
    std::memcpy(&half, &from[at], sizeof half);
    *to = f16_to_f32(half);
  }
}

Status DeviceStore::set_counters(int32_t position, int32_t length, bool anew) {
  const bool same = position == position_ && (one_word() || length == length_);
  if (same && counters_known_ && !anew) return {};
  const int32_t words[3] = {position, one_word() ? 0 : length, 0};
  // Leaves the word of dropped appends alone: sync_counter() reports them even if a copy fails or
  // more rows are appended first.
  const size_t bytes = one_word() && !anew ? sizeof(int32_t) : counters_.size();
  counters_known_ = false;  // unknown if the copy fails
  GEN_TRY(allocator_->copy_up(counters_.at(), words, bytes));
  counters_known_ = true;
  position_ = position;
  length_ = length;
  return {};
}

int32_t DeviceStore::agreement(int32_t keep, int32_t layer, int32_t length) const noexcept {
  int32_t least = std::numeric_limits<int32_t>::max();
  int32_t most = 0;
  for (int32_t each = 0; each < num_layers(); ++each) {
    const int32_t own = std::min(each == layer ? length : layer_seq_len(each), keep);
    least = std::min(least, own);
    most = std::max(most, own);
  }
  if (least == most) return least;
  return std::min(seq_len(), least);
}

Status DeviceStore::append_rows(int32_t layer, const void* k, const void* v,
                                const TensorShape& shape, From from) {
  const Layer& of = layers_[static_cast<size_t>(layer)];
  const int32_t start = layer_seq_len(layer);
  GEN_TRY(write(of.k, start, k, shape, from));
  GEN_TRY(write(of.v, start, v, shape, from));
  const int32_t length = start + shape.seq;
  const int32_t agreed = agreement(std::numeric_limits<int32_t>::max(), layer, length);
  const bool together = agreed == length;  // true after the last layer of a pass
  GEN_TRY(set_counters(agreed, together || layer == 0 ? length : length_));
  advance(layer, shape);
  return {};
}

Status DeviceStore::update(int32_t layer, const float* k, const float* v,
                           const TensorShape& shape) {
  // A layer of a fixed store has its shape from the start; it is checked before the room.
  const bool is_one = shape.batch >= 1 && shape.seq >= 1 && shape.dim >= 1;
  if (has(layer) && is_one) GEN_TRY(check_shape(shape));
  GEN_TRY(check_update(layer, shape));
  if (shape.seq == 0) return {};
  const TensorShape before = held(layer);
  if (before.batch != shape.batch || before.dim != shape.dim) GEN_TRY(make_room(layer, shape));
  return append_rows(layer, k, v, shape, From::kHost);
}

Status DeviceStore::check_append(int32_t layer, int32_t position) const {
  if (!has(layer)) {
    return error(Code::kOutOfRange, "layer %d outside a cache of %d layers", layer, num_layers());
  }
  if (position != seq_len()) {
    return error(Code::kSequence, "position %d where %d comes next", position, seq_len());
  }
  if (position >= max_seq_len()) {
    return error(Code::kCacheFull, "the cache holds %d of %d positions", position, max_seq_len());
  }
  if (layer_seq_len(layer) != position) {
    return error(Code::kState, "layer %d has position %d already", layer, position);
  }
  return {};
}

Status DeviceStore::append(int32_t layer, const float* k, const float* v, int32_t position) {
  GEN_TRY(check_append(layer, position));
  return append_rows(layer, k, v, {1, 1, fixed_dim_}, From::kHost);
}

Status DeviceStore::append_device(int32_t layer, const void* k, const void* v) {
  GEN_TRY(check_append(layer, seq_len()));
  return append_rows(layer, k, v, {1, 1, fixed_dim_}, From::kDevice);
}

Status DeviceStore::append_stream(int32_t layer, const void* k, const void* v, void* stream) {
  GEN_TRY(check_append(layer, seq_len()));
  if ((reinterpret_cast<uintptr_t>(k) | reinterpret_cast<uintptr_t>(v)) % sizeof(float) != 0) {
    return error(Code::kInvalidArgument, "k at %p and v at %p: an address is no multiple of %zu", k,
                 v, sizeof(float));
  }
  if (!counters_known_) GEN_TRY(set_counters(position_, length_));
  const Layer& of = layers_[static_cast<size_t>(layer)];
  const int32_t length = layer_seq_len(layer) + 1;
  engine::CountedAppend append;
  append.k = of.k.at();
  append.v = of.v.at();
  append.type = type_;
  append.k_row = static_cast<const float*>(k);
  append.v_row = static_cast<const float*>(v);
  append.counter = append_counter();
  append.max_seq_len = max_seq_len();
  append.dim = fixed_dim_;
  append.moves = agreement(std::numeric_limits<int32_t>::max(), layer, length) == length;
  GEN_TRY(allocator_->append(append, stream));
  if (append.moves) position_ = length;
  advance(layer, {1, 1, fixed_dim_});
  return {};
}

Status DeviceStore::get(int32_t layer, float* k, float* v) const {
  const TensorShape all = shape(layer);
  if (all.seq == 0) return {};
  const Layer& of = layers_[static_cast<size_t>(layer)];
  // Copied completely before anything is returned: if a copy fails, the caller's buffers are
  // unchanged.
  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  if (k != nullptr) GEN_TRY(read(of.k, all, &keys));
  if (v != nullptr) GEN_TRY(read(of.v, all, &values));
  if (k != nullptr) decode(keys, k);
  if (v != nullptr) decode(values, v);
  return {};
}

TensorSpan DeviceStore::full_buffer(int32_t layer) const noexcept {
  if (!has(layer)) return {};
  TensorSpan span;
  span.shape = one_word() ? TensorShape{1, 0, fixed_dim_} : held(layer);
  if (span.shape.batch == 0) return {};
  span.shape.seq = max_seq_len();
  const Layer& of = layers_[static_cast<size_t>(layer)];
  span.k = static_cast<const std::byte*>(of.k.at());
  span.v = static_cast<const std::byte*>(of.v.at());
  span.type = type_;
  span.seq_stride = static_cast<size_t>(span.shape.dim) * element_bytes();
  span.batch_stride = static_cast<size_t>(max_seq_len()) * span.seq_stride;
  return span;
}

const int32_t* DeviceStore::position_counter() const noexcept {
  return static_cast<const int32_t*>(counters_.at());
}

const int32_t* DeviceStore::length_counter() const noexcept {
  return one_word() ? position_counter()
                    : static_cast<const int32_t*>(counters_.at(sizeof(int32_t)));
}

Status DeviceStore::sync_counter() {
  int32_t words[2] = {0, 0};
  GEN_TRY(allocator_->copy_down(words, counters_.at(), sizeof words));
  const int32_t found = words[0];
  if (found < 0 || found > max_seq_len()) {
    return error(Code::kDevice, "the counter holds %d, outside [0, %d]", found, max_seq_len());
  }
  if (one_word() && words[1] != 0) {
    // Reported once: the next call takes the length.
    constexpr int32_t kNone = 0;
    GEN_TRY(allocator_->copy_up(&append_counter()->dropped, &kNone, sizeof kNone));
    return error(Code::kCacheFull, "appends on a stream were dropped, the counter holds %d of %d",
                 found, max_seq_len());
  }
  for (int32_t layer = 0; layer < num_layers() && found > 0; ++layer) {
    if (layers_[static_cast<size_t>(layer)].k.size() > 0) continue;
    return error(Code::kState, "the counter holds %d, and layer %d was never written", found,
                 layer);
  }
  counters_known_ = one_word();  // the device's program may not have set the other word
  position_ = found;
  GEN_TRY(set_counters(found, found));
  grow_to(found, fixed_dim_);
  return {};
}

Status DeviceStore::truncate(int32_t n) {
  const int32_t keep = std::max(n, 0);
  const int32_t left = num_layers() > 0 ? agreement(keep, -1, 0) : 0;
  GEN_TRY(set_counters(left, left, one_word()));
  cut(n);
  return {};
}

Status DeviceStore::restore(StateReader& from) {
  GEN_TRY(LayeredStore::restore(from));
  const Status status = set_counters(seq_len(), seq_len(), one_word());
  if (!status.ok()) cut(0);
  return status;
}

bool DeviceStore::saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept {
  *bytes = 2 * element_bytes();
  return checked_mul(*bytes, static_cast<size_t>(shape.batch), bytes) &&
         checked_mul(*bytes, static_cast<size_t>(shape.seq), bytes) &&
         checked_mul(*bytes, static_cast<size_t>(shape.dim), bytes);
}

Status DeviceStore::save_layer(int32_t layer, StateWriter& to) const {
  const TensorShape all = held(layer);
  const Layer& of = layers_[static_cast<size_t>(layer)];
  const size_t row = static_cast<size_t>(all.dim) * element_bytes();
  std::vector<std::byte> lane(static_cast<size_t>(all.seq) * row);
  for (const engine::GpuBuffer* side : {&of.k, &of.v}) {
    for (size_t b = 0; b < static_cast<size_t>(all.batch); ++b) {
      const void* const place = side->at(b * static_cast<size_t>(max_seq_len()) * row);
      GEN_TRY(allocator_->copy_down(lane.data(), place, lane.size()));
      GEN_TRY(to.write(lane));
    }
  }
  return {};
}

Status DeviceStore::restore_layer(int32_t layer, const TensorShape& shape,
                                  std::span<const std::byte> bytes) {
  GEN_TRY(check_shape(shape));
  GEN_TRY(make_room(layer, shape));
  const Layer& of = layers_[static_cast<size_t>(layer)];
  const size_t row = static_cast<size_t>(shape.dim) * element_bytes();
  const size_t count = static_cast<size_t>(shape.seq) * row;
  for (const engine::GpuBuffer* side : {&of.k, &of.v}) {
    for (size_t b = 0; b < static_cast<size_t>(shape.batch); ++b, bytes = bytes.subspan(count)) {
      void* const place = side->at(b * static_cast<size_t>(max_seq_len()) * row);
      GEN_TRY(allocator_->copy_up(place, bytes.data(), count));
    }
  }
  return {};
}

MemoryUse DeviceStore::memory() const noexcept {
  MemoryUse use;
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    const TensorShape all = shape(layer);
    const Layer& of = layers_[static_cast<size_t>(layer)];
    use.resident += of.k.size() + of.v.size();
    use.payload += 2 * element_bytes() * static_cast<size_t>(all.batch) *
                   static_cast<size_t>(all.seq) * static_cast<size_t>(all.dim);
  }
  use.resident += counters_.size() + k_pointers_.size() + v_pointers_.size();
  use.metadata = sizeof(*this) + bookkeeping_bytes() + layers_.size() * sizeof(Layer) +
                 halves_.capacity() * sizeof(uint16_t) + floats_.capacity() * sizeof(float);
  return use;
}

Result<std::unique_ptr<DeviceStore>> DeviceStore::copied() const {
  std::unique_ptr<DeviceStore> copy(
      new DeviceStore(type_, num_layers(), max_seq_len(), fixed_dim_, allocator_));
  for (int32_t layer = 0; layer < num_layers(); ++layer) {
    const TensorShape all = shape(layer);
    if (all.seq == 0 && !one_word()) continue;
    GEN_TRY(copy->make_room(layer, one_word() ? TensorShape{1, 0, fixed_dim_} : all));
    const Layer& from = layers_[static_cast<size_t>(layer)];
    const Layer& to = copy->layers_[static_cast<size_t>(layer)];
    const size_t row = static_cast<size_t>(all.dim) * element_bytes();
    for (size_t b = 0; b < static_cast<size_t>(all.batch); ++b) {
      const size_t offset = b * static_cast<size_t>(max_seq_len()) * row;
      const size_t bytes = static_cast<size_t>(all.seq) * row;
      GEN_TRY(allocator_->copy_across(to.k.at(offset), from.k.at(offset), bytes));
      GEN_TRY(allocator_->copy_across(to.v.at(offset), from.v.at(offset), bytes));
    }
  }
  GEN_TRY(copy->take_counters());
  copy->copy_lengths(*this);
  GEN_TRY(copy->set_counters(position_, length_));
  return copy;
}

Result<std::unique_ptr<TensorProvider>> DeviceStore::clone() const {
  GEN_ASSIGN(std::unique_ptr<TensorProvider> made, copied());
  return made;
}

Status DeviceStore::pointer_arrays(const void** k, const void** v) {
  if (k_pointers_.size() == 0 && num_layers() > 0) {
    std::vector<uint64_t> keys;
    std::vector<uint64_t> values;
    for (const Layer& layer : layers_) {
      keys.push_back(reinterpret_cast<uintptr_t>(layer.k.at()));
      values.push_back(reinterpret_cast<uintptr_t>(layer.v.at()));
    }
    const size_t bytes = keys.size() * sizeof(uint64_t);
    GEN_ASSIGN(auto made_k, engine::GpuBuffer::allocate(*allocator_, bytes));
    GEN_ASSIGN(auto made_v, engine::GpuBuffer::allocate(*allocator_, bytes));
    GEN_TRY(allocator_->copy_up(made_k.at(), keys.data(), bytes));
    GEN_TRY(allocator_->copy_up(made_v.at(), values.data(), bytes));
    k_pointers_ = std::move(made_k);
    v_pointers_ = std::move(made_v);
  }
  *k = k_pointers_.size() > 0 ? k_pointers_.at() : nullptr;
  *v = v_pointers_.size() > 0 ? v_pointers_.at() : nullptr;
  return {};
}

}  // namespace gen::cache
