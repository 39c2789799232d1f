// SPDX-License-Identifier: Apache-2.0
// See quant_store.h.
#include "cache/tensor/quant_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/to_size.h"
#include "base/checked.h"
#include "quant/kv_fp8.h"
#include "quant/kv_q3.h"
#include "quant/kv_q4.h"

namespace gen::cache {
namespace {

using ScaleEncoder = float (*)(const float*, size_t, uint8_t*) noexcept;
using ScaleDecoder = void (*)(const uint8_t*, size_t, float, float*) noexcept;

/// Adapter for codecs with one float32 scale per group.
template <ScaleEncoder kEncode>
void encode_scaled(const float* x, size_t n, std::byte* scale, uint8_t* codes) noexcept {
  const float value = kEncode(x, n, codes);
  std::memcpy(scale, &value, sizeof(value));
}
template <ScaleDecoder kDecode>
void decode_scaled(const std::byte* scale, const uint8_t* codes, size_t n, float* x) noexcept {
  float value = 0;
  std::memcpy(&value, scale, sizeof(value));
  kDecode(codes, n, value, x);
}

// Codebooks start at multiples of their size in a buffer with a larger alignment.
void encode_q3(const float* x, size_t n, std::byte* scale, uint8_t* codes) noexcept {
  quant::kv_q3_encode(x, n, reinterpret_cast<uint16_t*>(scale), codes);
}
void decode_q3(const std::byte* scale, const uint8_t* codes, size_t n, float* x) noexcept {
  quant::kv_q3_decode(reinterpret_cast<const uint16_t*>(scale), codes, n, x);
}

size_t fp8_bytes(size_t n) noexcept { return n; }
size_t q4_bytes(size_t n) noexcept { return quant::kv_q4_bytes(n); }
size_t q3_bytes(size_t n) noexcept { return quant::kv_q3_bytes(n); }


}  // namespace

constexpr GroupFormat kFp8Tensors = {
    .traits = kFp8Traits,
    .group = 0,
    .scale_bytes = sizeof(float),
    .code_bytes = fp8_bytes,
    .encode = encode_scaled<quant::kv_fp8_encode>,
    .decode = decode_scaled<quant::kv_fp8_decode>,
};
constexpr GroupFormat kQ4Tensors = {
    .traits = kQ4Traits,
    .group = 128,
    .scale_bytes = sizeof(float),
    .code_bytes = q4_bytes,
    .encode = encode_scaled<quant::kv_q4_encode>,
    .decode = decode_scaled<quant::kv_q4_decode>,
};
constexpr GroupFormat kQ3Tensors = {
    .traits = kQ3Traits,
    .group = 128,
    .scale_bytes = quant::kKvQ3Centroids * sizeof(uint16_t),
    .code_bytes = q3_bytes,
    .encode = encode_q3,
    .decode = decode_q3,
};

Result<std::unique_ptr<QuantStore>> QuantStore::create(const GroupFormat& format,
                                                       int32_t num_layers, int32_t max_seq_len,
                                                       Allocator& allocator) {
  GEN_TRY(check(num_layers, max_seq_len));
  return std::unique_ptr<QuantStore>(new QuantStore(format, num_layers, max_seq_len, allocator));
}

bool QuantStore::lay_out(const TensorShape& shape, Layout* layout) const noexcept {
  const size_t dim = to_size(shape.dim);
  const size_t group = format_.group != 0 ? format_.group : dim;
  layout->group = group;
  if (!checked_mul(to_size(max_seq_len()), dim, &layout->lane_elements)) return false;
  const size_t full = layout->lane_elements / group;
  const size_t rest = layout->lane_elements % group;
  layout->lane_open = dim % group != 0 ? group * sizeof(float) : 0;
  if (!checked_mul(full + (rest != 0 ? 1 : 0), format_.scale_bytes, &layout->lane_scales) ||
      !checked_mul(full, format_.code_bytes(group), &layout->lane_codes) ||
      !checked_add(layout->lane_codes, format_.code_bytes(rest), &layout->lane_codes)) {
    return false;
  }
  size_t bytes = 0;
  const auto add_region = [&](size_t lane_bytes, size_t* offset) {
    size_t region = 0;
    *offset = bytes;
    return checked_mul(lane_bytes, to_size(shape.batch), &region) &&
           checked_add(bytes, region, &bytes) && checked_align_up(bytes, kBufferAlign, &bytes);
  };
  for (size_t half : {size_t{0}, size_t{1}}) {
    if (!add_region(layout->lane_scales, &layout->scales[half]) ||
        !add_region(layout->lane_open, &layout->open[half]) ||
        !add_region(layout->lane_codes, &layout->codes[half])) {
      return false;
    }
  }
  layout->bytes = bytes;
  return true;
}

QuantStore::Lane QuantStore::lane_of(const Layer& layer, size_t half, size_t lane) noexcept {
  std::byte* base = layer.buffer.data();
  const Layout& at = layer.layout;
  return {base + at.scales[half] + lane * at.lane_scales,
          reinterpret_cast<float*>(base + at.open[half] + lane * at.lane_open),
          reinterpret_cast<uint8_t*>(base + at.codes[half] + lane * at.lane_codes)};
}

size_t QuantStore::full_size(const Layout& layout, size_t group) noexcept {
  return std::min(layout.group, layout.lane_elements - group * layout.group);
}

QuantStore::Extent QuantStore::extent(const Layout& layout, size_t count) const noexcept {
  Extent held;
  held.groups = count / layout.group;
  held.open = count % layout.group;
  held.code_bytes = held.groups * format_.code_bytes(layout.group);
  if (count == layout.lane_elements && held.open != 0) {  // the shorter last group can be full
    held.code_bytes += format_.code_bytes(held.open);
    held.open = 0;
    ++held.groups;
  }
  return held;
}

Status QuantStore::make_room(Layer& layer, const TensorShape& shape) const {
  Layout layout;
  if (!lay_out(shape, &layout)) {
    return error(Code::kOutOfMemory, "batch %d, dim %d and %d positions overflow a size",
                 shape.batch, shape.dim, max_seq_len());
  }
  if (layout.bytes > layer.buffer.size()) {
    GEN_ASSIGN(layer.buffer, Buffer::allocate(allocator_, layout.bytes));
  }
  layer.layout = layout;
  return {};
}

Status QuantStore::update(int32_t index, const float* k, const float* v, const TensorShape& shape) {
  GEN_TRY(check_update(index, shape));
  if (shape.seq == 0) return {};
  Layer& layer = layers_[to_size(index)];
  const TensorShape before = held(index);
  const bool new_shape = before.batch != shape.batch || before.dim != shape.dim;
  Layout layout = layer.layout;
  if (new_shape && !lay_out(shape, &layout)) {
    return error(Code::kOutOfMemory, "batch %d, dim %d and %d positions overflow a size",
                 shape.batch, shape.dim, max_seq_len());
  }
  Buffer larger;
  if (layout.bytes > layer.buffer.size()) {
    GEN_ASSIGN(larger, Buffer::allocate(allocator_, layout.bytes));
  }
  const size_t added = to_size(shape.seq) * to_size(shape.dim);
  GEN_TRY(check_finite(index, k, v, to_size(shape.batch) * added));
  if (larger.data() != nullptr) layer.buffer = std::move(larger);
  layer.layout = layout;
  const size_t start = to_size(before.seq) * to_size(shape.dim);
  for (size_t lane = 0; lane < to_size(shape.batch); ++lane) {
    write(layout, lane_of(layer, 0, lane), start, added, k + lane * added);
    write(layout, lane_of(layer, 1, lane), start, added, v + lane * added);
  }
  advance(index, shape);
  return {};
}

void QuantStore::write(const Layout& layout, const Lane& lane, size_t start, size_t count,
                       const float* x) const noexcept {
  const size_t group_codes = format_.code_bytes(layout.group);
  for (size_t take = 0; count > 0; start += take, count -= take, x += take) {
    const size_t group = start / layout.group;
    const size_t within = start % layout.group;
    const size_t full = full_size(layout, group);
    take = std::min(count, full - within);
    const float* whole = x;
    if (take < full) {
      std::memcpy(lane.open + within, x, take * sizeof(float));
      if (within + take < full) continue;
      whole = lane.open;
    }
    format_.encode(whole, full, lane.scales + group * format_.scale_bytes,
                   lane.codes + group * group_codes);
  }
}

void QuantStore::read(const Layout& layout, const Lane& lane, size_t count, bool encoded,
                      float* x) const noexcept {
  const size_t group_codes = format_.code_bytes(layout.group);
  for (size_t group = 0; count > 0; ++group) {
    const size_t full = full_size(layout, group);
    const size_t held = std::min(count, full);
    std::byte* const scale = lane.scales + group * format_.scale_bytes;
    uint8_t* const codes = lane.codes + group * group_codes;
    if (held < full && !encoded) format_.encode(lane.open, held, scale, codes);
    format_.decode(scale, codes, held, x);
    count -= held;
    x += held;
  }
}

Status QuantStore::get(int32_t index, float* k, float* v) const {
  const TensorShape all = shape(index);
  if (all.seq == 0) return {};
  const Layer& layer = layers_[to_size(index)];
  const size_t count = to_size(all.seq) * to_size(all.dim);
  for (size_t half : {size_t{0}, size_t{1}}) {
    float* const to = half == 0 ? k : v;
    if (to == nullptr) continue;
    const bool encoded = layer.encoded[half] == changes(index);
    for (size_t lane = 0; lane < to_size(all.batch); ++lane) {
      read(layer.layout, lane_of(layer, half, lane), count, encoded, to + lane * count);
    }
    layer.encoded[half] = changes(index);
  }
  return {};
}

void QuantStore::reopen(const Layout& layout, const Lane& lane, size_t before,
                        size_t count) const noexcept {
  const size_t group = count / layout.group;
  const size_t full = full_size(layout, group);
  if (count % layout.group == 0 || before < group * layout.group + full) return;
  format_.decode(lane.scales + group * format_.scale_bytes,
                 lane.codes + group * format_.code_bytes(layout.group), full, lane.open);
}

Status QuantStore::truncate(int32_t n) {
  const int32_t keep = std::max(n, 0);
  for (int32_t index = 0; index < num_layers(); ++index) {
    const TensorShape all = held(index);
    if (all.seq <= keep) continue;
    const Layer& layer = layers_[to_size(index)];
    const size_t dim = to_size(all.dim);
    for (size_t lane = 0; lane < to_size(all.batch); ++lane) {
      for (size_t half : {size_t{0}, size_t{1}}) {
        reopen(layer.layout, lane_of(layer, half, lane), to_size(all.seq) * dim,
               to_size(keep) * dim);
      }
    }
  }
  cut(keep);
  return {};
}

LayeredStore::StateForm QuantStore::state_form() const noexcept { return {format_.traits.kind}; }

bool QuantStore::ends_full(const TensorShape& shape) const noexcept {
  const size_t group = format_.group != 0 ? format_.group : to_size(shape.dim);
  return shape.seq == max_seq_len() && to_size(shape.seq) * to_size(shape.dim) % group != 0;
}

bool QuantStore::saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept {
  *bytes = 0;
  if (shape.seq == 0) return true;
  Layout layout;
  if (!lay_out(shape, &layout)) return false;
  const Extent held = extent(layout, to_size(shape.seq) * to_size(shape.dim));
  const size_t lane =
      held.groups * format_.scale_bytes + held.code_bytes + held.open * sizeof(float);
  return checked_mul(2 * to_size(shape.batch), lane, bytes);
}

template <typename F>
Status QuantStore::visit_lane(const Layout& layout, const Lane& lane, size_t count,
                              F&& visit) const {
  const Extent held = extent(layout, count);
  GEN_TRY(visit(lane.scales, held.groups * format_.scale_bytes));
  GEN_TRY(visit(reinterpret_cast<std::byte*>(lane.codes), held.code_bytes));
  return visit(reinterpret_cast<std::byte*>(lane.open), held.open * sizeof(float));
}

Status QuantStore::save_layer(int32_t index, StateWriter& to) const {
  const TensorShape all = held(index);
  const Layer& layer = layers_[to_size(index)];
  const size_t count = to_size(all.seq) * to_size(all.dim);
  for (size_t half : {size_t{0}, size_t{1}}) {
    for (size_t lane = 0; lane < to_size(all.batch); ++lane) {
      GEN_TRY(visit_lane(layer.layout, lane_of(layer, half, lane), count,
                         [&to](const std::byte* from, size_t bytes) {
                           return to.write({from, bytes});
                         }));
    }
  }
  return {};
}

Status QuantStore::restore_layer(int32_t index, const TensorShape& shape,
                                 std::span<const std::byte> bytes) {
  Layer& layer = layers_[to_size(index)];
  GEN_TRY(make_room(layer, shape));
  const size_t count = to_size(shape.seq) * to_size(shape.dim);
  for (size_t half : {size_t{0}, size_t{1}}) {
    for (size_t lane = 0; lane < to_size(shape.batch); ++lane) {
      GEN_TRY(visit_lane(layer.layout, lane_of(layer, half, lane), count,
                         [&bytes](std::byte* to, size_t n) {
                           if (n > 0) std::memcpy(to, bytes.data(), n);
                           bytes = bytes.subspan(n);
                           return Status();
                         }));
    }
  }
  return {};
}

MemoryUse QuantStore::memory() const noexcept {
  MemoryUse use;
  use.metadata = sizeof(*this) + bookkeeping_bytes() + layers_.size() * sizeof(Layer);
  for (int32_t index = 0; index < num_layers(); ++index) {
    const Layer& layer = layers_[to_size(index)];
    use.resident += layer.buffer.size();
    const TensorShape all = shape(index);
    if (all.seq == 0) continue;
    const Extent held = extent(layer.layout, to_size(all.seq) * to_size(all.dim));
    const size_t lanes = 2 * to_size(all.batch);
    use.payload += lanes * (held.code_bytes + held.open * sizeof(float));
    use.metadata += lanes * held.groups * format_.scale_bytes;
  }
  return use;
}

Result<std::unique_ptr<TensorProvider>> QuantStore::clone() const {
  std::unique_ptr<QuantStore> copy(
      new QuantStore(format_, num_layers(), max_seq_len(), allocator_));
  for (int32_t index = 0; index < num_layers(); ++index) {
    const TensorShape all = shape(index);
    if (all.seq == 0) continue;  // empty; the next write may have another shape
    const Layer& from = layers_[to_size(index)];
    Layer& to = copy->layers_[to_size(index)];
    GEN_ASSIGN(to.buffer, Buffer::allocate(allocator_, from.buffer.size()));
    to.layout = from.layout;
    const Layout& layout = from.layout;
    const Extent held = extent(layout, to_size(all.seq) * to_size(all.dim));
    for (size_t lane = 0; lane < to_size(all.batch); ++lane) {
      for (size_t half : {size_t{0}, size_t{1}}) {
        const Lane source = lane_of(from, half, lane);
        const Lane target = lane_of(to, half, lane);
        std::memcpy(target.scales, source.scales, held.groups * format_.scale_bytes);
        std::memcpy(target.open, source.open, held.open * sizeof(float));
        std::memcpy(target.codes, source.codes, held.code_bytes);
      }
    }
  }
  copy->copy_lengths(*this);
  return std::unique_ptr<TensorProvider>(std::move(copy));
}

}  // namespace gen::cache
