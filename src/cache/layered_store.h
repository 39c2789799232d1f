// SPDX-License-Identifier: Apache-2.0
// What the stores behind TensorProvider share: lengths and shapes of layers that advance on their
// own, and the checks of an update. Where the elements lie is left to the store.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "cache/tensor_provider.h"

namespace gen::cache {

class LayeredStore : public TensorProvider {
 public:
  /// More layers than any model has; bounds the tables that stores make.
  static constexpr int32_t kMaxLayers = 65536;
  /// kInvalidArgument for num_layers outside [0, kMaxLayers] or max_seq_len below 1.
  static Status check(int32_t num_layers, int32_t max_seq_len);

  [[nodiscard]] TensorShape shape(int32_t layer) const noexcept override;
  [[nodiscard]] int32_t seq_len() const noexcept final { return agreed_; }
  [[nodiscard]] int32_t layer_seq_len(int32_t layer) const noexcept final;
  [[nodiscard]] int32_t num_layers() const noexcept final {
    return static_cast<int32_t>(lengths_.size());
  }
  [[nodiscard]] int32_t max_seq_len() const noexcept final { return max_seq_len_; }

 protected:
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
  /// Another store's lengths and shapes, layers without positions excepted.
  void copy_lengths(const LayeredStore& from) noexcept;

  [[nodiscard]] bool has(int32_t layer) const noexcept {
    return layer >= 0 && static_cast<size_t>(layer) < lengths_.size();
  }
  /// Batch and dim of a layer's last write, 0 before the first, and its length. `layer` must exist.
  [[nodiscard]] TensorShape held(int32_t layer) const noexcept;

 private:
  struct Length {
    int32_t batch = 0;
    int32_t dim = 0;
    std::atomic<int32_t> positions = 0;  // one writer; may be asked from any thread
  };

  void note_agreement() noexcept;

  int32_t max_seq_len_;
  std::atomic<int32_t> agreed_ = 0;
  std::vector<Length> lengths_;

 protected:
  [[nodiscard]] size_t bookkeeping_bytes() const noexcept {
    return lengths_.size() * sizeof(Length);
  }
};

}  // namespace gen::cache
