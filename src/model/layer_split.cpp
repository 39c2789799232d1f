// SPDX-License-Identifier: Apache-2.0
// See layer_split.h.
#include "model/layer_split.h"

#include <algorithm>
#include <utility>

#include "graph/weight_need.h"
#include "model/loader.h"

namespace gen::model {
namespace {

/// The rows of a prompt step for which there must be room.
size_t room_rows(const engine::Engine& device) noexcept {
  return static_cast<size_t>(std::max(device.prompt_rows(), 256));
}

}  // namespace

std::vector<int32_t> LayerSplit::engine_of_block(int32_t layers) const {
  std::vector<int32_t> made(static_cast<size_t>(blocks_) + 1, 0);
  std::fill_n(made.begin(), blocks_ - layers, 1);
  return made;
}

Result<LayerSplit::Plan> LayerSplit::compile_with(int32_t layers,
                                                  const graph::CompileOptions& options) const {
  if (layers >= blocks_) return graph::compile(graph_, device_, options);
  if (layers == 0) return graph::compile(graph_, host_, options);
  return graph::compile(graph_, {device_, host_}, engine_of_block(layers), options);
}

Result<LayerSplit::Plan> LayerSplit::compile(int32_t layers, const graph::CompileOptions& options,
                                             int32_t* done) const {
  if (host_ != nullptr && layers == kFittingLayers) return compile_fitting(options, done);
  *done = host_ == nullptr || layers < 0 ? blocks_ : std::min(layers, blocks_);
  return compile_with(*done, options);
}

size_t LayerSplit::cache_bytes(int32_t layers, int32_t context) const {
  size_t bytes = 0;
  for (const graph::Node& node : graph_.nodes) {
    const graph::AttentionSpec& spec = node.attention;
    if (node.op != engine::Op::kRopeAppend || spec.use != graph::CacheUse::kOwn) continue;
    if (node.block < blocks_ - layers) continue;
    bytes += static_cast<size_t>(context) * static_cast<size_t>(spec.n_kv_heads) *
             static_cast<size_t>(spec.k_dim + spec.v_dim) * sizeof(float);
  }
  return bytes;
}

bool LayerSplit::fits(int32_t layers, const graph::CompileOptions& options) const {
  const std::vector<int32_t> blocks = engine_of_block(layers);
  const graph::WeightNeed need = graph::weight_need(graph_, blocks, 0, *device_);
  const size_t selected =
      static_cast<size_t>(device_->room_rows(1)) * need.widest_selected * sizeof(float);
  const size_t pieces[] = {need.bytes, cache_bytes(layers, options.max_seq_len),
                           room_rows(*device_) * need.widest * sizeof(float),
                           std::min(selected, options.selected_arena_bytes)};
  return device_->has_room(pieces);
}

// The number of layers that fit is found by trial allocations before anything is read. If the
// memory has been taken by something else when the plan is made, it is made again with one layer
// less.
Result<LayerSplit::Plan> LayerSplit::compile_fitting(const graph::CompileOptions& options,
                                                     int32_t* done) const {
  int32_t fitting = 0;
  int32_t least_too_many = blocks_ + 1;
  if (fits(blocks_, options)) {
    fitting = blocks_;
  } else {
    least_too_many = blocks_;
  }
  while (least_too_many - fitting > 1) {
    const int32_t middle = fitting + (least_too_many - fitting) / 2;
    (fits(middle, options) ? fitting : least_too_many) = middle;
  }
  graph::CompileOptions once = options;  // keeps progress ascending over repeated attempts
  if (options.progress) {
    once.progress = [&, told = 0.0](double fraction) mutable {
      if (fraction <= told) return true;
      told = fraction;
      return options.progress(fraction);
    };
  }
  for (;; --fitting) {
    auto plan = compile_with(fitting, once);
    bool lacking = !plan.ok() && plan.status().code() == Code::kOutOfMemory;
    if (plan.ok()) {
      const graph::ExecutionPlan& made = *plan.value();
      const auto selected =
          static_cast<size_t>(std::min(device_->room_rows(1), made.selected_chunk()));
      const size_t pieces[] = {cache_bytes(fitting, options.max_seq_len),
                               room_rows(*device_) * made.row_bytes(0),
                               selected * made.selected_row_bytes(0)};
      lacking = !device_->has_room(pieces);
    }
    if (fitting > 0 && lacking) continue;
    *done = fitting;
    return plan;
  }
}

}  // namespace gen::model
