// SPDX-License-Identifier: Apache-2.0
// Helpers for the `read` of an architecture: the keys that most decoders share, in groups that fill
// HParams. Keys of a single family are read in its own file.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/hparams.h"
#include "model/key_reader.h"

namespace gen::model::arch {

/// context_length, block_count (and room for as many layers), embedding_length,
/// attention.layer_norm_rms_epsilon, or for layer norms attention.layer_norm_epsilon, whose value
/// in all models of the family is `eps`, or 0.
Status read_model(KeyReader& keys, HParams* h, bool layer_norms = false, double eps = 0.0);
/// attention.head_count, head_count_kv, key_length, value_length, scale (1 / sqrt(k_dim)); numbers
/// of heads may differ from block to block. `absent`: blocks of 0 kv heads do not attend; otherwise
/// 0 is refused.
Status read_heads(KeyReader& keys, bool absent, HParams* h);
/// attention.sliding_window, own row included, and chunk_size; 0: all. They are for the blocks of
/// attention.sliding_window_pattern: a list, or a number n: all but the last, or the first, of each
/// n; 0: all blocks.
struct WindowDefaults {
  int32_t window = 0;
  int32_t pattern = 0;
  bool first = false;
  bool needed = false;  // without attention.sliding_window the file is refused
};
Status read_windows(KeyReader& keys, WindowDefaults absent, HParams* h);
/// rope.*: the same for all blocks, except n_dims where heads differ. `family` has the values that
/// no file states, and the base of files that do not state it.
Status read_rope(KeyReader& keys, const RopeParams& family, HParams* h);
/// rope.freq_base_swa, the base of blocks with a window. After read_windows and read_rope.
struct LocalRope {
  double base = 0.0;      // without the key; 0: that of all
  bool unscaled = false;  // they ignore rope.scaling and rope_freqs
};
Status read_local_rope(KeyReader& keys, LocalRope family, HParams* h);
/// attention.temperature_scale and rope.scaling.yarn_log_multiplier. After read_rope.
Status read_query_temperature(KeyReader& keys, HParams* h);
/// attention.key_length_swa, value_length_swa and rope.dimension_count_swa: of blocks with a
/// window, without the keys as those of all; scores are divided accordingly. After read_rope.
Status read_local_heads(KeyReader& keys, HParams* h);
/// Blocks without a window rotate half of the elements. After read_local_heads.
Status halve_global_rotation(KeyReader& keys, HParams* h);
/// attention.shared_kv_layers (0): so many last blocks look at the keys and values of the last
/// block before them that has a window, or has none, as they do.
Status read_shared_layers(KeyReader& keys, HParams* h);
/// nextn_predict_layers (0): the last blocks of block_count, which draft. Until they are taken out
/// they are among the layers. After read_model.
Status read_draft_layers(KeyReader& keys, HParams* h);
/// Moves the layers that draft to a list of their own.
void take_draft_layers(HParams* h);
/// Blocks recur that do not attend for want of heads, that attention.recurrent_layers names, or
/// without that key, where `interval` is above 0, all but the last of each full_attention_interval
/// (`interval`). After read_heads.
Status read_recurrent_layers(KeyReader& keys, int32_t interval, HParams* h);
/// ssm.conv_kernel, inner_size, state_size, time_step_rank and group_count of a delta net or of
/// Mamba-2: its heads of values, and as many of keys, or of b and c, as there are groups.
Status read_state_heads(KeyReader& keys, HParams* h);
/// The same of Mamba-1 without group_count, and ssm.dt_b_c_rms (false).
Status read_mamba(KeyReader& keys, HParams* h);
/// shortconv.l_cache.
Status read_short_convolution(KeyReader& keys, HParams* h);
/// embedding_length_per_layer_input (0).
Status read_layer_inputs(KeyReader& keys, HParams* h);
/// rope.scaling.finetuned (true); false: nothing is rotated.
Status read_rope_switch(KeyReader& keys, HParams* h);
/// rope.dimension_sections: how many pairs turn by time, height, width. In texts these are one
/// position, and pairs are halves of a head; a fourth, which texts do not have, is refused.
Status read_rope_sections(KeyReader& keys, HParams* h);
/// feed_forward_length, which may differ from block to block; without it
/// expert_feed_forward_length. `absent`: blocks of 0 have no feed-forward; otherwise 0 is refused.
Status read_feed_forward(KeyReader& keys, HParams* h, bool absent = false);
/// expert_count, 0: there are none; expert_used_count, expert_feed_forward_length,
/// expert_gating_func, expert_weights_norm, expert_weights_scale, expert_group_count,
/// expert_group_used_count, of blocks from leading_dense_block_count on, and of these the last of
/// each interleave_moe_layer_step (1); where experts may be `shared`
/// expert_shared_feed_forward_length, or as wide as expert_shared_count (1, or 0 for `unshared`)
/// others. After read_feed_forward.
struct ExpertDefaults {
  engine::Gating gating = engine::Gating::kSoftmax;
  bool normalise = false;
  bool shared = false;
  bool unshared = false;
  bool required = false;  // 0 of them are refused
};
Status read_experts(KeyReader& keys, ExpertDefaults absent, HParams* h);

/// swiglu_clamp_exp of experts and swiglu_clamp_shexp of shared experts and blocks without experts:
/// a number for each block; 0, and without the keys: none. After read_experts.
Status read_swiglu_limits(KeyReader& keys, HParams* h);
/// moe_latent_size (0). After read_experts.
Status read_latent_experts(KeyReader& keys, HParams* h);

/// The keys xielu.alpha_n, alpha_p, beta and eps, without the prefix of an architecture: the
/// parameters of the activation, which may differ from block to block.
Status read_xielu(const KeyReader& reader, HParams* h);
/// embedding_scale, residual_scale and logit_scale, a divisor; 1 where they are absent or 0.
Status read_factors(KeyReader& keys, HParams* h);
/// logit_scale, a factor; 1 where it is absent or 0.
Status read_logit_factor(KeyReader& keys, HParams* h);
/// attn_logit_softcapping; 0: none.
Status read_score_cap(KeyReader& keys, float absent, HParams* h);
/// final_logit_softcapping; 0: none.
Status read_logit_cap(KeyReader& keys, float absent, HParams* h);

}  // namespace gen::model::arch
