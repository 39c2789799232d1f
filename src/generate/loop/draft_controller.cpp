// SPDX-License-Identifier: Apache-2.0
// See draft_controller.h.
#include "generate/loop/draft_controller.h"

#include <algorithm>
#include <utility>

#include "generate/loop/generator.h"
#include "generate/loop/row_result.h"
#include "generate/loop/sequence.h"
#include "generate/request/metric_names.h"
#include "generate/text/grammar_rule.h"
#include "grammar/matcher/matcher.h"

namespace gen::generate {
namespace {

/// Drafts of a call that need no memory while it runs: those of a short one.
constexpr size_t kRecordedSteps = 64;
constexpr size_t kRecordedTokens = 512;

}  // namespace

DraftController::DraftController(const Generator& generator, GenResult* result) noexcept
    : generator_(generator), result_(*result) {}

DraftController::~DraftController() = default;

void DraftController::begin(const Call& call, std::unique_ptr<DraftState>* kept,
                            RowResult* result) {
  if (generator_.drafter() != nullptr) {
    if (begin_drafter(call, kept, result)) return;
    generator_.metrics().add(metric::kDraftsFailed, 1);
  } else if (result->is_best_alone() && generator_.model().traits().multi_step) {
    begin_runs(result);
    if (guesses()) return;
  }
  make_room(1, result);
}

bool DraftController::begin_drafter(const Call& call, std::unique_ptr<DraftState>* kept,
                                    RowResult* result) {
  Drafter& drafter = *generator_.drafter();
  try {
    max_drafts_ = std::clamp(drafter.max_rows(), 0, kMaxDraftRows - 1);
    const auto rows = static_cast<size_t>(max_drafts_) + 1;
    tracker_ = AcceptTracker(max_drafts_);
    state_ = std::move(*kept);
    if (state_ == nullptr) state_ = drafter.begin();
    if (call.rule != nullptr) rule_ = std::make_unique<grammar::Matcher>(call.rule->fork());
    make_room(rows, result);
    result_.drafts.steps.reserve(kRecordedSteps);
    result_.drafts.tokens.reserve(kRecordedTokens);
    job_.tree.reserve(static_cast<int32_t>(rows));
    job_.positions.reserve(rows);
    job_.wants.reserve(rows);
    job_.state = state_.get();
    job_.matcher = rule_.get();
    if (call.sampling.temperature > 0.0) {
      draw_.emplace(call.sampling, generator_.options().draft_policy.rejects,
                    static_cast<int32_t>(rows));
      draw_->reserve(call.max_tokens);
      job_.draw = &*draw_;
    }
    if (state_ == nullptr) return false;
    source_ = Source::kDrafter;
    return true;
  } catch (...) {
    state_ = nullptr;
    rule_.reset();
    draw_.reset();
    return false;
  }
}

// If memory runs out the call runs without drafts.
void DraftController::begin_runs(RowResult* result) noexcept {
  try {
    make_room(static_cast<size_t>(kMaxDraftRows), result);
    job_.tree.reserve(kMaxDraftRows);
    job_.wants.reserve(static_cast<size_t>(kMaxDraftRows));
    source_ = Source::kModel;
  } catch (...) {
  }
}

void DraftController::make_room(size_t rows, RowResult* result) {
  result->make_room(rows);
  path_.reserve(rows);
}

void DraftController::ended(std::span<const int32_t> text) noexcept {
  if (state_ != nullptr) state_->ended(text);
}

DraftJob* DraftController::offer(std::span<const int32_t> held, size_t said,
                                 std::span<const int32_t> stops, int32_t left) noexcept {
  const bool runs = source_ == Source::kModel;
  const int32_t most = runs ? kMaxMultiSteps - 1 : max_drafts(static_cast<int32_t>(said));
  job_.most = std::min(most, left - 1);
  job_.stops = stops;
  job_.failures = 0;
  index_ = static_cast<int32_t>(said);
  begin_draws(held, said);
  return &job_;
}

// The limit of the adaptive policy. Under kAuto the planner of steps lowers it by itself.
int32_t DraftController::max_drafts(int32_t said) noexcept {
  const DraftPolicy& policy = generator_.options().draft_policy;
  if (policy.now() != DraftPolicy::Kind::kAdaptive) return max_drafts_;
  if (said < paused_until_) return 0;
  if (tracker_.count() >= policy.fall_back_at && tracker_.rate() < policy.fall_back) {
    tracker_.clear();
    paused_until_ = said + policy.probe_tokens;
    return 0;
  }
  return std::min(max_drafts_, tracker_.length());
}

// If memory runs out the step runs without drafts.
void DraftController::begin_draws(std::span<const int32_t> held, size_t said) noexcept {
  if (job_.most <= 0 || !draw_.has_value()) return;
  try {
    draw_->begin(held, said);
  } catch (...) {
    job_.most = 0;
    generator_.metrics().add(metric::kDraftsFailed, 1);
  }
}

std::optional<sampling::Proposal> DraftController::proposal() const noexcept {
  if (!draw_.has_value()) return std::nullopt;
  return draw_->proposal(job_.tree, row_);
}

void DraftController::follow_rule(int32_t token) noexcept {
  if (rule_ == nullptr) return;
  try {
    const Result<bool> accepted = rule_->accept_token(token);
    if (accepted.ok() && accepted.value()) return;
  } catch (...) {
  }
  max_drafts_ = 0;
}

bool DraftController::advance(int32_t token, bool goes_on) noexcept {
  row_ = job_.tree.child(row_, token);
  if (row_ > 0) {
    ++hits_;
    hit_ = row_;
  }
  if (!goes_on) row_ = -1;
  return row_ >= 0;
}

void DraftController::keep_row(Sequence* sequence) noexcept {
  path_.push_back(row_);
  sequence->keep(path_);
  if (state_ != nullptr && job_.tree.rows() > 1) state_->settle(path_);
  path_.pop_back();
}

void DraftController::end_step(Sequence* sequence) noexcept {
  sequence->keep(path_);
  // In a run of several steps each row is a pass of the model.
  const size_t passes =
      source_ == Source::kModel ? path_.size() : std::min<size_t>(path_.size(), 1);
  for (size_t i = 0; i < passes; ++i) generator_.draft_use().note_pass(path_.size() / passes);
  if (state_ != nullptr && job_.tree.rows() > 1 && !path_.empty()) {
    state_->settle(path_);
    state_->accepted(path_);
    note(job_.tree.rows() - 1, hits_);
    record();
  }
  job_.tree.cut(0);
  hits_ = 0;
  hit_ = 0;
  path_.clear();
  row_ = 0;
}

void DraftController::note(int32_t drafted, int32_t accepted) noexcept {
  result_.usage.drafted += drafted;
  result_.usage.accepted += accepted;
  Metrics& metrics = generator_.metrics();
  metrics.add(metric::kDraftedTokens, drafted);
  metrics.add(metric::kAcceptedTokens, accepted);
  tracker_.record(accepted, drafted);
  metrics.set(metric::kSpeculativeAcceptanceRate, tracker_.rate());
  generator_.draft_use().note_drafts(drafted, accepted);
  DraftRecord& record = job_.record;
  record.proposed = drafted;
  record.accepted = accepted;
  const std::span<const uint8_t> grades = job_.tree.grades().subspan(1);
  std::copy_n(grades.begin(), std::min(grades.size(), record.grades.size()), record.grades.begin());
}

void DraftController::record() noexcept {
  DraftRows& rows = result_.drafts;
  const size_t before = rows.tokens.size();
  const DraftTree& tree = job_.tree;
  try {
    for (size_t row = 1; row < tree.tokens().size(); ++row) {
      rows.tokens.push_back({.token = tree.tokens()[row],
                             .parent = tree.parents()[row] - 1,
                             .grade = tree.grades()[row],
                             .accepted = false});
    }
    rows.steps.push_back({.index = index_,
                          .drafter = generator_.drafter()->name(*state_),
                          .end = rows.tokens.size()});
  } catch (...) {
    rows.tokens.resize(before);
    rows.incomplete = true;
    return;
  }
  for (int32_t row = hit_; row > 0; row = tree.parents()[static_cast<size_t>(row)]) {
    rows.tokens[before + static_cast<size_t>(row) - 1].accepted = true;
  }
}

}  // namespace gen::generate
