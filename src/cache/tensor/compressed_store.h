// SPDX-License-Identifier: Apache-2.0
// Tensors of which every full chunk of positions becomes one mean: kv_cache_compressed_new of the C
// API. The interface is tensor_provider.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/tensor/layered_store.h"

namespace gen::cache {

inline constexpr TensorTraits kCompressedTraits = {
    .kind = "compressed", .lossy = true, .can_view = true, .one_row_one_result = false};

/// A layer of n positions has n / chunk entries that are means, of keys and of values, per lane and
/// element, and n % chunk that are positions as written. Means are summed in double precision and
/// rounded once. There is no most length.
/// Storage: per layer one buffer, keys then values, each [batch, room, dim]; an open chunk lies
/// where its mean will. A full buffer is replaced by one of twice the room and kept, so that views
/// stay readable: what is kept so is less than what is in use. In a view means keep their content;
/// entries of the open chunk are replaced when it closes.
class CompressedStore final : public LayeredStore, public TensorCopies, public TensorViews {
 public:
  /// Checks the layers as check(), and chunk >= 1. `allocator` must outlive the store.
  static Result<std::unique_ptr<CompressedStore>> create(int32_t num_layers, int32_t chunk,
                                                         Allocator& allocator);

  [[nodiscard]] const TensorTraits& traits() const noexcept override { return kCompressedTraits; }
  Status update(int32_t layer, const float* k, const float* v, const TensorShape& shape) override;
  /// seq is the number of entries.
  [[nodiscard]] TensorShape shape(int32_t layer) const noexcept override;
  Status get(int32_t layer, float* k, float* v) const override;
  [[nodiscard]] const TensorViews* views() const noexcept override { return this; }
  [[nodiscard]] TensorSpan view(int32_t layer) const noexcept override;
  [[nodiscard]] int32_t kv_len(int32_t layer) const noexcept override {
    return entries(layer_seq_len(layer));
  }
  /// Positions of the open chunk can be cut; a cut into a mean drops all of its positions.
  Status truncate(int32_t n) override;
  [[nodiscard]] MemoryUse memory() const noexcept override;
  [[nodiscard]] const TensorCopies* copies() const noexcept override { return this; }
  [[nodiscard]] Result<std::unique_ptr<TensorProvider>> clone() const override;

  /// The number of positions that an entry covers: chunk for a mean, 1 for others, 0 if there is
  /// none. Its first position is *first.
  [[nodiscard]] int32_t entry_positions(int32_t layer, int32_t entry,
                                        int32_t* first) const noexcept override;

 protected:
  [[nodiscard]] StateForm state_form() const noexcept override { return {"mean", chunk_}; }
  [[nodiscard]] bool saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept override;
  /// Keys, then values, as [batch, entries, dim] float32.
  Status save_layer(int32_t layer, StateWriter& to) const override;
  Status restore_layer(int32_t layer, const TensorShape& shape,
                       std::span<const std::byte> bytes) override;

 private:
  struct Layer {
    Buffer buffer;
    size_t room = 0;  // entries
    std::vector<Buffer> retired;
  };

  CompressedStore(int32_t num_layers, int32_t chunk, Allocator& allocator)
      : LayeredStore(num_layers, INT32_MAX),
        chunk_(chunk),
        allocator_(allocator),
        layers_(static_cast<size_t>(num_layers)) {}

  [[nodiscard]] int32_t entries(int32_t positions) const noexcept {
    return positions / chunk_ + positions % chunk_;
  }
  /// Room for `entries` of a shape, with what the layer holds.
  Status grow(int32_t layer, const TensorShape& shape, int32_t entries);
  /// The entries of keys or values of a lane.
  [[nodiscard]] static float* lane_of(const Layer& layer, size_t dim, size_t half,
                                      size_t lane) noexcept;
  /// Appends `seq` rows to a lane of `length` positions.
  void append(float* lane, size_t dim, int32_t length, int32_t seq, const float* x) const noexcept;

  int32_t chunk_;
  Allocator& allocator_;
  std::vector<Layer> layers_;
};

}  // namespace gen::cache
