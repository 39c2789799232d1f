// SPDX-License-Identifier: Apache-2.0
// See sequence.h.
#include "generate/loop/sequence.h"

#include <algorithm>
#include <utility>

#include "generate/loop/generator.h"
#include "generate/step/scheduler.h"

namespace gen::generate {

Sequence::Sequence(const Generator* generator, std::unique_ptr<cache::KvCache> cache,
                   std::unique_ptr<cache::SequenceState> state) noexcept
    : generator_(generator),
      cache_(std::move(cache)),
      state_(std::move(state)),
      trace_id_(generator->new_trace_id()),
      keeps_windows_(cache_->wants_points()) {
  cache::StateSnapshots* const snapshots = state_ != nullptr ? state_->snapshots() : nullptr;
  if (snapshots == nullptr) return;
  // Less than one is nothing.
  const size_t budget = snapshots->list().budget();
  if (budget >= snapshots->bytes()) snapshot_budget_ = budget;
}

Result<std::unique_ptr<cache::SequenceState>> Sequence::new_state(const Generator& generator) {
  GEN_ASSIGN(auto state, generator.model().new_sequence_state());
  cache::StateSnapshots* const snapshots = state != nullptr ? state->snapshots() : nullptr;
  if (snapshots != nullptr) {
    snapshots->list().set_budget(
        snapshot_budget(generator.options().snapshot_budget, snapshots->bytes()));
  }
  return state;
}

Result<Sequence> Sequence::create(const Generator& generator) {
  GEN_ASSIGN(auto state, new_state(generator));
  GEN_ASSIGN(auto cache, generator.make_cache(generator.max_seq_len()));
  return Sequence(&generator, std::move(cache), std::move(state));
}

Status Sequence::extend(std::span<const int32_t> tokens, bool make_room) {
  const int32_t vocab = generator_->vocab_size();
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocab) {
      return error(Code::kOutOfRange, "token %d outside vocabulary of %d", token, vocab);
    }
  }
  const int32_t context = generator_->max_seq_len();
  if (make_room && generator_->options().shift_context) {
    // Checked before anything is dropped, so that a failure drops nothing.
    const auto most = static_cast<size_t>(context);
    const size_t wanted = std::min(most, tokens_.size() + std::min(most, tokens.size()));
    if (wanted > tokens_.capacity()) tokens_.reserve(std::max(wanted, 2 * tokens_.capacity()));
    GEN_TRY(this->make_room(tokens.size()));
  }
  if (tokens.size() > static_cast<size_t>(context - length())) {
    if (length() == 0) {
      return error(Code::kContextFull, "the prompt has %zu tokens, the context only %d",
                   tokens.size(), context);
    }
    return error(Code::kContextFull,
                 "the prompt has %zu tokens, the session holds %d, the context only %d",
                 tokens.size(), length(), context);
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  find_invocation();
  return {};
}

void Sequence::reserve(int32_t more) {
  const int32_t room = generator_->max_seq_len() - length();
  tokens_.reserve(tokens_.size() + static_cast<size_t>(std::clamp(more, 0, room)));
}

Status Sequence::evaluate(int32_t end, const Pass& pass) {
  GEN_TRY(start(end, pass));
  while (!done()) {
    (void)generator_->scheduler().run(next());
    GEN_TRY(take());
  }
  return {};
}

Status Sequence::start(int32_t end, const Pass& pass) {
  end_ = 0;  // a failure leaves it done
  out_ = false;
  settle_adapters();
  if (pass.query.wants() != graph::kWantsNothing) forget(pass.results_from);
  if (stale_) GEN_TRY(rebuild());
  GEN_TRY(renew_state());
  pass_ = pass;
  begin_ = evaluated();
  end_ = end;
  reused_ = 0;
  parting_ = 0;
  most_reused_ = end;
  evicted_ = false;
  stops_.clear();
  if (!pass.plain) reuse(quiet_end());
  if (keeps_points() && !pass.plain) {
    try {
      choose_stops();
    } catch (...) {  // no memory for the list: there are fewer snapshots
    }
  }
  borders_.clear();
  return {};
}

