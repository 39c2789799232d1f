// SPDX-License-Identifier: Apache-2.0
// The decoder of most architectures: layers of attention and a gated feed-forward, each added to
// its input. Differences are data, a DenseStyle; an architecture with another structure writes its
// own loop with decoder_builder.h.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/activation.h"
#include "graph/graph.h"
#include "model/arch/decoder_builder.h"
#include "model/hparams.h"
#include "model/key_reader.h"
#include "model/weights.h"

namespace gen::model::arch {

/// The block's part after attention.
enum class FeedForward : uint8_t {
  kGated,  // ffn_down(act(ffn_gate x) * ffn_up x)
  kFused,  // the same, with the rows of ffn_gate above those of ffn_up in one tensor, ffn_up
  kPlain,  // ffn_down(act(ffn_up x))
};

/// Whether a block's feed-forward reads the block's input, as attention does, and both are added to
/// it.
enum class Parallel : uint8_t {
  kNever,
  kOneNorm,      // both read attn_norm's rows
  kTwoNorms,     // each has its own; unless the file says use_parallel_residual = false
  kWithoutNorm,  // as kOneNorm in blocks for which the file has no norm of the feed-forward
};

/// Whether files have expert_count.
enum class Experts : uint8_t { kNone, kOptional, kRequired };

/// Experts instead of the feed-forward, if a file has them.
struct ExpertStyle {
  Experts has = Experts::kNone;
  engine::Gating gating = engine::Gating::kSoftmax;  // without expert_gating_func
  bool normalise = false;                            // without expert_weights_norm
  SharedExpert shared = SharedExpert::kNone;
};

/// Values that no file states. Keys are those below "<architecture>.".
struct DenseStyle {
  RopeParams rope;
  /// rope.scaling.finetuned, where it is false, says that nothing is rotated.
  bool rope_switch = false;
  /// rope.dimension_sections: models that see pictures, too, rotate by several positions, which are
  /// one in texts. Files that say so have the elements of a pair half of a head apart.
  bool rope_sections = false;

  // Norms, one for attention and one for the feed-forward.
  NormStyle norms = {};
  bool norm_before = true;  // attn_norm and `ffn_norm`, of what goes in
  const char* ffn_norm = "ffn_norm";
  Parallel parallel = Parallel::kNever;
  bool norm_after = false;      // post_attention_norm and post_ffw_norm, of what is added
  float after_eps = 0.0F;       // of these; 0: the file's
  bool norm_embedding = false;  // rows of token_embd have an RMS norm without weight
  HeadNorms head_norms = HeadNorms::kNone;

  Bias input_bias = Bias::kNone;  // of attn_q, attn_k and attn_v
  Bias inner_bias = Bias::kNone;  // of attn_output and the feed-forward
  Bias head_bias = Bias::kNone;   // of output

  AttentionGate attention_gate = AttentionGate::kNone;
  FeedForward feed_forward = FeedForward::kGated;
  engine::Act activation = engine::Act::kSilu;  // the keys xielu.* are for kXielu
  float activation_alpha = 1.0F;                // of kClampedSwiglu
  float activation_limit = 0.0F;

  int32_t window = 0;        // without attention.sliding_window; 0: all is seen
  int32_t global_every = 0;  // the last of so many layers sees all; 0: as the file says
  double local_base = 0.0;   // of layers with a window, without rope.freq_base_swa; 0: that of all
  bool local_unscaled = false;  // layers with a window turn without rope.scaling and rope_freqs
  int32_t unrotated_every = 0;  // the last of so many layers turns nothing; 0: all turn
  bool rotate_local = false;    // layers without a window turn nothing

  bool undivided_scores = false;   // without attention.scale it is 1
  bool query_temperature = false;  // what read_query_temperature reads
  bool shared_layers = false;      // what read_shared_layers reads
  bool local_heads = false;        // what read_local_heads reads
  /// Each head of v has an RMS norm without weight; without attn_v it is k, as it is before its
  /// own.
  bool value_norm = false;
  bool layer_inputs = false;  // embedding_length_per_layer_input: each layer has embeddings, too
  bool layer_scale = false;   // layer_output_scale, a factor of all that a layer leaves behind

  bool root_embedding = false;  // the embedding is multiplied by the root of its length
  bool logit_factor = false;    // logit_scale, a factor
  bool factors = false;         // embedding_scale, residual_scale and, a divisor, logit_scale
  /// Without attn_logit_softcapping and final_logit_softcapping; 0: none then, kNoCap: never one.
  static constexpr float kNoCap = -1.0F;
  float score_cap = kNoCap;
  float logit_cap = kNoCap;
  /// Models with this number of layers, which no others have, divide scores by the root of a head's
  /// share of the width instead of a head's width; no key states this.
  int32_t share_scaled_layers = 0;

  ExpertStyle experts = {};
};

/// Reads all keys of files of this style.
Status read_dense_decoder(const DenseStyle& style, KeyReader& keys, HParams* h);
/// Names its tensors and operations.
void build_dense_decoder(const DenseStyle& style, const HParams& hparams, Weights& weights,
                         graph::GraphBuilder& graph);

}  // namespace gen::model::arch
