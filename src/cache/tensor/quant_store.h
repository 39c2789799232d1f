// SPDX-License-Identifier: Apache-2.0
// Tensors kept in few bits: kv_cache_fp8_new, kv_cache_q4_new and kv_cache_q3_new of the C API. The
// interface is tensor_provider.h, the codecs are quant/kv_*.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/tensor/layered_store.h"

namespace gen::cache {

/// One byte an element and a float32 scale a row.
inline constexpr TensorTraits kFp8Traits = {.kind = "fp8", .dtype = "fp8", .lossy = true};
// With groups of 128 an element may come to depend on elements of later rows.
/// 4 bits an element and a float32 scale a group.
inline constexpr TensorTraits kQ4Traits = {
    .kind = "q4", .dtype = "q4", .lossy = true, .one_row_one_result = false};
/// 3 bits an element and eight binary16 centroids a group.
inline constexpr TensorTraits kQ3Traits = {
    .kind = "q3", .dtype = "q3", .lossy = true, .one_row_one_result = false};

/// How a store keeps its elements: in groups that are encoded on their own.
struct GroupFormat {
  TensorTraits traits;
  size_t group = 0;        // elements of a group; 0: a row
  size_t scale_bytes = 0;  // scale or codebook of a group
  size_t (*code_bytes)(size_t n) noexcept = nullptr;
  void (*encode)(const float* x, size_t n, std::byte* scale, uint8_t* codes) noexcept = nullptr;
  void (*decode)(const std::byte* scale, const uint8_t* codes, size_t n,
                 float* x) noexcept = nullptr;
};

extern const GroupFormat kFp8Tensors;
extern const GroupFormat kQ4Tensors;
extern const GroupFormat kQ3Tensors;

/// A lane of a layer is max_seq_len * dim elements, cut into groups from its start; where a row is
/// no whole number of groups, a group spans rows. A full group is encoded and from then on never
/// changes. Of the one group of a lane that is not full its elements are kept as float32, and
/// reading gives what they would be as a group of their own; nothing else has a say in it. That is
/// found by the first read after a change and kept where the full group will be. A truncate into a
/// full group opens it again with what it decodes to, the one rounding that is then
/// made twice.
/// Storage: per layer one buffer with scales, open groups and codes of keys and values; reserved by
/// the layer's first write, never initialised, as in TensorStore.
class QuantStore final : public LayeredStore, public TensorCopies {
 public:
  /// Checks as check(). `format` and `allocator` must outlive the store.
  static Result<std::unique_ptr<QuantStore>> create(const GroupFormat& format, int32_t num_layers,
                                                    int32_t max_seq_len, Allocator& allocator);

  [[nodiscard]] const TensorTraits& traits() const noexcept override { return format_.traits; }
  /// Elements must be finite.
  Status update(int32_t layer, const float* k, const float* v, const TensorShape& shape) override;
  Status get(int32_t layer, float* k, float* v) const override;
  Status truncate(int32_t n) override;
  [[nodiscard]] MemoryUse memory() const noexcept override;
  [[nodiscard]] const TensorCopies* copies() const noexcept override { return this; }
  [[nodiscard]] Result<std::unique_ptr<TensorProvider>> clone() const override;

 protected:
  [[nodiscard]] StateForm state_form() const noexcept override;
  [[nodiscard]] bool ends_full(const TensorShape& shape) const noexcept override;
  [[nodiscard]] bool saved_bytes(const TensorShape& shape, size_t* bytes) const noexcept override;
  /// Keys, then values; each lane's scales of full groups, their codes, and the elements of the
  /// open group as float32.
  Status save_layer(int32_t layer, StateWriter& to) const override;
  Status restore_layer(int32_t layer, const TensorShape& shape,
                       std::span<const std::byte> bytes) override;

 private:
  /// Where things lie in a layer's buffer; [0] is of keys, [1] of values.
  struct Layout {
    size_t group = 0;  // elements
    size_t lane_elements = 0;
    size_t lane_scales = 0;  // bytes
    size_t lane_open = 0;    // bytes; 0 where rows are whole groups
    size_t lane_codes = 0;   // bytes
    size_t scales[2] = {};   // offsets
    size_t open[2] = {};
    size_t codes[2] = {};
    size_t bytes = 0;
  };
  /// What of a lane is in use.
  struct Extent {
    size_t groups = 0;  // full ones
    size_t code_bytes = 0;
    size_t open = 0;  // elements after them
  };
  struct Layer {
    Buffer buffer;
    Layout layout;
    /// The open groups of keys, or values, are encoded as they were after so many changes().
    mutable uint64_t encoded[2] = {kNever, kNever};
  };
  static constexpr uint64_t kNever = UINT64_MAX;
  /// One lane of keys or of values.
  struct Lane {
    std::byte* scales;
    float* open;
    uint8_t* codes;
  };

  /// Calls visit(bytes, count) for each stretch of a lane of `count` elements.
  template <typename F>
  Status visit_lane(const Layout& layout, const Lane& lane, size_t count, F&& visit) const;
  /// Makes a layer's buffer large enough for this batch and dim.
  Status make_room(Layer& layer, const TensorShape& shape) const;

  QuantStore(const GroupFormat& format, int32_t num_layers, int32_t max_seq_len,
             Allocator& allocator)
      : LayeredStore(num_layers, max_seq_len),
        format_(format),
        allocator_(allocator),
        layers_(static_cast<size_t>(num_layers)) {}

  /// False on overflow.
  [[nodiscard]] bool lay_out(const TensorShape& shape, Layout* layout) const noexcept;
  [[nodiscard]] static Lane lane_of(const Layer& layer, size_t half, size_t lane) noexcept;
  /// Elements of a group when full: the last of a lane may be shorter.
  [[nodiscard]] static size_t full_size(const Layout& layout, size_t group) noexcept;
  [[nodiscard]] Extent extent(const Layout& layout, size_t count) const noexcept;
  /// Writes `count` elements after the first `start`.
  void write(const Layout& layout, const Lane& lane, size_t start, size_t count,
             const float* x) const noexcept;
  /// Reads the first `count` elements, which are all that the lane holds; `encoded`: the open group
  /// is, too.
  void read(const Layout& layout, const Lane& lane, size_t count, bool encoded,
            float* x) const noexcept;
  /// The lane holds `before` elements and is to keep `count`.
  void reopen(const Layout& layout, const Lane& lane, size_t before, size_t count) const noexcept;

  const GroupFormat& format_;
  Allocator& allocator_;
  std::vector<Layer> layers_;
};

}  // namespace gen::cache
