// SPDX-License-Identifier: Apache-2.0
// The architectures that can be built. A new one is a file that defines one Architecture, which is
// declared here and listed in registry.cpp. A family's differences are the data of its style; what
// no style can express yet is a member of DenseStyle (dense_decoder.h), or a `read` or `build` of
// its own. A number of the file that `build` needs is a member of HParams (model/hparams.h).
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "graph/graph.h"
#include "model/arch/dense_decoder.h"
#include "model/hparams.h"
#include "model/weights.h"

namespace gen::model::arch {

struct Architecture {
  const char* name;  // general.architecture
  DenseStyle style;
  /// Reads every key that it uses; files with other keys that change the computation are refused
  /// afterwards.
  Status (*read)(const DenseStyle& style, KeyReader& keys, HParams* hparams) = read_dense_decoder;
  /// Builds the graph; errors are kept in the two objects.
  void (*build)(const DenseStyle& style, const HParams& hparams, Weights& weights,
                graph::GraphBuilder& graph) = build_dense_decoder;
  /// Builds the graph of a block that drafts.
  void (*build_draft)(const DenseStyle& style, const HParams& hparams, int32_t index,
                      Weights& weights, graph::GraphBuilder& graph) = build_dense_draft;
};

using Architectures = std::span<const Architecture* const>;

Architectures architectures() noexcept;
/// One of `known`. kUnsupported naming it and what it is or would need, or the nearest known name.
Result<const Architecture*> find_architecture(Architectures known, const std::string& name);

extern const Architecture kLlama;
extern const Architecture kQwen2;
extern const Architecture kQwen3;
extern const Architecture kGemma2;
extern const Architecture kGranite;
extern const Architecture kOlmo2;
extern const Architecture kGlm4;
extern const Architecture kPhi3;
extern const Architecture kSmolLm3;
extern const Architecture kArcee;
extern const Architecture kGemma;
extern const Architecture kGemma3;
extern const Architecture kExaone4;
extern const Architecture kErnie45;
extern const Architecture kSeedOss;
extern const Architecture kCommandR;
extern const Architecture kCohere2;
extern const Architecture kStarcoder2;
extern const Architecture kNemotron;
extern const Architecture kStableLm;
extern const Architecture kApertus;
extern const Architecture kPhi2;
extern const Architecture kGptNeoX;
extern const Architecture kOlmo;
extern const Architecture kQwen2Vl;
extern const Architecture kQwen3Vl;
extern const Architecture kMuseGlimmer;
extern const Architecture kMiniCpm;
extern const Architecture kMistral3;
extern const Architecture kGemma4;
extern const Architecture kHunyuanDense;
extern const Architecture kQwen3Moe;
extern const Architecture kQwen2Moe;
extern const Architecture kOlmoe;
extern const Architecture kInternLm2;
extern const Architecture kQwen35;
extern const Architecture kLfm2;
extern const Architecture kMamba2;
extern const Architecture kGraniteHybrid;
extern const Architecture kMamba;
extern const Architecture kFalconH1;
extern const Architecture kNemotronH;
extern const Architecture kJamba;
extern const Architecture kNemotronHMoe;
extern const Architecture kGptOss;
extern const Architecture kQwen35Moe;
extern const Architecture kQwen3Next;
extern const Architecture kGlm4Moe;
extern const Architecture kLfm2Moe;
extern const Architecture kGraniteMoe;
extern const Architecture kErnie45Moe;
extern const Architecture kMiniMaxM2;
extern const Architecture kCohere2Moe;
extern const Architecture kLaguna;
extern const Architecture kStep35;
extern const Architecture kDeepSeek;

}  // namespace gen::model::arch