StepRequest* Sequence::next() {
  // Repeated before every chunk, since another session may have evaluated more of the same prompt.
  if (!pass_.plain) reuse(std::min({end_ - 1, quiet_end(), most_reused_}));
  const int32_t at = evaluated();
  int32_t kept_from = end_;
  const int32_t end = keeps_snapshots() && !pass_.plain ? pass_end(at, &kept_from) : end_;
  int32_t rows = std::min({end - at, generator_->prefill_chunk(), cache_->plan_limit()});
  const bool adapted = adapters_ != nullptr && at >= adapted_from_;
  if (adapters_ != nullptr && !adapted) rows = std::min(rows, adapted_from_ - at);
  const graph::Wants wants = pass_.query.wants();
  const bool quiet_pass = wants == graph::kWantsNothing;
  const int32_t quiet = quiet_pass ? rows : std::clamp(pass_.results_from - at, 0, rows);
  wants_.assign(static_cast<size_t>(quiet), graph::kWantsNothing);
  wants_.resize(static_cast<size_t>(rows), wants);

  const bool drafts = end_ - at == 1 && !quiet_pass;
  DraftJob* const draft =
      drafts && (state_ == nullptr || state_->keeps_some()) ? pass_.draft : nullptr;
  if (draft != nullptr) {
    const int32_t most = std::min(cache_->plan_limit(), generator_->prefill_chunk()) - 1;
    // Drafts stay below the row that fills the context: without drafts that row would shift it.
    draft->most = std::min({draft->most, most, generator_->max_seq_len() - at - 2});
    draft->tokens = tokens();
    // A recurrent state includes all rows before it, so it cannot branch.
    draft->branches = state_ == nullptr && cache_->traits().keeps_paths &&
                      generator_->model().traits().can_branch;
    draft->tree.begin(tokens_[static_cast<size_t>(at)]);
  }
  request_.draft = draft != nullptr && draft->most > 0 ? draft : nullptr;
  request_.observer = pass_.observer;
  request_.kept_from = kept_from - at;
  request_.cache = cache_.get();
  request_.state = state_.get();
  request_.adapters = adapted ? adapters_.get() : nullptr;
  request_.tokens = tokens().subspan(static_cast<size_t>(at), static_cast<size_t>(rows));
  request_.parents = {};
  request_.first_position = at;
  request_.positions = {};
  request_.wants = wants_;
  request_.query = pass_.query.behind(static_cast<size_t>(std::max(at - pass_.results_from, 0)),
                                      static_cast<size_t>(generator_->model().traits().vocab_size));
  request_.cancel = pass_.cancel;
  request_.urgency = pass_.urgency;
  request_.participant = pass_.participant;
  request_.trace_id = trace_id_;
  request_.room = end_ - at;
  request_.leaves_block = prefixes() != nullptr && cache_->sharing()->copies_next();
  request_.status = Status();
  request_.taken = 0;
  request_.evicted = false;
  out_ = true;
  return &request_;
}

Status Sequence::take() {
  out_ = false;
  if (request_.evicted) {
    begin_ = remembered_ = 0;
    genuine_ = true;
    evicted_ = true;  // tokens reused from now on were already counted or computed
    GEN_TRY(renew_state());
  }
  if (request_.status.code() == Code::kPoolExhausted && request_.leaves_block) {
    leave_shared_block();
    if (!stale_) return {};
  }
  if (!request_.status.ok()) {
    if (state_ != nullptr && state_->lost()) stale_ = true;
    // Blocks that were reserved for rows which did not run are for others.
    if (cache_->traits().pooled) (void)cache_->truncate(cache_->length());
    return request_.status;
  }
  if (request_.draft != nullptr && request_.taken > 0) {
    request_.draft->tree.cut(request_.taken);
    open_ = true;
    return {};
  }
  const int32_t before = evaluated();
  if (request_.taken > 0) commit({request_.taken});
  remember_windows(before);
  remember_states(before);
  remember();
  if (generator_->options().metrics != nullptr) generator_->scheduler().measure_caches();
  if (pass_.progress != nullptr) {
    pass_.progress->store(
        static_cast<float>(std::max(evaluated() - begin_, 0)) / static_cast<float>(end_ - begin_),
        std::memory_order_relaxed);
  }
  return {};
}

void Sequence::keep(std::span<const int32_t> path) noexcept {
  if (!open_) return;
  open_ = false;
  bool first = true;  // the path is the first rows of the plan
  for (size_t i = 0; i < path.size(); ++i) first = first && path[i] == static_cast<int32_t>(i);
  const int32_t before = evaluated();
  commit({static_cast<int32_t>(path.size()), first ? nullptr : path.data()});
  remember_states(before);
  remember();
  if (generator_->options().metrics != nullptr) generator_->scheduler().measure_caches();
}

void Sequence::commit(cache::Kept kept) noexcept {
  if (state_ != nullptr) {
    state_->commit(request_.state_plan, kept);
    if (state_->lost()) stale_ = true;
    // The state is back at the start of the rows: they are pending again.
    if (state_->length() == request_.state_plan.start) kept = {};
  }
  cache_->commit(request_.plan, kept);
}

void Sequence::withdraw() noexcept {
  if (!out_) return;
  generator_->scheduler().withdraw(&request_);
  try {
    (void)take();  // the status no longer matters
  } catch (...) {  // no memory for a new state: it is made when needed
  }
}

bool Sequence::evictable() const noexcept {
  return cache_->length() > 0 && cache_->traits().pooled;
}

// Evicts the cache only: the state may be a caller's, whose functions must not be called here.
bool Sequence::evict() noexcept {
  if (!evictable()) return false;
  bool cut = false;
  try {
    cut = cache_->truncate(0).ok();
  } catch (...) {  // as in forget()
  }
  stale_ = stale_ || !cut;
  genuine_ = true;
  remembered_ = 0;
  return cut;
}

bool Sequence::state_is_left() const noexcept {
  return state_ != nullptr && cache_->length() == 0 && state_->length() > 0;
}

