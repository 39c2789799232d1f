// SPDX-License-Identifier: Apache-2.0
// Quantises a model: writes a GGUF file with other weight types, or with other weights, from an
// open one. Uses a few megabytes of memory, whatever the size of the model.
#pragma once

#include <functional>

#include "base/new_file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/gguf/gguf_file.h"
#include "model/quant_recipe.h"
#include "model/weight_change.h"

namespace gen::model {

/// Writes all of the new file to `out`; the caller finishes it. The bytes depend only on the model,
/// the recipe and the options, not on the number of threads. Metadata is kept, except that file
/// type and version of quantisation are set, and keys of a split model are dropped. The file type
/// is the recipe's even if rows do not fit its types: a warning in the log says so, as where
/// weights below 3 bits have no importance. `progress` is called on this thread with 0..1,
/// ascending; false cancels. Errors: kIo; kFormat for a weight that is not finite; kInvalidArgument
/// for a pattern that matches no matrix, or importance of another model; kUnsupported for a type
/// without a codec; kCancelled.
Status quantize(const gguf::GgufFile& file, const QuantRecipe& recipe, const QuantOptions& options,
                ThreadPool& pool, const std::function<bool(double)>& progress, NewFile& out);

/// The same with the weights that `change` makes of the file's, encoded once. Without a recipe
/// (null) every tensor keeps its type and all metadata stays but the keys of a split model; tensors
/// that do not change are copied, whatever their type. Errors are also kFormat for a changed weight
/// that is not finite or that its type cannot hold, and kUnsupported for a changed tensor of a type
/// without a codec.
Status write_changed(const gguf::GgufFile& file, const QuantRecipe* recipe,
                     const WeightChange& change, ThreadPool& pool,
                     const std::function<bool(double)>& progress, NewFile& out);

}  // namespace gen::model
