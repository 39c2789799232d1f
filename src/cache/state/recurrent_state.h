// SPDX-License-Identifier: Apache-2.0
// The state of a model's recurrent layers: of constant size, however long the sequence.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/state/sequence_state.h"
#include "cache/state/state_shape.h"
#include "engine/memory.h"

namespace gen::cache {

/// Of so many floats.
constexpr size_t float_bytes(int64_t floats) noexcept {
  return static_cast<size_t>(floats) * sizeof(float);
}

class StateSection;

/// Storage: engine memory in pieces of one state each, [layer][cells], with room for kept rows
/// behind where drafts asked for it. A pass reads the piece that is and writes the one that will
/// be; commit swaps them. A piece that a fork or a snapshot holds, too, is not written again, so
/// forks and snapshots copy nothing.
class RecurrentState final : public SequenceState,
                             private StateCopies,
                             private StateSnapshots,
                             private StateReading {
 public:
  /// After 0 positions, all zeros. `memory` must outlive it, its forks and its snapshots.
  RecurrentState(std::shared_ptr<const StateLayout> layout, engine::EngineMemory& memory) noexcept;
  ~RecurrentState() override;

  [[nodiscard]] std::span<const StateShape> shapes() const noexcept override;
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] bool keeps_some() const noexcept override { return true; }
  using SequenceState::plan;
  [[nodiscard]] Result<StatePlan> plan(int32_t n, Keep keep, int32_t certain) override;
  void rows(const StatePlan& plan, engine::StateRows* rows) const noexcept override;
  void commit(const StatePlan& plan, Kept kept) noexcept override;
  void drop(const StatePlan& plan) noexcept override;
  Result<int32_t> rewind(int32_t n) override;
  [[nodiscard]] StateCopies* copies() noexcept override { return this; }
  [[nodiscard]] StateSnapshots* snapshots() noexcept override { return this; }
  [[nodiscard]] StateReading* reading() noexcept override {
    return layout_->facts.empty() ? nullptr : this;
  }

 private:
  struct Piece {
    engine::EngineBuffer cells;
    engine::EngineBuffer kept;  // rows of inputs
  };
  /// A piece, and whether somebody else has it, or had it.
  struct Held {
    std::shared_ptr<Piece> piece;
    bool shared = false;
  };
  class Snapshot;

  Result<std::unique_ptr<SequenceState>> fork() override;
  [[nodiscard]] std::vector<StateFacts> facts() const override { return layout_->facts; }
  [[nodiscard]] Result<std::array<int32_t, 3>> dims(int32_t layer) const override {
    return layout_->facts[static_cast<size_t>(layer)].dims;
  }
  [[nodiscard]] bool settled() const noexcept override { return unsettled_ == 0; }
  Status read(int32_t layer, std::span<float> to) const override;
  [[nodiscard]] SnapshotList& list() noexcept override { return snapshots_; }
  [[nodiscard]] size_t bytes() const noexcept override;
  [[nodiscard]] bool in_host() const noexcept override { return memory_.in_host(); }
  [[nodiscard]] int32_t earliest() const noexcept override { return length_ - unsettled_; }
  [[nodiscard]] int32_t most_kept() const noexcept override;
  Result<std::shared_ptr<const StateSnapshot>> share(int32_t at) override;
  Status restore(std::shared_ptr<const StateSnapshot> snapshot) override;
  void take(const StateSnapshot& snapshot) noexcept;
  Result<std::shared_ptr<Piece>> new_piece(int64_t kept_rows) const;

  // In recurrent_section.cpp.
  Status save(StateWriter& to) const override;
  Status load(StateReader& from) override;
  [[nodiscard]] size_t saved_bytes(int64_t unsettled) const noexcept;
  Status write_piece(const Piece& piece, int64_t unsettled, StateWriter& out) const;
  Result<std::shared_ptr<Piece>> read_piece(int64_t unsettled, StateSection* from) const;
  Status save_list(StateWriter& to) const;
  Status load_list(int32_t length, StateReader& from, SnapshotList* list) const;

  std::shared_ptr<const StateLayout> layout_;
  engine::EngineMemory& memory_;
  Held now_;                      // none: zeros
  std::shared_ptr<Piece> next_;   // written by the pass that comes
  std::shared_ptr<Piece> spare_;  // by the one after it, in place of what a snapshot holds
  int32_t unsettled_ = 0;         // rows that are kept beside now_ and not in it
  int32_t length_ = 0;            // these included
  SnapshotList snapshots_;
};

/// The state after all but the last rows of a pass that kept them shares that pass's piece.
class RecurrentState::Snapshot final : public StateSnapshot {
 public:
  [[nodiscard]] int32_t length() const noexcept override { return after; }
  [[nodiscard]] size_t bytes() const noexcept override {
    return piece != nullptr ? piece->cells.size() + piece->kept.size() : 0;
  }
  [[nodiscard]] const void* memory() const noexcept override { return piece.get(); }

  std::shared_ptr<const StateLayout> layout;
  std::shared_ptr<Piece> piece;
  int32_t unsettled = 0;
  int32_t after = 0;
};

}  // namespace gen::cache
