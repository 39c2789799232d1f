// SPDX-License-Identifier: Apache-2.0
// See tool_runner.h.
#include "agent/tool_runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/thread.h"

namespace gen::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kStopped = "the run was cancelled";
// How often a waiting thread looks for a cancel, which cannot wake it.
constexpr milliseconds kGlance{5};

Status run_in_order(std::span<const ReadyCall> calls, const RunnerOptions& options,
                    const CancelFlag* cancel, RunnerEvents* events,
                    std::vector<ToolResult>* results) {
  for (size_t i = 0; i < calls.size(); ++i) {
    if (events->stopped() || cancel->raised()) {
      results->push_back(not_run(calls[i].call, kStopped));
      continue;
    }
    events->began(i);
    const CallRules rules{options.check_arguments, cancel, nullptr};
    GEN_ASSIGN(ToolResult result, call_tool(calls[i].tool.get(), calls[i].call, rules));
    results->push_back(std::move(result));
    events->ended(i, results->back());
  }
  return {};
}

struct Item {
  enum class State : uint8_t { kWaiting, kRunning, kDone, kLate };
  ReadyCall call;
  State state = State::kWaiting;
  size_t worker = 0;
  Clock::time_point begun;
  std::atomic<bool> late{false};
  ToolResult result;
  bool no_memory = false;
};

/// What the threads of a step share. A thread that runs past its time keeps it alive.
struct Work {
  explicit Work(size_t n) : items(n) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Item> items;
  size_t next = 0;
  bool closed = false;
  bool check_arguments = true;
  std::shared_ptr<const CancelFlag> cancel;
};

void work_on(const std::shared_ptr<Work>& work, size_t worker) noexcept {
  std::unique_lock lock(work->mutex);
  while (!work->closed && work->next < work->items.size()) {
    Item& item = work->items[work->next++];
    item.state = Item::State::kRunning;
    item.worker = worker;
    item.begun = Clock::now();
    work->changed.notify_all();
    lock.unlock();
    ToolResult result;
    bool no_memory = false;
    try {
      const CallRules rules{work->check_arguments, work->cancel.get(), &item.late};
      auto given = call_tool(item.call.tool.get(), item.call.call, rules);
      if (given.ok()) {
        result = std::move(*given);
      } else {
        no_memory = true;
      }
    } catch (...) {
      no_memory = true;
    }
    lock.lock();
    if (item.state != Item::State::kRunning) return;  // another thread has taken this one's place
    item.result = std::move(result);
    item.no_memory = no_memory;
    item.state = Item::State::kDone;
    work->changed.notify_all();
  }
}

/// What a thread begins with; it owns this.
struct Post {
  std::shared_ptr<Work> work;
  size_t worker;
};

void* begin_work(void* argument) {
  const std::unique_ptr<Post> post(static_cast<Post*>(argument));
  work_on(post->work, post->worker);
  return nullptr;
}

/// Owns the threads: those that run past their time are left to themselves.
class Crew {
 public:
  explicit Crew(std::shared_ptr<Work> work) : work_(std::move(work)) {}
  ~Crew() {
    {
      const std::lock_guard lock(work_->mutex);
      work_->closed = true;
      for (Item& item : work_->items) {
        if (item.state != Item::State::kRunning) continue;  // only if an event threw
        item.late = true;
        item.state = Item::State::kLate;
        lost_[item.worker] = true;
      }
    }
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (lost_[i]) threads_[i].detach();
    }
    threads_.clear();  // waits for the others
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// False if no thread can be made.
  bool add() {
    auto post = std::make_unique<Post>(Post{work_, threads_.size()});
    threads_.emplace_back();  // the vectors grow before it runs
    lost_.resize(threads_.size());
    auto started = Thread::start(begin_work, post.get());
    if (!started.ok()) {
      threads_.pop_back();
      return false;
    }
    static_cast<void>(post.release());
    threads_.back() = std::move(*started);
    return true;
  }
  /// The lock is held.
  void lose(size_t worker) noexcept { lost_[worker] = true; }

 private:
  std::shared_ptr<Work> work_;
  std::vector<Thread> threads_;
  std::vector<bool> lost_;
};

