// SPDX-License-Identifier: Apache-2.0
// What the server counts, as a page in the text format of Prometheus.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "languages.h"

namespace server {

/// Counters and gauges of one server. Threads: any.
class Metrics {
 public:
  /// Counts something for as long as it lives.
  class Gauge {
   public:
    explicit Gauge(std::atomic<int64_t>& value) : value_(value) { ++value_; }
    ~Gauge() { --value_; }
    Gauge(const Gauge&) = delete;
    Gauge& operator=(const Gauge&) = delete;

   private:
    std::atomic<int64_t>& value_;
  };

  std::atomic<int64_t> clients{0};  // being answered
  std::atomic<int64_t> prompt_tokens{0};
  std::atomic<int64_t> cached_tokens{0};  // of these, found in the prefix cache
  std::atomic<int64_t> drafted_tokens{0};
  std::atomic<int64_t> accepted_tokens{0};  // of these, accepted
  std::atomic<int64_t> disconnects{0};      // clients that disconnected before the end of their
                                            // answer

  /// Counts an HTTP response. `path` must be one of a fixed set: it becomes a label.
  void responded(const std::string& path, int status);
  /// Records the time to a choice's first token.
  void first_token(double seconds);
  /// Counts a finished choice, GEN_FINISH_….
  void finished(int32_t finish_reason, int64_t completion_tokens);

  /// The page; the engine supplies the running and waiting answers, Languages its own counts.
  std::string page(size_t running, size_t waiting, const Languages::Counts& languages) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> responses_;
  std::map<int32_t, int64_t> finished_;
  int64_t completion_tokens_ = 0;
  int64_t first_tokens_ = 0;
  double first_token_seconds_ = 0;
};

}  // namespace server
