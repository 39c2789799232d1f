// SPDX-License-Identifier: Apache-2.0
// The type of each tensor when a model is quantised. A recipe has a name that is common for GGUF
// files. Tensors that matter more, or that cannot be stored as its type, get another one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "tensor/dtype.h"

namespace gen::model {

struct QuantRecipe {
  const char* name;    // "Q4_K_M"; looked up ignoring case
  DType base;          // of matrices
  DType head;          // of the output matrix, or of the embedding that serves as one
  DType more;          // of attn_v and ffn_down in some layers
  uint32_t file_type;  // general.file_type
};

/// nullptr for an unknown name.
const QuantRecipe* find_recipe(std::string_view name) noexcept;
/// All names, "F32, F16, …", for messages.
std::string recipe_names();

/// A line for each pair of types where rows could not be stored as the recipe's type: the tensors,
/// the type used instead, and the reason.
std::vector<std::string> misfits(const QuantRecipe& recipe, const gguf::GgufFile& file);

/// A recipe applied to the tensors of one file.
class TypeChooser {
 public:
  TypeChooser(const QuantRecipe& recipe, const gguf::GgufFile& file);

  /// Vectors become F32. Matrices get the recipe's type, or the nearest type that can store rows of
  /// their length. Tensors that are not weights (integers, F64) are kept, and so are types without
  /// a codec, which the caller must refuse.
  [[nodiscard]] DType choose(const gguf::TensorInfo& tensor) const;
  /// The recipe's type, whether or not rows of that length can be stored as it.
  [[nodiscard]] DType wanted(const gguf::TensorInfo& tensor) const;

 private:
  const QuantRecipe& recipe_;
  bool tied_;
  int64_t layers_ = 0;
};

}  // namespace gen::model
