// SPDX-License-Identifier: Apache-2.0
// Tensors kept in the memory of a device, float32 or binary16, without an engine: all that is done
// to them are copies and appends through the injected allocator. They are what
// kv_cache_tensor_set_gpu_allocator and kv_cache_gpu_new_typed of the C API make. The interface is
// tensor_provider.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/tensor/layered_store.h"
#include "engine/memory/gpu_memory.h"

namespace gen::cache {

inline constexpr TensorTraits kDeviceFp32Traits = {.kind = "tensor", .has_full_buffer = true};
inline constexpr TensorTraits kDeviceFp16Traits = {
    .kind = "tensor", .dtype = "fp16", .lossy = true, .has_full_buffer = true};
inline constexpr TensorTraits kGpuFp32Traits = {.kind = "gpu", .has_full_buffer = true};
inline constexpr TensorTraits kGpuFp16Traits = {
    .kind = "gpu", .dtype = "fp16", .lossy = true, .has_full_buffer = true};

/// Storage: per layer one buffer of keys and one of values, each [batch, max_seq_len, dim]. Beside
/// them is the position that is written next, an int32. In a store that is not fixed it is followed
/// by the number of positions that attention reads; in a fixed one by the rest of
/// engine::AppendCounter. At rest both numbers are seq_len(); during a pass over the layers the
/// second is already that of layer 0. They change only with the lengths, except that replays of
/// append_stream() in the caller's graph move the position until sync_counter().
class DeviceStore final : public LayeredStore,
                          public TensorCopies,
                          public TensorBuffers,
                          public TensorCounters {
 public:
  static constexpr DType kTypes[] = {DType::kF32, DType::kF16};
  /// `type` is of kTypes. Layers take their shape from their first write. kInvalidArgument as
  /// check(), kOutOfMemory, kDevice.
  static Result<std::unique_ptr<DeviceStore>> create(
      DType type, int32_t num_layers, int32_t max_seq_len,
      std::shared_ptr<engine::GpuAllocator> allocator);
  /// Rows of `dim`, one lane, all memory taken now.
  static Result<std::unique_ptr<DeviceStore>> create_fixed(
      DType type, int32_t num_layers, int32_t max_seq_len, int32_t dim,
      std::shared_ptr<engine::GpuAllocator> allocator);

  [[nodiscard]] const TensorTraits& traits() const noexcept override;
  Status update(int32_t layer, const float* k, const float* v, const TensorShape& shape) override;
  /// One position of a fixed store, float32, from the host's memory, or the device's. kOutOfRange
  /// for the layer, kSequence if `position` is not seq_len(), kCacheFull, kState if the layer has
  /// it already, kDevice.
  Status append(int32_t layer, const float* k, const float* v, int32_t position);
  Status append_device(int32_t layer, const void* k, const void* v);
  /// The same on a stream of the caller's, at the position that the counter on the device tells
  /// then. kInvalidArgument for addresses that are no multiple of 4 and as append_on_device().
  Status append_stream(int32_t layer, const void* k, const void* v, void* stream);
  Status get(int32_t layer, float* k, float* v) const override;
  [[nodiscard]] const TensorBuffers* buffers() const noexcept override { return this; }
  /// With addresses of the device.
  [[nodiscard]] TensorSpan full_buffer(int32_t layer) const noexcept override;
  [[nodiscard]] const TensorCopies* copies() const noexcept override { return this; }
  [[nodiscard]] Result<std::unique_ptr<TensorProvider>> clone() const override;
  /// The same with its type.
  [[nodiscard]] Result<std::unique_ptr<DeviceStore>> copied() const;
  [[nodiscard]] TensorCounters* counters() noexcept override { return this; }
  [[nodiscard]] const TensorCounters* counters() const noexcept override { return this; }
  [[nodiscard]] const int32_t* position_counter() const noexcept override;
  [[nodiscard]] const int32_t* length_counter() const noexcept override;
  /// kCacheFull, once, if appends were dropped for want of room.
  Status sync_counter() override;
  Status truncate(int32_t n) override;
  Status restore(StateReader& from) override;
  [[nodiscard]] MemoryUse memory() const noexcept override;

  /// Addresses, on the device, of the layers' keys and values as arrays that lie there, too; of a
  /// fixed store. Made by the first call.
  Status pointer_arrays(const void** k, const void** v);

 protected:
  [[nodiscard]] StateForm state_form() const noexcept override { return plain_form(type_); }
  [[nodiscard]] bool saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept override;
  Status save_layer(int32_t layer, StateWriter& to) const override;
  Status restore_layer(int32_t layer, const TensorShape& shape,
                       std::span<const std::byte> bytes) override;

 private:
  enum class From { kHost, kDevice };
  struct Layer {
    engine::GpuBuffer k;
    engine::GpuBuffer v;
  };

  DeviceStore(DType type, int32_t num_layers, int32_t max_seq_len, int32_t fixed_dim,
              std::shared_ptr<engine::GpuAllocator> allocator)
      : LayeredStore(num_layers, max_seq_len),
        type_(type),
        fixed_dim_(fixed_dim),
        allocator_(std::move(allocator)),
        layers_(static_cast<size_t>(num_layers)) {}

  [[nodiscard]] size_t element_bytes() const noexcept;
  [[nodiscard]] bool one_word() const noexcept { return fixed_dim_ > 0; }
  Status take_counters();
  Status make_room(int32_t layer, const TensorShape& shape);
  Status check_shape(const TensorShape& shape) const;
  Status check_append(int32_t layer, int32_t position) const;
  Status append_rows(int32_t layer, const void* k, const void* v, const TensorShape& shape,
                     From from);
  Status write(const engine::GpuBuffer& to, int32_t start, const void* from,
               const TensorShape& shape, From where);
  /// `count` numbers as binary16.
  Status write_halves(std::byte* to, const float* from, size_t count, From where);
  /// All lanes' rows as they are kept, one lane after the other.
  Status read(const engine::GpuBuffer& from, const TensorShape& shape,
              std::vector<std::byte>* to) const;
  /// The same as float32.
  void decode(const std::vector<std::byte>& from, float* to) const;
  /// Sets the counters on the device and here, if they differ. `anew`: writes them even if they
  /// seem equal, because the device may have changed them; what was dropped is forgotten.
  Status set_counters(int32_t position, int32_t length, bool anew = false);
  /// Of a fixed store.
  [[nodiscard]] engine::AppendCounter* append_counter() const noexcept {
    return static_cast<engine::AppendCounter*>(counters_.at());
  }
  /// seq_len() if lengths were at most `keep`, and that of `layer`, if any, `length`.
  [[nodiscard]] int32_t agreement(int32_t keep, int32_t layer, int32_t length) const noexcept;

  DType type_;
  int32_t fixed_dim_;  // 0: layers take their shapes
  std::shared_ptr<engine::GpuAllocator> allocator_;
  std::vector<Layer> layers_;
  engine::GpuBuffer counters_;
  int32_t position_ = 0;  // what the counters hold, if known
  int32_t length_ = 0;
  bool counters_known_ = true;
  std::vector<uint16_t> halves_;  // of a write on its way, of binary16; kept for the next
  std::vector<float> floats_;
  engine::GpuBuffer k_pointers_;
  engine::GpuBuffer v_pointers_;
};

}  // namespace gen::cache
