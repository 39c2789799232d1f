// SPDX-License-Identifier: Apache-2.0
// Building: the cost of compiling one grammar so far, and whether compilation may continue. Every
// stage counts its work here as it goes, so that an oversized grammar is refused before it is
// built, and checks here for cancellation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/cancel.h"
#include "base/status.h"

namespace gen::grammar {

/// Once stopped, it stays stopped: stages that count then make nothing more, and their results are
/// meaningless. Threads: one.
class Building {
 public:
  /// Work allowed per edge, in visited nodes.
  static constexpr uint64_t kWorkPerEdge = 128;
  static constexpr uint64_t kLeastWork = uint64_t{1} << 22U;

  /// Without a limit.
  Building() noexcept = default;
  /// `cancel`, if not null, outlives it.
  Building(size_t max_edges, const CancelFlag* cancel) noexcept
      : max_edges_(max_edges), max_work_(work_for(max_edges)), cancel_(cancel) {}
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;

  /// False once compilation must stop.
  bool spend(uint64_t work) noexcept {
    work_ += work;
    if (why_ == Why::kGoesOn && work_ > max_work_) why_ = Why::kWork;
    if (why_ == Why::kGoesOn && cancel_ != nullptr && cancel_->raised()) why_ = Why::kCancelled;
    return why_ == Why::kGoesOn;
  }
  /// Stops because there are too many edges.
  void too_large() noexcept {
    if (why_ == Why::kGoesOn) why_ = Why::kEdges;
  }
  [[nodiscard]] bool stopped() const noexcept { return why_ != Why::kGoesOn; }
  [[nodiscard]] size_t max_edges() const noexcept { return max_edges_; }
  [[nodiscard]] uint64_t work() const noexcept { return work_; }

  /// Why it has stopped: kGrammar for an exceeded limit, kCancelled.
  [[nodiscard]] Status status() const {
    switch (why_) {
      case Why::kGoesOn:
        return {};
      case Why::kEdges:
        return error(Code::kGrammar, "the grammar takes more than %zu edges", max_edges_);
      case Why::kWork:
        return error(Code::kGrammar,
                     "the grammar takes more work than the limit of %llu for %zu edges",
                     static_cast<unsigned long long>(max_work_), max_edges_);
      case Why::kCancelled:
        break;
    }
    return error(Code::kCancelled, "cancelled while the grammar was made");
  }

 private:
  enum class Why : uint8_t { kGoesOn, kEdges, kWork, kCancelled };
  static constexpr uint64_t work_for(size_t edges) noexcept {
    constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
    if (edges > (kMost - kLeastWork) / kWorkPerEdge) return kMost;
    return kLeastWork + edges * kWorkPerEdge;
  }

  size_t max_edges_ = std::numeric_limits<size_t>::max();
  uint64_t max_work_ = std::numeric_limits<uint64_t>::max();
  const CancelFlag* cancel_ = nullptr;
  uint64_t work_ = 0;
  Why why_ = Why::kGoesOn;
};

/// Null: nothing is counted.
inline bool goes_on(Building* building, uint64_t work) noexcept {
  return building == nullptr || building->spend(work);
}

}  // namespace gen::grammar
