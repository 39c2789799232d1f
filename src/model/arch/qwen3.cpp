// SPDX-License-Identifier: Apache-2.0
// Qwen3, dense (general.architecture "qwen3"): like Qwen2 without biases, but each head of q and k
// is normalised before it is rotated, and the head's width is a number of its own.
#include "model/arch/dense_decoder.h"
#include "model/arch/registry.h"

namespace gen::model::arch {

void build_qwen3(const HParams& hparams, Weights& weights, graph::GraphBuilder& graph) {
  DenseStyle style;
  style.head_norms = true;
  build_dense_decoder(style, hparams, weights, graph);
}

}  // namespace gen::model::arch
