// SPDX-License-Identifier: Apache-2.0
// The decoder that several architectures are: layers of attention and a gated feed-forward, each
// after an RMS norm and added to what went in. What sets them apart is data; an architecture of
// another build writes its own loop with decoder_builder.h.
#pragma once

#include "graph/graph.h"
#include "model/arch/decoder_builder.h"
#include "model/hparams.h"
#include "model/weights.h"

namespace gen::model::arch {

struct DenseStyle {
  bool head_norms = false;        // each head of q and k is normalised before it is rotated
  Bias input_bias = Bias::kNone;  // of attn_q, attn_k and attn_v
  Bias inner_bias = Bias::kNone;  // of attn_output and the feed-forward
  Bias head_bias = Bias::kNone;   // of output
};

void build_dense_decoder(const DenseStyle& style, const HParams& hparams, Weights& weights,
                         graph::GraphBuilder& graph);

}  // namespace gen::model::arch
