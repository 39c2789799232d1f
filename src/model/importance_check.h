// SPDX-License-Identifier: Apache-2.0
// Whether an importance matrix is that of a model, and what quantising with it should say.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "model/gguf/gguf_file.h"
#include "model/importance.h"
#include "tensor/dtype.h"

namespace gen::model {

/// kInvalidArgument, naming the tensor, for importance of a tensor that the model does not have, or
/// of another number of columns or experts.
Status check_importance(const Importance& importance, const gguf::GgufFile& file);

/// Lines for tensors that become `types`, [tensors]: those below 3 bits without importance, and the
/// other matrices of which nothing is known although there is importance. Null for none.
std::vector<std::string> importance_lines(const Importance* importance, const gguf::GgufFile& file,
                                          const std::vector<DType>& types);

/// What an importance matrix says of tensors that keep their type or become a plain one.
struct UnusedImportance {
  std::string line;     // empty if all of it is used
  bool is_all = false;  // nothing of it is used
};
UnusedImportance unused_importance(const Importance& importance, const gguf::GgufFile& file,
                                   const std::vector<DType>& types);

}  // namespace gen::model
