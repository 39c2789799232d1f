// SPDX-License-Identifier: Apache-2.0
// See causal_store.h.
#include "cache/batch/causal_store.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/to_size.h"
#include "base/checked.h"
#include "cache/batch/row_codec.h"
#include "tensor/half.h"

namespace gen::cache {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

CausalStore::Made make(const char* kind, const CausalRules& rules) {
  if (rules.window < 1 || rules.memory < rules.window) {
    return error(Code::kInvalidArgument,
                 "a window of %d, a memory of %d: a window is 1 or more, and no longer than the "
                 "memory",
                 rules.window, rules.memory);
  }
  return std::shared_ptr<SequenceStore>(std::make_shared<CausalStore>(kind, rules));
}

}  // namespace

CausalStore::Made CausalStore::full() { return make("causal", CausalRules()); }

CausalStore::Made CausalStore::sliding(int32_t window) {
  return make("swa", {.window = window, .memory = window});
}

CausalStore::Made CausalStore::sliding_with_memory(int32_t window, int32_t memory) {
  return make("swa_mem", {.window = window, .memory = memory});
}

CausalStore::Made CausalStore::chunked(int32_t chunk) {
  if (chunk < 1) return error(Code::kInvalidArgument, "a chunk of %d is below 1", chunk);
  return make("chunked", {.chunk = chunk});
}

Status CausalStore::in_pass() const {
  GEN_TRY(ready());
  if (!pass_) return error(Code::kState, "no pass of the %s cache was started", kind());
  return {};
}

Status CausalStore::prepare(const SequenceLimits& limits) {
  GEN_ASSIGN(auto cells, CausalCells::create(rules_, {limits.max_sequences, limits.capacity,
                                                      limits.max_batch, config().padding}));
  offsets_.assign(to_size(cells.n_cells()), 0);
  cells.set_quota(quota_);
  cells_.emplace(std::move(cells));
  return {};
}

void CausalStore::undo_init() noexcept {
  LoneStore::undo_init();
  cells_.reset();
  offsets_ = {};
}

void CausalStore::close() noexcept {
  LoneStore::close();
  cells_.reset();
  layers_.clear();
  offsets_ = {};
  pass_.reset();
  planned_.reset();
}

Status CausalStore::set_shift(ShiftKeys shift) {
  GEN_TRY(open());
  shift_ = std::move(shift);
  return {};
}

Status CausalStore::set_quota(int32_t entries) {
  GEN_TRY(LoneStore::set_quota(entries));
  quota_ = entries;
  if (cells_) cells_->set_quota(entries);
  return {};
}

// --- A pass -------------------------------------------------------------------------------------

Status CausalStore::plan_start(const SequenceBatch& batch) {
  GEN_TRY(ready());
  planned_.reset();
  Pass pass;
  pass.reserve = batch.reserve;
  GEN_TRY(check_batch(batch, limits().max_batch));
  if (batch.reserve) {
    pass.range = {0, cells_->n_cells()};
    pass.ranged = true;
  } else {
    GEN_ASSIGN(pass.plan, cells_->plan_batch(batch.positions, batch.sequences));
  }
  pass.except.assign(batch.positions.size(), 0);
  planned_.emplace(std::move(pass));
  return {};
}

void CausalStore::commit_start() noexcept {
  pass_ = std::exchange(planned_, std::nullopt);
  if (pass_->reserve) return;
  cells_->commit(pass_->plan);
  for (const int32_t cell : pass_->plan.cells) offsets_[to_size(cell)] = 0;
}

const CausalStore::Layer* CausalStore::layer() const noexcept {
  return to_size(layer_index()) < layers_.size() ? layers_[to_size(layer_index())].get() : nullptr;
}

