// SPDX-License-Identifier: Apache-2.0
// KnowingDrafter: a drafter for tests that knows the texts and is right with a chosen probability.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/rng.h"
#include "generate/draft/drafter.h"

namespace gen::generate {

class KnowingDrafter final : public Drafter {
 public:
  struct Options {
    double p = 1.0;        // probability that a draft token is right
    int32_t rows = 4;      // largest proposal
    int32_t branches = 1;  // draft tokens per position, of which at most one is right
    int32_t vocab = 50;
  };
  explicit KnowingDrafter(Options options) : options_(options) {}

  /// Announces a whole text that will be generated. Must precede its call.
  void learn(std::vector<int32_t> text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    texts_.push_back(std::move(text));
  }

  int32_t max_rows() const noexcept override { return options_.rows; }
  std::unique_ptr<DraftState> begin() override { return std::make_unique<State>(this); }
  void propose(std::span<DraftJob* const> jobs) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (DraftJob* job : jobs) guess(job);
  }

  std::atomic<int64_t> proposals{0};
  std::atomic<int64_t> accepted{0};  // rows, without those of pending tokens
  std::atomic<int64_t> branched{0};  // proposals that were trees

 private:
  struct State final : DraftState {
    explicit State(KnowingDrafter* of) : drafter(of) {}
    void accepted(std::span<const int32_t> path) noexcept override {
      drafter->accepted += static_cast<int64_t>(path.size()) - 1;
    }
    KnowingDrafter* drafter;
  };

  // What comes after `said` in a text that begins with it, or any token.
  int32_t right(std::span<const int32_t> said, size_t ahead) {
    for (const std::vector<int32_t>& text : texts_) {
      if (text.size() > said.size() + ahead && std::equal(said.begin(), said.end(), text.begin())) {
        return text[said.size() + ahead];
      }
    }
    return below(options_.vocab);
  }

  void guess(DraftJob* job) {
    ++proposals;
    const int32_t width = job->branches ? options_.branches : 1;
    int32_t parent = 0;
    for (size_t ahead = 0; job->tree.rows() <= job->most; ++ahead) {
      const int32_t answer = right(job->tokens, ahead);
      const int32_t place = below(width);  // of the guess that the next ones follow
      int32_t next = -1;
      for (int32_t i = 0; i < width && job->tree.rows() <= job->most; ++i) {
        const bool knows = i == place && uniform_double(3, 1, draws_++) < options_.p;
        const int32_t wrong = (answer + 1 + i + below(options_.vocab - width - 1)) % options_.vocab;
        const int32_t row = job->tree.add(knows ? answer : wrong, parent);
        if (i == place) next = row;
      }
      if (next < 0) break;
      parent = next;
    }
    if (!job->tree.is_chain()) ++branched;
  }

  int32_t below(int32_t n) {
    return static_cast<int32_t>(uniform_double(3, 0, draws_++) * static_cast<double>(n));
  }

  const Options options_;
  std::mutex mutex_;
  std::vector<std::vector<int32_t>> texts_;
  uint64_t draws_ = 0;
};

}  // namespace gen::generate
