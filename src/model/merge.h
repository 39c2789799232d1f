// SPDX-License-Identifier: Apache-2.0
// Merges an adapter into a model: writes a GGUF file whose matrices are W + scale factor B A. Works
// on the tensors of the file, so it needs no graph and takes architectures that cannot be run.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/new_file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/adapter_file.h"
#include "model/gguf/gguf_file.h"
#include "model/quant_recipe.h"
#include "model/weight_change.h"

namespace gen::model {

/// The weights of a model with an adapter. Sums are in double precision, in the order of the ranks;
/// each weight is rounded once.
class MergedWeights final : public WeightChange {
 public:
  /// `adapter` was read for the merge_targets of `model`; with scale 0 nothing changes. Scales that
  /// the model has beside its matrices, and of each expert, are divided out. Errors: kUnsupported
  /// for an adapter with invocation tokens; kFormat for a scale beside a matrix that scales
  /// nothing.
  static Result<std::unique_ptr<const MergedWeights>> create(const gguf::GgufFile& model,
                                                             AdapterFile adapter, float scale);

  [[nodiscard]] const char* doing() const noexcept override { return "merging"; }
  [[nodiscard]] bool changes(const gguf::TensorInfo& tensor) const noexcept override {
    return deltas_.find(tensor.name) != deltas_.end();
  }
  void apply(const gguf::TensorInfo& tensor, int64_t first,
             std::span<float> weights) const noexcept override;

 private:
  /// What is added to the rows of a tensor: factor of the matrix, times a row of coefficients,
  /// times the basis of the matrix.
  struct Delta {
    int64_t rank = 0;
    int64_t rows = 0;                     // of a matrix
    const float* coefficients = nullptr;  // [matrices * rows, rank]
    const float* basis = nullptr;         // [matrices, rank, columns]
    std::vector<double> factors;          // [matrices]
  };

  MergedWeights() = default;
  Status add(const gguf::GgufFile& model, const AdapterPair& pair, float scale);
  /// Adds columns [first, first + size) of a row, counted through all matrices.
  static void add_row(const Delta& delta, int64_t columns, int64_t row, int64_t first,
                      std::span<float> weights) noexcept;

  AdapterFile adapter_;
  std::deque<std::vector<float>> turned_;     // B of embeddings, [rank, columns]
  std::map<std::string_view, Delta> deltas_;  // by tensor
};

/// Writes the merged model to `out`, which the caller finishes; types and metadata as
/// write_changed(). The bytes depend only on the files, the scale and the recipe.
Status merge(const gguf::GgufFile& model, AdapterFile adapter, float scale,
             const QuantRecipe* recipe, ThreadPool& pool,
             const std::function<bool(double)>& progress, NewFile& out);

}  // namespace gen::model
