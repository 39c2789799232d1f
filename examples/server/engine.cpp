// SPDX-License-Identifier: Apache-2.0
// See engine.h.
#include "engine.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace server {
namespace {

using Clock = std::chrono::steady_clock;
using LibraryRequest = cli::Handle<gen_request, gen_request_free>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The token callback's data.
struct Receiver {
  const Task& task;
  Metrics& metrics;
  Clock::time_point start;
  bool begun = false;
  std::vector<Drawn> drawn;  // since the last piece of text
};

Drawn drawn_token(const gen_token& token) {
  Drawn out = {token.id, token.logprob, {}};
  for (int32_t i = 0; i < token.top_count; ++i) {
    out.top.emplace_back(token.top[i].id, token.top[i].logprob);
  }
  return out;
}

int on_token(void* user, size_t, const gen_token* token) {
  auto& receiver = *static_cast<Receiver*>(user);
  Answer& answer = *receiver.task.answer;
  try {
    if (token->id >= 0 && !std::exchange(receiver.begun, true)) {
      receiver.metrics.first_token(seconds_since(receiver.start));
    }
    if (token->id >= 0 && receiver.task.logprobs) receiver.drawn.push_back(drawn_token(*token));
    // The end is reported with the result.
    if (token->text_len > 0) {
      answer.push({receiver.task.choice, std::string(token->text, token->text_len), std::nullopt,
                   std::exchange(receiver.drawn, {})});
    }
  } catch (const std::exception&) {
    answer.lose();  // an exception may not cross C
    return 1;
  }
  return answer.cancelled() ? 1 : 0;
}

int64_t usage_of(const gen_result* result, const char* key) {
  int64_t value = 0;
  return gen_result_usage(result, key, &value, nullptr) == GEN_OK ? value : 0;
}

End failed(gen_status status, std::string message) {
  End end;
  end.finish_reason = status == GEN_ERROR_CANCELLED ? GEN_FINISH_CANCELLED : GEN_FINISH_ERROR;
  end.status = status;
  end.message = std::move(message);
  return end;
}

End cancelled() { return failed(GEN_ERROR_CANCELLED, "cancelled"); }

}  // namespace

Engine::Engine(cli::Generator generator, size_t parallel, size_t queue, Metrics& metrics)
    : generator_(std::move(generator)), parallel_(parallel), queue_(queue), metrics_(metrics) {
  running_.reserve(parallel_);
  try {
    for (size_t i = 0; i < parallel_; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::exception&) {  // the system has no more threads
    end();
    throw;
  }
}

Engine::~Engine() { end(); }

void Engine::end() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

Engine::Admission Engine::submit(std::vector<Task> tasks) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return Admission::kStopping;
    if (running_.size() + waiting_.size() + tasks.size() > parallel_ + queue_) {
      return Admission::kFull;
    }
    const auto before = static_cast<std::ptrdiff_t>(waiting_.size());
    try {
      for (Task& task : tasks) waiting_.push_back(std::move(task));
    } catch (const std::bad_alloc&) {
      waiting_.erase(waiting_.begin() + before, waiting_.end());
      throw;
    }
  }
  changed_.notify_all();
  return Admission::kTaken;
}

void Engine::abandon(const std::shared_ptr<Answer>& answer) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const Task& task) { return task.answer == answer; });
  }
  answer->cancel();
}

void Engine::stop() {
  std::deque<Task> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
    for (const std::shared_ptr<Answer>& answer : running_) answer->cancel();
  }
  changed_.notify_all();
  for (const Task& task : dropped) task.answer->push({task.choice, {}, cancelled(), {}});
}

size_t Engine::running() const {
  const std::lock_guard lock(mutex_);
  return running_.size();
}

size_t Engine::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void Engine::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Task task = std::move(waiting_.front());
    waiting_.pop_front();
    running_.push_back(task.answer);
    lock.unlock();
    run(task);
    const std::shared_ptr<Answer> answer = task.answer;
    task = {};
    lock.lock();
    running_.erase(std::find(running_.begin(), running_.end(), answer));
  }
}

void Engine::run(const Task& task) noexcept try {
  Event last;
  try {
    if (task.answer->cancelled()) {
      last.end = cancelled();
    } else {
      last = generate(task);
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& failure) {
    last.end = failed(GEN_ERROR_INTERNAL, failure.what());
  }
  last.choice = task.choice;
  const End& end = *last.end;
  metrics_.prompt_tokens += end.prompt_tokens;
  metrics_.cached_tokens += end.cached_tokens;
  metrics_.drafted_tokens += end.drafted_tokens;
  metrics_.accepted_tokens += end.accepted_tokens;
  metrics_.finished(end.finish_reason, end.completion_tokens);
  task.answer->push(std::move(last));
} catch (const std::exception&) {  // no memory even for the failure
  task.answer->lose();
}

Event Engine::generate(const Task& task) {
  // A batch of one, because gen_generate takes no tokens.
  const auto request = cli::make<LibraryRequest>(gen_request_new);
  gen_error error;
  cli::check(gen_request_set_prompt_tokens(request.get(), task.prompt->data(), task.prompt->size(),
                                           &error),
             error);
  cli::check(gen_request_set_sampling(request.get(), task.sampling.get(), &error), error);
  Receiver receiver{task, metrics_, Clock::now(), false, {}};
  const gen_request* requests[] = {request.get()};
  gen_result* made[] = {nullptr};
  if (const gen_status status = gen_batch_generate_stream(generator_.get(), requests, 1, on_token,
                                                          &receiver, made, &error)) {
    return {task.choice, {}, failed(status, error.message), {}};
  }
  const cli::Result result(made[0]);
  const gen_error* failure = gen_result_error(result.get());
  End end = failure == nullptr ? End() : failed(failure->code, failure->message);
  end.finish_reason = gen_result_finish_reason(result.get());
  end.prompt_tokens = usage_of(result.get(), "prompt");
  end.cached_tokens = usage_of(result.get(), "prompt_cached");
  end.evaluated_tokens = usage_of(result.get(), "prompt_evaluated");
  end.completion_tokens = usage_of(result.get(), "completion");
  end.drafted_tokens = usage_of(result.get(), "drafted");
  end.accepted_tokens = usage_of(result.get(), "accepted");
  return {task.choice, {}, std::move(end), std::move(receiver.drawn)};
}

}  // namespace server
