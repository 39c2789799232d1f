// SPDX-License-Identifier: Apache-2.0
// See drafter.h.
#include "generate/draft/drafter.h"

#include <algorithm>
#include <optional>

#include "generate/text/grammar_rule.h"
#include "grammar/matcher/matcher.h"

namespace gen::generate {

void DraftTree::reserve(int32_t rows) {
  tokens_.reserve(static_cast<size_t>(rows));
  parents_.reserve(static_cast<size_t>(rows));
  grades_.reserve(static_cast<size_t>(rows));
}

void DraftTree::begin(int32_t pending) {
  tokens_.assign(1, pending);
  parents_.assign(1, -1);
  grades_.assign(1, 0);
}

int32_t DraftTree::add(int32_t token, int32_t parent, int32_t grade) {
  grades_.push_back(static_cast<uint8_t>(std::clamp(grade, 0, kDraftGrades - 1)));
  parents_.push_back(parent);
  tokens_.push_back(token);
  return rows() - 1;
}

void DraftTree::cut(int32_t rows) noexcept {
  const auto n = std::min(static_cast<size_t>(std::max(rows, 0)), tokens_.size());
  tokens_.resize(n);
  parents_.resize(n);
  grades_.resize(n);
}

int32_t DraftTree::child(int32_t row, int32_t token) const noexcept {
  for (int32_t i = row + 1; i < rows(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (parents_[at] == row && tokens_[at] == token) return i;
  }
  return -1;
}

bool DraftTree::is_chain() const noexcept {
  for (int32_t i = 0; i < rows(); ++i) {
    if (parents_[static_cast<size_t>(i)] != i - 1) return false;
  }
  return true;
}

int32_t DraftTree::valid_rows(int32_t vocab, bool chain) const noexcept {
  const auto n = static_cast<int32_t>(std::min(tokens_.size(), parents_.size()));
  for (int32_t i = 1; i < n; ++i) {
    const int32_t token = tokens_[static_cast<size_t>(i)];
    const int32_t parent = parents_[static_cast<size_t>(i)];
    if (token < 0 || token >= vocab || parent >= i || parent < (chain ? i - 1 : 0)) return i;
  }
  return n;
}

bool ends_here(const DraftJob& job, int32_t token) {
  if (job.matcher != nullptr) return ends_text(*job.matcher, job.stops, token);
  return std::find(job.stops.begin(), job.stops.end(), token) != job.stops.end();
}

void cut_to_rule(DraftJob* job) {
  if (!job->tree.is_chain()) return;
  // Takes back the tokens that the matcher accepted, even after an exception.
  std::optional<grammar::MatcherTry> back;
  if (job->matcher != nullptr) back.emplace(*job->matcher);
  int32_t rows = 1;
  while (rows < job->tree.rows()) {
    const int32_t token = job->tree.tokens()[static_cast<size_t>(rows)];
    const bool ends = ends_here(*job, token);
    if (job->matcher != nullptr && !ends) {
      const Result<bool> accepted = job->matcher->accept_token(token);
      if (!accepted.ok() || !accepted.value()) break;
    }
    ++rows;
    if (ends) break;
  }
  job->tree.cut(rows);
}

}  // namespace gen::generate
