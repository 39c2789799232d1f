// SPDX-License-Identifier: Apache-2.0
// The hyperparameters of a transformer, read from a file's metadata and checked, so that they can
// be multiplied without overflow. This file has what all models share; the blocks are a list with
// one element per block, which the architecture's own `read` fills (arch/registry.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/ops.h"
#include "graph/graph.h"
#include "model/gguf/metadata.h"
#include "model/key_reader.h"

namespace gen::model {

enum class RopeScaling : int32_t { kNone, kLinear, kYarn, kLlama3 };

/// How positions become angles. See rope_table.h for the formulas. The comments give the key below
/// "<architecture>." and the default, or "family" for a property of the family without a key.
struct RopeParams {
  engine::RopeKind kind = engine::RopeKind::kNone;  // family
  bool freq_factors = false;                        // family: uses rope_freqs.weight if present
  /// family: divisors are, if present, rope_factors_long.weight for a context_length above
  /// original_context and rope_factors_short.weight otherwise.
  bool long_factors = false;
  int32_t n_dims = 0;                        // rope.dimension_count; k_dim
  int32_t factor_dims = 0;                   // of rope_freqs.weight where they are more
  double base = 10000.0;                     // rope.freq_base
  RopeScaling scaling = RopeScaling::kNone;  // rope.scaling.type; linear if there is a factor
  double factor = 1.0;                       // rope.scaling.factor, or rope.scale_linear
  int32_t original_context = 0;              // rope.scaling.original_context_length; context_length
  double attn_factor = 1.0;                  // rope.scaling.attn_factor: multiplies cos and sin
  double yarn_ext_factor = 1.0;              // rope.scaling.yarn_ext_factor
  double yarn_beta_fast = 32.0;              // rope.scaling.yarn_beta_fast
  double yarn_beta_slow = 1.0;               // rope.scaling.yarn_beta_slow
  double low_freq_factor = 1.0;              // rope.scaling.low_freq_factor (llama3)
  double high_freq_factor = 4.0;             // rope.scaling.high_freq_factor (llama3)
  double yarn_log_multiplier = 0.0;  // rope.scaling.yarn_log_multiplier; 0: as if it were not there
  friend bool operator==(const RopeParams&, const RopeParams&) = default;
};

/// The token mixer of a block.
enum class MixerKind : uint8_t {
  kNone,
  kAttention,  // with a cache layer of its own, or an earlier block's
  kRecurrent,  // the family's recurrence, whose state summarises all earlier tokens
};

/// The experts of a block. The comments give keys, as those of RopeParams do.
struct ExpertParams {
  engine::Routing routing;   // expert_count, 0: the block has none; expert_used_count and others
  int32_t feed_forward = 0;  // of one expert: expert_feed_forward_length; feed_forward_length
  int32_t shared = 0;        // of all shared experts together; 0: none
  int32_t latent = 0;        // of what goes in and comes out, moe_latent_size; 0: embedding_length
  float swiglu_limit =
      0.0F;  // where gates and what they multiply are cut, swiglu_clamp_exp; 0: not
};

/// The recurrence of a block. The comments give keys, as those of RopeParams do.
struct RecurrentParams {
  int32_t taps = 0;         // of the convolution: ssm.conv_kernel, shortconv.l_cache
  int32_t inner = 0;        // width of what is kept: ssm.inner_size
  int32_t state = 0;        // numbers of a channel, or width of a key: ssm.state_size
  int32_t heads = 0;        // ssm.time_step_rank; in Mamba-1 the width of what becomes dt
  int32_t groups = 0;       // heads of keys, or of b and c: ssm.group_count
  bool normalised = false;  // dt, b and c have RMS norms without weights: ssm.dt_b_c_rms
};

/// One block.
struct LayerParams {
  MixerKind mixer = MixerKind::kAttention;
  /// Without the index of its rotary table, which the graph assigns to `rope`.
  graph::AttentionSpec attention;
  RopeParams rope;
  /// Queries are multiplied by 1 + temperature ln(1 + floor(position / every)).
  float query_temperature = 0.0F;  // attention.temperature_scale in some families
  int32_t temperature_every = 0;   // rope.scaling.original_context_length
  int32_t feed_forward = 0;
  engine::Activation activation;  // of the feed-forward: the parameters of the family's function
  float swiglu_limit = 0.0F;      // as that of experts: swiglu_clamp_shexp
  ExpertParams experts;
  RecurrentParams recurrent;
};

struct HParams {
  std::string architecture;     // general.architecture
  int32_t context_length = 0;   // context_length
  int32_t n_layers = 0;         // block_count, without those that only draft
  int32_t n_draft_layers = 0;   // nextn_predict_layers, behind them
  int32_t n_blocks = 0;         // of both, where the file may have such, even if they are not used
  int32_t hidden = 0;           // embedding_length
  float norm_eps = 0.0F;        // attention.layer_norm_rms_epsilon, or layer_norm_epsilon
  bool layer_norms = false;     // which of the two; in most families one is the family's
  bool parallel_blocks = true;  // use_parallel_residual, in families that have such blocks
  float embedding_factor = 1.0F;  // of rows of token_embd; embedding_scale in some families
  float residual_factor = 1.0F;   // of what a block adds; residual_scale in some families
  float logit_factor = 1.0F;      // of logits; from or by logit_scale in some families
  float logit_cap =
      0.0F;  // logits become cap * tanh(logit / cap); final_logit_softcapping, 0: none
  /// Of each layer's own embeddings, 0: none; embedding_length_per_layer_input in some families.
  int32_t layer_input = 0;
  std::vector<LayerParams> layers;        // [n_layers]
  std::vector<LayerParams> draft_layers;  // [n_draft_layers]
  // Not from metadata:
  int32_t vocab_size = 0;  // rows of token_embd.weight, set by the loader
};

/// Fills HParams except for the architecture's name. See arch/decoder_keys.h for common keys.
using ReadHParams = std::function<Status(KeyReader& keys, HParams* hparams)>;

/// Errors: kFormat for a missing key, a wrong type or a value outside its range, kUnsupported for
/// variants that would need other operations: a key that changes the computation and that `read`
/// did not ask for. All name the key, the value and the limit.
Result<HParams> read_hparams(const gguf::Metadata& metadata, const ReadHParams& read);

}  // namespace gen::model
