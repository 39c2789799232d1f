// SPDX-License-Identifier: Apache-2.0
// See compile.h. Operations become instructions in order. Their memory ranges determine the
// dependencies.
#include "cuda/step/compile.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/mass_slices.h"
#include "cuda/ops/linear/linear_quant.cuh"
#include "cuda/step/memory_use.h"
#include "cuda/step/tasks.cuh"

namespace gen::cuda {
namespace {

/// The least number of instructions of a program.
constexpr size_t kLeastOperations = 8;

int32_t ceil_div(int64_t n, int32_t each) noexcept {
  return static_cast<int32_t>((n + each - 1) / each);
}

MemoryRange floats(const float* at, int64_t n) noexcept {
  return range_of(at, static_cast<size_t>(n) * sizeof(float));
}
template <typename Rows>
MemoryRange row_range(const Rows& of) noexcept {
  return floats(of.data, of.cols);
}
MemoryRange row_range(const PackedRows& of) noexcept {
  const auto as_floats = static_cast<size_t>(of.cols) * sizeof(float);
  return range_of(of.data, of.at.q8 != 0 || of.at.q8k != 0 ? of.at.bytes : as_floats);
}
bool more_forms(const PackedRows& of) noexcept { return of.at.q8 != 0 || of.at.q8k != 0; }

/// How warps read a segment and, in gated products, its up segment; false for a type without an
/// instruction. *terms: the shared memory of a tile in bytes.
bool set_weights(const WeightSegment& weight, const WeightSegment* up, LinearStep* of,
                 size_t* terms) noexcept {
  if (up != nullptr && (up->type != weight.type || up->row_bytes != weight.row_bytes)) return false;
  WeightUnits& units = of->weights;
  units.first = weight.data;
  units.second = up != nullptr ? up->data : nullptr;
  units.n_matrices = up != nullptr ? 2 : 1;
  of->type = weight.type;
  const quant::Traits* const traits = quant::find_traits(weight.type);
  if (traits != nullptr) {
    units.tile_bytes = tile_bytes(*traits, of->x.cols);
    units.unit_bytes = step_bytes(*traits);
    units.units = units.last_units = static_cast<int32_t>(tile_steps(*traits, of->x.cols));
    of->n_steps = units.units;
    of->n_blocks = static_cast<int32_t>(of->x.cols / traits->block);
    *terms = static_cast<size_t>(round_terms(*traits) * kTermBuffers) * sizeof(Term) *
             (traits->minima ? 2 : 1);
    return true;
  }
  const bool known =
      weight.type == DType::kF32 || weight.type == DType::kF16 || weight.type == DType::kBF16;
  if (!known || weight.row_bytes == 0 || weight.row_bytes % 16 != 0 ||
      weight.row_bytes > size_t{1} << 30) {
    return false;
  }
  static_assert(kTileOutputs == kStepWarps);
  units.tile_bytes = kTileOutputs * weight.row_bytes;
  units.unit_bytes = static_cast<int32_t>(weight.row_bytes);
  units.units = kTileOutputs;
  units.last_units = static_cast<int32_t>(weight.rows - (tiles_of(weight.rows) - 1) * kTileOutputs);
  return true;
}

class Compiler {
 public:
  Compiler(int32_t blocks, uint8_t* scratch) : blocks_(blocks), scratch_(scratch) {}

  std::optional<StepCode> compile(std::span<const engine::OpArgs> list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (is_outside(list[i])) {
        if (!uses_.empty() && code_.end == 0) code_.end = i;
      } else if (code_.end == 0 && uses_.empty()) {
        code_.first = i;
      }
      inside_ = code_.end == 0;
      if (!std::visit([this](const auto& of) { return add(of); }, list[i])) return std::nullopt;
    }
    if (code_.end == 0) code_.end = list.size();
    if (uses_.empty() || code_.end - code_.first < kLeastOperations) return std::nullopt;
    if (!repeatable(list_uses_) || !link()) return std::nullopt;
    RangeSet written;
    for (const MemoryUse& use : list_uses_) {
      for (const MemoryRange& range : use.writes) {
        if (!range.overlaps(kCaches)) written.add(range);
      }
    }
    for (const MemoryRange& range : turned_) written.remove(range);
    for (const MemoryRange& range : written.all()) {
      if (range.begin % 4 != 0 || range.end % 4 != 0) return std::nullopt;
      code_.written.push_back({reinterpret_cast<uint8_t*>(range.begin), range.end - range.begin});
    }
    code_.scratch_bytes = scratch_bytes_;
    code_.shared_bytes = std::max(shared_bytes_, kRingBytes);
    return std::move(code_);
  }

