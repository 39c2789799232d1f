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

LayerSplit::Map LayerSplit::map_of(const DeviceLayers& on_device) const {
  Map map;
  map.blocks.assign(static_cast<size_t>(blocks_) + 1, 0);
  std::fill_n(map.blocks.begin(), blocks_ - on_device.layers, 1);
  if (on_device.experts < on_device.layers) {
    map.experts.assign(static_cast<size_t>(blocks_) + 1, 0);
    std::fill_n(map.experts.begin(), blocks_ - on_device.experts, 1);
  }
  return map;
}

Result<LayerSplit::Plan> LayerSplit::compile_with(const DeviceLayers& on_device,
                                                  const graph::CompileOptions& options) const {
  if (on_device.layers == 0) return graph::compile(graph_, host_, options);
  if (std::min(on_device.layers, on_device.experts) >= blocks_) {
    return graph::compile(graph_, device_, options);
  }
  const Map map = map_of(on_device);
  return graph::compile(graph_, {device_, host_}, map.view(), options);
}

Result<LayerSplit::Plan> LayerSplit::compile(const DeviceLayers& given,
                                             const graph::CompileOptions& options,
                                             DeviceLayers* done) const {
  DeviceLayers wanted = given;
  const bool experts = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                   [](const graph::Node& node) { return node.by_expert; });
  if (!experts) wanted.experts = kAllLayers;
  if (host_ == nullptr) wanted = {};
  if (wanted.layers == kAllLayers || wanted.layers > blocks_) wanted.layers = blocks_;
  if (wanted.experts == kAllLayers || wanted.experts > blocks_) wanted.experts = blocks_;
  if (wanted.layers == kFittingLayers || wanted.experts == kFittingLayers) {
    return compile_fitting(wanted, options, done);
  }
  *done = {wanted.layers, std::min(wanted.layers, wanted.experts)};
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

bool LayerSplit::fits(const DeviceLayers& on_device, const graph::CompileOptions& options) const {
  const Map map = map_of(on_device);
  const graph::WeightNeed need = graph::weight_need(graph_, map.view(), 0, *device_);
  const size_t selected =
      static_cast<size_t>(device_->room_rows(1)) * need.widest_selected * sizeof(float);
  const size_t pieces[] = {need.bytes, cache_bytes(on_device.layers, options.max_seq_len),
                           room_rows(*device_) * need.widest * sizeof(float),
                           std::min(selected, options.selected_arena_bytes)};
  return device_->has_room(pieces);
}

// The numbers of layers that fit are found by trial allocations before anything is read: first of
// layers, with as few experts as there may be, then of experts. If the memory has been taken by
// something else when the plan is made, it is made again with one less.
Result<LayerSplit::Plan> LayerSplit::compile_fitting(const DeviceLayers& wanted,
                                                     const graph::CompileOptions& options,
                                                     DeviceLayers* done) const {
  const bool any_layers = wanted.layers == kFittingLayers;
  const bool any_experts = wanted.experts == kFittingLayers;
  const auto with_layers = [&](int32_t n) {
    return DeviceLayers{n, any_experts ? 0 : std::min(n, wanted.experts)};
  };
  /// The largest of [0, most] that fits; 0 is not tried.
  const auto largest = [&](int32_t most, const auto& of) {
    int32_t fitting = 0;
    int32_t too_many = most + 1;
    if (most > 0 && fits(of(most), options)) return most;
    too_many = std::max(most, 1);
    while (too_many - fitting > 1) {
      const int32_t middle = fitting + (too_many - fitting) / 2;
      (fits(of(middle), options) ? fitting : too_many) = middle;
    }
    return fitting;
  };
  DeviceLayers now = with_layers(any_layers ? largest(blocks_, with_layers) : wanted.layers);
  if (any_experts) {
    now.experts = largest(now.layers, [&](int32_t n) { return DeviceLayers{now.layers, n}; });
  }
  graph::CompileOptions once = options;  // keeps progress ascending over repeated attempts
  if (options.progress) {
    once.progress = [&, told = 0.0](double fraction) mutable {
      if (fraction <= told) return true;
      told = fraction;
      return options.progress(fraction);
    };
  }
  for (;;) {
    auto plan = compile_with(now, once);
    bool lacking = !plan.ok() && plan.status().code() == Code::kOutOfMemory;
    if (plan.ok()) {
      const graph::ExecutionPlan& made = *plan.value();
      const auto selected =
          static_cast<size_t>(std::min(device_->room_rows(1), made.selected_chunk()));
      const size_t pieces[] = {cache_bytes(now.layers, options.max_seq_len),
                               room_rows(*device_) * made.row_bytes(0),
                               selected * made.selected_row_bytes(0)};
      lacking = !device_->has_room(pieces);
    }
    *done = now;
    if (!lacking) return plan;
    if (any_experts && now.experts > 0) {
      --now.experts;
    } else if (any_layers && now.layers > 0) {
      now = with_layers(now.layers - 1);
    } else {
      return plan;
    }
  }
}

}  // namespace gen::model
