// SPDX-License-Identifier: Apache-2.0
// Weights of an engine. A plan passes the matrices of a file (WeightSource) and gets an opaque
// Weight in the engine's own layout. Several sources can form one product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace gen::engine {

/// A matrix as stored in a file: `rows` outputs by `cols` inputs, each row whole blocks of `type`.
/// Or a stack of such matrices, one per expert, `pitch` bytes apart.
struct WeightSource {
  const char* name = "";  // for messages; outlives the call it is passed to
  DType type = DType::kF32;
  int64_t rows = 0;  // N
  int64_t cols = 0;  // K
  std::span<const std::byte> data;
  bool lasting = false;  // the bytes outlive the Weight, so the engine may keep pointing at them
  float scale = 1.0F;    // of the whole matrix; applied by the graph, not by engines
  int64_t count = 1;     // matrices
  size_t pitch = 0;      // of stacks
  // Which rows of the tensor these are: rows / pieces of them from `first_row` of each of its
  // `pieces` pieces of `piece_rows` rows. 0 rows: all of the tensor. Nothing is computed by them.
  int64_t pieces = 1;
  int64_t piece_rows = 0;
  int64_t first_row = 0;

  /// Matrix `i` of a stack, or the only one.
  [[nodiscard]] WeightSource matrix(int64_t i) const noexcept {
    WeightSource one = *this;
    one.count = 1;
    one.pitch = 0;
    if (count == 1) return one;
    const size_t others = static_cast<size_t>(count - 1) * pitch;
    one.data = data.subspan(static_cast<size_t>(i) * pitch, data.size() - others);
    return one;
  }
};

/// How a weight is used, which decides its layout. If the sources of a product are stacks, all of
/// the same number of matrices, the weight is one of experts (ExpertsArgs).
enum class WeightRole : int32_t {
  kLinear,     // y = x W^T; sources stacked along rows in the order given
  kGated,      // two sources of equal shape, gate then up; y = act(x G^T) * (x U^T)
  kEmbedding,  // one source; rows are looked up by token id
};

/// One allocation shared by weights that are prepared in sequence; freed with the last of them.
/// Threads: one at a time allocates from it.
class WeightMemory {
 public:
  virtual ~WeightMemory() = default;
};

/// No limit on rows.
inline constexpr int64_t kAnyRows = INT64_MAX;

/// Owned by a plan, made by Engine::prepare. Immutable.
class Weight {
 public:
  virtual ~Weight() = default;
  [[nodiscard]] virtual WeightRole role() const noexcept = 0;
  /// Outputs of the product: sum of the sources' rows, or rows of one source for kGated.
  [[nodiscard]] virtual int64_t out_features() const noexcept = 0;
  [[nodiscard]] virtual int64_t in_features() const noexcept = 0;
  /// Matrices of each source: experts. Outputs and inputs are those of one.
  [[nodiscard]] virtual int64_t count() const noexcept { return 1; }
  /// Which activation forms the product reads, as ActForm bits.
  [[nodiscard]] virtual uint32_t activation_forms() const noexcept = 0;
  /// Bytes this weight keeps in engine memory (pointing at lasting bytes counts 0).
  [[nodiscard]] virtual size_t resident_bytes() const noexcept = 0;
  /// Bytes read by a product, for bandwidth figures; for stacks, one that uses all experts.
  [[nodiscard]] virtual size_t stream_bytes() const noexcept = 0;
  /// Adds the host memory that products read, the weight's own as well as lasting bytes.
  virtual void list_host_bytes(std::vector<std::span<const std::byte>>*) const {}
  // Of products that are not `deterministic`:
  /// The largest number of rows at which a row's result does not depend on the other rows.
  [[nodiscard]] virtual int64_t one_result_rows() const noexcept { return kAnyRows; }
  /// The smallest number of rows that a product reads as bfloat16 (Activations::bf16).
  [[nodiscard]] virtual int64_t bf16_rows() const noexcept { return kAnyRows; }
};

}  // namespace gen::engine
