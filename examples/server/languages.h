// SPDX-License-Identifier: Apache-2.0
// The languages of requests, made into automata by a few threads, since that may take seconds.
// Equal ones are made once and shared; what nobody waits for any more is given up.
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

/// What a language is made into. Threads: any.
class Automaton {
 public:
  /// `start` stands at the beginning of a text; it takes about so many bytes.
  Automaton(Matcher start, size_t bytes) : start_(std::move(start)), bytes_(bytes) {}
  /// What was large is given back to the system.
  ~Automaton();
  Automaton(const Automaton&) = delete;
  Automaton& operator=(const Automaton&) = delete;

  /// The beginning of a text.
  Matcher matcher() const;
  size_t bytes() const { return bytes_; }

 private:
  mutable std::mutex mutex_;  // a matcher is one thread's at a time, be it only forked
  Matcher start_;
  const size_t bytes_;
};

/// Gives memory back that the allocator keeps after something large was freed.
void release_memory();

/// Threads: any.
class Languages {
 public:
  using Made = std::shared_ptr<const Automaton>;
  /// Makes one, or throws an ApiError; soon after a stop is asked for, either.
  using Make = std::function<Made(const Language& language, std::stop_token stop)>;

  /// Texts up to this size go their own way past longer ones.
  static constexpr size_t kShortText = 2048;

  /// `makers` threads make languages in the order they came, and one more makes short ones alone:
  /// they do not wait behind long ones. Of those that nobody uses the last `kept_bytes` are kept.
  Languages(Make make, size_t makers, size_t kept_bytes);
  /// As stop(), and waits for what is being made.
  ~Languages();
  Languages(const Languages&) = delete;
  Languages& operator=(const Languages&) = delete;

  /// The automaton of a language, as soon as it is made. Null if `waits` said meanwhile, asked
  /// every few milliseconds, that nobody waits for it. ApiError if it cannot be made, or after
  /// stop().
  Made get(const Language& language, const std::function<bool()>& waits);

  /// What is being made is given up, and who waits is told. Returns at once.
  void stop();

  struct Counts {
    size_t waiting = 0;   // that no thread has begun yet
    size_t making = 0;    // also what is being given up
    size_t made = 0;      // in all, refused ones included
    size_t given_up = 0;  // in all, for nobody waited any more
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
    size_t clients = 0;  // that wait for it
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
  JobHandle take(bool short_alone);
  Outcome make(const Job& job) const noexcept;
  void finish(const JobHandle& job, Outcome outcome);

  const Make make_;
  const size_t kept_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable added_;          // to line_, or the end
  std::condition_variable finished_;       // a job
  std::map<std::string, JobHandle> jobs_;  // that are wanted and not done, by key
  std::list<JobHandle> line_;              // of these, those that no thread has
  std::map<std::string, std::weak_ptr<const Automaton>> used_;  // and perhaps no more
  Kept kept_;                                                   // used last in front
  Counts counts_;                                               // but for waiting
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace server
