// SPDX-License-Identifier: Apache-2.0
// Llama 1 to 3.x, Mistral, TinyLlama and their kin (general.architecture "llama"): rotary pairs
// side by side, biases only in some files, Llama 3's frequency factors as a tensor.
#include "model/arch/decoder_keys.h"
#include "model/arch/dense_decoder.h"
#include "model/arch/registry.h"

namespace gen::model::arch {

Status read_llama(KeyReader& keys, HParams* h) {
  return read_decoder(keys, {.kind = engine::RopeKind::kAdjacent, .freq_factors = true}, h);
}

void build_llama(const HParams& hparams, Weights& weights, graph::GraphBuilder& graph) {
  DenseStyle style;
  style.input_bias = Bias::kOptional;
  style.inner_bias = Bias::kOptional;
  build_dense_decoder(style, hparams, weights, graph);
}

}  // namespace gen::model::arch
