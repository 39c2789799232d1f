// SPDX-License-Identifier: Apache-2.0
// The state of a model's recurrent layers: of constant size, however long the sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/state/sequence_state.h"
#include "cache/state/state_shape.h"
#include "engine/memory.h"

namespace gen::cache {

/// Storage: engine memory in pieces of one state each, [layer][cells], with room for kept rows
/// behind where drafts asked for it. A pass reads the piece that is and writes the one that will
/// be; commit swaps them. A piece that a fork or a snapshot holds, too, is not written again, so
/// forks and snapshots copy nothing.
class RecurrentState final : public SequenceState, private StateCopies, private StateSnapshots {
 public:
  /// Snapshots that rewind() can go back to; the next takes the place of the oldest.
  static constexpr size_t kSnapshots = 4;

  /// After 0 positions, all zeros. `memory` must outlive it, its forks and its snapshots.
  RecurrentState(std::shared_ptr<const StateLayout> layout, engine::EngineMemory& memory) noexcept;
  ~RecurrentState() override;

  [[nodiscard]] std::span<const StateShape> shapes() const noexcept override;
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] bool keeps_some() const noexcept override { return true; }
  [[nodiscard]] Result<StatePlan> plan(int32_t n, Keep keep) override;
  void rows(const StatePlan& plan, engine::StateRows* rows) const noexcept override;
  void commit(const StatePlan& plan, Kept kept) noexcept override;
  void drop(const StatePlan& plan) noexcept override;
  Result<int32_t> rewind(int32_t n) override;
  [[nodiscard]] StateCopies* copies() noexcept override { return this; }
  [[nodiscard]] StateSnapshots* snapshots() noexcept override { return this; }

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
  Result<std::shared_ptr<const StateSnapshot>> snapshot() override;
  Result<std::shared_ptr<const StateSnapshot>> share() override;
  Status restore(std::shared_ptr<const StateSnapshot> snapshot) override;
  Status save(StateWriter& to) const override;
  Status load(StateReader& from) override;
  Result<std::shared_ptr<const Snapshot>> new_snapshot();
  void take(const Snapshot& snapshot) noexcept;
  Result<std::shared_ptr<Piece>> new_piece(int64_t kept_rows) const;

  std::shared_ptr<const StateLayout> layout_;
  engine::EngineMemory& memory_;
  Held now_;                      // none: zeros
  std::shared_ptr<Piece> next_;   // written by the pass that comes
  std::shared_ptr<Piece> spare_;  // by the one after it, in place of what a snapshot holds
  int32_t unsettled_ = 0;         // rows that are kept beside now_ and not in it
  int32_t length_ = 0;            // these included
  std::vector<std::shared_ptr<const Snapshot>> snapshots_;  // ascending
};

}  // namespace gen::cache
