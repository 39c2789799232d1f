// SPDX-License-Identifier: Apache-2.0
// The sums that an importance matrix consists of, made while a model runs, and the GGUF file of
// them: for each tensor NAME.in_sum2, the squared inputs summed over rows, [columns] or
// [columns, experts], and NAME.counts, the number of rows, [1] or [1, experts]. This is the form of
// llama.cpp's llama-imatrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/new_file.h"
#include "base/status.h"
#include "graph/product_observer.h"

namespace gen::model {

/// What a file says of the text that its sums were made with.
struct ImportanceText {
  std::string dataset;  // its name; empty: none is given
  uint32_t windows = 0;
  uint32_t window_tokens = 0;
};

/// Sums are in double precision, row after row, so that they depend on the rows and their order
/// alone, not on the passes in which they come. Threads: one at a time.
class ImportanceSums final : public graph::ProductObserver {
 public:
  /// kUnsupported for a tensor whose name is too long for the file.
  Status observe(const graph::ProductInput& input) override;

  /// Appends a whole file, tensors in the order of their names. kModel naming a tensor whose inputs
  /// were not finite or whose sums are too large for float32.
  Status write(const ImportanceText& text, NewFile& out) const;

 private:
  /// Of one product.
  struct Sums {
    std::vector<std::string> tensors;
    size_t cols = 0;
    std::vector<double> squares;  // [matrices, cols]
    std::vector<int64_t> rows;    // [matrices]
  };

  std::map<int32_t, Sums> products_;  // by the product's number
};

}  // namespace gen::model