 private:
  /// k > 1 and probability mass are left to the operation's own kernels.
  static bool outside_best(const engine::BestArgs& of) noexcept { return of.k != 1 || of.mass; }
  static bool is_outside(const engine::OpArgs& args) noexcept {
    if (const auto* best = std::get_if<engine::BestArgs>(&args)) return outside_best(*best);
    return std::holds_alternative<engine::EmbedArgs>(args) ||
           std::holds_alternative<engine::RopeAnglesArgs>(args);
  }

  /// All operations share the scratch memory: each writes it before reading it.
  uint8_t* scratch(size_t offset, size_t bytes) noexcept {
    scratch_bytes_ = std::max(scratch_bytes_, offset + round_up_64(bytes));
    // Addresses are only compared while there is no memory yet.
    return reinterpret_cast<uint8_t*>(
        (scratch_ != nullptr ? reinterpret_cast<uintptr_t>(scratch_) : kNowhere) + offset);
  }
  static constexpr uintptr_t kNowhere = 64;

  template <typename Task>
  bool instruction(StepOp op, int64_t tiles, const Task& task, MemoryUse use) {
    static_assert(sizeof(Task) <= sizeof(StepTask) && std::is_trivially_copyable_v<Task>);
    std::erase_if(use.reads, [](const MemoryRange& range) { return range.begin == range.end; });
    std::erase_if(use.writes, [](const MemoryRange& range) { return range.begin == range.end; });
    if (inside_) {
      StepHead head;
      head.op = op;
      head.tiles = static_cast<int32_t>(tiles);
      code_.heads.push_back(head);
      std::memcpy(code_.tasks.emplace_back().bytes, &task, sizeof task);
      uses_.push_back(use);
    }
    // Intermediate results of an operation are private to it.
    const auto in_scratch = [this](const MemoryRange& range) {
      return range.overlaps(range_of(scratch(0, 0), scratch_bytes_));
    };
    std::erase_if(use.reads, in_scratch);
    std::erase_if(use.writes, in_scratch);
    list_uses_.push_back(std::move(use));
    return tiles > 0;
  }
  bool outside(MemoryUse use) {
    list_uses_.push_back(std::move(use));
    return true;
  }

  bool add(const engine::EmbedArgs& of) {
    if (of.y.rows != 1 || of.low_rank.table) return false;
    return outside({{range_of(pointer(of.ids), sizeof(int32_t))}, {row_range(view(of.y))}});
  }
  bool add(const engine::RopeAnglesArgs& of) {
    if (of.cs.rows != 1) return false;
    return outside({{range_of(pointer(of.positions), sizeof(int32_t))}, {row_range(view(of.cs))}});
  }
  /// Operations without an instruction.
  template <typename Args>
  bool add(const Args&) {
    return false;
  }

  bool elements(ElementsOp op, const engine::ConstMatrixView& a, const engine::ConstMatrixView& b,
                const engine::MatrixView& y, const engine::Activation& activation) {
    if (y.rows != 1) return false;
    const ElementsStep task = {pointer(a.data),
                               pointer(b.data),
                               pointer(y.data),
                               static_cast<int32_t>(y.cols),
                               static_cast<int32_t>(y.cols / a.cols),
                               op,
                               activation};
    return instruction(StepOp::kElements, ceil_div(y.cols, kStepColumns), task,
                       {{floats(task.a, a.cols), floats(task.b, y.cols)}, {row_range(view(y))}});
  }
  bool add(const engine::AddArgs& of) { return elements(ElementsOp::kAdd, of.a, of.b, of.y, {}); }
  bool add(const engine::GatedArgs& of) {
    return elements(ElementsOp::kGated, of.gate, of.up, of.y, of.activation);
  }
  bool add(const engine::ActivateArgs& of) {
    return !engine::is_gated_only(of.activation.kind) &&
           elements(ElementsOp::kActivate, of.x, {}, of.y, of.activation);
  }

  bool add(const engine::SelectRowsArgs& of) {
    if (of.y.rows != 1) return false;
    const SelectStep task = {view(of.x), pointer(of.rows), pointer(of.y.data)};
    return instruction(StepOp::kSelect, ceil_div(of.y.cols, kStepColumns), task,
                       {{floats(task.x.data, (task.x.rows - 1) * task.x.stride + task.x.cols),
                         range_of(task.row, sizeof(int32_t))},
                        {row_range(view(of.y))}});
  }

