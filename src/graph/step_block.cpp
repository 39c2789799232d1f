// SPDX-License-Identifier: Apache-2.0
// See step_block.h. Records point into the block itself, so they are completed last, when the size
// and the address of the block are known.
#include "graph/step_block.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "base/allocator.h"
#include "base/mass_slices.h"
#include "base/to_size.h"

namespace gen::graph {
namespace {

/// The largest block for which room for larger steps is reserved.
constexpr size_t kMaxSpareBytes = size_t{4} << 20;
/// The minimum size if the engine wants room for more rows: all small steps then have the same
/// block, whichever comes first, and estimates know its size.
constexpr size_t kLeastSpareBytes = size_t{512} << 10;

/// The parent of a row, counted from the sequence's first row; -1 for that first row.
int32_t parent_in(const Batch& batch, const BatchSequence& sequence, int32_t i) {
  if (batch.parents.empty()) return i - 1;
  const int32_t parent = batch.parents[to_size(sequence.first_row + i)];
  return parent == -1 ? i - 1 : parent - sequence.first_row;
}

bool is_tree(const Batch& batch, const BatchSequence& sequence) {
  for (int32_t i = 0; i < sequence.n_rows; ++i) {
    if (parent_in(batch, sequence, i) != i - 1) return true;
  }
  return false;
}

bool lie_alike(std::span<const engine::KvLayer> a, std::span<const engine::KvLayer> b) {
  return a.size() == b.size() &&
         (a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin()));
}

}  // namespace

template <typename T>
size_t StepBlock::add(std::span<const T> values, size_t n) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (values.empty()) return kNone;
  const size_t offset = align_up(bytes_.size());
  bytes_.resize(offset + std::max(n, values.size()) * sizeof(T));
  std::memcpy(bytes_.data() + offset, values.data(), values.size_bytes());
  return offset;
}

size_t StepBlock::places(size_t n) const noexcept {
  return pads_ != nullptr ? static_cast<size_t>(pads_->step_rows(static_cast<int64_t>(n))) : n;
}

/// Sorts rows that want best after the others, so that each kind is contiguous in a chunk.
void StepBlock::list_wanted(const Batch& batch) {
  wanted_.clear();
  for (const Wants what : {kWantsLogits, kWantsBest}) {
    n_logits_ = wanted_.size();
    for (size_t i = 0; i < batch.wants.size(); ++i) {
      if (batch.wants[i] == what) wanted_.push_back(static_cast<int32_t>(i));
    }
  }
  n_best_ = wanted_.size() - n_logits_;
  wanted_.resize(places(wanted_.size()), 0);
}

template <typename T>
size_t StepBlock::reserve(size_t n) {
  if (n == 0) return kNone;
  const size_t offset = align_up(bytes_.size());
  bytes_.resize(offset + n * sizeof(T));
  return offset;
}

/// Reserves room for the records of masks and tokens aside.
void StepBlock::reserve_best(const Batch& batch) {
  best_at_ = mass_at_ = slice_at_ = masks_at_ = aside_at_ = aside_logits_at_ = kNone;
  best_.clear();
  aside_.clear();
  k_ = batch.best.k;
  if (batch.extras.empty()) return;
  best_.assign(best_places(), {});
  best_at_ = reserve<engine::BestRow>(best_.size());
  bool any_mass = false;
  bool any_slice = false;
  for (const RowExtras& extras : batch.extras) {
    any_mass = any_mass || extras.temperature > 0.0;
    any_slice = any_slice || (extras.temperature > 0.0 && extras.place >= 0.0);
  }
  mass_slices_ = any_mass ? batch.best.mass_slices : 0;
  mass_at_ = reserve<double>(best_.size() * mass_slices_);
  slice_at_ = reserve<float>(any_slice ? best_.size() * kMassSlice : 0);
}