Status CausalStore::check_rows(const char* what, const PutRows& rows, int32_t n,
                               const Rows* own) const {
  if (rows.data == nullptr || rows.heads < 1 || rows.dim < 1) {
    return error(Code::kInvalidArgument, "%s of %d heads of %d elements%s", what, rows.heads,
                 rows.dim, rows.data == nullptr ? " at NULL" : "");
  }
  if (own != nullptr && (own->heads != rows.heads || own->dim != rows.dim)) {
    return error(Code::kInvalidArgument,
                 "%s of %d heads of %d elements for a layer of %d heads of %d", what, rows.heads,
                 rows.dim, own->heads, own->dim);
  }
  size_t count = 0;
  if (!checked_mul(to_size(rows.heads), to_size(rows.dim), &count) ||
      !checked_mul(count, to_size(n), &count)) {
    return error(Code::kOutOfMemory, "%d %s of %d heads of %d elements overflow", n, what,
                 rows.heads, rows.dim);
  }
  const size_t unfit = first_unfit(limits().type, rows.data, count);
  if (unfit < count) {
    return error(Code::kInvalidArgument, "element %zu of the %s is not finite", unfit, what);
  }
  return {};
}

Result<CausalStore::Rows> CausalStore::new_rows(const PutRows& rows) const {
  Rows made;
  made.heads = rows.heads;
  made.dim = rows.dim;
  size_t bytes = 0;
  if (checked_mul(to_size(rows.heads), to_size(rows.dim), &made.elements)) {
    made.bytes = row_bytes(limits().type, made.elements);
  }
  if (made.bytes == 0 || !checked_mul(made.bytes, to_size(cells_->n_cells()), &bytes)) {
    return error(Code::kOutOfMemory, "%d cells of %d heads of %d elements overflow",
                 cells_->n_cells(), rows.heads, rows.dim);
  }
  GEN_ASSIGN(made.buffer, Buffer::allocate(allocator(), bytes));
  std::memset(made.buffer.data(), 0, bytes);
  return made;
}

Status CausalStore::put(const PutRows& k, const PutRows& v, int32_t n) {
  GEN_TRY(in_pass());
  if (n < 0 || to_size(n) != pass_->except.size()) {
    return error(Code::kInvalidArgument, "rows for %d tokens in a pass of %zu", n,
                 pass_->except.size());
  }
  const Layer* own = layer();
  GEN_TRY(check_rows("keys", k, n, own != nullptr ? &own->k : nullptr));
  GEN_TRY(check_rows("values", v, n, own != nullptr ? &own->v : nullptr));
  if (own == nullptr) {
    auto made = std::make_unique<Layer>();
    GEN_ASSIGN(made->k, new_rows(k));
    GEN_ASSIGN(made->v, new_rows(v));
    if (to_size(layer_index()) >= layers_.size()) layers_.resize(to_size(layer_index()) + 1);
    own = made.get();
    layers_[to_size(layer_index())] = std::move(made);
  }
  if (pass_->reserve) return {};
  for (size_t i = 0; i < to_size(n); ++i) {
    const int32_t cell = pass_->plan.cells[i];
    encode_row(limits().type, k.data + i * own->k.elements, own->k.elements, own->k.row(cell));
    encode_row(limits().type, v.data + i * own->v.elements, own->v.elements, own->v.row(cell));
  }
  return {};
}

/// The range from the first to the last cell that a token of the pass may see, rounded to tiles.
void CausalStore::find_range() noexcept {
  if (pass_->ranged) return;
  int32_t first = cells_->n_cells();
  int32_t last = -1;
  const CellMap& map = cells_->map();
  for (const CausalCells::Group& one : pass_->plan.groups) {
    const CausalRules& rules = cells_->rules();
    // Without a memory limit the range covers the whole sequence.
    const int32_t lowest = rules.memory == kNoLimit ? 0 : cells_->first_seen(one.lowest);
    const auto cells = map.cells(one.slot);
    for (size_t i = to_size(map.lower_bound(one.slot, lowest)); i < cells.size(); ++i) {
      first = std::min(first, cells[i]);
      last = std::max(last, cells[i]);
    }
  }
  const int32_t pad = config().padding;
  first = first / pad * pad;
  last = static_cast<int32_t>((int64_t{last} + pad) / pad * pad - 1);
  pass_->range = {first, last - first + 1};
  pass_->ranged = true;
}

