// SPDX-License-Identifier: Apache-2.0
// Numbers for lists, equal for equal lists. All lists are stored in one block: automata have
// thousands of node sets, each of which would otherwise need a heap block or two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "grammar/base/hash.h"
#include "grammar/base/hash_index.h"

namespace gen::grammar {

struct MixWord {
  uint64_t operator()(uint64_t hash, uint32_t word) const noexcept { return mix(hash, word); }
};

/// `Mix` mixes an element into a hash.
template <typename T, typename Mix = MixWord>
class ListTable {
 public:
  /// The number of the list, counted from 0 in order of insertion, and whether it is new. `beside`
  /// is part of the key.
  std::pair<uint32_t, bool> number_of(std::span<const T> list, uint32_t beside = 0) {
    uint64_t hash = mix(list.size(), beside);
    for (const T& one : list) hash = Mix()(hash, one);
    const uint32_t known = index_.find(hash, [&](uint32_t i) {
      return known_[i].beside == beside && std::ranges::equal(list, (*this)[i]);
    });
    if (known != HashIndex::kNone) return {known, false};
    const auto made = size();
    index_.add(hash, made);
    known_.push_back({elements_.size(), list.size(), beside});
    elements_.insert(elements_.end(), list.begin(), list.end());
    return {made, true};
  }

  [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(known_.size()); }
  /// Valid until the next new list.
  [[nodiscard]] std::span<const T> operator[](uint32_t number) const noexcept {
    return std::span(elements_).subspan(known_[number].first, known_[number].count);
  }

 private:
  struct Known {
    size_t first;
    size_t count;
    uint32_t beside;
  };
  HashIndex index_;
  std::vector<Known> known_;
  std::vector<T> elements_;
};

}  // namespace gen::grammar
