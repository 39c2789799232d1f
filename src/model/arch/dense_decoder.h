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
  kFused,  // the same, with the rows of ffn_gate above those of ffn_up in one tensor, ffn_up;
           // files with an ffn_gate are read as kGated
  kPlain,  // ffn_down(act(ffn_up x))
};

/// Parallel blocks: the feed-forward reads the block's input, as attention does, and both results
/// are added to it.
enum class Parallel : uint8_t {
  kNever,
  kOneNorm,      // both read attn_norm's rows
  kTwoNorms,     // each has its own; unless the file says use_parallel_residual = false
  kWithoutNorm,  // as kOneNorm in blocks whose feed-forward has no norm in the file
};

/// What stands in the place of attention in some blocks. See the functions of DecoderBuilder.
enum class Recurrence : uint8_t {
  kNone,
  kDeltaNet,
  kShortConvolution,
  kMamba,
  kMamba2,
};

/// The blocks that recur.
enum class Recurs : uint8_t {
  kInstead,  // those that do not attend
  kAlone,    // the same, but a block is one of recurrence, attention and feed-forward
  kOnly,     // all, without attention and feed-forward
  kBeside,   // all: attention reads the same norm, and both results are added
};

/// Whether files have expert_count.
enum class Experts : uint8_t { kNone, kOptional, kRequired };

/// Experts instead of the feed-forward, if a file has them.
struct ExpertStyle {
  Experts has = Experts::kNone;
  engine::Gating gating = engine::Gating::kSoftmax;  // without expert_gating_func
  bool normalise = false;                            // without expert_weights_norm
  SharedExpert shared = SharedExpert::kNone;
  bool unshared = false;     // without keys of its width there is no shared expert
  bool some_blocks = false;  // only blocks with ffn_gate_inp have them
  bool latent = false;       // moe_latent_size: they work on a product of what goes in
  bool beside = false;       // beside the feed-forward, see DecoderBuilder::experts_beside
};

/// Values that no file states. Keys are those below "<architecture>.".
struct DenseStyle {
  RopeParams rope;
  /// rope.scaling.finetuned = false means that nothing is rotated.
  bool rope_switch = false;
  /// rope.dimension_sections: models that see pictures, too, rotate by several positions, which are
  /// one in texts. Files that say so have the elements of a pair half of a head apart.
  bool rope_sections = false;

  // Norms, one for attention and one for the feed-forward.
  NormStyle norms = {};
  double eps = 0.0;         // without the key of it, with a warning; 0: the file is refused
  bool norm_before = true;  // attn_norm and `ffn_norm`, of what goes in
  const char* ffn_norm = "ffn_norm";
  Parallel parallel = Parallel::kNever;
  bool norm_after = false;      // post_attention_norm and post_ffw_norm, of what is added
  float after_eps = 0.0F;       // of these; 0: the file's
  bool norm_embedding = false;  // rows of token_embd have an RMS norm without weight
  HeadNorms head_norms = HeadNorms::kNone;
  bool sinks = false;  // attn_sinks: a score of each head that every softmax has besides

  Bias input_bias = Bias::kNone;  // of attn_q, attn_k and attn_v
  Bias inner_bias = Bias::kNone;  // of attn_output and the feed-forward
  Bias head_bias = Bias::kNone;   // of output

  AttentionGate attention_gate = AttentionGate::kNone;
  engine::Act gate_activation = engine::Act::kSigmoid;  // of it
  FeedForward feed_forward = FeedForward::kGated;
  engine::Act activation = engine::Act::kSilu;  // the keys xielu.* are for kXielu
  float activation_alpha = 1.0F;                // of kClampedSwiglu
  float activation_limit = 0.0F;
  bool swiglu_limits = false;  // swiglu_clamp_exp and swiglu_clamp_shexp of layers cut kSilu

  int32_t window = 0;          // without attention.sliding_window; 0: no window
  bool window_needed = false;  // without it the file is refused
  int32_t global_every = 0;    // every n-th layer has no window; 0: as the file says
  bool global_first = false;   // the first of each n instead of the last
  double local_base = 0.0;  // of layers with a window, without rope.freq_base_swa; 0: that of all
  bool local_unscaled = false;  // layers with a window ignore rope.scaling and rope_freqs
  int32_t unrotated_every = 0;  // every n-th layer has no rotary embedding; 0: all have
  bool rotate_local = false;    // only layers with a window have a rotary embedding
  bool rotate_dense = false;    // and those before the first with experts
  bool global_half = false;     // layers without a window rotate half of rope.dimension_count

  bool undivided_scores = false;   // without attention.scale the scale of scores is 1
  bool query_temperature = false;  // queries grow with the position (read_query_temperature)
  bool shared_layers = false;      // the last layers share earlier keys and values
  bool local_heads = false;        // heads of layers with a window have widths of their own
  /// Each head of v has an RMS norm without weight. Without attn_v, v is k before k's own norm.
  bool value_norm = false;
  bool layer_inputs = false;  // each layer has embeddings (embedding_length_per_layer_input)
  bool layer_scale = false;   // layer_output_scale multiplies the output of a layer

  bool root_embedding = false;  // the embedding is multiplied by the root of its length
  bool logit_factor = false;    // logit_scale, a factor
  bool factors = false;         // embedding_scale, residual_scale and, a divisor, logit_scale
  /// Without attn_logit_softcapping and final_logit_softcapping; 0: none then, kNoCap: never one.
  static constexpr float kNoCap = -1.0F;
  float score_cap = kNoCap;
  float logit_cap = kNoCap;
  Recurrence recurrence = Recurrence::kNone;
  bool recurrent_norms = false;      // ssm_dt_norm, ssm_b_norm and ssm_c_norm of a Mamba-1
  Recurs recurs = Recurs::kInstead;  // blocks without heads do not attend, nor others as follows:
  int32_t attention_every = 0;       // without full_attention_interval every n-th block attends
  const char* last_norm = "output_norm";
  bool draft_layers = false;    // nextn_predict_layers of the blocks draft
  bool draft_unnormed = false;  // from hidden states before the last norm

  /// Models with this number of layers, which no others have, divide scores by the root of a head's
  /// share of the width instead of a head's width; no key states this.
  int32_t share_scaled_layers = 0;

  ExpertStyle experts = {};
};

/// Reads all keys of files of this style.
Status read_dense_decoder(const DenseStyle& style, KeyReader& keys, HParams* h);
/// Builds the graph of block `index` of those that draft (DeepSeek-V3, arXiv 2412.19437, section
/// 2.2): its features are hidden states of the model, or its own; taps are before and after the
/// block, and kNormedTap.
void build_dense_draft(const DenseStyle& style, const HParams& hparams, int32_t index,
                       Weights& weights, graph::GraphBuilder& graph);
/// Builds its graph.
void build_dense_decoder(const DenseStyle& style, const HParams& hparams, Weights& weights,
                         graph::GraphBuilder& graph);

}  // namespace gen::model::arch
