// SPDX-License-Identifier: Apache-2.0
// See step_graphs.h.
#include "cuda/engine/step_graphs.h"

#include <algorithm>
#include <variant>

#include "cuda/ops/weight.h"

namespace gen::cuda {
namespace {

/// Lists that are remembered, and operations from which on one is worth it.
constexpr size_t kMostKept = 32;
constexpr size_t kLeastOps = 8;

uint64_t number_of(const engine::Weight* weight) noexcept {
  return static_cast<const DeviceWeight*>(weight)->number();
}
void list_weights(std::span<const engine::OpArgs> list, std::vector<uint64_t>* out) {
  out->clear();
  for (const engine::OpArgs& args : list) {
    if (const auto* embed = std::get_if<engine::EmbedArgs>(&args)) {
      out->push_back(number_of(embed->weight));
    } else if (const auto* linear = std::get_if<engine::LinearArgs>(&args)) {
      out->push_back(number_of(linear->weight));
    }
  }
}

}  // namespace

StepGraphs::~StepGraphs() {
  const DeviceQueue::Turn turn(queue_);
  for (Kept& each : kept_) drop(each);
}

void StepGraphs::drop(Kept& kept) noexcept {
  if (kept.exec == nullptr) return;
  queue_.wait();  // it may be running
  static_cast<void>(device::graph_exec_destroy(kept.exec));
  kept.exec = nullptr;
}

StepGraphs::Kept* StepGraphs::find(std::span<const engine::OpArgs> list) noexcept {
  for (Kept& each : kept_) {
    if (each.weights == weights_ &&
        std::equal(list.begin(), list.end(), each.list.begin(), each.list.end())) {
      return &each;
    }
  }
  return nullptr;
}

StepGraphs::Kept& StepGraphs::take_place() {
  if (kept_.size() < kMostKept) return kept_.emplace_back();
  Kept& oldest = *std::min_element(kept_.begin(), kept_.end(),
                                   [](const Kept& a, const Kept& b) { return a.used < b.used; });
  drop(oldest);
  oldest = Kept();
  return oldest;
}

Status StepGraphs::run(std::span<const engine::OpArgs> list, const RunOne& run_one) {
  const auto run_plainly = [&]() -> Status {
    for (const engine::OpArgs& args : list) GEN_TRY(run_one(args));
    return {};
  };
  if (list.size() < kLeastOps) return run_plainly();
  list_weights(list, &weights_);
  Kept* kept = find(list);
  if (kept == nullptr) {
    Kept& place = take_place();
    place.used = ++runs_;
    place.list.assign(list.begin(), list.end());
    place.weights = weights_;
    return run_plainly();
  }
  kept->used = ++runs_;
  if (kept->exec == nullptr && !kept->refused) GEN_TRY(capture(*kept, run_one));
  if (kept->exec == nullptr) return run_plainly();
  ++counts_.replayed;
  return queue_.note(device::graph_launch(kept->exec, queue_.context().stream), "starting a graph");
}

Status StepGraphs::capture(Kept& kept, const RunOne& run_one) {
  const DeviceQueue::Capture capturing(queue_);
  const device::Stream stream = queue_.context().stream;
  if (!device::capture_begin(stream).ok()) {
    static_cast<void>(device::last_error());
    kept.refused = true;
    return {};
  }
  Status status;
  for (const engine::OpArgs& args : kept.list) {
    status = run_one(args);
    if (!status.ok()) break;
  }
  device::Graph graph = nullptr;
  const device::Error ended = device::capture_end(stream, &graph);
  if (status.ok() && ended.ok()) {
    kept.refused = !device::graph_instantiate(graph, &kept.exec).ok();
    if (!kept.refused) ++counts_.captured;
  } else {
    kept.refused = true;
  }
  if (graph != nullptr) static_cast<void>(device::graph_destroy(graph));
  // What the device said of the capture is of no use to later calls, unless it is lost.
  if (kept.refused) GEN_TRY(queue_.note(device::stream_synchronize(stream), "ending a capture"));
  if (kept.refused) static_cast<void>(device::last_error());
  return {};
}

}  // namespace gen::cuda
