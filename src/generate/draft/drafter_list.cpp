// SPDX-License-Identifier: Apache-2.0
// See drafter_list.h.
#include "generate/draft/drafter_list.h"

#include <algorithm>
#include <utility>

namespace gen::generate {

/// Either may be null: that drafter failed to begin and is skipped.
struct DrafterList::State final : DraftState {
  void accepted(std::span<const int32_t> path) noexcept override {
    DraftState* const of = by_second ? second.get() : first.get();
    if (of != nullptr) of->accepted(path);
  }
  void settle(std::span<const int32_t> path) noexcept override {
    if (first != nullptr) first->settle(path);
    if (second != nullptr) second->settle(path);
  }
  [[nodiscard]] std::vector<const cache::KvCache*> own_caches() const override {
    std::vector<const cache::KvCache*> caches;
    for (const DraftState* const of : {first.get(), second.get()}) {
      if (of == nullptr) continue;
      const auto own = of->own_caches();
      caches.insert(caches.end(), own.begin(), own.end());
    }
    return caches;
  }
  void ended(std::span<const int32_t> text) noexcept override {
    if (first != nullptr) first->ended(text);
    if (second != nullptr) second->ended(text);
  }
  Status save(std::span<const int32_t> text, cache::StateWriter& to) const override {
    if (first != nullptr) {
      GEN_TRY(first->save(text, to));
    }
    return second != nullptr ? second->save(text, to) : Status();
  }
  [[nodiscard]] std::unique_ptr<DraftState> fork() const override {
    auto copy = std::make_unique<State>();
    if (first != nullptr) copy->first = first->fork();
    if (second != nullptr) copy->second = second->fork();
    return copy;
  }

  std::unique_ptr<DraftState> first;
  std::unique_ptr<DraftState> second;
  bool by_second = false;  // the second drafter made the last proposal
};

namespace {

std::unique_ptr<DraftState> begun(Drafter& drafter) noexcept {
  try {
    return drafter.begin();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

DrafterList::DrafterList(std::shared_ptr<Drafter> first, std::shared_ptr<Drafter> second) noexcept
    : first_(std::move(first)), second_(std::move(second)) {}

int32_t DrafterList::max_rows() const noexcept {
  return std::max(first_->max_rows(), second_->max_rows());
}

int32_t DrafterList::max_proposed() const noexcept {
  return std::max(first_->max_proposed(), second_->max_proposed());
}

const char* DrafterList::name(const DraftState& state) const noexcept {
  const auto& own = static_cast<const State&>(state);
  const Drafter& drafter = own.by_second ? *second_ : *first_;
  const DraftState* const of = (own.by_second ? own.second : own.first).get();
  return of != nullptr ? drafter.name(*of) : "";
}

std::unique_ptr<DraftState> DrafterList::begin() {
  auto state = std::make_unique<State>();
  state->first = begun(*first_);
  state->second = begun(*second_);
  if (state->first == nullptr && state->second == nullptr) return nullptr;
  return state;
}

Result<std::unique_ptr<DraftState>> DrafterList::restore(std::span<const int32_t> text,
                                                         const SavedHead& saved) {
  auto state = std::make_unique<State>();
  GEN_ASSIGN(state->first, first_->restore(text, saved));
  GEN_ASSIGN(state->second, second_->restore(text, saved));
  if (state->first == nullptr && state->second == nullptr) return std::unique_ptr<DraftState>();
  return std::unique_ptr<DraftState>(std::move(state));
}

std::span<const int32_t> DrafterList::taps() const noexcept {
  return first_->taps().empty() ? second_->taps() : first_->taps();
}

void DrafterList::observe(std::span<const ObservedRows> rows) {
  const bool by_first = !first_->taps().empty();
  Drafter& drafter = by_first ? *first_ : *second_;
  observed_.clear();
  for (ObservedRows each : rows) {
    auto* const state = static_cast<State*>(each.state);
    each.state = (by_first ? state->first : state->second).get();
    if (each.state != nullptr) observed_.push_back(each);
  }
  drafter.observe(observed_);
}

// Sets each job to this drafter's own state for the call and restores it afterwards, even after an
// exception.
void DrafterList::ask(std::span<DraftJob* const> jobs,
                      void (Drafter::*what)(std::span<DraftJob* const>)) {
  struct Restore {
    ~Restore() {
      for (size_t i = 0; i < states.size(); ++i) jobs[i]->state = states[i];
    }
    std::span<DraftJob* const> jobs;
    std::vector<DraftState*>& states;
  };
  states_.clear();
  states_.reserve(jobs.size());
  for (const DraftJob* job : jobs) states_.push_back(job->state);
  const Restore restore{jobs, states_};
  const auto ask_one = [&](Drafter& drafter, std::unique_ptr<DraftState> State::*own, bool second) {
    left_.clear();
    for (size_t i = 0; i < jobs.size(); ++i) {
      auto* const state = static_cast<State*>(states_[i]);
      if (jobs[i]->tree.rows() > 1) continue;
      if (state->*own == nullptr) {  // a fork that begins empty, or an earlier allocation failure
        state->*own = begun(drafter);
        if (state->*own == nullptr) continue;
      }
      state->by_second = second;
      jobs[i]->state = (state->*own).get();
      left_.push_back(jobs[i]);
    }
    if (!left_.empty()) (drafter.*what)(left_);
  };
  ask_one(*first_, &State::first, false);
  ask_one(*second_, &State::second, true);
}

}  // namespace gen::generate
