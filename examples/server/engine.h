// SPDX-License-Identifier: Apache-2.0
// The generating threads: each takes one choice of a request at a time from a bounded queue, and
// generates it. The library merges the steps of all running choices.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "answer.h"
#include "../cli/handles.h"
#include "metrics.h"

namespace server {

class Automaton;

/// One choice to be generated.
struct Task {
  std::shared_ptr<Answer> answer;
  size_t choice = 0;
  std::shared_ptr<const std::vector<int32_t>> prompt;  // at least one token
  std::shared_ptr<const Automaton> language;  // outlives the sampling, which uses it; may be null
  std::shared_ptr<const gen_sampling> sampling;
  bool logprobs = false;  // log-probabilities of its tokens are wanted
};

class Engine {
 public:
  /// `parallel` choices run at once, `queue` more may wait. std::system_error without enough
  /// threads.
  Engine(cli::Generator generator, size_t parallel, size_t queue, Metrics& metrics);
  /// Cancels running choices, and waits for them.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  enum class Admission { kTaken, kFull, kStopping };
  /// Takes all tasks or none.
  Admission submit(std::vector<Task> tasks);
  /// Drops the waiting choices of an answer and cancels the running ones.
  void abandon(const std::shared_ptr<Answer>& answer);
  /// Accepts nothing more; waiting and running choices end as cancelled. Returns at once.
  void stop();

  size_t capacity() const { return parallel_ + queue_; }
  size_t running() const;
  size_t waiting() const;

 private:
  void work();
  /// As stop(), and waits for all threads.
  void end();
  void run(const Task& task) noexcept;
  /// Returns the last event, without its choice.
  Event generate(const Task& task);

  const cli::Generator generator_;
  const size_t parallel_;
  const size_t queue_;
  Metrics& metrics_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  std::vector<std::shared_ptr<Answer>> running_;  // has room for all
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace server
