// SPDX-License-Identifier: Apache-2.0
// The numbers that shape a transformer, read from a file's metadata and checked: whoever has
// HParams may multiply them without fear. Keys are "<architecture>.<name>"; the comments give the
// name and what its absence means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/gguf/metadata.h"

namespace gen::model {

enum class RopeScaling : int32_t { kNone, kLinear, kYarn, kLlama3 };

/// How positions turn into angles. See rope_table.h for the formulas.
struct RopeParams {
  int32_t n_dims = 0;                        // rope.dimension_count; k_dim
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
};

struct HParams {
  std::string architecture;    // general.architecture
  int32_t context_length = 0;  // context_length
  int32_t n_layers = 0;        // block_count
  int32_t hidden = 0;          // embedding_length
  int32_t feed_forward = 0;    // feed_forward_length
  int32_t n_heads = 0;         // attention.head_count
  int32_t n_kv_heads = 0;      // attention.head_count_kv; n_heads
  int32_t k_dim = 0;           // attention.key_length; hidden / n_heads
  int32_t v_dim = 0;           // attention.value_length; hidden / n_heads
  int32_t window = 0;          // attention.sliding_window, own row included; 0: all
  int32_t chunk = 0;           // attention.chunk_size; 0: all
  /// attention.sliding_window_pattern: the layers that window and chunk are for, [n_layers]; all.
  /// In files a list of them, or a number n: the last of each n layers is not.
  std::vector<uint8_t> local;
  float norm_eps = 0.0F;         // attention.layer_norm_rms_epsilon
  float attention_scale = 0.0F;  // attention.scale; 1 / sqrt(k_dim)
  RopeParams rope;
  // Not from metadata:
  int32_t vocab_size = 0;  // rows of token_embd.weight, set by the loader
};

/// Errors: kFormat for a missing key, a wrong type or a value outside its range, kUnsupported for
/// variants that would need other operations (experts, long-context rotary factors, layers that
/// differ). All name the key, the value and the limit.
Result<HParams> read_hparams(const gguf::Metadata& metadata);

}  // namespace gen::model
