// SPDX-License-Identifier: Apache-2.0
// MergeTable and WordMerger: byte-pair encoding of one word. The pair with the lowest rank is
// joined first, the leftmost of equals, until no pair of neighbours is in the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace gen::tokenizer {

/// The result of merging two adjacent tokens.
struct Merge {
  uint32_t rank;
  int32_t token;
};

/// Pairs of token ids -> Merge. Storage: open addressing, at most half full.
/// Threads: immutable once filled.
class MergeTable {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;

  /// Room for `count` pairs.
  explicit MergeTable(size_t count = 0);
  /// The first of two equal pairs stays. Ids are not negative; at most `count` calls.
  void add(int32_t left, int32_t right, Merge merge) noexcept;
  /// rank is kNoRank if the pair is not there.
  [[nodiscard]] Merge find(int32_t left, int32_t right) const noexcept;

 private:
  struct Slot {
    uint64_t pair;
    Merge merge;
  };
  [[nodiscard]] size_t slot_of(uint64_t pair) const noexcept;

  std::vector<Slot> slots_;
  uint32_t shift_ = 0;
};

/// Ids by text. The texts live on.
using TokenIds = std::unordered_map<std::string_view, int32_t>;
TokenIds ids_of(std::span<const std::string> tokens);

/// Adds merges, "left right", best first. kFormat for one that is not two tokens making a third.
Status read_merges(std::span<const std::string> merges, const TokenIds& ids, MergeTable* table);

/// Merges words, one after another, with scratch space that is kept.
/// Threads: one at a time.
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& table) : table_(&table) {}

  /// Starts a word.
  void begin() noexcept { symbols_.clear(); }
  /// Adds the token of the word's next byte.
  void push(int32_t token) { symbols_.push_back({token, 0, 0, {MergeTable::kNoRank, -1}}); }
  /// Merges and appends the tokens that are left. O(n log n) in the bytes of the word.
  void finish(std::vector<int32_t>* out);

 private:
  struct Symbol {
    int32_t token;
    uint32_t previous;
    uint32_t next;  // kEnd for the last
    Merge merge;    // with the next symbol
  };
  static constexpr uint32_t kEnd = UINT32_MAX;
  void finish_short(std::vector<int32_t>* out);
  void update(uint32_t index);
  void pop_heap() noexcept;

  const MergeTable* table_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> heap_;  // rank << 32 | symbol; entries that no longer hold are skipped
};

}  // namespace gen::tokenizer
