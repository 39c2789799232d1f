// SPDX-License-Identifier: Apache-2.0
// From an opened GGUF file to a model that runs: hyperparameters (hparams.h), weights (weights.h),
// the architecture's graph (arch/registry.h), the compiled plan, and the tokenizer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/cancel.h"
#include "base/status.h"
#include "engine/engine.h"
#include "model/arch/registry.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/metadata.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace gen::model {

struct LoadOptions {
  std::shared_ptr<engine::Engine> engine;     // required; kept by the model
  int32_t max_seq_len = 0;                    // caps the file's context; 0 keeps it
  int32_t max_batch_rows = graph::kStepRows;  // rows a single forward accepts
  /// Called on the loading thread with 0..1, ascending, ending with 1; false cancels.
  std::function<bool(double fraction)> progress;
  const CancelFlag* cancel = nullptr;
  bool check_tensors = false;  // looks for NaN and infinity in every weight (reads all of them)
  /// Those that a file may name.
  std::span<const arch::Architecture> architectures = arch::architectures();
  /// The file's bytes stay as long as the GgufFile does, so weights may point at them; the model
  /// then keeps the GgufFile. False: everything is copied and the file may go after loading.
  bool lasting = true;
};

struct LoadedModel {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // null if the file has none
  std::shared_ptr<const gguf::Metadata> metadata;
};

/// Errors: kUnsupported naming the architecture, variant or element type; kFormat naming the key or
/// tensor that is missing or does not fit; kOutOfMemory; kCancelled; what the tokenizer reports.
Result<std::shared_ptr<const LoadedModel>> load_model(std::shared_ptr<const gguf::GgufFile> file,
                                                      const LoadOptions& options);

}  // namespace gen::model
