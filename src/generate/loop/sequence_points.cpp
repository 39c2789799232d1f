// SPDX-License-Identifier: Apache-2.0
// The state of a sequence as who holds the session sees it: its layers' numbers, and points to go
// back to that do not depend on which snapshots the sequence keeps for itself. See sequence.h.
#include <algorithm>
#include <utility>

#include "generate/loop/generator.h"
#include "generate/loop/sequence.h"

namespace gen::generate {

std::vector<cache::StateFacts> Sequence::state_facts() const {
  const cache::StateReading* const reading = state_ != nullptr ? state_->reading() : nullptr;
  return reading != nullptr ? reading->facts() : std::vector<cache::StateFacts>();
}

Status Sequence::read_state(int32_t layer, std::array<int32_t, 3>* dims, float* to, size_t capacity,
                            Participant* participant) {
  const size_t layers = state_facts().size();
  if (layer < 0 || std::cmp_greater_equal(layer, layers)) {
    return error(Code::kOutOfRange, "layer %d outside a state of %zu layers", layer, layers);
  }
  std::unique_ptr<cache::SequenceState> empty;
  if (evaluated() == 0) {  // a state that is left over is not of these tokens
    GEN_ASSIGN(empty, new_state(*generator_));
  }
  const auto reading = [&] { return (empty != nullptr ? empty : state_)->reading(); };
  GEN_ASSIGN(*dims, reading()->dims(layer));
  if (to == nullptr) return {};
  // Before memory is taken: a caller's function may give any size.
  const auto numbers = static_cast<size_t>(cache::state_numbers(*dims));
  if (numbers > capacity) {
    return error(Code::kOutOfRange, "%zu floats do not fit a buffer of %zu", numbers, capacity);
  }
  std::vector<float> values(numbers);
  if (!reading()->settled()) GEN_TRY(settle_state(participant));
  GEN_TRY(reading()->read(layer, values));
  std::copy(values.begin(), values.end(), to);
  return {};
}

// In a copy, so that nothing has changed if it fails. A row's results do not depend on the pass
// that it is in, so what the copy's pass writes is what the cache has already; unless the session
// has other adapters by now than those that made it, as one that was loaded.
Status Sequence::settle_state(Participant* participant) {
  const int32_t end = evaluated();
  GEN_ASSIGN(Sequence copy, fork());
  cache::StateSnapshots& snapshots = *copy.state_->snapshots();
  const cache::SnapshotList list = snapshots.list();
  const int32_t first = snapshots.earliest();
  GEN_ASSIGN(auto before, snapshots.share(first));
  GEN_TRY(snapshots.restore(std::move(before)));
  snapshots.list().insert(list);  // a cache of means may be cut further
  copy.forget(first);
  Pass pass;
  pass.participant = participant;
  pass.plain = true;
  GEN_TRY(copy.evaluate(end, pass));
  cache::SnapshotList& kept = copy.state_->snapshots()->list();
  kept = list;
  if (const int32_t same = made_.common(copy.made_); same < end) {
    kept.cut(same);
    cache_ = std::move(copy.cache_);
    trace_id_ = copy.trace_id_;
    made_ = copy.made_;
    genuine_ = copy.genuine_;
    remembered_ = copy.remembered_;
  }
  state_ = std::move(copy.state_);
  return {};
}

Result<Sequence::Point> Sequence::point() const {
  Point made;
  GEN_ASSIGN(made.state, evaluated() == 0 ? new_state(*generator_) : fork_state());
  if (made.state->copies() == nullptr) return cannot_be_copied();
  if (cache::StateSnapshots* const snapshots = made.state->snapshots()) snapshots->list().cut(-1);
  made.tokens = tokens_;
  made.evaluated = evaluated();
  made.genuine = genuine_;
  made.adapted = made_;
  return made;
}

Status Sequence::go_back(const Point& point) {
  const auto first = static_cast<size_t>(point.evaluated);
  const size_t same = std::min(first, tokens_.size());
  const auto differ = std::mismatch(tokens_.begin(), tokens_.begin() + static_cast<int32_t>(same),
                                    point.tokens.begin());
  const auto common = static_cast<size_t>(differ.first - tokens_.begin());
  if (common < first) {
    return error(Code::kState,
                 "the text begins with %zu of the %zu tokens that the snapshot was taken after",
                 common, first);
  }
  if (made_.common(point.adapted) < point.evaluated) {
    return error(Code::kState, "other adapters made the snapshot than those of the text");
  }
  std::vector<int32_t> tokens = point.tokens;
  std::unique_ptr<cache::SequenceState> state;
  if (!stale_ && evaluated() >= point.evaluated) {
    GEN_ASSIGN(state, point.state->copies()->fork());
    // What the sequence kept of the text before stays.
    if (cache::StateSnapshots* const snapshots = state->snapshots()) {
      snapshots->list() = state_->snapshots()->list();
      snapshots->list().cut(point.evaluated);
    }
  }
  tokens_.swap(tokens);
  borders_.clear();
  if (state == nullptr) return {};  // the rest is pending
  state_.swap(state);
  forget(point.evaluated);
  if (!point.genuine && evaluated() > 0) genuine_ = false;
  return {};
}

}  // namespace gen::generate
