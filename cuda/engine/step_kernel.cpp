// SPDX-License-Identifier: Apache-2.0
// See step_kernel.h.
#include "cuda/engine/step_kernel.h"

#include <new>
#include <optional>
#include <utility>

#include "cuda/engine/device_align.h"
#include "cuda/step/kernel.h"

namespace gen::cuda {
namespace {

/// The layout of one allocation: counters, results of trials, instructions, spans, scratch memory,
/// kept spans.
struct Layout {
  explicit Layout(const StepCode& code) {
    const size_t n = code.heads.size();
    size_t of_spans = 0;
    for (const StepSpan& span : code.written) of_spans += span.bytes;
    const auto place = [&](size_t size) {
      return std::exchange(bytes, bytes + device_aligned(size));
    };
    arrived = place((n + 1) * sizeof(uint32_t));
    heads = place(n * sizeof(StepHead));
    tasks = place(n * sizeof(StepTask));
    spans = place(code.written.size() * sizeof(StepSpan));
    scratch = place(code.scratch_bytes);
    kept = place(of_spans);
  }
  size_t bytes = 0;
  size_t arrived, heads, tasks, spans, scratch, kept;
};

/// Empty if the list or the device is not supported.
std::optional<StepCode> code_for(const OpContext& context, std::span<const engine::OpArgs> list,
                                 int32_t* blocks) {
  // The number of blocks depends on shared memory, which does not depend on that number.
  auto code = compile_step(list, context.processors, nullptr);
  if (!code.has_value() || code->shared_bytes > context.shared_bytes) return std::nullopt;
  *blocks = step_blocks(context, code->shared_bytes);
  if (*blocks == 0) return std::nullopt;
  code = compile_step(list, *blocks, nullptr);
  if (!code.has_value() || code->shared_bytes > context.shared_bytes) return std::nullopt;
  return code;
}

}  // namespace

size_t StepKernel::bytes(DeviceQueue& queue, std::span<const engine::OpArgs> list) {
  int32_t blocks = 0;
  const auto code = code_for(queue.context(), list, &blocks);
  return code.has_value() ? Layout(*code).bytes : 0;
}

std::unique_ptr<StepKernel> StepKernel::create(DeviceQueue& queue,
                                               std::span<const engine::OpArgs> list) {
  try {
    return create_or_throw(queue, list);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::unique_ptr<StepKernel> StepKernel::create_or_throw(DeviceQueue& queue,
                                                        std::span<const engine::OpArgs> list) {
  int32_t blocks = 0;
  auto code = code_for(queue.context(), list, &blocks);
  if (!code.has_value()) return nullptr;
  std::unique_ptr<StepKernel> made(new StepKernel(queue, std::move(*code), blocks));
  return made->open(list).ok() ? std::move(made) : nullptr;
}

Status StepKernel::open(std::span<const engine::OpArgs> list) {
  const size_t n = code_.heads.size();
  const Layout at(code_);
  GEN_TRY(queue_.take_held(at.bytes, &memory_));
  auto* const base = static_cast<uint8_t*>(memory_);
  // Compile again, with the addresses of intermediate results.
  auto code = compile_step(list, blocks_, base + at.scratch);
  if (!code.has_value()) return error(Code::kInternal, "a step compiles differently");
  code_ = std::move(*code);
  GEN_TRY(queue_.fill(base + at.arrived, 0, (n + 1) * sizeof(uint32_t)));
  GEN_TRY(queue_.write(base + at.heads, code_.heads.data(), n * sizeof(StepHead)));
  GEN_TRY(queue_.write(base + at.tasks, code_.tasks.data(), n * sizeof(StepTask)));
  GEN_TRY(
      queue_.write(base + at.spans, code_.written.data(), code_.written.size() * sizeof(StepSpan)));
  std::byte* found = nullptr;
  GEN_TRY(pinned_.take(sizeof(uint32_t), &found));
  found_ = reinterpret_cast<const uint32_t*>(found);
  for (device::Event& event : events_) {
    if (queue_.dry_run()) break;  // nothing runs
    GEN_TRY(queue_.note(device::event_create(&event, true), "making an event"));
  }
  view_.heads = reinterpret_cast<const StepHead*>(base + at.heads);
  view_.tasks = reinterpret_cast<const StepTask*>(base + at.tasks);
  view_.arrived = reinterpret_cast<uint32_t*>(base + at.arrived);
  view_.n = static_cast<int32_t>(n);
  view_.first_weights = code_.first_weights;
  spans_ = reinterpret_cast<StepSpan*>(base + at.spans);
  kept_ = base + at.kept;
  differs_ = view_.arrived + n;
  return {};
}

StepKernel::~StepKernel() {
  if (!looked_at_) queue_.wait();  // pinned memory and events may be in use
  for (device::Event event : events_) {
    if (event != nullptr) static_cast<void>(device::event_destroy(event));
  }
  if (memory_ != nullptr) queue_.give_back_held(memory_);
}

Status StepKernel::run(std::span<const engine::OpArgs> list, const RunList& run_list) {
  GEN_TRY(run_list(list.first(code_.first)));
  ++view_.run;
  if (Status started = start_step(queue_.context(), view_, blocks_, code_.shared_bytes);
      !started.ok()) {
    --view_.run;  // the kernel did not run, so counters did not advance
    return queue_.note(std::move(started));
  }
  return run_list(list.subspan(code_.end));
}

Status StepKernel::record(size_t event) {
  return queue_.note(device::event_record(events_[event], queue_.context().stream),
                     "recording an event");
}

Status StepKernel::try_beside(std::span<const engine::OpArgs> list, const RunList& run_list,
                              const std::function<Status()>& run_graph) {
  const OpContext context = queue_.context();
  const auto n = static_cast<int32_t>(code_.written.size());
  GEN_TRY(record(0));
  GEN_TRY(run(list, run_list));
  GEN_TRY(record(1));
  GEN_TRY(queue_.note(keep_spans(context, spans_, n, kept_)));
  GEN_TRY(record(2));
  GEN_TRY(run_graph());
  GEN_TRY(record(3));
  GEN_TRY(queue_.note(compare_spans(context, spans_, n, kept_, differs_)));
  GEN_TRY(queue_.copy_down(const_cast<uint32_t*>(found_), differs_, sizeof(uint32_t)));
  Status recorded = record(4);
  if (!recorded.ok()) queue_.wait();  // no event tells when the copy is done
  looked_at_ = !recorded.ok();
  return recorded;
}

StepKernel::Verdict StepKernel::look() {
  if (looked_at_) return Verdict::kSame;
  const device::Error ended = device::event_query(events_[4]);
  if (ended == device::kNotReady) return Verdict::kRuns;
  looked_at_ = true;
  float own = 0.0F;
  float graph = 0.0F;
  if (!ended.ok() || !device::event_elapsed_ms(events_[0], events_[1], &own).ok() ||
      !device::event_elapsed_ms(events_[2], events_[3], &graph).ok()) {
    return Verdict::kFailed;
  }
  // The first run includes loading the kernel, so the minimum counts.
  if (trials_ == 0 || own < own_ms_) own_ms_ = own;
  if (trials_ == 0 || graph < graph_ms_) graph_ms_ = graph;
  ++trials_;
  return *found_ != 0 ? Verdict::kDiffers : Verdict::kSame;
}

}  // namespace gen::cuda
