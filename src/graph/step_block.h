// SPDX-License-Identifier: Apache-2.0
// Everything that changes from step to step and that operations read: tokens, positions, rows to
// select, and the locations of the step's sequences. It is assembled in host memory, then copied to
// the engine in one piece, once a step; arguments of operations point there.
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
  static constexpr size_t kNone = SIZE_MAX;

  /// Lists that only some steps need.
  struct Lists {
    bool all = false;     // 0, 1, … of all rows
    bool zeros = false;   // a 0 for each row
    bool firsts = false;  // the first row of each wanted row's sequence
  };

  /// Fills the block with the batch's rows and the tables of its caches, and enqueues its upload. A
  /// row without a token has token 0. `padded`: rows, sequences and wanted rows are padded to
  /// Engine::step_rows() with token 0 of no sequence. `fed`: the batch equals the one before,
  /// advanced by one row; results and tokens are kept. kOutOfMemory, and the errors of caches; the
  /// block is then unusable until the next fill().
  Status fill(const Batch& batch, const Lists& lists, bool padded, bool fed, engine::Engine& engine,
              engine::Stream& stream);

  /// The number of rows of the step, padding included.
  [[nodiscard]] int64_t rows() const noexcept { return rows_; }

  [[nodiscard]] engine::EnginePtr<const int32_t> tokens() const noexcept {
    return at<int32_t>(tokens_);
  }
  /// For operations that write them.
  [[nodiscard]] engine::EnginePtr<int32_t> token_places() const noexcept {
    return place<int32_t>(tokens_);
  }
  [[nodiscard]] engine::EnginePtr<const int32_t> positions() const noexcept {
    return at<int32_t>(positions_);
  }
  [[nodiscard]] engine::EnginePtr<const int32_t> zeros() const noexcept {
    return at<int32_t>(zeros_);
  }

  /// n rows of a list of the batch, from `first` on; the same in the blocks of all engines.
  struct RowList {
    size_t list = kNone;  // where it begins in the block
    int64_t first = 0;
    int64_t n = 0;
    [[nodiscard]] RowList part(int64_t begin, int64_t count) const noexcept {
      return {list, first + begin, count};
    }
  };
  /// Those that want logits, then those that want best; all of them, if they were wanted.
  [[nodiscard]] RowList wanted_rows() const noexcept {
    return {wanted_at_, 0, static_cast<int64_t>(wanted_.size())};
  }
  [[nodiscard]] RowList all_rows() const noexcept {
    return {all_at_, 0, static_cast<int64_t>(all_.size())};
  }
  [[nodiscard]] engine::EnginePtr<const int32_t> at(const RowList& rows) const noexcept {
    return at<int32_t>(rows.list) + rows.first;
  }

  /// The sequences of the wanted rows.
  [[nodiscard]] engine::EnginePtr<const int32_t> firsts(const RowList& wanted) const noexcept {
    return at<int32_t>(firsts_at_) + wanted.first;
  }

  /// The rows that want best, and their operation's arguments for all of them, but the logits.
  struct Best {
    int64_t first = 0;  // of wanted_rows()
    int64_t n = 0;      // without padding
    size_t mass_slices = 0;
    engine::BestArgs args;
  };
  [[nodiscard]] Best best() const noexcept;
  /// The buffer for the logits of all tokens aside.
  [[nodiscard]] size_t n_aside() const noexcept { return aside_.size(); }
  [[nodiscard]] engine::EnginePtr<float> aside_logits() const noexcept {
    return place<float>(aside_logits_at_);
  }
  /// Uploads the bits of the masks again, after `batch.during` has written them.
  Status refresh_masks(const Batch& batch, engine::Engine& engine, engine::Stream& stream);

  /// Sequences whose caches have the same layout and are processed by one operation.
  struct Group {
    std::span<const engine::KvLayer> layers;
    int32_t n = 0;            // sequences
    int32_t places = 0;       // records of a part: n, or more, which then have no rows
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
  /// The records of the states of all sequences; null if they have none.
  [[nodiscard]] engine::EnginePtr<const engine::StateRows> states() const noexcept {
    return at<engine::StateRows>(states_at_);
  }
  [[nodiscard]] int32_t n_states() const noexcept { return static_cast<int32_t>(states_.size()); }
  /// The adapter mix of each row; null if no row has one.
  [[nodiscard]] engine::EnginePtr<const int32_t> mixes() const noexcept {
    return at<int32_t>(mixes_at_);
  }
  /// Whether a cache has to stage layers, see KvCache::stage().
  [[nodiscard]] bool stages() const noexcept { return stages_; }

  /// Size of the block in the engine's memory.
  [[nodiscard]] size_t bytes() const noexcept { return buffer_.size(); }

 private:
  /// The offsets in the block of the lists that a record points to.
  struct Offsets {
    size_t blocks = kNone;
    size_t cells = kNone;
    size_t positions = kNone;
    size_t log_weights = kNone;
    size_t visible = kNone;
  };

  /// One of the best tokens and its logit; all tokens lie before all logits.
  struct Result {
    int32_t token;
    float logit;
  };

  /// Pads with zeros up to n.
  template <typename T>
  size_t add(std::span<const T> values, size_t n = 0);
  /// Reserves n elements, initially zeros.
  template <typename T>
  size_t reserve(size_t n);
  template <typename T>
  [[nodiscard]] engine::EnginePtr<const T> at(size_t offset) const noexcept {
    return place<T>(offset);
  }
  /// The same for memory that operations write.
  template <typename T>
  [[nodiscard]] engine::EnginePtr<T> place(size_t offset) const noexcept {
    if (offset == kNone) return nullptr;
    return (buffer_.data() + static_cast<std::ptrdiff_t>(offset)).as<T>();
  }
  [[nodiscard]] static std::ptrdiff_t record(const Group& group, int32_t part) noexcept {
    return static_cast<std::ptrdiff_t>(group.first_record) + std::ptrdiff_t{part} * group.places;
  }
  /// Of wanted rows, from the first that wants best; none if none does, so that rows which were
  /// added to others move nothing.
  [[nodiscard]] size_t best_places() const noexcept {
    return n_best_ > 0 ? wanted_.size() - n_logits_ : 0;
  }
  /// `n` rounded up to the padded number.
  [[nodiscard]] size_t places(size_t n) const noexcept;
  void find_groups(const Batch& batch);
  void find_visible(const Batch& batch);
  void list_wanted(const Batch& batch);
  void list_firsts(const Batch& batch);
  void add_tokens(const Batch& batch);
  void reserve_best(const Batch& batch);
  void add_best(const Batch& batch);
  void copy_masks(const Batch& batch) noexcept;
  void place_best(const Batch& batch) noexcept;
  void find_states(const Batch& batch);
  void find_mixes(const Batch& batch);
  void reserve_records(const Batch& batch);
  Status add_tables(const Batch& batch);

  const engine::Engine* pads_ = nullptr;  // the engine whose step_rows() applies; null: no padding
  int64_t rows_ = 0;
  std::vector<std::byte> bytes_;
  engine::EngineBuffer buffer_;
  size_t tokens_ = kNone;
  size_t positions_ = kNone;
  size_t wanted_at_ = kNone;
  size_t all_at_ = kNone;
  size_t zeros_ = kNone;
  size_t firsts_at_ = kNone;
  size_t records_at_ = kNone;
  size_t states_at_ = kNone;
  size_t mixes_at_ = kNone;
  std::vector<int32_t> wanted_;
  std::vector<int32_t> all_;
  std::vector<int32_t> firsts_;
  size_t n_logits_ = 0;      // rows of wanted_ that want logits
  size_t n_best_ = 0;        // and best; the rest is padding
  int32_t k_ = 1;            // best of each other
  size_t best_at_ = kNone;   // engine::BestRow of each
  size_t masks_at_ = kNone;  // all bits, mask after mask
  size_t mask_bytes_ = 0;
  size_t mass_at_ = kNone;
  size_t mass_slices_ = 0;
  size_t slice_at_ = kNone;
  size_t aside_at_ = kNone;
  size_t aside_logits_at_ = kNone;
  size_t results_at_ = kNone;
  std::vector<engine::BestRow> best_;
  std::vector<int32_t> aside_;  // tokens of all rows
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;  // of each sequence
  std::vector<uint64_t> bits_;    // trees: of the sequence being looked at
  std::vector<size_t> visible_;   // of each sequence: where its bits begin
  std::vector<engine::KvRows> records_;
  std::vector<Offsets> offsets_;  // of each record
  std::vector<engine::StateRows> states_;
  std::vector<int32_t> mixes_;
  bool stages_ = false;
};

}  // namespace gen::graph
