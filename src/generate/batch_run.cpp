// SPDX-License-Identifier: Apache-2.0
// See batch_run.h.
#include "generate/batch_run.h"

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include "generate/loop/generator.h"
#include "generate/loop/run.h"
#include "generate/loop/session.h"
#include "generate/step/scheduler.h"

namespace gen::generate {
namespace {

class BatchRun {
 public:
  BatchRun(const Generator& generator, std::span<const BatchRequest> requests,
           BatchCallback callback, void* user)
      : generator_(generator),
        requests_(requests),
        callback_(callback),
        user_(user),
        results_(requests.size()),
        order_(requests.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return requests[a].urgency.priority > requests[b].urgency.priority;
    });
    const auto most = static_cast<size_t>(generator.options().max_sequences);
    live_.reserve(std::min(most, requests.size()));
    queued_.reserve(live_.capacity());
  }

  std::vector<GenResult> run() noexcept {
    while (begun_ < order_.size() || !live_.empty()) {
      drop_unwanted();
      while (begun_ < order_.size() && live_.size() < live_.capacity() && begin()) {
      }
      for (Live& live : live_) {
        if (live.request == nullptr) proceed(&live);
      }
      live_.erase(std::remove_if(live_.begin(), live_.end(),
                                 [](const Live& live) { return live.generation == nullptr; }),
                  live_.end());
      queued_.clear();
      for (const Live& live : live_) queued_.push_back(live.request);
      (void)generator_.scheduler().wait_any(queued_);
      for (Live& live : live_) {
        if (generator_.scheduler().is_done(live.request)) live.request = nullptr;
      }
    }
    return std::move(results_);
  }

 private:
  struct Live {
    size_t index;
    std::unique_ptr<Generation> generation;  // null once it has ended
    StepRequest* request = nullptr;          // with the scheduler
    bool ran = false;                        // the request has run and take() is due
  };

  // Refuses requests that were cancelled, or whose deadline passed, before they began. Their
  // callbacks may cancel further requests, so it repeats until nothing changes.
  void drop_unwanted() noexcept {
    bool dropped = true;
    const auto unwanted = [&](size_t index) {
      const BatchRequest& request = requests_[index];
      Status status = check_wanted(request.params.cancel.get(), request.urgency.deadline, 0);
      if (status.ok()) return false;
      dropped = true;
      refuse(index, FinishReason::kCancelled, std::move(status));
      return true;
    };
    while (std::exchange(dropped, false)) {
      const auto first = order_.begin() + static_cast<std::ptrdiff_t>(begun_);
      order_.erase(std::remove_if(first, order_.end(), unwanted), order_.end());
    }
  }

  // Begins the next request. False if the generator's queue has no room for it yet.
  bool begin() noexcept {
    if (!live_.empty() && !OpenCall::has_room(generator_)) return false;
    const size_t index = order_[begun_];
    const BatchRequest& request = requests_[index];
    Status status;
    try {
      auto session = request.from != nullptr ? request.from->fork() : generator_.new_session();
      status = session.status();
      if (status.ok()) {
        auto generation = Generation::open(std::move(session).value(), request.prompt,
                                           request.params, request.urgency);
        status = generation.status();
        if (status.ok()) live_.push_back({index, std::move(generation).value()});
      }
    } catch (const std::bad_alloc&) {
      status = error(Code::kOutOfMemory, "no memory for request %zu", index);
    } catch (...) {
      status = error(Code::kInternal, "request %zu threw", index);
    }
    if (status.code() == Code::kBusy && !live_.empty()) return false;
    ++begun_;
    if (!status.ok()) refuse(index, FinishReason::kError, std::move(status));
    return true;
  }

  void refuse(size_t index, FinishReason reason, Status status) noexcept {
    GenResult& result = results_[index];
    result.finish_reason = reason;
    result.status = std::move(status);
    Event event;
    event.done = true;
    event.finish_reason = reason;
    if (callback_ == nullptr) return;
    try {
      result.user_code = callback_(user_, index, event);
    } catch (...) {  // the request has already failed
    }
  }

  // Takes the result of the last request, delivers events, and submits the next request.
  void proceed(Live* live) noexcept {
    Generation& generation = *live->generation;
    for (;;) {
      if (live->ran) {
        live->ran = false;
        deliver(live->index, &generation);
      }
      if (generation.ended()) break;
      StepRequest* const request = generation.want();
      live->ran = true;
      if (request == nullptr) continue;
      try {
        generator_.scheduler().submit(request);
        live->request = request;
        return;
      } catch (...) {
        generation.fail(error(Code::kOutOfMemory, "no memory to queue request %zu", live->index));
      }
    }
    results_[live->index] = generation.take_result();
    live->generation.reset();
  }

  void deliver(size_t index, Generation* generation) noexcept {
    const Event* const event = generation->take();
    if (event == nullptr || callback_ == nullptr) return;
    try {
      const int32_t answer = callback_(user_, index, *event);
      if (answer != 0) generation->stop(answer);
    } catch (...) {
      generation->break_off(callback_failure());
    }
  }

  const Generator& generator_;
  const std::span<const BatchRequest> requests_;
  const BatchCallback callback_;
  void* const user_;
  std::vector<GenResult> results_;
  std::vector<size_t> order_;  // the order in which requests begin
  size_t begun_ = 0;
  std::vector<Live> live_;
  std::vector<StepRequest*> queued_;
};

}  // namespace

std::vector<GenResult> run_batch(const Generator& generator, std::span<const BatchRequest> requests,
                                 BatchCallback callback, void* user) {
  return BatchRun(generator, requests, callback, user).run();
}

}  // namespace gen::generate