Status Sequence::renew_state() {
  if (!state_is_left()) return {};
  GEN_ASSIGN(state_, new_state(*generator_));
  return {};
}

cache::PrefixCache* Sequence::prefixes() const noexcept {
  cache::PrefixCache* const prefixes = generator_->prefix_cache();
  if (prefixes == nullptr || cache_->sharing() == nullptr) return nullptr;
  return state_ == nullptr || keeps_snapshots() ? prefixes : nullptr;
}

void Sequence::reuse(int32_t end) noexcept {
  cache::PrefixCache* const prefixes = this->prefixes();
  end = shareable(end);
  if (prefixes == nullptr || end <= evaluated()) return;
  try {
    cache::PrefixHit hit = prefixes->match(
        prefix_domain(), tokens().first(static_cast<size_t>(end)), state_ != nullptr);
    const int32_t size = prefixes->pool().block_size();
    parting_ = static_cast<int32_t>(hit.known()) / size * size;
    const auto found = static_cast<int32_t>(hit.tokens());
    const int32_t had = evaluated();
    if (found <= had) return;
    std::unique_ptr<cache::SequenceState> state;
    if (state_ != nullptr) {
      auto made = new_state(*generator_);
      if (!made.ok()) return;
      state = std::move(made).value();
      if (!state->snapshots()->restore(hit.snapshot()).ok()) return;
      // What lies before it stays.
      if (genuine_) state->snapshots()->list().insert(state_->snapshots()->list());
    }
    if (!cache_->sharing()->adopt(hit.blocks(), found).ok()) return;
    if (!genuine_) cache_->sharing()->forget_points();
    state_ = std::move(state);
    hit.taken();
    genuine_ = true;
    if (!evicted_) reused_ += found - std::clamp(pass_.count_from, had, found);
    remembered_ = found / size;
    trace_id_ = generator_->new_trace_id();
  } catch (...) {  // no memory for the list of blocks: the tokens are computed
  }
}

void Sequence::remember() noexcept {
  cache::PrefixCache* const prefixes = this->prefixes();
  if (prefixes == nullptr || !genuine_) return;
  const int32_t size = prefixes->pool().block_size();
  const int32_t full = shareable(evaluated()) / size;
  const auto count = static_cast<size_t>(full);
  const auto blocks = cache_->sharing()->blocks();
  if (full <= remembered_ || blocks.size() < count * prefixes->bins()) return;
  try {
    const auto held = tokens().first(count * static_cast<size_t>(size));
    const Status kept =
        prefixes->insert(prefix_domain(), held, blocks.first(count * prefixes->bins()));
    if (kept.ok()) remembered_ = full;
  } catch (...) {  // no memory: the blocks are not shared
  }
}

// Others may have left it meanwhile; then the row is tried again as it is.
void Sequence::leave_shared_block() noexcept {
  if (!cache_->sharing()->copies_next()) return;
  most_reused_ = evaluated() - evaluated() % prefixes()->pool().block_size();
  forget(most_reused_);
  reused_ = std::min(reused_, std::max(evaluated() - pass_.count_from, 0));
}

void Sequence::rewind(const Mark& mark) noexcept {
  const Mark to = moved(mark);
  tokens_.resize(static_cast<size_t>(std::min(to.length, length())));
  borders_.clear();
  forget(to.evaluated);
}

Status Sequence::truncate(int32_t n) {
  if (n < 0) return error(Code::kInvalidArgument, "cannot truncate to %d tokens", n);
  if (n >= length()) return {};
  if (n > 0 && !generator_->model().traits().can_truncate) {
    return error(Code::kUnsupported, "this model cannot go back from %d tokens to %d", length(), n);
  }
  rewind({n, n, dropped_});
  return {};
}

void Sequence::drop_pending(int32_t n) noexcept {
  tokens_.resize(static_cast<size_t>(std::min(std::max(n, evaluated()), length())));
}

void Sequence::forget(int32_t n) noexcept {
  if (cache_->length() <= n) return;
  bool cut = false;
  try {
    // A cache that must be made anew is emptied, for those who read it.
    cut = (stale_ ? cache_->truncate(0) : cut_to(n)).ok() && !stale_;
  } catch (...) {  // the cache is unusable now and is made anew
    cut = false;
  }
  stale_ = !cut;
  genuine_ = genuine_ || evaluated() == 0;
  remembered_ = 0;
  passing_ = 0;
}

// A cache that compresses chunks may have to drop more than asked, and so may a state. Both are cut
// to a length that both support.
Status Sequence::cut_to(int32_t n) {
  GEN_TRY(cache_->truncate(n));
  while (state_ != nullptr && state_->length() > cache_->length()) {
    GEN_ASSIGN(const int32_t left, state_->rewind(cache_->length()));
    GEN_TRY(cache_->truncate(left));
  }
  return {};
}

Status Sequence::rebuild() {
  GEN_ASSIGN(auto state, new_state(*generator_));
  GEN_ASSIGN(auto cache, generator_->make_cache(generator_->max_seq_len()));
  state_ = std::move(state);
  cache_ = std::move(cache);
  stale_ = false;
  return {};
}

}  // namespace gen::generate
