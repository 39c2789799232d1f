// SPDX-License-Identifier: Apache-2.0
// See step_block.h. Records point into the block itself, so they are finished last, when the block
// has its size and thereby its address.
#include "graph/step_block.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace gen::graph {
namespace {

constexpr size_t kAlign = 64;

size_t index(int32_t i) { return static_cast<size_t>(i); }

/// Row looked back at, counted from the sequence's first row; -1 for that first row.
int32_t parent_in(const Batch& batch, const BatchSequence& sequence, int32_t i) {
  if (batch.parents.empty()) return i - 1;
  const int32_t parent = batch.parents[index(sequence.first_row + i)];
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
size_t StepBlock::add(std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (values.empty()) return kNone;
  const size_t offset = (bytes_.size() + kAlign - 1) / kAlign * kAlign;
  bytes_.resize(offset + values.size_bytes());
  std::memcpy(bytes_.data() + offset, values.data(), values.size_bytes());
  return offset;
}

void StepBlock::find_groups(const Batch& batch) {
  groups_.clear();
  group_of_.clear();
  for (const BatchSequence& sequence : batch.sequences) {
    const auto layers = sequence.cache->kv_layers();
    const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
      return lie_alike(group.layers, layers);
    });
    group_of_.push_back(static_cast<size_t>(found - groups_.begin()));
    if (found == groups_.end()) groups_.push_back({layers, 0, 0});
    ++groups_[group_of_.back()].n;
  }
}

/// Trees: each row sees what its parent sees, and itself. Chains stay causal.
void StepBlock::find_visible(const Batch& batch) {
  visible_.assign(batch.sequences.size(), kNone);
  if (batch.parents.empty()) return;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const BatchSequence& sequence = batch.sequences[s];
    if (!is_tree(batch, sequence)) continue;
    const size_t words = (index(sequence.n_rows) + 63) / 64;
    bits_.assign(words * index(sequence.n_rows), 0);
    for (int32_t i = 0; i < sequence.n_rows; ++i) {
      const int32_t parent = parent_in(batch, sequence, i);
      uint64_t* row = bits_.data() + index(i) * words;
      if (parent >= 0) std::copy_n(bits_.data() + index(parent) * words, words, row);
      row[i / 64] |= uint64_t{1} << (i % 64);
    }
    visible_[s] = add(std::span<const uint64_t>(bits_));
  }
}

Status StepBlock::add_records(const Batch& batch) {
  size_t n_records = 0;
  for (Group& group : groups_) {
    group.first_record = n_records;
    const auto of_group = static_cast<size_t>(&group - groups_.data());
    const auto any = std::find(group_of_.begin(), group_of_.end(), of_group) - group_of_.begin();
    const int32_t parts = batch.sequences[static_cast<size_t>(any)].cache->parts();
    n_records += index(parts) * index(group.n);
  }
  records_.assign(n_records, {});
  offsets_.assign(n_records, {});
  stages_ = false;
  for (const Group& group : groups_) {
    size_t place = 0;  // of the sequence in its group
    for (size_t s = 0; s < batch.sequences.size(); ++s) {
      if (&groups_[group_of_[s]] != &group) continue;
      const BatchSequence& sequence = batch.sequences[s];
      stages_ = stages_ || sequence.cache->stages(sequence.plan);
      for (int32_t part = 0; part < sequence.cache->parts(); ++part) {
        GEN_ASSIGN(const cache::CacheTables tables, sequence.cache->tables(part, sequence.plan));
        const size_t at = static_cast<size_t>(record(group, part)) + place;
        engine::KvRows& rows = records_[at];
        rows.first_row = sequence.first_row;
        rows.n_rows = sequence.n_rows;
        rows.first_entry = sequence.plan.start;
        rows.entries = sequence.plan.start + sequence.plan.count;
        rows.first_cell = tables.first_cell;
        offsets_[at] = {add(tables.blocks), add(tables.cells), add(tables.positions),
                        add(tables.log_weights), visible_[s]};
      }
      ++place;
    }
  }
  return {};
}

Status StepBlock::fill(const Batch& batch, bool all_rows, engine::Engine& engine,
                       engine::Stream& stream) {
  bytes_.clear();
  wanted_.clear();
  for (size_t i = 0; i < batch.wants_logits.size(); ++i) {
    if (batch.wants_logits[i] != 0) wanted_.push_back(static_cast<int32_t>(i));
  }
  all_.resize(all_rows ? static_cast<size_t>(batch.rows()) : 0);
  std::iota(all_.begin(), all_.end(), 0);
  tokens_ = add(batch.tokens);
  positions_ = add(batch.positions);
  wanted_at_ = add(std::span<const int32_t>(wanted_));
  all_at_ = add(std::span<const int32_t>(all_));
  find_groups(batch);
  find_visible(batch);
  GEN_TRY(add_records(batch));
  records_at_ = add(std::span<const engine::KvRows>(records_));
  if (bytes_.size() > buffer_.size()) {
    buffer_.reset();
    // Tables grow with their sequences: room for more, so that it is not taken anew step by step.
    GEN_ASSIGN(buffer_, engine.memory().allocate(bytes_.size() + bytes_.size() / 2));
  }
  for (size_t i = 0; i < records_.size(); ++i) {
    engine::KvRows& rows = records_[i];
    rows.blocks = at<engine::EnginePtr<std::byte>>(offsets_[i].blocks);
    rows.cells = at<int32_t>(offsets_[i].cells);
    rows.positions = at<int32_t>(offsets_[i].positions);
    rows.log_weights = at<float>(offsets_[i].log_weights);
    rows.visible = at<uint64_t>(offsets_[i].visible);
  }
  if (!records_.empty()) {
    std::memcpy(bytes_.data() + records_at_, records_.data(),
                records_.size() * sizeof(records_[0]));
  }
  return engine.upload(stream, buffer_.data(), bytes_.data(), bytes_.size());
}

}  // namespace gen::graph
