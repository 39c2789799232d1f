// SPDX-License-Identifier: Apache-2.0
// The architectures that can be built. A new one is one file with two functions, declared here, and
// one row in registry.cpp. A number of the file that no other architecture has, and that `build`
// needs, is a member of HParams (model/hparams.h).
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "graph/graph.h"
#include "model/hparams.h"
#include "model/weights.h"

namespace gen::model::arch {

struct Architecture {
  const char* name;  // general.architecture
  /// Asks for every key that it computes by; a file whose other keys change the computation is
  /// refused afterwards.
  ReadHParams read;
  /// Names tensors and operations; what goes wrong stays in the two objects.
  void (*build)(const HParams& hparams, Weights& weights, graph::GraphBuilder& graph);
};

std::span<const Architecture> architectures() noexcept;
/// One of `known`. kUnsupported naming it and those that are.
Result<const Architecture*> find_architecture(std::span<const Architecture> known,
                                              const std::string& name);

Status read_llama(KeyReader& keys, HParams* hparams);
void build_llama(const HParams& hparams, Weights& weights, graph::GraphBuilder& graph);
Status read_qwen(KeyReader& keys, HParams* hparams);
void build_qwen2(const HParams& hparams, Weights& weights, graph::GraphBuilder& graph);
void build_qwen3(const HParams& hparams, Weights& weights, graph::GraphBuilder& graph);

}  // namespace gen::model::arch
