// SPDX-License-Identifier: Apache-2.0
// A file's tensors by name, each checked for the shape that an architecture expects. The first
// mistake is kept and reported by finish(), so that an architecture file reads as a plain list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "engine/weight.h"
#include "model/gguf/gguf_file.h"

namespace gen::model {

/// Its results point into the file.
class Weights {
 public:
  /// `lasting`: see LoadOptions.
  Weights(const gguf::GgufFile& file, bool lasting) : file_(file), lasting_(lasting) {}

  [[nodiscard]] bool has(std::string_view name) const;
  /// The outputs of a matrix as the file has it; 0 if there is none.
  [[nodiscard]] int64_t outputs(std::string_view name) const;
  /// A matrix of `rows` outputs by `cols` inputs, with its scale if the file has a number for it:
  /// "w.scale" or "w.weight.scale" beside "w.weight". Scales of inputs are ignored: they are for
  /// programs that round inputs to 4 bits. After an error a matrix of that shape without data.
  engine::WeightSource matrix(const std::string& name, int64_t rows, int64_t cols);
  /// Rows [first, first + n) of a matrix of `total` rows, for files that store several as one.
  engine::WeightSource rows(const std::string& name, int64_t total, int64_t first, int64_t n,
                            int64_t cols);
  /// Rows [first, first + n) of each of the `count` pieces of a matrix, `total` rows each. The
  /// result is a contiguous copy that lives as long as this object.
  engine::WeightSource rows_of_each(const std::string& name, int64_t count, int64_t total,
                                    int64_t first, int64_t n, int64_t cols);
  /// `count` matrices of `rows` by `cols`, one after the other. Scales for them are not supported
  /// yet: a file with such scales is refused.
  engine::WeightSource stack(const std::string& name, int64_t count, int64_t rows, int64_t cols);
  /// Rows [first, first + n) of each matrix of such a stack.
  engine::WeightSource stack_rows(const std::string& name, int64_t count, int64_t total,
                                  int64_t first, int64_t n, int64_t cols);
  /// The transpose of a matrix of `n` by `n`, as float32.
  engine::WeightSource transposed(const std::string& name, int64_t n);
  /// `size` values as floats.
  std::vector<float> vector(const std::string& name, int64_t size);
  /// A matrix's values as floats, row after row.
  std::vector<float> table(const std::string& name, int64_t rows, int64_t cols);
  /// The same, or empty if the file has no such tensor.
  std::vector<float> optional_vector(const std::string& name, int64_t size) {
    return optional_vector(name, size, 1);
  }
  /// The same for `count` concatenated vectors.
  std::vector<float> optional_vector(const std::string& name, int64_t size, int64_t count);
  /// The same for values that are compared, so that all of them must be finite.
  std::vector<float> optional_finite_vector(const std::string& name, int64_t size);
  /// Names a tensor that other models of the family use but this one does not need.
  void ignore(std::string_view name) { ignored_.insert(std::string(name)); }

  /// The same for all tensors whose names begin so, and for all whose names do not.
  void ignore_all(std::string_view prefix);
  void ignore_others(std::string_view prefix);

  /// Errors: kFormat for a tensor that is missing, has another shape or is not finite where it has
  /// to be, kUnsupported for an element type without a codec and for a tensor that nobody asked for
  /// (the model would not be what its file says).
  Status finish() { return finish(false, 0, 0); }
  /// The same of a model of so many blocks, whose file has `end`. Of what nobody asked for only
  /// a tensor of the text model is refused. Others are skipped: lines of the log say how many of
  /// pictures and sound there are, how many only draft, and how many are unknown.
  Status finish_model(int64_t blocks, int64_t end);
  /// Of tensors that were skipped. After finish_model().
  [[nodiscard]] uint64_t skipped_bytes() const noexcept { return skipped_bytes_; }

  /// Names of the file's tensors that are known and not read, in file order.
  [[nodiscard]] std::vector<std::string> unused() const;

 private:
  const gguf::TensorInfo* take(const std::string& name, int64_t cols, int64_t rows,
                               int64_t count = 1);
  float scale_of(const std::string& name);
  void fail(Status status);
  Status finish(bool may_skip, int64_t blocks, int64_t end);

  const gguf::GgufFile& file_;
  bool lasting_;
  std::unordered_set<std::string> used_;
  std::unordered_set<std::string> ignored_;
  std::deque<std::vector<std::byte>> copies_;
  Status status_;
  uint64_t skipped_bytes_ = 0;
};

/// What a matrix is multiplied by: the numbers "w.scale" and "w.weight.scale" beside "w.weight",
/// and 1 where there are none. kFormat for a number that scales nothing, kUnsupported for a type
/// without a codec.
Result<float> scale_beside(const gguf::GgufFile& file, const std::string& name);

/// The transpose of a matrix of `n` by `n`.
std::vector<float> transpose(std::span<const float> values, size_t n);

/// kFormat naming the tensor if it holds a NaN or an infinity; kUnsupported without a codec.
Status check_finite(const gguf::TensorInfo& tensor);

}  // namespace gen::model