  bool add(const engine::PackArgs& of) {
    if (of.x.rows != 1) return false;
    return pack({pointer(of.x.data), packed_rows(of.y)});
  }
  bool pack(const PackStep& task) {
    return instruction(StepOp::kPack, ceil_div(task.y.cols, kStepColumns), task,
                       {{floats(task.x, task.y.cols)}, {row_range(task.y)}});
  }

  bool add(const engine::RmsNormArgs& of) {
    if (of.x.rows != 1) return false;
    const size_t shared = take_shared(norm_shared(of.x.cols, kStepThreads * kNormEach));
    const NormView task = {view(of.x), pointer(of.w),          of.eps,
                           view(of.y), packed_rows(of.packed), shared};
    return instruction(StepOp::kNorm, 1, task,
                       {{row_range(task.x)}, {row_range(task.y), row_range(task.packed)}});
  }

  bool add(const engine::LinearArgs& of) {
    if (of.y.rows != 1 || of.low_rank.table) return false;
    const auto& weight = static_cast<const DeviceWeight&>(*of.weight);
    LinearTask task = {};
    task.step.x = packed_rows(of.x);
    task.end = linear_end(of);
    const std::vector<WeightSegment>& segments = weight.segments();
    for (size_t i = 0; i < segments.size(); i += task.end.gated ? 2 : 1) {
      const WeightSegment* const up = task.end.gated ? &segments[i + 1] : nullptr;
      // Products with one result per row use a kernel that rounds x.
      if (of.deterministic && segments[i].type != DType::kF32 &&
          quant::find_traits(segments[i].type) == nullptr) {
        return false;
      }
      size_t terms = 0;
      if (!set_weights(segments[i], up, &task.step, &terms)) return false;
      task.step.terms_offset = take_shared(terms);
      task.step.outputs = static_cast<int32_t>(segments[i].rows);
      task.end.rows = segments[i].rows;
      task.end.first_row = segments[i].first_row;
      const float* const residual = task.end.residual.data;
      const auto columns = [&](const float* row) {
        return floats(row != nullptr ? row + task.end.first_row : nullptr, task.end.rows);
      };
      if (!instruction(StepOp::kLinear, tiles_of(task.end.rows), task,
                       {{row_range(task.step.x), columns(residual)}, {columns(task.end.y.data)}})) {
        return false;
      }
    }
    return true;
  }

  bool add(const engine::RopeAppendArgs& of) {
    if (of.q.rows != 1) return false;
    AppendView task = append_view(of);
    shared_bytes_ = std::max(shared_bytes_, append_shared(&task, kRingBytes, kStepWarps));
    turned_.push_back(row_range(task.q));
    MemoryUse use = {{row_range(task.q), row_range(task.k), row_range(task.v), row_range(task.cs)},
                     {row_range(task.q)}};
    if (task.k.data != nullptr) use.writes.push_back(kCaches);
    return instruction(StepOp::kAppend,
                       ceil_div(task.n_heads, kStepWarps) + (task.k.data != nullptr ? 2 : 0), task,
                       std::move(use));
  }

  bool add(const engine::AttentionArgs& of) {
    if (of.q.rows != 1 || of.max_chunks < 1 || of.n_kv_heads < 1) return false;
    ChunksStep task = {};
    task.view.of = attention_view(of);
    task.view.slots = of.max_chunks;
    const size_t bytes = static_cast<size_t>(of.n_heads) * static_cast<size_t>(of.max_chunks) *
                         static_cast<size_t>(task.view.partial_floats()) * sizeof(float);
    if (bytes > kMaxScratch) return false;
    task.view.partials = reinterpret_cast<float*>(scratch(0, bytes));
    // As many heads per tile as leave a tile for each block.
    const int32_t group = of.n_heads / of.n_kv_heads;
    const auto tiles = [&](int32_t batch) {
      return int64_t{of.max_chunks} * of.n_kv_heads * ceil_div(group, batch);
    };
    task.batch = std::min(group, kSplitHeads);
    while (task.batch > 1 && tiles(task.batch) < blocks_) task.batch = (task.batch + 1) / 2;
    task.view.shared_offset = take_shared(split_shared(task.batch, of.k_dim));
    const MemoryRange handed_on = range_of(task.view.partials, bytes);
    if (!instruction(StepOp::kChunks, tiles(task.batch), task,
                     {{row_range(view(of.q)), kCaches}, {handed_on}})) {
      return false;
    }
    const int64_t cols = int64_t{of.n_heads} * of.v_dim;
    if (!instruction(StepOp::kMerge, ceil_div(cols, kStepColumns), task.view,
                     {{handed_on},
                      {floats(task.view.of.out.data, cols), floats(view(of.packed).data, cols)}})) {
      return false;
    }
    if (!of.packed.data) return true;
    const PackedRows packed = packed_rows(of.packed);
    return !more_forms(packed) || pack({view(of.packed).data, packed});
  }

