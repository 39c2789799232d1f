// SPDX-License-Identifier: Apache-2.0
// OpenCall: counts a generator's calls in progress, so that accepted work stays within its queue.
#pragma once

#include <optional>

#include "base/status.h"
#include "generate/step/request_queue.h"

namespace gen::generate {

class Generator;

/// A generating call in progress. Threads: one at a time.
class OpenCall {
 public:
  /// Fills `*call`. kBusy, naming the limit, if the generator has as many calls as it accepts. The
  /// generator must outlive the call.
  static Status enter(const Generator& generator, std::optional<OpenCall>* call);
  /// Whether enter() would succeed now.
  static bool has_room(const Generator& generator) noexcept;
  explicit OpenCall(const Generator& generator);
  ~OpenCall() { end(); }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

  /// Frees the call's place, and the queue no longer expects it. The participant stays, because the
  /// session is still in use.
  void end() noexcept;

  [[nodiscard]] Participant* participant() noexcept { return &participant_; }

 private:
  const Generator& generator_;
  bool open_ = true;
  Participant participant_;
};

}  // namespace gen::generate
