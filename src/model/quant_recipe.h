// SPDX-License-Identifier: Apache-2.0
// The type of each tensor when a model is quantised. A recipe has a name that is common for GGUF
// files. Tensors that matter more, or that cannot be stored as its type, get another one, and so do
// those that the caller names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/gguf/gguf_file.h"
#include "model/importance.h"
#include "model/type_pattern.h"
#include "tensor/dtype.h"

namespace gen::model {

/// Where a rule of a recipe applies.
enum class RuleLayers : uint8_t {
  kAll,
  kMore,         // the first and last eighth of the layers, and every third between
  kFirstEighth,  // rounded down, as the others
  kFirstSixteenth,
  kMiddle,              // all but the first and last eighth
  kFirstTwo,            // layers
  kFirstFour,           // layers
  kShared,              // of models whose queries share keys and values by four or more
  kExperts,             // of models with four experts or more
  kEight,               // of models with eight experts
  kEightMore,           // of those, where kMore is
  kImportance,          // all, with an importance matrix
  kKnownFirstEighth,    // of kFirstEighth, with an importance matrix
  kUnknownFirstEighth,  // and without one
};

struct RecipeRule {
  const char* part;  // of the tensor's name, ".attn_v."
  RuleLayers where;
  DType type;
};

struct QuantRecipe {
  const char* name;    // "Q4_K_M"; looked up ignoring case
  uint32_t file_type;  // general.file_type
  DType base;          // of matrices
  DType head;          // of the output matrix, or of the embedding that serves as one
  DType embedding;     // of the embedding beside an output matrix
  std::span<const RecipeRule> rules{};  // the first that applies
};

/// nullptr for an unknown name.
const QuantRecipe* find_recipe(std::string_view name) noexcept;
/// All names, "F32, F16, …", for messages.
std::string recipe_names();
/// Those that begin with `name` and an underscore, "Q4_K_M or Q4_K_S"; "" if there are none.
std::string recipes_near(std::string_view name);

/// What quantising may be given beside a recipe.
struct QuantOptions {
  const Importance* importance = nullptr;  // none
  std::vector<TypePattern> types{};        // for weights; the first that matches
};

/// A recipe applied to the tensors of one file, which must outlive it, as the other two.
class TypeChooser {
 public:
  TypeChooser(const QuantRecipe& recipe, const QuantOptions& options, const gguf::GgufFile& file);

  /// Vectors become F32. Matrices get the type of their pattern or of the recipe, or the nearest
  /// type that can store rows of their length. What is not multiplied with rows, or small, is kept,
  /// and so are integers, F64 and types without a codec, which the caller must refuse.
  [[nodiscard]] DType choose(const gguf::TensorInfo& tensor) const;
  /// The type of the pattern or recipe, whether or not rows of that length can be stored as it.
  [[nodiscard]] DType wanted(const gguf::TensorInfo& tensor) const;
  /// kInvalidArgument for a pattern that matches no weights.
  [[nodiscard]] Status check_patterns() const;

  /// A line for each pair of types where rows could not be stored as the type wanted: the tensors,
  /// the type used instead, and the reason.
  [[nodiscard]] std::vector<std::string> misfits() const;

 private:
  /// Whether the tensor is a matrix of products, whose type a recipe may choose.
  [[nodiscard]] bool is_weight(const gguf::TensorInfo& tensor) const;
  /// The type of the recipe.
  [[nodiscard]] DType of_recipe(std::string_view name) const;
  [[nodiscard]] bool applies(const RecipeRule& rule, std::string_view name) const;

  const QuantRecipe& recipe_;
  const QuantOptions& options_;
  const gguf::GgufFile& file_;
  bool tied_;
  bool shared_ = false;  // see RuleLayers
  uint32_t experts_ = 0;
  bool seventy_ = false;  // a model of 80 layers, as those with 70 billion weights
  int64_t layers_ = 0;
};

}  // namespace gen::model
