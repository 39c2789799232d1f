// SPDX-License-Identifier: Apache-2.0
// MaskPool: masks of automaton states, keyed by the behaviour of the states instead of their
// grammar. The inside of a string is the same in most grammars, and its mask is the most expensive.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gen::grammar {

struct StateMask {
  static constexpr size_t kMaxRemoved = 512;

  // The allowed tokens are those of `base`, which has no base itself, without the removed ones;
  // plus
  std::shared_ptr<const StateMask> base;
  std::vector<uint32_t> removed;  // at most kMaxRemoved
  std::vector<uint64_t> bits;     // these, or
  std::vector<uint32_t> list;     // these, if they are few
  // Trie nodes, with others below them, where the item's list continues; if there are many, also
  // those of them that a mark (byte_kind.h) may follow.
  std::vector<uint32_t> exits;
  std::vector<uint32_t> before_marks;
  bool any = false;    // tokens are allowed
  uint64_t worst = 0;  // after each allowed token the list is reached within this many bytes
  void add_to(std::span<uint64_t> out) const noexcept {
    if (base != nullptr) {
      std::bitset<kMaxRemoved> kept;  // removed tokens that were in the set before
      for (size_t i = 0; i < removed.size(); ++i) {
        kept[i] = (out[removed[i] / 64] >> (removed[i] % 64) & 1) != 0;
      }
      base->add_to(out);
      for (size_t i = 0; i < removed.size(); ++i) {
        if (!kept[i]) out[removed[i] / 64] &= ~(uint64_t{1} << (removed[i] % 64));
      }
    }
    for (size_t word = 0; word < bits.size(); ++word) out[word] |= bits[word];
    for (const uint32_t token : list) out[token / 64] |= uint64_t{1} << (token % 64);
  }
  /// Without the memory of `base`.
  [[nodiscard]] size_t memory() const noexcept {
    return sizeof(*this) + bits.capacity() * 8 +
           (removed.capacity() + list.capacity() + exits.capacity() + before_marks.capacity()) * 4;
  }
};

/// The masks of a loop's body, repeated: level[0] is the mask before it, level[n] starts at the
/// exits of level[n - 1]. Independent of counts, which choose among the levels.
struct LoopMasks {
  std::vector<std::shared_ptr<const StateMask>> level;
  std::vector<std::vector<uint64_t>> within;  // tokens of levels 1 to n
  uint64_t worst = 0;                         // of all levels
  [[nodiscard]] size_t memory() const noexcept {
    size_t bytes = sizeof(*this);
    for (const auto& mask : level) bytes += mask->memory();
    for (const auto& bits : within) bytes += bits.capacity() * 8;
    return bytes;
  }
};

/// Threads: any number may use one object.
class MaskPool {
 public:
  /// Null if there is none.
  [[nodiscard]] std::shared_ptr<const StateMask> find(const std::string& key) const {
    return find_in(masks_, key);
  }
  [[nodiscard]] std::shared_ptr<const LoopMasks> find_loop(const std::string& key) const {
    return find_in(loops_, key);
  }
  /// Number of masks, not counting those of loops.
  [[nodiscard]] size_t size() const {
    const std::lock_guard lock(mutex_);
    return masks_.size();
  }
  /// Above the memory limit all earlier masks are dropped.
  void add(const std::string& key, std::shared_ptr<const StateMask> mask) {
    add_to(masks_, key, std::move(mask));
  }
  void add_loop(const std::string& key, std::shared_ptr<const LoopMasks> masks) {
    add_to(loops_, key, std::move(masks));
  }

 private:
  static constexpr size_t kMaxBytes = size_t{64} << 20U;
  template <typename T>
  using Table = std::unordered_map<std::string, std::shared_ptr<const T>>;

  template <typename T>
  std::shared_ptr<const T> find_in(const Table<T>& table, const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto known = table.find(key);
    return known == table.end() ? nullptr : known->second;
  }
  template <typename T>
  void add_to(Table<T>& table, const std::string& key, std::shared_ptr<const T> made) {
    const std::lock_guard lock(mutex_);
    const size_t more = key.size() + made->memory();
    if (bytes_ + more > kMaxBytes) {
      masks_.clear();
      loops_.clear();
      bytes_ = 0;
    }
    if (table.emplace(key, std::move(made)).second) bytes_ += more;
  }

  mutable std::mutex mutex_;
  Table<StateMask> masks_;
  Table<LoopMasks> loops_;
  size_t bytes_ = 0;
};

}  // namespace gen::grammar
