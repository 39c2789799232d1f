// SPDX-License-Identifier: Apache-2.0
// Where the time of a plan's runs is spent: a tracer with a clock and one entry for each
// instruction, summed over any number of runs. Read next: engine/trace/tracer.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/trace/tracer.h"

namespace gen::graph {

struct ProfileEntry {
  std::string name;   // "linear blk.0.attn_q.weight", "attention 3", "rms_norm"
  int64_t calls = 0;  // 0 for an instruction that has not run
  int64_t rows = 0;
  double seconds = 0;
  double bytes = 0;     // read from memory, see TraceEvent
  double products = 0;  // multiplications with an addition each
};

/// When an instruction ran: `begin` is in seconds after the first one of the profile.
struct ProfileSpan {
  int32_t entry = 0;
  double begin = 0;
  double seconds = 0;
  int64_t rows = 0;
};

/// Storage: one entry for each instruction of the plan seen up to the last one that ran.
/// Threads: one run at a time.
class Profile final : public engine::Tracer {
 public:
  void record(const engine::TraceEvent& event) noexcept override;
  void done() noexcept override;
  /// A caller's own function is an entry, too, with its time without the instructions within it.
  void enter() noexcept override;
  void leave(const engine::TraceEvent& event) noexcept override;

  [[nodiscard]] std::span<const ProfileEntry> entries() const noexcept { return entries_; }
  /// The first runs as a timeline of up to kMaxSpans. A caller's own function has no span, but the
  /// operations within it have.
  [[nodiscard]] std::span<const ProfileSpan> spans() const noexcept { return spans_; }
  static constexpr size_t kMaxSpans = size_t{1} << 18;
  /// Memory for an entry was missing, so the measurements are incomplete.
  [[nodiscard]] bool incomplete() const noexcept { return incomplete_; }

 private:
  using Clock = std::chrono::steady_clock;

  void add(double seconds) noexcept;

  std::vector<ProfileEntry> entries_;
  std::vector<ProfileSpan> spans_;  // with room for one more
  Clock::time_point first_;
  engine::TraceEvent running_;
  Clock::time_point begin_;
  Clock::time_point entered_;
  double within_ = 0;  // seconds of instructions since then
  bool incomplete_ = false;
};

}  // namespace gen::graph
