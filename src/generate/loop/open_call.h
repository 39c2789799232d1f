// SPDX-License-Identifier: Apache-2.0
// What a generator counts of its generating calls, so that the work it has accepted stays within
// its queue.
#pragma once

#include <optional>

#include "base/status.h"
#include "generate/step/request_queue.h"

namespace gen::generate {

class Generator;

/// A generating call between its beginning and its end. Threads: one at a time.
class OpenCall {
 public:
  /// Fills `*call`. kBusy naming the limit when the generator has as many calls as it takes. The
  /// generator must outlive the call.
  static Status enter(const Generator& generator, std::optional<OpenCall>* call);
  /// Whether enter() would succeed now.
  static bool has_room(const Generator& generator) noexcept;
  explicit OpenCall(const Generator& generator);
  ~OpenCall() { end(); }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

  /// Makes room for another call, and nobody waits for this one. The participant stays, for its
  /// session is still in use.
  void end() noexcept;

  [[nodiscard]] Participant* participant() noexcept { return &participant_; }

 private:
  const Generator& generator_;
  bool open_ = true;
  Participant participant_;
};

}  // namespace gen::generate
