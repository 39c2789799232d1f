// SPDX-License-Identifier: Apache-2.0
// See warm_form.h. Grouped forms store all scales of a lane before its codes.
#include "cache/tensor/warm_form.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/to_size.h"
#include "base/checked.h"
#include "tensor/half.h"

namespace gen::cache {
namespace {

using Code = WarmForm::Code;

constexpr WarmForm kForms[] = {
    {"fp32", Code::kF32, false, false, nullptr},   {"fp16", Code::kF16, true, false, nullptr},
    {"fp8", Code::kFp8, true, true, &kFp8Tensors}, {"q4", Code::kQ4, true, true, &kQ4Tensors},
    {"q3", Code::kQ3, true, true, &kQ3Tensors},    {"mean", Code::kMean, true, false, nullptr},
};

/// The division of a lane into groups.
struct Groups {
  Groups(const GroupFormat& format, const TensorShape& shape) noexcept
      : count(to_size(shape.seq) * to_size(shape.dim)),
        size(format.group != 0 ? format.group : to_size(shape.dim)),
        full(count / size),
        rest(count % size),
        scales((full + (rest != 0 ? 1 : 0)) * format.scale_bytes) {}

  size_t count;
  size_t size;
  size_t full;
  size_t rest;    // elements of a shorter last group
  size_t scales;  // bytes
};

size_t group_bytes(const GroupFormat& format, const TensorShape& shape) noexcept {
  const Groups groups(format, shape);
  return groups.scales + groups.full * format.code_bytes(groups.size) +
         (groups.rest != 0 ? format.code_bytes(groups.rest) : 0);
}

template <typename F>
void each_group(const GroupFormat& format, const TensorShape& shape, F&& call) noexcept {
  const Groups groups(format, shape);
  const size_t codes = format.code_bytes(groups.size);
  for (size_t i = 0, done = 0; done < groups.count; ++i, done += groups.size) {
    call(i * format.scale_bytes, groups.scales + i * codes, done,
         std::min(groups.size, groups.count - done));
  }
}

void encode_means(const TensorShape& shape, int32_t chunk, const float* x, float* to) noexcept {
  const size_t dim = to_size(shape.dim);
  int32_t left = shape.seq;
  for (; left >= chunk; left -= chunk, x += to_size(chunk) * dim, to += dim) {
    for (size_t d = 0; d < dim; ++d) {
      double sum = 0;
      for (size_t p = 0; p < to_size(chunk); ++p) sum += static_cast<double>(x[p * dim + d]);
      to[d] = static_cast<float>(sum / chunk);
    }
  }
  std::memcpy(to, x, to_size(left) * dim * sizeof(float));
}

void decode_means(const TensorShape& shape, int32_t chunk, const float* from, float* x) noexcept {
  const size_t dim = to_size(shape.dim);
  int32_t left = shape.seq;
  for (; left >= chunk; left -= chunk, from += dim) {
    for (int32_t p = 0; p < chunk; ++p, x += dim) std::memcpy(x, from, dim * sizeof(float));
  }
  std::memcpy(x, from, to_size(left) * dim * sizeof(float));
}

}  // namespace

bool WarmForm::lane_bytes(const TensorShape& shape, int32_t chunk, size_t* bytes) const noexcept {
  size_t dense = 0;  // float32 is the longest form; scales are no longer than that
  if (!checked_mul(to_size(shape.seq), to_size(shape.dim), &dense) ||
      !checked_mul(dense, size_t{16}, &dense)) {
    return false;
  }
  const size_t elements = to_size(shape.seq) * to_size(shape.dim);
  const int32_t entries = shape.seq / chunk + shape.seq % chunk;
  switch (code) {
    case Code::kF32:
      *bytes = elements * sizeof(float);
      break;
    case Code::kF16:
      *bytes = elements * sizeof(uint16_t);
      break;
    case Code::kMean:
      *bytes = to_size(entries) * to_size(shape.dim) * sizeof(float);
      break;
    default:
      *bytes = group_bytes(*groups, shape);
  }
  return checked_align_up(*bytes, kBufferAlign, bytes);
}

bool WarmForm::layer_bytes(const TensorShape& shape, int32_t chunk, size_t* bytes) const noexcept {
  return lane_bytes(shape, chunk, bytes) && checked_mul(*bytes, to_size(shape.batch), bytes) &&
         checked_mul(*bytes, size_t{2}, bytes);
}

void WarmForm::encode(const TensorShape& shape, int32_t chunk, const float* lane,
                      std::byte* to) const noexcept {
  const size_t elements = to_size(shape.seq) * to_size(shape.dim);
  switch (code) {
    case Code::kF32:
      std::memcpy(to, lane, elements * sizeof(float));
      break;
    case Code::kF16:
      for (size_t i = 0; i < elements; ++i) {
        reinterpret_cast<uint16_t*>(to)[i] = f32_to_f16(lane[i]);
      }
      break;
    case Code::kMean:
      encode_means(shape, chunk, lane, reinterpret_cast<float*>(to));
      break;
    default:
      each_group(*groups, shape, [&](size_t scale, size_t codes, size_t first, size_t n) {
        groups->encode(lane + first, n, to + scale, reinterpret_cast<uint8_t*>(to + codes));
      });
  }
}

void WarmForm::decode(const TensorShape& shape, int32_t chunk, const std::byte* from,
                      float* lane) const noexcept {
  const size_t elements = to_size(shape.seq) * to_size(shape.dim);
  switch (code) {
    case Code::kF32:
      std::memcpy(lane, from, elements * sizeof(float));
      break;
    case Code::kF16:
      for (size_t i = 0; i < elements; ++i) {
        lane[i] = f16_to_f32(reinterpret_cast<const uint16_t*>(from)[i]);
      }
      break;
    case Code::kMean:
      decode_means(shape, chunk, reinterpret_cast<const float*>(from), lane);
      break;
    default:
      each_group(*groups, shape, [&](size_t scale, size_t codes, size_t first, size_t n) {
        groups->decode(from + scale, reinterpret_cast<const uint8_t*>(from + codes), n,
                       lane + first);
      });
  }
}

std::span<const WarmForm> warm_forms() noexcept { return kForms; }

Result<const WarmForm*> find_warm_form(std::string_view name) {
  std::string known;
  for (const WarmForm& form : kForms) {
    if (name == form.name) return &form;
    known += (known.empty() ? "" : ", ") + std::string(form.name);
  }
  return error(gen::Code::kInvalidArgument, "unknown warm form \"%.40s\", known are %s",
               std::string(name).c_str(), known.c_str());
}

const WarmForm* find_warm_form(uint32_t code) noexcept {
  return code < std::size(kForms) ? &kForms[code] : nullptr;
}

}  // namespace gen::cache
