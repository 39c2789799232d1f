// SPDX-License-Identifier: Apache-2.0
// Scales beside matrices of NVFP4. The scales of its runs are floats of 8 bits, which are even
// steps below a limit and nothing below the first step: matrices of small weights need a factor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "tensor/dtype.h"

namespace gen::model {

/// The scale that the file has beside a tensor, of one number for each matrix; nullptr for none.
const gguf::TensorInfo* known_scale(const gguf::GgufFile& file, const gguf::TensorInfo& tensor);

/// Whether a tensor that becomes `type` may have a scale beside it: a matrix of a block, or a stack
/// of experts, whose readers know scales. Others that it has beside it are of no known form.
bool may_be_scaled(const gguf::GgufFile& file, const gguf::TensorInfo& tensor, DType type);

/// How large the weights of a tensor are, of which may_be_scaled() is true.
class WeightSizes {
 public:
  explicit WeightSizes(const gguf::TensorInfo& tensor);
  /// Weights from `first` on, whole runs of 16.
  void add(int64_t first, std::span<const float> weights) noexcept;
  /// A factor for each matrix, [matrices]: a power of two, by which the matrix's weights are to be
  /// divided, or 1. Empty if all are 1.
  [[nodiscard]] std::vector<float> scales() const;

 private:
  struct Matrix {
    float largest = 0.0F;
    int64_t runs = 0;        // with a weight other than 0
    int64_t small_runs = 0;  // of those, whose scale would have fewer bits than it should
  };

  int64_t matrix_;  // its weights
  std::vector<Matrix> matrices_;
};

/// The tensor "w.scale" beside "w.weight", without data.
gguf::TensorInfo scale_info(const gguf::TensorInfo& tensor, size_t n);

}  // namespace gen::model
