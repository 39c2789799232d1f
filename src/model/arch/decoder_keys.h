// SPDX-License-Identifier: Apache-2.0
// What the `read` of an architecture is written with: the keys that most decoders share, in parts
// that fill HParams one after another. Those of one family alone are read in its own file.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/hparams.h"
#include "model/key_reader.h"

namespace gen::model::arch {

/// context_length, block_count (and room for as many layers), embedding_length,
/// attention.layer_norm_rms_epsilon.
Status read_model(KeyReader& keys, HParams* h);
/// attention.head_count, head_count_kv, key_length, value_length, scale (1 / sqrt(k_dim)); numbers
/// of heads may differ from block to block. `absent`: blocks of 0 kv heads do not attend; otherwise
/// 0 is refused.
Status read_heads(KeyReader& keys, bool absent, HParams* h);
/// attention.sliding_window, own row included, and chunk_size; 0: all. They are for the blocks of
/// attention.sliding_window_pattern: a list, or a number n: all but the last of each n. Without it
/// `pattern` is that number; 0: all blocks.
Status read_windows(KeyReader& keys, int32_t pattern, HParams* h);
/// rope.*: the same for all blocks, but for n_dims where heads differ. `family` has what no file
/// says.
Status read_rope(KeyReader& keys, const RopeParams& family, HParams* h);
/// feed_forward_length, which may differ from block to block.
Status read_feed_forward(KeyReader& keys, HParams* h);

/// All of these, of a decoder whose blocks all attend.
Status read_decoder(KeyReader& keys, const RopeParams& family, HParams* h);

}  // namespace gen::model::arch
