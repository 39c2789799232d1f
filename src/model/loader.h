// SPDX-License-Identifier: Apache-2.0
// Loads a model from an open GGUF file: hyperparameters (hparams.h), weights (weights.h), the
// architecture's graph (arch/registry.h), the compiled plan, and the tokenizer.
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

/// Values of LoadOptions::device_layers.
inline constexpr int32_t kAllLayers = -1;
inline constexpr int32_t kFittingLayers = -2;

struct LoadOptions {
  std::shared_ptr<engine::Engine> engine;  // required; kept by the model
  /// Runs the first layers if `engine`, a device's, runs only `device_layers` of them: the last
  /// ones and the end of the model. Kept by a model that needs it.
  std::shared_ptr<engine::Engine> host;
  /// kAllLayers; a number, which is capped at the number of layers; or kFittingLayers: as many as
  /// fit in the device's memory beside one sequence of float32 keys and values with a full context,
  /// possibly none. Without a host all are on the engine.
  int32_t device_layers = kAllLayers;
  int32_t max_seq_len = 0;                    // caps the file's context; 0 keeps it
  int32_t max_batch_rows = graph::kStepRows;  // rows a single forward accepts
  /// Called on the loading thread with 0..1, ascending, ending with 1; false cancels.
  std::function<bool(double fraction)> progress;
  const CancelFlag* cancel = nullptr;
  bool lock = false;           // keeps the weights on the host from being moved out of memory
  bool check_tensors = false;  // looks for NaN and infinity in every weight (reads all of them)
  /// The architectures that a file may name.
  arch::Architectures architectures = arch::architectures();
  /// The file's bytes live as long as the GgufFile, so weights may point to them; the model then
  /// keeps the GgufFile. False: everything is copied and the file may be closed after loading.
  bool lasting = true;
};

struct LoadedModel {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // null if the file has none
  std::shared_ptr<const gguf::Metadata> metadata;
  int32_t device_layers = 0;  // on LoadOptions::engine
};

/// Errors: kUnsupported naming the architecture, variant or element type; kFormat naming the key or
/// tensor that is missing or does not fit; kOutOfMemory; kCancelled; what the tokenizer reports.
Result<std::shared_ptr<const LoadedModel>> load_model(std::shared_ptr<const gguf::GgufFile> file,
                                                      const LoadOptions& options);

}  // namespace gen::model