/// Adds masks and tokens aside themselves.
void StepBlock::add_best(const Batch& batch) {
  mask_bytes_ = 0;
  if (best_at_ == kNone) return;
  for (const RowExtras& extras : batch.extras) {
    aside_.insert(aside_.end(), extras.aside.begin(), extras.aside.end());
    mask_bytes_ += extras.mask.size_bytes();
  }
  aside_at_ = add(std::span<const int32_t>(aside_));
  aside_logits_at_ = reserve<float>(aside_.size());
  masks_at_ = align_up(bytes_.size());
  bytes_.resize(masks_at_ + mask_bytes_);
  if (batch.during.call == nullptr) copy_masks(batch);
}

void StepBlock::copy_masks(const Batch& batch) noexcept {
  std::byte* to = bytes_.data() + masks_at_;
  for (const RowExtras& extras : batch.extras) {
    to = std::copy_n(reinterpret_cast<const std::byte*>(extras.mask.data()),
                     extras.mask.size_bytes(), to);
  }
}

/// Sets their addresses, now that the address of the block is known.
void StepBlock::place_best(const Batch& batch) noexcept {
  if (best_at_ == kNone) return;
  engine::EnginePtr<const uint32_t> bits = at<uint32_t>(masks_at_);
  engine::EnginePtr<const int32_t> tokens = at<int32_t>(aside_at_);
  engine::EnginePtr<float> logits = aside_logits();
  size_t next = 0;
  for (size_t i = 0; i < n_best_ && next < batch.extras.size(); ++i) {
    const RowExtras& extras = batch.extras[next];
    if (extras.row != wanted_[n_logits_ + i]) continue;
    ++next;
    engine::BestRow& best = best_[i];
    if (!extras.mask.empty()) {
      best.mask = bits;
      best.mask_words = static_cast<int32_t>(extras.mask.size());
      bits = bits + static_cast<std::ptrdiff_t>(extras.mask.size());
    }
    if (!extras.aside.empty()) {
      const auto n = static_cast<std::ptrdiff_t>(extras.aside.size());
      best.aside = tokens;
      best.aside_logits = logits;
      best.n_aside = static_cast<int32_t>(n);
      tokens = tokens + n;
      logits = logits + n;
    }
    best.temperature = extras.temperature;
    best.place = extras.temperature > 0.0 ? extras.place : -1.0;
  }
  std::memcpy(bytes_.data() + best_at_, best_.data(), best_.size() * sizeof(best_[0]));
}

Status StepBlock::refresh_masks(const Batch& batch, engine::Engine& engine,
                                engine::Stream& stream) {
  if (mask_bytes_ == 0) return {};
  copy_masks(batch);
  return engine.upload(stream, buffer_.data() + static_cast<std::ptrdiff_t>(masks_at_),
                       bytes_.data() + masks_at_, mask_bytes_);
}

StepBlock::Best StepBlock::best() const noexcept {
  Best best;
  best.first = static_cast<int64_t>(n_logits_);
  best.n = static_cast<int64_t>(n_best_);
  best.mass_slices = mass_slices_;
  best.args.k = k_;
  if (results_at_ == kNone) return best;
  best.args.rows = at<engine::BestRow>(best_at_);
  best.args.tokens = place<int32_t>(results_at_);
  const auto n = static_cast<std::ptrdiff_t>(best_places());
  best.args.values = (best.args.tokens + n * k_).as<float>();
  best.args.mass = place<double>(mass_at_);
  best.args.slice = place<float>(slice_at_);
  return best;
}

void StepBlock::find_groups(const Batch& batch) {
  groups_.clear();
  group_of_.clear();
  for (const BatchSequence& sequence : batch.sequences) {
    if (sequence.cache == nullptr) {  // the model has no cache
      group_of_.push_back(kNone);
      continue;
    }
    const auto layers = sequence.cache->kv_layers();
    const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
      return lie_alike(group.layers, layers);
    });
    group_of_.push_back(static_cast<size_t>(found - groups_.begin()));
    if (found == groups_.end()) groups_.push_back({layers, 0, 0, 0});
    ++groups_[group_of_.back()].n;
  }
  for (Group& group : groups_) group.places = static_cast<int32_t>(places(to_size(group.n)));
}

