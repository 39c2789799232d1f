// SPDX-License-Identifier: Apache-2.0
// The assistant of Gemma 4 (general.architecture "gemma4-assistant"), which drafts: a small
// transformer without keys and values. Its layers with a window read those of the model's last
// layer with one, the others those of its last layer without.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "cache/layer_shape.h"
#include "engine/weight.h"
#include "graph/graph.h"
#include "model/hparams.h"
#include "model/key_reader.h"
#include "model/weights.h"

namespace gen::model::arch {

struct AssistantParams {
  HParams own;
  int32_t target_hidden = 0;  // embedding_length_out
};
Status read_gemma4_assistant(KeyReader& keys, AssistantParams* out);
/// Its features, and tap 0, which is its own state, are [T, target_hidden]. `embedding` is the
/// model's, `cache` the layers of the model's caches.
void build_gemma4_assistant(const AssistantParams& params, const engine::WeightSource& embedding,
                            std::span<const cache::LayerShape> cache, Weights& weights,
                            graph::GraphBuilder& graph);

}  // namespace gen::model::arch
