// SPDX-License-Identifier: Apache-2.0
// See languages.h.
#include "languages.h"

#include <malloc.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace server {
namespace {

/// How often a waiting client is checked.
constexpr auto kAskAgain = std::chrono::milliseconds(25);

/// Releasing memory for anything smaller is not worth a walk through the allocator's heap.
constexpr size_t kLarge = size_t{8} << 20U;

/// Equal keys if and only if the languages are equal.
std::string key_of(const Language& language) {
  std::string key;
  const auto add = [&](const std::string& text) {
    key += std::to_string(text.size()) + ':' + text;
  };
  add(language.field);
  for (const Setting& one : language.options) {
    add(one.key);
    add(one.value);
  }
  add(language.text);
  return key;
}

ApiError out_of_memory() { return server_error(503, "out of memory", "overloaded"); }

ApiError stopped() { return server_error(503, "the server is shutting down", "shutting_down"); }

}  // namespace

void release_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

Automaton::~Automaton() {
  start_.reset();
  if (bytes_ >= kLarge) release_memory();
}

Matcher Automaton::matcher() const {
  const std::lock_guard lock(mutex_);
  gen_grammar_matcher* fork = nullptr;
  gen_error error;
  cli::check(gen_grammar_matcher_fork(start_.get(), &fork, &error), error);
  return Matcher(fork);
}

Languages::Languages(Make make, size_t makers, size_t kept_bytes)
    : make_(std::move(make)), kept_bytes_(kept_bytes) {
  try {
    threads_.emplace_back([this] { work(true); });
    for (size_t i = 0; i < makers; ++i) threads_.emplace_back([this] { work(false); });
  } catch (const std::exception&) {  // the system has no more threads
    end();
    throw;
  }
}

Languages::~Languages() { end(); }

void Languages::end() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

Languages::Made Languages::get(const Language& language, const std::function<bool()>& waits) {
  const std::string key = key_of(language);
  std::unique_lock lock(mutex_);
  if (stopping_) throw stopped();
  if (Made found = find(key)) return found;
  const JobHandle job = join(key, language);
  ++job->clients;
  while (!job->done) {
    if (finished_.wait_for(lock, kAskAgain, [&] { return job->done; })) break;
    lock.unlock();
    const bool waiting = waits();
    lock.lock();
    if (waiting || job->done) continue;
    if (--job->clients == 0) give_up(job);
    return nullptr;
  }
  if (const auto& failure = job->outcome.failure) {
    // A fresh message: copies would share one by a reference count that the thread sanitizer does
    // not see.
    throw ApiError(failure->status, failure->type, failure->code, failure->param, failure->what());
  }
  if (job->outcome.made == nullptr) throw stopping_ ? stopped() : out_of_memory();
  // The last client takes the outcome.
  return --job->clients == 0 ? std::move(job->outcome.made) : job->outcome.made;
}

/// The job that compiles the language already, or a new one.
Languages::JobHandle Languages::join(const std::string& key, const Language& language) {
  if (const auto found = jobs_.find(key); found != jobs_.end()) return found->second;
  const auto job = std::make_shared<Job>();
  job->language = language;
  job->key = key;
  std::list<JobHandle> place = {job};
  jobs_.emplace(key, job);
  line_.splice(line_.end(), place);
  added_.notify_all();
  return job;
}

void Languages::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (auto& [key, job] : std::exchange(jobs_, {})) {
    job->stop.request_stop();
    job->done = true;
  }
  line_.clear();
  added_.notify_all();
  finished_.notify_all();
}

Languages::Counts Languages::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.waiting = line_.size();
  return counts;
}

Languages::Made Languages::find(const std::string& key) {
  const auto used = used_.find(key);
  if (used == used_.end()) return nullptr;
  const Made made = used->second.lock();
  if (made == nullptr) return nullptr;
  const auto kept =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.first == key; });
  if (kept != kept_.end()) kept_.splice(kept_.begin(), kept_, kept);
  return made;
}

/// Returns the evicted automata, for the caller to free without the lock.
Languages::Kept Languages::keep(const std::string& key, const Made& made) {
  std::erase_if(used_, [](const auto& one) { return one.second.expired(); });
  used_[key] = made;
  kept_.emplace_front(key, made);
  size_t bytes = 0;
  auto first = kept_.begin();
  for (; first != kept_.end(); ++first) {
    bytes += first->first.size() + first->second->bytes();
    if (bytes > kept_bytes_) break;
  }
  Kept dropped;
  dropped.splice(dropped.end(), kept_, first, kept_.end());
  return dropped;
}

void Languages::give_up(const JobHandle& job) {
  ++counts_.given_up;
  job->stop.request_stop();
  jobs_.erase(job->key);  // later clients must not join a cancelled job
  line_.remove(job);
}

void Languages::work(bool short_alone) {
  while (const JobHandle job = take(short_alone)) {
    Outcome outcome = make(*job);
    // Compiling takes many times the memory of its result.
    if (outcome.failure || job->language.text.size() > kShortText) release_memory();
    finish(job, std::move(outcome));
  }
}

/// The next job; null at the end.
Languages::JobHandle Languages::take(bool short_alone) {
  std::unique_lock lock(mutex_);
  auto next = line_.end();
  added_.wait(lock, [&] {
    next = std::find_if(line_.begin(), line_.end(), [&](const JobHandle& job) {
      return !short_alone || job->language.text.size() <= kShortText;
    });
    return stopping_ || next != line_.end();
  });
  if (stopping_) return nullptr;
  JobHandle job = std::move(*next);
  line_.erase(next);
  ++counts_.making;
  return job;
}

Languages::Outcome Languages::make(const Job& job) const noexcept try {
  try {
    return {make_(job.language, job.stop.get_token()), {}};
  } catch (const ApiError& error) {
    return {nullptr, error};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return {nullptr, server_error(500, error.what())};
  }
} catch (const std::exception&) {
  return {};
}

void Languages::finish(const JobHandle& job, Outcome outcome) {
  std::unique_lock lock(mutex_);
  if (outcome.made != nullptr && !job->stop.stop_requested()) {
    Kept dropped;
    try {
      dropped = keep(job->key, outcome.made);
    } catch (const std::bad_alloc&) {
      // It is compiled again when it is needed.
    }
    lock.unlock();
    dropped.clear();  // may take long
    lock.lock();
  }
  --counts_.making;
  if (job->stop.stop_requested()) return;
  ++counts_.made;
  jobs_.erase(job->key);
  job->outcome = std::move(outcome);
  job->done = true;
  finished_.notify_all();
}

}  // namespace server