/// Trees: each row attends to the entries of its parent and itself. Chains stay causal.
void StepBlock::find_visible(const Batch& batch) {
  visible_.assign(batch.sequences.size(), kNone);
  if (batch.parents.empty()) return;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const BatchSequence& sequence = batch.sequences[s];
    if (!is_tree(batch, sequence)) continue;
    const size_t words = (to_size(sequence.n_rows) + 63) / 64;
    bits_.assign(words * to_size(sequence.n_rows), 0);
    for (int32_t i = 0; i < sequence.n_rows; ++i) {
      const int32_t parent = parent_in(batch, sequence, i);
      uint64_t* row = bits_.data() + to_size(i) * words;
      if (parent >= 0) std::copy_n(bits_.data() + to_size(parent) * words, words, row);
      row[i / 64] |= uint64_t{1} << (i % 64);
    }
    visible_[s] = add(std::span<const uint64_t>(bits_));
  }
}

void StepBlock::find_states(const Batch& batch) {
  states_.clear();
  for (const BatchSequence& sequence : batch.sequences) {
    if (sequence.state == nullptr || sequence.state->shapes().empty()) continue;
    engine::StateRows& rows = states_.emplace_back();
    sequence.state->rows(sequence.state_plan, &rows);
    rows.first_row = sequence.first_row;
    rows.n_rows = sequence.n_rows;
  }
  states_.resize(places(states_.size()));
  states_at_ = add(std::span<const engine::StateRows>(states_));
}

void StepBlock::find_mixes(const Batch& batch) {
  mixes_.clear();
  const bool any = std::any_of(batch.sequences.begin(), batch.sequences.end(),
                               [](const BatchSequence& of) { return of.adapter >= 0; });
  for (const BatchSequence& sequence : batch.sequences) {
    if (any) mixes_.insert(mixes_.end(), to_size(sequence.n_rows), sequence.adapter);
  }
  if (any) mixes_.resize(static_cast<size_t>(rows_), -1);
  mixes_at_ = add(std::span<const int32_t>(mixes_));
}

void StepBlock::reserve_records(const Batch& batch) {
  size_t n_records = 0;
  for (Group& group : groups_) {
    group.first_record = n_records;
    const auto of_group = static_cast<size_t>(&group - groups_.data());
    const auto any = std::find(group_of_.begin(), group_of_.end(), of_group) - group_of_.begin();
    const int32_t parts = batch.sequences[static_cast<size_t>(any)].cache->parts();
    n_records += to_size(parts) * to_size(group.places);
  }
  records_.assign(n_records, {});
  offsets_.assign(n_records, {});
  records_at_ = reserve<engine::KvRows>(n_records);
}

Status StepBlock::add_tables(const Batch& batch) {
  stages_ = false;
  for (size_t of_group = 0; of_group < groups_.size(); ++of_group) {
    const Group& group = groups_[of_group];
    size_t place = 0;  // index of the sequence in its group
    for (size_t s = 0; s < batch.sequences.size(); ++s) {
      if (group_of_[s] != of_group) continue;
      const BatchSequence& sequence = batch.sequences[s];
      stages_ = stages_ || sequence.cache->stages(sequence.plan);
      for (int32_t part = 0; part < sequence.cache->parts(); ++part) {
        GEN_ASSIGN(const engine::KvTables tables, sequence.cache->tables(part, sequence.plan));
        const size_t at = static_cast<size_t>(record(group, part)) + place;
        engine::KvRows& rows = records_[at];
        rows.first_row = sequence.first_row;
        rows.n_rows = sequence.n_rows;
        rows.first_entry = sequence.plan.start + sequence.planned_before;
        if (sequence.plan.count == 0) --rows.first_entry;  // a row that only reads, see Binder
        rows.entries = rows.first_entry + sequence.n_rows;
        rows.first_cell = tables.first_cell;
        offsets_[at] = {add(tables.blocks), add(tables.cells), add(tables.positions),
                        add(tables.log_weights), visible_[s]};
      }
      ++place;
    }
  }
  return {};
}

