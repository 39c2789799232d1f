// SPDX-License-Identifier: Apache-2.0
// Checks that a batch keeps the contract of batch.h. Everything is checked before anything runs, so
// that kernels need no checks and a refused batch changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "cache/layer_shape.h"
#include "engine/engine.h"
#include "graph/batch.h"

namespace gen::graph {

/// What a plan accepts.
struct BatchLimits {
  int64_t vocab = 0;                          // token ids lie in [0, vocab)
  int64_t hidden = 0;                         // width of embeddings and taps
  int64_t logits = 0;                         // V
  int32_t max_rows = 0;                       // rows of one batch
  int32_t max_seq_len = 0;                    // positions lie in [0, max_seq_len)
  int32_t n_taps = 0;                         // taps lie in [0, n_taps)
  bool normed_tap = false;                    // or are kNormedTap
  int64_t features = 0;                       // width of features; 0: there are none
  bool best = false;                          // rows may want best
  bool multi_step = false;                    // Batch::multi_steps may be above 0
  bool means = false;                         // rows answer with means over their sequence
  bool far_logits = false;                    // logits are in memory that is not host memory
  std::span<const cache::LayerShape> layers;  // what caches must hold
  std::span<const int32_t> layer_engines;     // the engine of each of them, by number; -1: none
  bool reads = false;                         // caches are only read, see GraphBuilder::read_cache
  std::span<const std::shared_ptr<engine::Engine>> engines;
  std::span<const cache::StateShape> states;  // what states must hold
  bool observed = false;                      // there may be an observer
  int32_t adapter_rank = 0;   // limit of the total rank of a row at one site; 0: no adapters
  int64_t adapter_sites = 0;  // numbers of sites in a table
};

/// kOutOfRange naming a token or position with its limit; kUnsupported for adapters or best tokens
/// that the plan does not support, for means over rows of earlier steps, and for trees or rows
/// without a state if the model has states; kInvalidArgument for everything else.
Status check_batch(const Batch& batch, const BatchLimits& limits);

}  // namespace gen::graph
