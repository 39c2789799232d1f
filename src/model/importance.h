// SPDX-License-Identifier: Apache-2.0
// An importance matrix: how large the inputs of a model's matrices are, column by column, on a
// calibration text. Weights of large inputs matter more where a matrix is quantised.
// importance_file.h reads one, importance_sums.h makes one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gen::model {

/// Threads: immutable.
class Importance {
 public:
  /// By the name of the tensor, for each a positive number of values as find() returns them.
  explicit Importance(std::map<std::string, std::vector<float>> means) : means_(std::move(means)) {}

  /// The mean of the squared inputs of each column, [columns], or [experts * columns] for a stack
  /// of experts; finite and not negative. nullptr if nothing is known of the tensor.
  [[nodiscard]] const std::vector<float>* find(std::string_view tensor_name) const;
  [[nodiscard]] const std::map<std::string, std::vector<float>>& all() const noexcept {
    return means_;
  }

 private:
  std::map<std::string, std::vector<float>> means_;
};

}  // namespace gen::model