void StepBlock::add_tokens(const Batch& batch) {
  tokens_ = add(batch.tokens, static_cast<size_t>(rows_));
  if (batch.embeddings.empty()) return;
  for (size_t t = 0; t < batch.tokens.size(); ++t) {
    const int32_t token = std::max(batch.tokens[t], 0);
    std::memcpy(bytes_.data() + tokens_ + t * sizeof token, &token, sizeof token);
  }
}

void StepBlock::list_firsts(const Batch& batch) {
  firsts_.clear();
  for (const int32_t row : wanted_) {
    const auto behind = std::upper_bound(
        batch.sequences.begin(), batch.sequences.end(), row,
        [](int32_t t, const BatchSequence& sequence) { return t < sequence.first_row; });
    firsts_.push_back((behind - 1)->first_row);
  }
}

Status StepBlock::fill(const Batch& batch, const Lists& lists, bool padded, bool fed,
                       engine::Engine& engine, engine::Stream& stream) {
  bytes_.clear();
  pads_ = padded ? &engine : nullptr;
  rows_ = static_cast<int64_t>(places(static_cast<size_t>(batch.rows())));
  list_wanted(batch);
  all_.resize(lists.all ? static_cast<size_t>(batch.rows()) : 0);
  std::iota(all_.begin(), all_.end(), 0);
  // First the lists whose size depends only on the number of rows and sequences, so that they have
  // the same addresses in all such steps: their operations then have the same arguments.
  results_at_ = reserve<Result>(best_places() * static_cast<size_t>(batch.best.k));
  add_tokens(batch);
  positions_ = add(batch.positions, static_cast<size_t>(rows_));
  wanted_at_ = add(std::span<const int32_t>(wanted_));
  all_at_ = add(std::span<const int32_t>(all_));
  zeros_ = reserve<int32_t>(lists.zeros ? static_cast<size_t>(rows_) : 0);
  if (lists.firsts) list_firsts(batch);
  firsts_at_ = add(std::span<const int32_t>(firsts_));
  find_groups(batch);
  find_states(batch);
  find_mixes(batch);
  reserve_records(batch);
  reserve_best(batch);
  find_visible(batch);
  GEN_TRY(add_tables(batch));
  add_best(batch);
  const size_t size = bytes_.size();
  if (size > buffer_.size()) {
    if (fed) return error(Code::kInternal, "a step's block grew to %zu bytes in a chain", size);
    buffer_.reset();
    // Tables grow with their sequences: reserve more, so that they are not reallocated at each
    // step. Also reserve for as many such rows as the engine wants room for, if that is little.
    const size_t more = size + size / 2;
    const auto times = static_cast<size_t>(engine.room_rows(rows_) / std::max<int64_t>(rows_, 1));
    const size_t least = engine.room_rows(1) > 1 ? kLeastSpareBytes : 0;
    const size_t wanted = std::max({more, least, std::min(more * times, kMaxSpareBytes)});
    auto made = engine.memory().allocate(wanted);
    if (!made.ok() && wanted > more) made = engine.memory().allocate(more);
    GEN_ASSIGN(buffer_, std::move(made));
  }
  for (size_t i = 0; i < records_.size(); ++i) {
    engine::KvRows& rows = records_[i];
    rows.blocks = at<engine::EnginePtr<std::byte>>(offsets_[i].blocks);
    rows.cells = at<int32_t>(offsets_[i].cells);
    rows.positions = at<int32_t>(offsets_[i].positions);
    rows.log_weights = at<float>(offsets_[i].log_weights);
    rows.visible = at<uint64_t>(offsets_[i].visible);
  }
  place_best(batch);
  if (!records_.empty()) {
    std::memcpy(bytes_.data() + records_at_, records_.data(),
                records_.size() * sizeof(records_[0]));
  }
  const size_t first = fed ? positions_ : 0;  // behind results and tokens
  return engine.upload(stream, buffer_.data() + static_cast<std::ptrdiff_t>(first),
                       bytes_.data() + first, bytes_.size() - first);
}

}  // namespace gen::graph
