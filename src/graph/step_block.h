// SPDX-License-Identifier: Apache-2.0
// All that changes from step to step and that operations read: tokens, positions, rows to select,
// and where the sequences of the step lie. Put together in host memory, then copied to the engine's
// in one piece, once a step; arguments of operations point there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "graph/batch.h"

namespace gen::graph {

/// Threads: one user at a time.
class StepBlock {
 public:
  /// Takes the batch's rows and asks its caches where they lie; all is in engine memory when what
  /// was enqueued so far has run. `all_rows`: the list 0, 1, … is wanted, too. kOutOfMemory, and
  /// what caches say; the block is then of no use until the next fill().
  Status fill(const Batch& batch, bool all_rows, engine::Engine& engine, engine::Stream& stream);

  [[nodiscard]] engine::EnginePtr<const int32_t> tokens() const noexcept {
    return at<int32_t>(tokens_);
  }
  [[nodiscard]] engine::EnginePtr<const int32_t> positions() const noexcept {
    return at<int32_t>(positions_);
  }

  /// Rows of the batch, as many as n.
  struct RowList {
    engine::EnginePtr<const int32_t> rows;
    int64_t n = 0;
  };
  /// Those that want logits; all of them, if they were wanted.
  [[nodiscard]] RowList wanted_rows() const noexcept {
    return {at<int32_t>(wanted_at_), static_cast<int64_t>(wanted_.size())};
  }
  [[nodiscard]] RowList all_rows() const noexcept {
    return {at<int32_t>(all_at_), static_cast<int64_t>(all_.size())};
  }

  /// Sequences whose caches lie alike, which one operation takes together.
  struct Group {
    std::span<const engine::KvLayer> layers;
    int32_t n = 0;            // sequences
    size_t first_record = 0;  // part 0; those of a part follow one another, part after part
  };
  [[nodiscard]] std::span<const Group> groups() const noexcept { return groups_; }
  [[nodiscard]] engine::EnginePtr<const engine::KvRows> sequences(const Group& group,
                                                                  int32_t part) const noexcept {
    return at<engine::KvRows>(records_at_) + record(group, part);
  }
  /// The host's copy.
  [[nodiscard]] std::span<const engine::KvRows> host_sequences(const Group& group,
                                                               int32_t part) const noexcept {
    return std::span(records_).subspan(static_cast<size_t>(record(group, part)),
                                       static_cast<size_t>(group.n));
  }
  /// Some cache has to bring layers, see KvCache::stage().
  [[nodiscard]] bool stages() const noexcept { return stages_; }

  /// Bytes taken from the engine's memory.
  [[nodiscard]] size_t bytes() const noexcept { return buffer_.size(); }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  /// Where what a record points at begins in the block.
  struct Offsets {
    size_t blocks = kNone;
    size_t cells = kNone;
    size_t positions = kNone;
    size_t log_weights = kNone;
    size_t visible = kNone;
  };

  template <typename T>
  size_t add(std::span<const T> values);
  template <typename T>
  [[nodiscard]] engine::EnginePtr<const T> at(size_t offset) const noexcept {
    if (offset == kNone) return nullptr;
    return (buffer_.data() + static_cast<std::ptrdiff_t>(offset)).as<const T>();
  }
  [[nodiscard]] static std::ptrdiff_t record(const Group& group, int32_t part) noexcept {
    return static_cast<std::ptrdiff_t>(group.first_record) + std::ptrdiff_t{part} * group.n;
  }
  void find_groups(const Batch& batch);
  void find_visible(const Batch& batch);
  Status add_records(const Batch& batch);

  std::vector<std::byte> bytes_;
  engine::EngineBuffer buffer_;
  size_t tokens_ = kNone;
  size_t positions_ = kNone;
  size_t wanted_at_ = kNone;
  size_t all_at_ = kNone;
  size_t records_at_ = kNone;
  std::vector<int32_t> wanted_;
  std::vector<int32_t> all_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;  // of each sequence
  std::vector<uint64_t> bits_;    // trees: of the sequence being looked at
  std::vector<size_t> visible_;   // of each sequence: where its bits begin
  std::vector<engine::KvRows> records_;
  std::vector<Offsets> offsets_;  // of each record
  bool stages_ = false;
};

}  // namespace gen::graph
