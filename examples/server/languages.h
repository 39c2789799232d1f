// SPDX-License-Identifier: Apache-2.0
// The languages of requests, compiled into automata by a few threads, because that may take
// seconds. Equal ones are compiled once and shared; those that no client waits for any more are
// cancelled.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "../cli/handles.h"
#include "openai/api_error.h"
#include "openai/request.h"

namespace server {

using Matcher = cli::Handle<gen_grammar_matcher, gen_grammar_matcher_free>;

/// A compiled language. Threads: any.
class Automaton {
 public:
  /// `start` is at the beginning of a text; `bytes` is its approximate size.
  Automaton(Matcher start, size_t bytes) : start_(std::move(start)), bytes_(bytes) {}
  /// Returns the memory of a large automaton to the system.
  ~Automaton();
  Automaton(const Automaton&) = delete;
  Automaton& operator=(const Automaton&) = delete;

  /// The beginning of a text.
  Matcher matcher() const;
  size_t bytes() const { return bytes_; }

 private:
  mutable std::mutex mutex_;  // a matcher serves one thread at a time, even for a fork
  Matcher start_;
  const size_t bytes_;
};

/// Returns memory to the system that the allocator keeps after something large was freed.
void release_memory();

/// Threads: any.
class Languages {
 public:
  using Made = std::shared_ptr<const Automaton>;
  /// Compiles a language, or throws an ApiError; returns or throws soon after a stop is requested.
  using Make = std::function<Made(const Language& language, std::stop_token stop)>;

  /// Texts up to this size need not wait for longer ones.
  static constexpr size_t kShortText = 2048;

  /// `makers` threads compile languages in the order of arrival, and one more compiles only short
  /// ones, which so need not wait for long ones. The last `kept_bytes` of unused automata are kept.
  /// std::system_error without enough threads.
  Languages(Make make, size_t makers, size_t kept_bytes);
  /// As stop(), and waits for running compilations.
  ~Languages();
  Languages(const Languages&) = delete;
  Languages& operator=(const Languages&) = delete;

  /// The automaton of a language, once it is compiled. Null if `waits`, asked every few
  /// milliseconds, returned false meanwhile. ApiError if it cannot be compiled, or after stop().
  Made get(const Language& language, const std::function<bool()>& waits);

  /// Cancels running compilations and notifies waiting clients. Returns at once.
  void stop();

  struct Counts {
    size_t waiting = 0;   // not started by any thread yet
    size_t making = 0;    // including cancelled ones that still run
    size_t made = 0;      // in total, including refused ones
    size_t given_up = 0;  // in total, because no client waited any more
  };
  Counts counts() const;

 private:
  struct Outcome {
    Made made;                        // null: it failed
    std::optional<ApiError> failure;  // why, if there was memory for that
  };
  struct Job {
    Language language;
    std::string key;
    std::stop_source stop;
    size_t clients = 0;  // number of waiting clients
    bool done = false;   // there is an outcome
    Outcome outcome;
  };
  using JobHandle = std::shared_ptr<Job>;
  using Kept = std::list<std::pair<std::string, Made>>;

  // Under the lock.
  Made find(const std::string& key);
  Kept keep(const std::string& key, const Made& made);
  JobHandle join(const std::string& key, const Language& language);
  void give_up(const JobHandle& job);

  void work(bool short_alone);
  /// As stop(), and waits for all threads.
  void end();
  JobHandle take(bool short_alone);
  Outcome make(const Job& job) const noexcept;
  void finish(const JobHandle& job, Outcome outcome);

  const Make make_;
  const size_t kept_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable added_;          // notified of a new job, or the end
  std::condition_variable finished_;       // notified of a finished job
  std::map<std::string, JobHandle> jobs_;  // unfinished jobs by key
  std::list<JobHandle> line_;              // of these, those that no thread has taken
  std::map<std::string, std::weak_ptr<const Automaton>> used_;  // in use, or expired
  Kept kept_;                                                   // most recently used first
  Counts counts_;                                               // except waiting
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace server