/// Fills the mask and the cells that each token sees; O(tokens * length).
void CausalStore::make_mask() {
  if (!pass_->mask.empty()) return;
  const size_t n = pass_->except.size();
  const size_t length = to_size(pass_->range.length);
  std::vector<float> mask(n * length, kHidden);
  for (size_t i = 0; i < n && !pass_->reserve; ++i) {
    const int32_t slot = pass_->plan.slots[i];
    const int32_t own = pass_->plan.positions[i];
    const int32_t last = pass_->except[i] != 0 ? cells_->last_seen(own) : own;
    const auto cells = cells_->map().cells(slot);
    const auto positions = cells_->map().positions(slot);
    for (size_t e = to_size(cells_->map().lower_bound(slot, cells_->first_seen(own)));
         e < positions.size() && positions[e] <= last; ++e) {
      mask[i * length + to_size(cells[e] - pass_->range.first)] = 0.0F;
    }
  }
  pass_->mask = std::move(mask);
}

Result<HistoryShape> CausalStore::shape() {
  GEN_TRY(in_pass());
  const Layer* own = layer();
  if (own == nullptr) {
    return error(Code::kState, "nothing was put into layer %d of the %s cache", layer_index(),
                 kind());
  }
  find_range();
  const int32_t length = pass_->range.length;
  HistoryShape shape = {{own->k.dim, own->k.heads, length},
                        {own->v.dim, own->v.heads, length},
                        {length, static_cast<int32_t>(pass_->except.size())}};
  if (config().permuted_v) {
    shape.v[0] = length;
    shape.v[1] = own->v.dim;
    shape.v[2] = own->v.heads;
  }
  return shape;
}

int32_t CausalStore::offset(int32_t cell) const noexcept {
  return cells_->map().references(cell) > 0 ? offsets_[to_size(cell)] : 0;
}

Status CausalStore::read_keys(const Rows& rows, float* k) {
  const Range range = pass_->range;
  std::vector<int32_t> offsets;
  if (shifted_) offsets.resize(to_size(std::min(limits().max_batch, range.length)));
  for (int32_t i = 0; i < range.length; ++i) {
    decode_row(limits().type, rows.row(range.first + i), rows.elements,
               k + to_size(i) * rows.elements);
  }
  if (!shifted_) return {};
  for (int32_t begin = 0; begin < range.length; begin += static_cast<int32_t>(offsets.size())) {
    const int32_t n = std::min(static_cast<int32_t>(offsets.size()), range.length - begin);
    bool any = false;
    for (int32_t i = 0; i < n; ++i) {
      offsets[to_size(i)] = offset(range.first + begin + i);
      any = any || offsets[to_size(i)] != 0;
    }
    if (!any) continue;
    GEN_TRY(shift_(layer_index(), k + to_size(begin) * rows.elements, rows.dim, rows.heads, n,
                   offsets.data()));
  }
  return {};
}

void CausalStore::read_values(const Rows& rows, float* v) const {
  const Range range = pass_->range;
  if (!config().permuted_v) {
    for (int32_t i = 0; i < range.length; ++i) {
      decode_row(limits().type, rows.row(range.first + i), rows.elements,
                 v + to_size(i) * rows.elements);
    }
    return;
  }
  std::vector<float> row(rows.elements);
  for (int32_t i = 0; i < range.length; ++i) {
    decode_row(limits().type, rows.row(range.first + i), rows.elements, row.data());
    for (size_t e = 0; e < rows.elements; ++e) v[e * to_size(range.length) + to_size(i)] = row[e];
  }
}

Status CausalStore::get(float* k, float* v, void* mask) {
  GEN_TRY(shape().status());
  if (mask != nullptr) make_mask();
  if (k != nullptr) GEN_TRY(read_keys(layer()->k, k));
  if (v != nullptr) read_values(layer()->v, v);
  if (mask == nullptr) return {};
  if (config().mask_type == DType::kF32) {
    std::copy(pass_->mask.begin(), pass_->mask.end(), static_cast<float*>(mask));
  } else {
    std::transform(pass_->mask.begin(), pass_->mask.end(), static_cast<uint16_t*>(mask),
                   [](float x) { return f32_to_f16(x); });
  }
  return {};
}

