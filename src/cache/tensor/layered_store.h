// SPDX-License-Identifier: Apache-2.0
// What the stores behind TensorProvider share: lengths and shapes of layers that advance on their
// own, and the checks of an update. Where the elements lie is left to the store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/tensor/tensor_provider.h"

namespace gen::cache {

class LayeredStore : public TensorProvider {
 public:
  /// kInvalidArgument for num_layers outside [0, kMaxLayers] or max_seq_len below 1.
  static Status check(int32_t num_layers, int32_t max_seq_len);

  [[nodiscard]] TensorShape shape(int32_t layer) const noexcept override;
  [[nodiscard]] int32_t seq_len() const noexcept final { return agreed_; }
  [[nodiscard]] int32_t layer_seq_len(int32_t layer) const noexcept final;
  [[nodiscard]] uint64_t changes(int32_t layer) const noexcept final;
  [[nodiscard]] int32_t num_layers() const noexcept final {
    return static_cast<int32_t>(lengths_.size());
  }
  [[nodiscard]] int32_t max_seq_len() const noexcept final { return max_seq_len_; }

  Status save(StateWriter& to) const override;
  Status restore(StateReader& from) override;

 protected:
  /// What a store's elements are kept as; states go from store to store where these are the same.
  struct StateForm {
    const char* name = "";   // "f32", "q4"; up to eight letters
    int32_t parameter = 0;   // positions of a chunk and the like
    bool one_shape = false;  // all layers with positions must have the same batch and dim
  };
  [[nodiscard]] virtual StateForm state_form() const noexcept = 0;
  /// Of keys, then values, as [batch, seq, dim] of kF32 or kF16.
  [[nodiscard]] static StateForm plain_form(DType type) noexcept {
    return type == DType::kF32 ? StateForm{"f32"} : StateForm{"f16"};
  }
  /// Whether a layer of this shape lies otherwise than in a longer store, its last group being
  /// short and yet full.
  [[nodiscard]] virtual bool ends_full(const TensorShape& /*shape*/) const noexcept {
    return false;
  }
  /// Bytes that a layer of this shape (seq in positions) takes in a state; false on overflow.
  [[nodiscard]] virtual bool saved_bytes(const TensorShape& shape,
                                         size_t* bytes) const noexcept = 0;
  /// Writes that many bytes of a layer with positions.
  virtual Status save_layer(int32_t layer, StateWriter& to) const = 0;
  /// Takes them back into a layer of a store without positions, where it makes room first: the
  /// layer then has batch and dim of the shape, and its positions are made real when all layers are
  /// there. kInvalidArgument, kOutOfMemory and the like.
  virtual Status restore_layer(int32_t layer, const TensorShape& shape,
                               std::span<const std::byte> bytes) = 0;
  /// Not all layers came: gives back what restore_layer took and an empty store does not have.
  virtual void drop_restored() noexcept {}

  /// Arguments as checked by check().
  LayeredStore(int32_t num_layers, int32_t max_seq_len)
      : max_seq_len_(max_seq_len), lengths_(static_cast<size_t>(num_layers)) {}

  /// The checks of update() down to kCacheFull.
  [[nodiscard]] Status check_update(int32_t layer, const TensorShape& shape) const;
  /// kInvalidArgument naming the first element of k or v that is not finite, for stores that cannot
  /// keep it. count elements each.
  static Status check_finite(int32_t layer, const float* k, const float* v, size_t count);

  /// Makes `seq` written positions real. The layer takes batch and dim.
  void advance(int32_t layer, const TensorShape& added) noexcept;
  /// Cuts every length to max(n, 0). Layers keep their batch and dim.
  void cut(int32_t n) noexcept;
  /// Cuts one layer to n, at most its length; settle() when all are cut.
  void cut_layer(int32_t layer, int32_t n) noexcept;
  void settle() noexcept;
  /// All layers have n positions, which something else wrote, in the shapes that they have: a layer
  /// without one gets batch 1 and `dim`.
  void grow_to(int32_t n, int32_t dim) noexcept;
  /// The layer holds other elements than before.
  void note_change(int32_t layer) noexcept {
    lengths_[static_cast<size_t>(layer)].changes.fetch_add(1, std::memory_order_relaxed);
  }
  /// Another store's lengths and shapes, layers without positions excepted.
  void copy_lengths(const LayeredStore& from) noexcept;

  [[nodiscard]] bool has(int32_t layer) const noexcept {
    return layer >= 0 && static_cast<size_t>(layer) < lengths_.size();
  }
  /// Batch and dim of a layer's last write, 0 before the first, and its length. `layer` must exist.
  [[nodiscard]] TensorShape held(int32_t layer) const noexcept;

 private:
  struct SavedLayer {
    TensorShape shape;
    std::span<const std::byte> bytes;
  };
  struct Length {
    int32_t batch = 0;
    int32_t dim = 0;
    std::atomic<int32_t> positions = 0;  // one writer; may be asked from any thread
    std::atomic<uint64_t> changes = 0;
  };

  void note_agreement() noexcept;
  /// Everything that restore() can check before it changes anything.
  Result<std::vector<SavedLayer>> read_layers(StateReader& from, int32_t* agreed) const;
  Status take_layers(std::span<const SavedLayer> layers);

  int32_t max_seq_len_;
  std::atomic<int32_t> agreed_ = 0;
  std::vector<Length> lengths_;

 protected:
  [[nodiscard]] size_t bookkeeping_bytes() const noexcept {
    return lengths_.size() * sizeof(Length);
  }
};

}  // namespace gen::cache
