// SPDX-License-Identifier: Apache-2.0
// EAGLE heads, which come in files of their own. Their tensors tell them apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/weight.h"
#include "graph/graph.h"
#include "model/hparams.h"
#include "model/key_reader.h"
#include "model/weights.h"

namespace gen::model::arch {

/// What a head takes from the model that it is for. Without weights of the model, null, the head
/// needs its own.
struct EagleTarget {
  int32_t hidden = 0;
  int32_t vocab_size = 0;
  const engine::WeightSource* embedding = nullptr;
  const engine::WeightSource* head = nullptr;
};

/// EAGLE-3 (arXiv 2503.01840), general.architecture "eagle3": one layer over the embedding of a
/// token and a mixture of three hidden states of the model.
struct Eagle3Params {
  HParams layer;                       // of the head
  std::vector<int32_t> target_layers;  // the model's hidden states before these layers
  int32_t target_hidden = 0;
  bool norm_before_residual = false;
  bool norm_before_fc = false;
};
Status read_eagle3(KeyReader& keys, Eagle3Params* out);
/// `mixes`: its features are hidden states of the model, [T, 3 * hidden]; otherwise its own states,
/// [T, embedding_length], which are tap 0. `outputs` is the size of its vocabulary.
void build_eagle3(const Eagle3Params& params, const EagleTarget& target, bool mixes,
                  int64_t outputs, Weights& weights, graph::GraphBuilder& graph);

/// EAGLE-1 and 2 (arXiv 2401.15077), general.architecture "eagle" with fc.weight: one layer without
/// a first norm over fc of a token's embedding and a hidden state after the last norm.
Status read_eagle(KeyReader& keys, HParams* out);
void build_eagle(const HParams& params, const EagleTarget& target, Weights& weights,
                 graph::GraphBuilder& graph);

/// The head of two products: out = fc2(silu(fc1(norm(features)))), which is tap 0.
struct EagleMlp {
  std::vector<float> norm;      // [D]
  std::vector<float> bias;      // [D]
  engine::WeightSource fc1;     // [D, D], outputs by inputs
  engine::WeightSource fc2;     // the same
  engine::WeightSource output;  // [V, D]
};
/// Its tensors have the names norm.weight, norm.bias, fc1.weight and fc2.weight, after `prefix`,
/// and store products inputs by outputs. A file without a prefix may have an output layer.
EagleMlp read_eagle_mlp(const EagleTarget& target, const std::string& prefix, Weights& weights);
void build_eagle_mlp(const EagleMlp& head, graph::GraphBuilder& graph);

}  // namespace gen::model::arch
