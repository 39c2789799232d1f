// SPDX-License-Identifier: Apache-2.0
// MaskPool: what states of automata allow, known by what the states do and not by which grammar
// they are of. The inside of a string is the same in most grammars, and is the dearest to find out
// about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gen::grammar {

struct StateMask {
  std::vector<uint64_t> bits;  // the tokens allowed, or
  std::vector<uint32_t> list;  // if they are few
  // Places of the trie, with others below, behind which a list goes on; if they are many, also
  // those of them that a mark (byte_kind.h) may follow.
  std::vector<uint32_t> exits;
  std::vector<uint32_t> before_marks;
  bool any = false;    // tokens are allowed
  uint64_t worst = 0;  // from behind each of them the list is reached within so many bytes
  [[nodiscard]] size_t memory() const noexcept {
    return sizeof(*this) + bits.capacity() * 8 +
           (list.capacity() + exits.capacity() + before_marks.capacity()) * 4;
  }
};

/// Threads: any number may use one object.
class MaskPool {
 public:
  /// Null if there is none.
  [[nodiscard]] std::shared_ptr<const StateMask> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto known = masks_.find(key);
    return known == masks_.end() ? nullptr : known->second;
  }
  /// Above the budget all earlier ones are forgotten.
  void add(const std::string& key, std::shared_ptr<const StateMask> mask) {
    const std::lock_guard lock(mutex_);
    const size_t more = key.size() + mask->memory();
    if (bytes_ + more > kMostBytes) {
      masks_.clear();
      bytes_ = 0;
    }
    if (masks_.emplace(key, std::move(mask)).second) bytes_ += more;
  }

 private:
  static constexpr size_t kMostBytes = size_t{64} << 20U;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const StateMask>> masks_;
  size_t bytes_ = 0;
};

}  // namespace gen::grammar
