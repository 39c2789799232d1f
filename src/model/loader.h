// SPDX-License-Identifier: Apache-2.0
// Loads a model from an open GGUF file: hyperparameters (hparams.h), weights (weights.h), the
// architecture's graph (arch/registry.h), the compiled plan, and the tokenizer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "engine/engine.h"
#include "model/arch/registry.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/metadata.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace gen::model {

/// Values of DeviceLayers' members.
inline constexpr int32_t kAllLayers = -1;
inline constexpr int32_t kFittingLayers = -2;

/// How much of a model is on a device.
struct DeviceLayers {
  /// kAllLayers; a number, which is capped at the number of layers; or kFittingLayers: as many as
  /// fit in the device's memory beside one sequence of float32 keys and values with a full context,
  /// possibly none.
  int32_t layers = kAllLayers;
  /// The last ones of these whose experts are there, too, in the same form; the others' are on the
  /// host. With kFittingLayers other weights go first.
  int32_t experts = kAllLayers;

  [[nodiscard]] bool all() const noexcept { return layers == kAllLayers && experts == kAllLayers; }
};

struct LoadOptions {
  std::shared_ptr<engine::Engine> engine;  // required; kept by the model
  /// Runs what is not on `engine`, a device's, which has the last layers and the end of the model.
  /// Kept by a model that needs it. Without a host all is on the engine.
  std::shared_ptr<engine::Engine> host;
  DeviceLayers on_device;
  int32_t max_seq_len = 0;                    // caps the file's context; 0 keeps it
  int32_t max_batch_rows = graph::kStepRows;  // rows a single forward accepts
  /// Called on the loading thread with 0..1, ascending, ending with 1; false cancels.
  std::function<bool(double fraction)> progress;
  const CancelFlag* cancel = nullptr;
  bool lock = false;           // keeps the weights on the host from being moved out of memory
  bool check_tensors = false;  // looks for NaN and infinity in every weight (reads all of them)
  std::string pre_tokenizer;   // instead of the file's, see read_vocab; empty: the file's
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
  DeviceLayers on_device = {0, 0};  // numbers, on LoadOptions::engine
  std::vector<std::string> unused;  // tensors of the file that the model itself does not need
};

/// Errors: kUnsupported naming the architecture, variant or element type; kFormat naming the key or
/// tensor that is missing or does not fit; kOutOfMemory; kCancelled; what the tokenizer reports.
Result<std::shared_ptr<const LoadedModel>> load_model(std::shared_ptr<const gguf::GgufFile> file,
                                                      const LoadOptions& options);

}  // namespace gen::model
