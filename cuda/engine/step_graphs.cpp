// SPDX-License-Identifier: Apache-2.0
// See step_graphs.h.
#include "cuda/engine/step_graphs.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <variant>

#include "base/log.h"
#include "cuda/ops/weight/weight.h"

namespace gen::cuda {
namespace {

/// The number of lists that are remembered, and the least number of operations in one.
constexpr size_t kMaxKept = 32;
constexpr size_t kLeastOps = 8;
/// Replays before a list is tried as one kernel, and steps in which it is.
constexpr uint64_t kReplaysBefore = 8;
constexpr int32_t kTrials = 4;
/// The number of models for which failed trials are remembered.
constexpr size_t kMaxSlower = 8;

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

template <typename Use>
void for_chunks(std::vector<engine::OpArgs>& list, const Use& use) {
  for (engine::OpArgs& args : list) {
    if (auto* attention = std::get_if<engine::AttentionArgs>(&args)) use(attention->max_chunks);
  }
}

}  // namespace

StepGraphs::StepGraphs(DeviceQueue& queue) noexcept : queue_(queue), kernels_(wanted_kernels()) {}

StepGraphs::~StepGraphs() {
  const DeviceQueue::Turn turn(queue_);
  for (Kept& each : kept_) drop(each);
  foreseen_.clear();
}

void StepGraphs::drop(Kept& kept) noexcept {
  kept.kernel.reset();
  kept.by_kernel = false;
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
  if (kept_.size() < kMaxKept) return kept_.emplace_back();
  Kept& oldest = *std::min_element(kept_.begin(), kept_.end(),
                                   [](const Kept& a, const Kept& b) { return a.used < b.used; });
  drop(oldest);
  oldest = Kept();
  return oldest;
}

Status StepGraphs::run(std::span<const engine::OpArgs> list, const RunList& run_list) {
  if (list.size() < kLeastOps) return run_list(list);
  list_weights(list, &weights_);
  Kept* kept = find(list);
  if (kept == nullptr) {
    Kept& place = take_place();
    place.used = ++runs_;
    place.list.assign(list.begin(), list.end());
    place.weights = weights_;
    return run_list(list);
  }
  kept->used = ++runs_;
  if (kept->exec == nullptr && !kept->refused) GEN_TRY(capture(*kept, run_list));
  if (kept->exec == nullptr) return run_list(list);
  return run_captured(*kept, run_list);
}

void StepGraphs::foresee(std::span<const engine::OpArgs> list) {
  if (kernels_ == Kernels::kOff || list.size() < kLeastOps) return;
  list_weights(list, &weights_);
  std::vector<engine::OpArgs> shorter(list.begin(), list.end());
  int32_t chunks = 1;
  for_chunks(shorter, [&](int32_t most) { chunks = std::max(chunks, most); });
  for (; chunks > 0; chunks /= 2) {
    for_chunks(shorter, [&](int32_t& most) { most = std::min(most, chunks); });
    auto same = std::find_if(foreseen_.begin(), foreseen_.end(), [&](const Foreseen& each) {
      return each.chunks == chunks && each.weights == weights_;
    });
    if (same == foreseen_.end()) {
      same = foreseen_.insert(same, Foreseen{weights_, chunks, 0, nullptr});
    }
    const size_t bytes = StepKernel::bytes(queue_, shorter);
    if (bytes <= same->bytes) continue;
    same->kernel.reset();  // before, so that the two are never counted together
    same->kernel = StepKernel::create(queue_, shorter);
    same->bytes = bytes;
  }
}

Status StepGraphs::replay(const Kept& kept) {
  ++counts_.replayed;
  return queue_.note(device::graph_launch(kept.exec, queue_.context().stream), "starting a graph");
}

Status StepGraphs::run_captured(Kept& kept, const RunList& run_list) {
  if (!consider_kernel(kept)) return replay(kept);
  bool replayed = false;
  Status status;
  if (kept.by_kernel) {
    ++counts_.by_kernel;
    status = kept.kernel->run(kept.list, run_list);
  } else {
    ++counts_.tried;
    status = kept.kernel->try_beside(kept.list, run_list, [&] {
      replayed = true;
      return replay(kept);
    });
  }
  if (status.ok()) return status;
  // For example, the device cannot hold all blocks at once: the graph is captured without.
  reject_kernel(kept);
  GEN_TRY(queue_.usable());
  static_cast<void>(device::last_error());
  return replayed ? Status() : replay(kept);
}

bool StepGraphs::consider_kernel(Kept& kept) {
  if (kept.by_kernel) return true;
  if (kept.no_kernel || kernels_ == Kernels::kOff) return false;
  const bool at_once = kernels_ == Kernels::kOn;
  if (kept.kernel == nullptr && !at_once && was_slower(kept)) {
    kept.no_kernel = true;
    return false;
  }
  if (kept.kernel == nullptr) {
    if (!at_once && ++kept.replays <= kReplaysBefore) return false;
    kept.kernel = StepKernel::create(queue_, kept.list);
    kept.no_kernel = kept.kernel == nullptr;
    if (kept.no_kernel) {
      log(LogLevel::kDebug, "a step of %zu operations stays a graph", kept.list.size());
    }
    return !kept.no_kernel;
  }
  switch (kept.kernel->look()) {
    case StepKernel::Verdict::kRuns:
      return false;
    case StepKernel::Verdict::kSame:
      break;
    case StepKernel::Verdict::kDiffers:
      ++counts_.different;
      log(LogLevel::kWarning, "a step of %zu operations gives something else as one kernel",
          kept.list.size());
      [[fallthrough]];
    case StepKernel::Verdict::kFailed:
      reject_kernel(kept);
      return false;
  }
  if (kept.kernel->trials() < (at_once ? 1 : kTrials)) return true;
  kept.by_kernel = at_once || kept.kernel->own_ms() < kept.kernel->graph_ms();
  log(LogLevel::kDebug, "a step of %zu operations takes %.1f us as one kernel, %.1f as a graph",
      kept.list.size(), static_cast<double>(kept.kernel->own_ms()) * 1e3,
      static_cast<double>(kept.kernel->graph_ms()) * 1e3);
  if (!kept.by_kernel) {
    reject_kernel(kept);
    if (slower_.size() == kMaxSlower) slower_.erase(slower_.begin());
    slower_.push_back(kept.weights);
  }
  return kept.by_kernel;
}

bool StepGraphs::was_slower(const Kept& kept) const noexcept {
  return std::find(slower_.begin(), slower_.end(), kept.weights) != slower_.end();
}

void StepGraphs::reject_kernel(Kept& kept) noexcept {
  kept.kernel.reset();
  kept.by_kernel = false;
  kept.no_kernel = true;
}

StepGraphs::Kernels StepGraphs::wanted_kernels() noexcept {
  const char* const wanted = std::getenv("GEN_MEGAKERNEL");
  if (wanted == nullptr) return Kernels::kAuto;
  if (std::strcmp(wanted, "off") == 0) return Kernels::kOff;
  return std::strcmp(wanted, "on") == 0 ? Kernels::kOn : Kernels::kAuto;
}

Status StepGraphs::capture(Kept& kept, const RunList& run_list) {
  const DeviceQueue::Capture capturing(queue_);
  const device::Stream stream = queue_.context().stream;
  if (!device::capture_begin(stream).ok()) {
    static_cast<void>(device::last_error());
    kept.refused = true;
    return {};
  }
  device::Graph graph = nullptr;
  Status status;
  try {
    status = run_list(kept.list);
  } catch (...) {
    // Nothing else could be asked of the stream.
    static_cast<void>(device::capture_end(stream, &graph));
    if (graph != nullptr) static_cast<void>(device::graph_destroy(graph));
    static_cast<void>(device::last_error());
    throw;
  }
  const device::Error ended = device::capture_end(stream, &graph);
  if (status.ok() && ended.ok()) {
    kept.refused = !device::graph_instantiate(graph, &kept.exec).ok();
    if (!kept.refused) ++counts_.captured;
  } else {
    kept.refused = true;
  }
  if (graph != nullptr) static_cast<void>(device::graph_destroy(graph));
  // Later calls must not see the error of the capture, unless the device is lost.
  if (kept.refused) GEN_TRY(queue_.note(device::stream_synchronize(stream), "ending a capture"));
  if (kept.refused) static_cast<void>(device::last_error());
  return {};
}

}  // namespace gen::cuda