class ThreadedRun {
 public:
  ThreadedRun(std::span<const ReadyCall> calls, const RunnerOptions& options,
              std::shared_ptr<const CancelFlag> cancel, RunnerEvents* events)
      : calls_(calls),
        options_(options),
        events_(events),
        work_(std::make_shared<Work>(calls.size())),
        crew_(work_),
        told_(calls.size(), 0) {
    work_->cancel = std::move(cancel);
    work_->check_arguments = options.check_arguments;
    for (size_t i = 0; i < calls.size(); ++i) work_->items[i].call = calls[i];
  }

  Status run(std::vector<ToolResult>* results) {
    const size_t wanted =
        std::min(calls_.size(), static_cast<size_t>(std::max(options_.threads, 1)));
    for (size_t i = 0; i < wanted; ++i) {
      if (!crew_.add() && i == 0) return {Code::kOutOfMemory, "no thread can be made for a tool"};
    }
    while (!ended()) wait();
    for (size_t i = 0; i < calls_.size(); ++i) {
      Item& item = work_->items[i];
      if (item.no_memory) return {Code::kOutOfMemory, "no memory for the result of a tool"};
      results->push_back(item.state == Item::State::kLate ? late_result(i)
                                                          : std::move(item.result));
    }
    return {};
  }

 private:
  ToolResult late_result(size_t i) const {
    return {calls_[i].call.id,
            "tool \"" + calls_[i].call.name + "\" did not answer within " +
                std::to_string(options_.timeout_ms) + " ms",
            true};
  }

  /// Tells what has happened since, and whether all calls have results.
  bool ended() {
    bool all = true;
    size_t replace = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      Item& item = work_->items[i];
      std::unique_lock lock(work_->mutex);
      if (options_.timeout_ms > 0 && item.state == Item::State::kRunning &&
          Clock::now() - item.begun >= milliseconds(options_.timeout_ms)) {
        item.state = Item::State::kLate;
        item.late = true;
        crew_.lose(item.worker);
        ++replace;
      }
      const Item::State state = item.state;
      lock.unlock();
      if (state == Item::State::kWaiting) {
        all = false;
        continue;
      }
      if (told_[i] == 0) {
        told_[i] = 1;
        events_->began(i);
      }
      if (state == Item::State::kRunning) {
        all = false;
      } else if (told_[i] == 1) {
        told_[i] = 2;
        if (state == Item::State::kDone) {
          events_->ended(i, item.result);
        } else {
          events_->ended(i, late_result(i));
        }
      }
    }
    if (events_->stopped() || work_->cancel->raised()) close(kStopped);
    // Late threads may have been the only ones.
    for (; replace > 0 && !closed_; --replace) {
      if (!crew_.add()) close("there is no thread for it");
    }
    return all;
  }

  /// Calls that have not begun get a result that says why.
  void close(const char* why) {
    if (closed_) return;
    closed_ = true;
    const std::lock_guard lock(work_->mutex);
    work_->closed = true;
    for (Item& item : work_->items) {
      if (item.state != Item::State::kWaiting) continue;
      item.result = not_run(item.call.call, why);
      item.state = Item::State::kDone;
      told_[static_cast<size_t>(&item - work_->items.data())] = 2;
    }
  }

  void wait() {
    std::unique_lock lock(work_->mutex);
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Item::State state = work_->items[i].state;
      const bool known = state == Item::State::kWaiting ||
                         (state == Item::State::kRunning && told_[i] == 1) || told_[i] == 2;
      if (!known) return;
    }
    work_->changed.wait_for(lock, kGlance);
  }

  std::span<const ReadyCall> calls_;
  RunnerOptions options_;
  RunnerEvents* events_;
  std::shared_ptr<Work> work_;
  Crew crew_;
  std::vector<uint8_t> told_;  // 1: that it began; 2: and that it ended
  bool closed_ = false;
};

}  // namespace

ToolResult not_run(const chat::ToolCall& call, const char* why) {
  return {call.id, "not run: " + std::string(why), true};
}

Status run_calls(std::span<const ReadyCall> calls, const RunnerOptions& options,
                 const std::shared_ptr<const CancelFlag>& cancel, RunnerEvents* events,
                 std::vector<ToolResult>* results) {
  results->clear();
  results->reserve(calls.size());
  if (options.threads <= 0 && options.timeout_ms <= 0) {
    return run_in_order(calls, options, cancel.get(), events, results);
  }
  return ThreadedRun(calls, options, cancel, events).run(results);
}

}  // namespace gen::agent
