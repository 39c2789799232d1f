// SPDX-License-Identifier: Apache-2.0
// Qwen2 and Qwen2.5 (general.architecture "qwen2"): rotary pairs half a head apart, biases on q, k
// and v.
#include "model/arch/decoder_keys.h"
#include "model/arch/dense_decoder.h"
#include "model/arch/registry.h"

namespace gen::model::arch {

Status read_qwen(KeyReader& keys, HParams* h) {
  return read_decoder(keys, {.kind = engine::RopeKind::kHalves}, h);
}

void build_qwen2(const HParams& hparams, Weights& weights, graph::GraphBuilder& graph) {
  DenseStyle style;
  style.input_bias = Bias::kRequired;
  style.head_bias = Bias::kOptional;
  build_dense_decoder(style, hparams, weights, graph);
}

}  // namespace gen::model::arch
