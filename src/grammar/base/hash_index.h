// SPDX-License-Identifier: Apache-2.0
// A hash index over a list that the caller owns: it maps elements to their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gen::grammar {

class HashIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// The number with this hash for which `equal(number)` is true; kNone if there is none.
  template <typename Equal>
  [[nodiscard]] uint32_t find(uint64_t hash, Equal&& equal) const {
    if (slots_.empty()) return kNone;
    for (size_t at = place_of(hash); slots_[at].number != kNone; at = (at + 1) & mask()) {
      if (slots_[at].hash == hash && equal(slots_[at].number)) return slots_[at].number;
    }
    return kNone;
  }

  void add(uint64_t hash, uint32_t number) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    put({hash, number});
    ++count_;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t number = kNone;
  };
  [[nodiscard]] size_t mask() const { return slots_.size() - 1; }
  [[nodiscard]] size_t place_of(uint64_t hash) const {
    return static_cast<size_t>((hash ^ hash >> 32U) & mask());
  }
  void put(const Slot& slot) {
    size_t at = place_of(slot.hash);
    while (slots_[at].number != kNone) at = (at + 1) & mask();
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNone) put(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace gen::grammar
