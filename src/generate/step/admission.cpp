// SPDX-License-Identifier: Apache-2.0
// See admission.h.
#include "generate/step/admission.h"

#include <algorithm>
#include <new>

namespace gen::generate {
namespace {

Status cannot_fit(int32_t wanted, const cache::KvCache& cache, int32_t room) noexcept {
  if (cache.length() == 0) {
    return error(Code::kPoolExhausted, "%d tokens to evaluate, the pool has room for %d", wanted,
                 room);
  }
  return error(Code::kPoolExhausted,
               "%d tokens with those evaluated before, the pool has room for %d",
               cache.length() + wanted, cache.length() + room);
}

}  // namespace

void Admission::add(Evictable* idle) {
  const RequestQueue::Lock lock = queue_.lock();
  idle_.push_back(idle);
}

void Admission::remove(Evictable* idle) noexcept {
  const RequestQueue::Lock lock = queue_.lock();
  // It may still hold blocks when it is removed, so evict it first.
  (void)idle->evict();
  idle_.erase(std::find(idle_.begin(), idle_.end(), idle));
  queue_.note_change();
}

void Admission::choose() {
  reserved_for_first_ = false;
  const std::span<StepRequest* const> waiting = queue_.waiting();
  try {
    plan_step(waiting, limits_, &plan_);
  } catch (const std::bad_alloc&) {
    // The other requests are tried again.
    plan_.slices.clear();
    queue_.fail_first(error(Code::kOutOfMemory, "no memory to plan a step for %zu waiting sessions",
                            waiting.size()));
  }
  std::sort(plan_.slices.begin(), plan_.slices.end(),
            [this](const StepPlan::Slice& a, const StepPlan::Slice& b) {
              return queue_.comes_before(*a.request, *b.request);
            });
  for (StepRequest* request : queue_.waiting()) ++request->passed_over;
  for (const StepPlan::Slice& slice : plan_.slices) slice.request->running = true;
}

bool Admission::reserve(const StepPlan::Slice& slice, SteadyClock::time_point now,
                        cache::CachePlan* plan) {
  StepRequest* const request = slice.request;
  if (request->evicted) return false;
  request->status = check_wanted(*request, now);
  if (request->status.ok()) request->status = check_fits(*request);
  if (!request->status.ok()) {
    request->starved = false;
    return false;
  }
  // Others give their blocks back at any time, also between a plan and the question who has them.
  // So a call fails only if it had all room before a plan and after it.
  Result<cache::CachePlan> made = make_room(slice, now);
  bool had_all_room = false;
  if (made.status().code() == Code::kPoolExhausted && !request->leaves_block &&
      request->cache->has_all_room()) {
    had_all_room = true;
    made = make_room(slice, now);
  }
  const bool starved = made.status().code() == Code::kPoolExhausted && !request->leaves_block &&
                       !(had_all_room && request->cache->has_all_room());
  if (starved && !request->starved) request->starved_since = now;
  reserved_for_first_ =
      reserved_for_first_ || (starved && now - request->starved_since >= limits_.max_yielding);
  request->starved = starved;
  if (!made.ok()) {
    request->status = made.status();
    return false;
  }
  *plan = *made;
  if (request->state == nullptr) return true;
  const int32_t certain = slice.drafts > 0 ? 0 : std::min(request->kept_from, made->count);
  const bool some = made->count > 1 && certain < made->count;
  const cache::Keep keep = some ? cache::Keep::kSome : cache::Keep::kAll;
  Result<cache::StatePlan> state = request->state->plan(made->count, keep, some ? certain : 0);
  // Without memory for the rows there are fewer snapshots.
  if (!state.ok() && slice.drafts == 0 && keep == cache::Keep::kSome) {
    state = request->state->plan(made->count, cache::Keep::kAll);
  }
  request->status = state.status();
  if (state.ok()) request->state_plan = state.value();
  return state.ok();
}

// Fails a call that could not be finished with all blocks of the pool: it neither waits nor evicts.
Status Admission::check_fits(const StepRequest& request) noexcept {
  const cache::KvCache& cache = *request.cache;
  if (!cache.traits().pooled) return {};
  const int32_t wanted = std::min(request.room, cache.capacity() - cache.length());
  const int32_t room = cache.most_room();
  if (wanted <= room) return {};
  return cannot_fit(wanted, cache, room);
}

// Reserves the rows of a slice, or the first of them. A request that starts in a pool must find
// room for everything it will need, or have the pool to itself.
Result<cache::CachePlan> Admission::make_room(const StepPlan::Slice& slice,
                                              SteadyClock::time_point now) {
  StepRequest& request = *slice.request;
  cache::KvCache& cache = *request.cache;
  int32_t rows = slice.rows;
  if (slice.drafts > 0 && rows > 1) {
    if ((cache.length() > 0 || !cache.traits().pooled) && cache.has_free(rows)) {
      Result<cache::CachePlan> plan = cache.plan(rows);
      if (plan.ok()) return plan;
    }
    rows = 1;
  }
  if (cache.length() == 0 && cache.traits().pooled) {
    const int32_t wanted = std::min(std::max(request.room, rows), cache.capacity());
    if (reserved_for_first_) return cannot_fit(wanted, cache, 0);
    int32_t room = cache.room();
    if (room < wanted && !cache.has_all_room() && yields(request, wanted - room, now)) {
      return cannot_fit(wanted, cache, room);
    }
    while (room < wanted && evict_for(request)) room = cache.room();
    if (room < wanted && !cache.has_all_room()) {
      return cannot_fit(wanted, cache, room);
    }
  }
  Result<cache::CachePlan> plan = cache.plan(rows);
  while (plan.status().code() == Code::kPoolExhausted && evict_for(request)) {
    plan = cache.plan(rows);
  }
  // Where layers have windows, fewer rows at a time need fewer blocks.
  while (plan.status().code() == Code::kPoolExhausted && rows > 1 && cache.has_all_room()) {
    rows /= 2;
    plan = cache.plan(rows);
  }
  return plan;
}

// Whether a request that starts leaves those behind it their blocks for now: all of them would not
// be enough, and what was evicted would be evaluated again for nothing.
bool Admission::yields(const StepRequest& request, int32_t lacking,
                       SteadyClock::time_point now) noexcept {
  if (request.starved && now - request.starved_since >= limits_.max_yielding) return false;
  const RequestQueue::Lock lock = queue_.lock();
  int64_t held = queue_.held_behind(request);
  for (const Evictable* idle : idle_) held += idle->most_freed();
  return held < lacking;
}

bool Admission::free_idle() noexcept {
  const RequestQueue::Lock lock = queue_.lock();
  return evict_idle();
}

bool Admission::evict_idle() noexcept {
  for (size_t tries = 0; tries < idle_.size(); ++tries) {
    Evictable* oldest = nullptr;
    int64_t used = Evictable::kNothing;
    for (Evictable* idle : idle_) {
      const int64_t last = idle->last_used();
      if (last >= used) continue;
      used = last;
      oldest = idle;
    }
    if (oldest == nullptr) return false;
    if (oldest->evict()) return true;
  }
  return false;
}

// Evicts one sequence that `request` may take blocks from; false if there is none left.
bool Admission::evict_for(const StepRequest& request) noexcept {
  const RequestQueue::Lock lock = queue_.lock();
  if (evict_idle()) {
    ++preempted_;
    return true;
  }
  StepRequest* const last = queue_.last_holder_behind(request);
  if (last == nullptr || !last->cache->truncate(0).ok()) return false;
  ++preempted_;
  queue_.note_evicted(last, request);
  return true;
}

}  // namespace gen::generate