Status CausalStore::set_causal(std::span<const int32_t> except) {
  GEN_TRY(in_pass());
  std::vector<uint8_t> flags(pass_->except.size(), 0);
  for (const int32_t token : except) {
    if (token < 0 || to_size(token) >= flags.size()) {
      return error(Code::kOutOfRange, "token %d outside a batch of %zu", token, flags.size());
    }
    flags[to_size(token)] = 1;
  }
  if (flags == pass_->except) return {};
  pass_->except = std::move(flags);
  pass_->mask.clear();
  return {};
}

// --- Between passes -----------------------------------------------------------------------------

Status CausalStore::plan_copy_prefix(int32_t src, int32_t dst, int32_t length) {
  GEN_TRY(ready());
  if (src < 0 || dst < 0 || length < 0) {
    return error(Code::kInvalidArgument, "a prefix of %d from sequence %d to %d", length, src, dst);
  }
  copying_ = {src, dst, length};
  // Copying a sequence to itself keeps its prefix.
  if (src == dst) return plan_remove(dst, length, kNoLimit);
  return cells_->plan_copy(src, dst, length);
}

void CausalStore::commit_copy_prefix() noexcept {
  if (copying_.src == copying_.dst) {
    commit_remove();
    return;
  }
  pass_.reset();
  cells_->copy_prefix(copying_.src, copying_.dst, copying_.length);
}

Result<bool> CausalStore::can_resume(int32_t sequence, int32_t position) const {
  GEN_TRY(ready());
  return cells_->can_resume(sequence, position);
}

Status CausalStore::plan_remove(int32_t sequence, int32_t begin, int32_t end) {
  GEN_TRY(ready());
  GEN_ASSIGN(removal_, cells_->plan_remove(sequence, begin, end, shift_ != nullptr));
  return {};
}

void CausalStore::commit_remove() noexcept {
  pass_.reset();
  copy_rows(removal_.copies);
  cells_->remove(removal_);
  if (removal_.by == 0) return;
  shifted_ = true;
  const auto cells = cells_->map().cells(removal_.slot);
  for (size_t i = to_size(removal_.from); i < cells.size(); ++i)
    offsets_[to_size(cells[i])] += removal_.by;
}

void CausalStore::copy_rows(std::span<const CellMove> moves) noexcept {
  for (const CellMove& move : moves) {
    offsets_[to_size(move.to)] = offsets_[to_size(move.from)];
    for (const auto& one : layers_) {
      if (one == nullptr) continue;
      std::memcpy(one->k.row(move.to), one->k.row(move.from), one->k.bytes);
      std::memcpy(one->v.row(move.to), one->v.row(move.from), one->v.bytes);
    }
  }
}

Result<int32_t> CausalStore::plan_compact(int32_t budget) {
  GEN_TRY(ready());
  if (budget < 0) return error(Code::kInvalidArgument, "a budget of %d moves", budget);
  moves_ = cells_->plan_compact(budget);
  return static_cast<int32_t>(moves_.size());
}

void CausalStore::commit_compact() noexcept {
  pass_.reset();
  copy_rows(moves_);
  cells_->compact(moves_);
}

MemoryUse CausalStore::memory() const noexcept {
  MemoryUse use;
  use.metadata = sizeof(*this) + offsets_.capacity() * sizeof(int32_t) +
                 layers_.capacity() * sizeof(layers_[0]);
  if (!cells_) return use;
  use.metadata += cells_->bytes();
  const size_t held = to_size(cells_->n_cells() - cells_->map().free_cells().count());
  for (const auto& one : layers_) {
    if (one == nullptr) continue;
    use.metadata += sizeof(Layer);
    use.resident += one->k.buffer.size() + one->v.buffer.size();
    use.payload += held * (one->k.bytes + one->v.bytes);
  }
  return use;
}

}  // namespace gen::cache
