// SPDX-License-Identifier: Apache-2.0
// Hunyuan, dense: 0.5B to 7B, and its translators (general.architecture "hunyuan-dense"): a llama
// whose heads are normalised after their rotation.
#include <cmath>

#include "model/arch/registry.h"

namespace gen::model::arch {
namespace {

Status read_hunyuan_dense(const DenseStyle& style, KeyReader& keys, HParams* h) {
  GEN_TRY(read_dense_decoder(style, keys, h));
  // Newer files keep the base of the angles apart from what it is raised by for longer contexts.
  double alpha = 0.0;
  GEN_TRY(keys.number_or("rope.scaling.alpha", 0.0, 0.0, 1e9, &alpha));
  for (LayerParams& layer : h->layers) {
    const int32_t dim = layer.attention.k_dim;
    if (alpha > 0.0 && dim > 2) {
      layer.rope.base *= std::pow(alpha, static_cast<double>(dim) / (dim - 2));
    }
  }
  return {};
}

}  // namespace

constinit const Architecture kHunyuanDense = {
    "hunyuan-dense",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .head_norms = HeadNorms::kRotated,
     .input_bias = Bias::kOptional},
    read_hunyuan_dense,
};

}  // namespace gen::model::arch
