// SPDX-License-Identifier: Apache-2.0
// DrafterList: one drafter, and another for the texts that the first has no guess for. What costs
// least comes first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/draft/drafter.h"

namespace gen::generate {

class DrafterList final : public Drafter {
 public:
  /// Neither is null.
  DrafterList(std::shared_ptr<Drafter> first, std::shared_ptr<Drafter> second) noexcept;

  [[nodiscard]] int32_t max_rows() const noexcept override;
  [[nodiscard]] int32_t max_proposed() const noexcept override;
  std::unique_ptr<DraftState> begin() override;
  void look_up(std::span<DraftJob* const> jobs) override { ask(jobs, &Drafter::look_up); }
  void propose(std::span<DraftJob* const> jobs) override { ask(jobs, &Drafter::propose); }

 private:
  struct State;
  void ask(std::span<DraftJob* const> jobs, void (Drafter::*what)(std::span<DraftJob* const>));

  const std::shared_ptr<Drafter> first_;
  const std::shared_ptr<Drafter> second_;
  std::vector<DraftJob*> left_;  // for the second
  std::vector<DraftState*> states_;
};

}  // namespace gen::generate
