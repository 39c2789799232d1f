// SPDX-License-Identifier: Apache-2.0
// Summing instructions. Room for an entry is made before the clock starts. See profile.h.
#include "graph/profile.h"

#include <algorithm>
#include <new>

namespace gen::graph {
namespace {

using Seconds = std::chrono::duration<double>;

}  // namespace

void Profile::record(const engine::TraceEvent& event) noexcept {
  running_ = event;
  const auto index = static_cast<size_t>(event.index);
  try {
    if (index >= entries_.size()) entries_.resize(index + 1);
    std::string& name = entries_[index].name;
    if (name.empty()) {
      std::string text = event.op;
      if (event.detail[0] != '\0') text += std::string(" ") + event.detail;
      if (event.layer >= 0) text += " " + std::to_string(event.layer);
      name = std::move(text);
    }
    if (spans_.size() < kMaxSpans && spans_.size() == spans_.capacity()) {
      spans_.reserve(std::max<size_t>(256, 2 * spans_.size()));
    }
  } catch (const std::bad_alloc&) {
    incomplete_ = true;
    running_.index = -1;
  }
  begin_ = Clock::now();
  if (spans_.empty()) first_ = begin_;
}

void Profile::done() noexcept {
  const double seconds = Seconds(Clock::now() - begin_).count();
  if (running_.index >= 0 && spans_.size() < std::min(kMaxSpans, spans_.capacity())) {
    spans_.push_back({running_.index, Seconds(begin_ - first_).count(), seconds, running_.rows});
  }
  add(seconds);
}

void Profile::enter() noexcept {
  within_ = 0;
  entered_ = Clock::now();
}

void Profile::leave(const engine::TraceEvent& event) noexcept {
  const double own = Seconds(Clock::now() - entered_).count() - within_;
  record(event);
  add(own);
}

void Profile::add(double seconds) noexcept {
  within_ += seconds;
  if (running_.index < 0) return;
  ProfileEntry& entry = entries_[static_cast<size_t>(running_.index)];
  entry.calls += 1;
  entry.rows += running_.rows;
  entry.seconds += seconds;
  entry.bytes += static_cast<double>(running_.bytes);
  entry.products += static_cast<double>(running_.products);
}

}  // namespace gen::graph
