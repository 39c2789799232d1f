// SPDX-License-Identifier: Apache-2.0
// Tensors kept as float32 or binary16: kv_cache_new, kv_cache_fp16_new and kv_cache_tensor_new of
// the C API. The interface is tensor_provider.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/tensor/layered_store.h"

namespace gen::cache {

inline constexpr TensorTraits kFp32Traits = {
    .kind = "fp32", .can_view = true, .has_full_buffer = true};
inline constexpr TensorTraits kFp16Traits = {
    .kind = "fp16", .dtype = "fp16", .lossy = true, .can_view = true, .has_full_buffer = true};
/// The same in host memory for what may lie on a device.
inline constexpr TensorTraits kTensorFp32Traits = {
    .kind = "tensor", .can_view = true, .has_full_buffer = true};
inline constexpr TensorTraits kTensorFp16Traits = {
    .kind = "tensor", .dtype = "fp16", .lossy = true, .can_view = true, .has_full_buffer = true};

/// Storage: per layer one buffer, keys then values, each [batch, max_seq_len, dim]. It is reserved
/// in full by the layer's first write, so later writes allocate nothing, and never initialised, so
/// pages come as they are written.
class TensorStore final : public LayeredStore,
                          public TensorCopies,
                          public TensorViews,
                          public TensorBuffers {
 public:
  static constexpr DType kTypes[] = {DType::kF32, DType::kF16};
  /// The traits of a store in host memory that replaces one on a device.
  static const TensorTraits& device_traits(DType type) noexcept {
    return type == DType::kF32 ? kTensorFp32Traits : kTensorFp16Traits;
  }

  /// `type` is of kTypes, `traits` what it is called, for good; null for "fp32" or "fp16".
  /// Checks as check(). `allocator` must outlive the store.
  static Result<std::unique_ptr<TensorStore>> create(DType type, int32_t num_layers,
                                                     int32_t max_seq_len, Allocator& allocator,
                                                     const TensorTraits* traits = nullptr);

  [[nodiscard]] const TensorTraits& traits() const noexcept override { return traits_; }
  Status update(int32_t layer, const float* k, const float* v, const TensorShape& shape) override;
  Status get(int32_t layer, float* k, float* v) const override;
  [[nodiscard]] const TensorViews* views() const noexcept override { return this; }
  [[nodiscard]] TensorSpan view(int32_t layer) const noexcept override;
  [[nodiscard]] const TensorBuffers* buffers() const noexcept override { return this; }
  [[nodiscard]] TensorSpan full_buffer(int32_t layer) const noexcept override;
  Status truncate(int32_t n) override;
  [[nodiscard]] MemoryUse memory() const noexcept override;
  [[nodiscard]] const TensorCopies* copies() const noexcept override { return this; }
  [[nodiscard]] Result<std::unique_ptr<TensorProvider>> clone() const override;

 protected:
  [[nodiscard]] StateForm state_form() const noexcept override;
  [[nodiscard]] bool saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept override;
  /// Keys, then values, as [batch, seq, dim].
  Status save_layer(int32_t layer, StateWriter& to) const override;
  Status restore_layer(int32_t layer, const TensorShape& shape,
                       std::span<const std::byte> bytes) override;

 private:
  TensorStore(DType type, const TensorTraits& traits, int32_t num_layers, int32_t max_seq_len,
              Allocator& allocator)
      : LayeredStore(num_layers, max_seq_len),
        type_(type),
        traits_(traits),
        allocator_(allocator),
        buffers_(static_cast<size_t>(num_layers)) {}

  [[nodiscard]] size_t element_bytes() const noexcept;
  /// Bytes of keys, or of values, of a layer; false on overflow.
  [[nodiscard]] bool half_bytes(const TensorShape& shape, size_t* bytes) const noexcept;
  /// Makes a layer's buffer large enough for this batch and dim.
  Status make_room(int32_t layer, const TensorShape& shape);
  /// Writes added.seq positions after the first `start`.
  void encode(const TensorShape& added, int32_t start, const float* from,
              std::byte* to) const noexcept;
  void decode(const TensorShape& shape, const std::byte* from, float* to) const noexcept;

  DType type_;
  const TensorTraits& traits_;
  Allocator& allocator_;
  std::vector<Buffer> buffers_;  // per layer: keys in the first half, values in the second
};

}  // namespace gen::cache