  bool add(const engine::BestArgs& of) {
    if (of.x.rows != 1) return false;
    BestStep task = {};
    task.x = view(of.x);
    task.rows = pointer(of.rows);
    task.tokens = pointer(of.tokens);
    task.values = pointer(of.values);
    const MemoryRange logits = row_range(task.x);
    const auto n = static_cast<size_t>(of.k);
    const std::vector<MemoryRange> results = {range_of(task.tokens, n * sizeof(int32_t)),
                                              range_of(task.values, n * sizeof(float))};
    MemoryUse whole = {{logits}, results};
    if (task.rows != nullptr) whole.writes.push_back(logits);  // tokens that are aside
    if (outside_best(of)) {
      const size_t masses = of.mass ? mass_slices(static_cast<size_t>(of.x.cols)) : 0;
      if (of.mass) whole.writes.push_back(range_of(pointer(of.mass), masses * sizeof(double)));
      if (of.slice) whole.writes.push_back(range_of(pointer(of.slice), kMassSlice * sizeof(float)));
      return outside(std::move(whole));
    }
    task.parts.parts = parts_of(of.x.cols);
    const auto each = static_cast<size_t>(task.parts.parts);
    task.parts.ranks = reinterpret_cast<uint64_t*>(scratch(0, each * sizeof(uint64_t)));
    task.parts.bads = reinterpret_cast<int32_t*>(
        scratch(round_up_64(each * sizeof(uint64_t)), each * sizeof(int32_t)));
    const MemoryRange ranks = range_of(task.parts.ranks, each * sizeof(uint64_t));
    const MemoryRange bads = range_of(task.parts.bads, each * sizeof(int32_t));
    MemoryUse part = {{logits}, {ranks}};
    if (task.rows != nullptr) {
      if (!instruction(StepOp::kBadLogit, task.parts.parts, task, {{logits}, {bads}})) return false;
      part.reads.push_back(bads);
      part.writes.push_back(logits);
    } else {
      part.writes.push_back(bads);
    }
    return instruction(StepOp::kBestOfPart, task.parts.parts, task, std::move(part)) &&
           instruction(StepOp::kBest, 1, task, {{logits, ranks, bads}, results});
  }

  /// Shared memory after the rings, used by each instruction in turn.
  size_t take_shared(size_t bytes) noexcept {
    shared_bytes_ = std::max(shared_bytes_, kRingBytes + bytes);
    return kRingBytes;
  }

  /// Sets the dependencies of instructions, and the blocks of their tiles.
  bool link() {
    const auto waits = waits_of(uses_);
    const auto n = static_cast<int32_t>(code_.heads.size());
    int64_t tiles = 0;
    for (size_t i = 0; i < code_.heads.size(); ++i) {
      StepHead& head = code_.heads[i];
      if (waits[i].size() > kMaxWaits) return false;
      for (const int32_t earlier : waits[i]) {
        head.waits[head.n_waits] = earlier;
        head.arrivals[head.n_waits++] = static_cast<uint32_t>(
            std::min(code_.heads[static_cast<size_t>(earlier)].tiles, blocks_));
      }
      head.first_block = static_cast<int32_t>(tiles % blocks_);
      tiles += head.tiles;
    }
    code_.first_weights = n;
    for (size_t i = code_.heads.size(); i-- > 0;) {
      code_.heads[i].next_weights = code_.first_weights;
      if (code_.heads[i].op == StepOp::kLinear) code_.first_weights = static_cast<int32_t>(i);
    }
    return true;
  }

  /// Of attention's chunks.
  static constexpr size_t kMaxScratch = size_t{64} << 20;

  const int32_t blocks_;
  uint8_t* const scratch_;
  bool inside_ = false;
  size_t scratch_bytes_ = 0;
  size_t shared_bytes_ = 0;
  StepCode code_;
  std::vector<MemoryUse> uses_;       // of instructions
  std::vector<MemoryUse> list_uses_;  // of the whole list
  std::vector<MemoryRange> turned_;   // not written by fused pairs of the list's kernels: pairs.h
};

}  // namespace

std::optional<StepCode> compile_step(std::span<const engine::OpArgs> list, int32_t blocks,
                                     uint8_t* scratch) {
  return Compiler(blocks, scratch).compile(list);
}

}  // namespace gen::cuda
