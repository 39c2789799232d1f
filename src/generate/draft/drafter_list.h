// SPDX-License-Identifier: Apache-2.0
// DrafterList: a first drafter, and a second one for texts that the first finds nothing for. The
// cheaper one comes first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/draft/drafter.h"

namespace gen::generate {

class DrafterList final : public Drafter {
 public:
  /// Neither may be null.
  DrafterList(std::shared_ptr<Drafter> first, std::shared_ptr<Drafter> second) noexcept;

  [[nodiscard]] int32_t max_rows() const noexcept override;
  [[nodiscard]] int32_t max_proposed() const noexcept override;
  [[nodiscard]] const char* name(const DraftState& state) const noexcept override;
  std::unique_ptr<DraftState> begin() override;
  Result<std::unique_ptr<DraftState>> restore(std::span<const int32_t> text,
                                              const SavedHead& saved) override;
  void look_up(std::span<DraftJob* const> jobs) override { ask(jobs, &Drafter::look_up); }
  void propose(std::span<DraftJob* const> jobs) override { ask(jobs, &Drafter::propose); }
  /// Of the drafter that has some; at most one has.
  [[nodiscard]] std::span<const int32_t> taps() const noexcept override;
  void observe(std::span<const ObservedRows> rows) override;

 private:
  struct State;
  void ask(std::span<DraftJob* const> jobs, void (Drafter::*what)(std::span<DraftJob* const>));

  const std::shared_ptr<Drafter> first_;
  const std::shared_ptr<Drafter> second_;
  std::vector<DraftJob*> left_;  // jobs for the second drafter
  std::vector<DraftState*> states_;
  std::vector<ObservedRows> observed_;
};

}  // namespace gen::generate
