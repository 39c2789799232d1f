// SPDX-License-Identifier: Apache-2.0
// WeightChange: what becomes of a file's weights between decoding and encoding.
#pragma once

#include <cstdint>
#include <span>

#include "model/gguf/gguf_file.h"

namespace gen::model {

/// Threads: any number at once. Results depend on the arguments alone.
class WeightChange {
 public:
  WeightChange() = default;
  WeightChange(const WeightChange&) = delete;
  WeightChange& operator=(const WeightChange&) = delete;
  virtual ~WeightChange() = default;

  /// What happens to the weights, for messages: "merging".
  [[nodiscard]] virtual const char* doing() const noexcept = 0;
  /// Whether any weight of the tensor changes; the others are not asked for.
  [[nodiscard]] virtual bool changes(const gguf::TensorInfo& tensor) const noexcept = 0;
  /// Changes weights from `first` on, in the order of the file; they may begin and end anywhere in
  /// a row. What is too large becomes infinite.
  virtual void apply(const gguf::TensorInfo& tensor, int64_t first,
                     std::span<float> weights) const noexcept = 0;
};

}  // namespace gen::model
