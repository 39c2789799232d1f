// SPDX-License-Identifier: Apache-2.0
// ForcedHead: a head that works as it does, and whose drafts are then replaced by those of a
// drafter that knows the texts: the cost of a real head with an acceptance that is chosen.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "generate/draft/head_drafter.h"
#include "generate/knowing_drafter.h"

namespace gen::generate {

class ForcedHead final : public Drafter {
 public:
  ForcedHead(std::shared_ptr<HeadDrafter> head, std::shared_ptr<KnowingDrafter> knows)
      : head_(std::move(head)), knows_(std::move(knows)) {}

  [[nodiscard]] int32_t max_rows() const noexcept override { return head_->max_rows(); }
  std::unique_ptr<DraftState> begin() override { return head_->begin(); }
  [[nodiscard]] std::span<const int32_t> taps() const noexcept override { return head_->taps(); }
  void observe(std::span<const ObservedRows> rows) override {
    const auto begin = std::chrono::steady_clock::now();
    head_->observe(rows);
    spend(begin);
  }
  // As long as the head's draft, since a longer one would cost it more.
  void propose(std::span<DraftJob* const> jobs) override {
    const auto begin = std::chrono::steady_clock::now();
    head_->propose(jobs);
    spend(begin);
    for (DraftJob* const job : jobs) {
      const int32_t most = std::exchange(job->most, job->tree.rows() - 1);
      drafted += job->most;
      job->tree.cut(1);
      if (job->most > 0) knows_->propose({&job, 1});
      job->most = most;
    }
  }

  double seconds = 0;   // of the head
  int64_t drafted = 0;  // tokens

 private:
  void spend(std::chrono::steady_clock::time_point begin) {
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const std::shared_ptr<HeadDrafter> head_;
  const std::shared_ptr<KnowingDrafter> knows_;
};

}  // namespace gen::generate
