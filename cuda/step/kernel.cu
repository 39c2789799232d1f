// SPDX-License-Identifier: Apache-2.0
// A step of one row as one persistent kernel (program.h): all blocks are resident at once. Each
// processes its tiles of all instructions in order and signals when they are done.
//   Order   An instruction's results are written before its block's barrier and the release of the
//           counter. Readers acquire the counter's final value and pass a barrier. Memory written
//           by the kernel is therefore read with plain loads only, never through the read-only
//           cache.
//   Ends    Blocks wait only for earlier instructions, whose tiles belong to resident blocks, so
//           there is no deadlock.
//   Bytes   Weights are staged in rings of 16 KiB a warp, of which 14 KiB are always in flight:
//           112 KiB per multiprocessor.
//   Needs   sm_80, cooperative launch, 160 KiB of shared memory a block; 242 registers on sm_90a.
//           Two blocks a multiprocessor, with 128 each, spill.
#include "cuda/step/kernel.h"

#include "cuda/device/atomic.cuh"
#include "cuda/step/instructions.cuh"

namespace gen::cuda {
namespace {

/// A turn at an instruction with arguments of type Task: run(arguments, tile) for each tile.
template <typename Task, typename Run>
GEN_DEVICE void run_tiles(const StepTurn& turn, StepInputs& inputs, const Run& run) {
  const auto task = inputs.template arguments<Task>();
  inputs.wait(turn);
  for_tiles(turn, [&](int32_t tile) { run(task, tile); });
}

[[maybe_unused]] GEN_DEVICE void run_turn(const StepTurn& turn, WeightStream& stream,
                                          StepInputs& inputs) {
  switch (turn.op) {
    case StepOp::kElements:
      return run_tiles<ElementsStep>(turn, inputs,
                                     [](const auto& of, int32_t tile) { run_elements(of, tile); });
    case StepOp::kSelect:
      return run_tiles<SelectStep>(turn, inputs,
                                   [](const auto& of, int32_t tile) { run_select(of, tile); });
    case StepOp::kPack:
      return run_tiles<PackStep>(turn, inputs,
                                 [](const auto& of, int32_t tile) { run_pack(of, tile); });
    case StepOp::kNorm:
      return norm_row<kStepThreads, kNormEach>(inputs.arguments<NormView>(), 0,
                                               [&] { inputs.wait(turn); });
    case StepOp::kLinear:
      return run_linear(inputs.arguments<LinearStep>(), turn, stream, inputs);
    case StepOp::kAppend:
      return run_tiles<AppendView>(turn, inputs,
                                   [](const auto& of, int32_t tile) { run_append(of, tile); });
    case StepOp::kChunks:
      return run_tiles<ChunksStep>(turn, inputs,
                                   [](const auto& of, int32_t tile) { run_chunks(of, tile); });
    case StepOp::kMerge:
      return run_tiles<SplitView>(turn, inputs,
                                  [](const auto& of, int32_t tile) { run_merge(of, tile); });
    case StepOp::kBadLogit:
      return run_tiles<BestStep>(
          turn, inputs, [](const auto& of, int32_t tile) { find_bad(of.x, of.parts, 0, tile); });
    case StepOp::kBestOfPart:
      return run_tiles<BestStep>(turn, inputs, [](const auto& of, int32_t tile) {
        find_best(of.x, of.rows, of.parts, 0, tile);
      });
    case StepOp::kBest:
      return run_tiles<BestStep>(turn, inputs, [](const auto& of, int32_t) {
        merge_best<kStepWarps>(of.x, of.rows, of.parts, 0, of.tokens, of.values);
      });
  }
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kStepThreads, kStepBlocks) step_kernel(StepView of) {
#if GEN_CUDA_ARCH >= 800
  GEN_SHARED(device::UInt4, slots, 2 * kTaskPieces);
  GEN_SHARED(WeightUnits, units, kStepWarps);
  WeightStream stream(of, units);
  StepTurn turn = next_turn(of, 0);
  StepInputs inputs(of, slots, turn);
  while (turn.instruction < of.n) {
    const StepTurn next = next_turn(of, turn.instruction + 1);
    inputs.fetch(next);
    run_turn(turn, stream, inputs);
    sync_threads();
    if (thread_x() == 0) device::add_acquire_release(of.arrived + turn.instruction, 1);
    turn = next;
  }
#endif
}

constexpr int32_t kSpanThreads = 256;

/// The words of one span, distributed over threads; `kept` begins with those of the first span.
template <typename Use>
GEN_DEVICE void for_span(const StepSpan* spans, const uint8_t* kept, const Use& use) {
  size_t before = 0;
  for (int32_t i = 0; i < block_y(); ++i) before += spans[i].bytes;
  const StepSpan span = spans[block_y()];
  const size_t apart = size_t{device::grid_size().x} * kSpanThreads * 4;
  for (size_t at =
           (static_cast<size_t>(block_x()) * kSpanThreads + static_cast<size_t>(thread_x())) * 4;
       at < span.bytes; at += apart) {
    use(reinterpret_cast<uint32_t*>(span.at + at), kept + before + at);
  }
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kSpanThreads) keep_spans_kernel(const StepSpan* spans, uint8_t* to) {
  after_predecessor();
  for_span(spans, to, [](const uint32_t* from, const uint8_t* kept) {
    *reinterpret_cast<uint32_t*>(const_cast<uint8_t*>(kept)) = *from;
  });
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kSpanThreads)
    compare_spans_kernel(const StepSpan* spans, const uint8_t* kept, uint32_t* differs) {
  after_predecessor();
  for_span(spans, kept, [&](const uint32_t* now, const uint8_t* before) {
    if (*now != *reinterpret_cast<const uint32_t*>(before)) device::atomic_or(differs, 1U);
  });
}

device::Dim3 span_grid(int32_t n) noexcept { return {16, static_cast<unsigned>(n), 1}; }

}  // namespace

int32_t step_blocks(const OpContext& context, size_t shared_bytes) noexcept {
  int compiled = 0;
  int each = 0;
  if (context.compute < 80 || !context.cooperative) return 0;
  if (context.dry_run) return context.processors * kStepBlocks;  // without asking the device
  if (!device::compiled_for(step_kernel, &compiled).ok() || compiled < 80 ||
      !device::blocks_per_sm(step_kernel, kStepThreads, shared_bytes, &each).ok()) {
    static_cast<void>(device::last_error());
    return 0;
  }
  return context.processors * (each < kStepBlocks ? each : kStepBlocks);
}

Status start_step(const OpContext& context, const StepView& program, int32_t blocks,
                  size_t shared_bytes) {
  device::LaunchConfig config;
  config.name = "step";
  config.grid = {static_cast<unsigned>(blocks), 1, 1};
  config.block = block_of(kStepThreads);
  config.dynamic_shared_bytes = shared_bytes;
  config.stream = context.stream;
  config.cooperative = true;
  return device_status(device::launch(step_kernel, config, program), "starting a step");
}

Status keep_spans(const OpContext& context, const StepSpan* spans, int32_t n, uint8_t* to) {
  return run_kernel(context, "keep_spans", keep_spans_kernel, span_grid(n), kSpanThreads, 0, spans,
                    to);
}
Status compare_spans(const OpContext& context, const StepSpan* spans, int32_t n,
                     const uint8_t* kept, uint32_t* differs) {
  return run_kernel(context, "compare_spans", compare_spans_kernel, span_grid(n), kSpanThreads, 0,
                    spans, kept, differs);
}

}  // namespace gen::cuda
