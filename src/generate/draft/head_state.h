// SPDX-License-Identifier: Apache-2.0
// What a head (head_drafter.h) keeps of a session: the rows of the text that it has seen, and its
// cache. Saved sessions hold it as well: docs/state-format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/sequence/cache_state.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/state_file.h"
#include "generate/draft/drafter.h"

namespace gen::generate {

/// The text from position `base` on. Row i is that of tokens[i], and runs with the features of row
/// i - 1 of the target: row i of a head is kept at entry i - 1 of its cache. Heads other than the
/// first may lack rows that it has.
struct HeadState final : DraftState {
  /// What a head has of the text.
  struct Filled {
    std::unique_ptr<cache::KvCache> cache;  // created on first use
    size_t rows = 0;                        // entries of the cache
  };

  /// `features`: floats of a row; `print`: the heads' fingerprint.
  HeadState(size_t features, size_t heads, uint64_t print)
      : width(features), fingerprint(print), filled(heads) {}
  [[nodiscard]] std::unique_ptr<DraftState> fork() const override;
  void settle(std::span<const int32_t> path) noexcept override;
  [[nodiscard]] std::vector<const cache::KvCache*> own_caches() const override;
  /// Nothing if the rows are not of this text.
  Status save(std::span<const int32_t> text, cache::StateWriter& to) const override;

  /// Row 0 of a tree was the pending token.
  void settle_open() noexcept;
  [[nodiscard]] size_t rows_waiting() const noexcept { return waiting.size() / width; }
  /// Rows that wait for a head: the last ones of those that wait.
  [[nodiscard]] size_t rows_for(size_t head) const noexcept {
    return tokens.size() - filled[head].rows;
  }
  /// Begins anew.
  void begin_at(int32_t position) noexcept;
  /// Drops what a head has beyond its rows.
  [[nodiscard]] bool cut_cache(size_t head) noexcept;
  /// Keeps the first `n` tokens. An entry for the token after them may stay.
  void cut(size_t n) noexcept;
  /// Begins anew behind the last row whose features are not finite, as those are that a caller's
  /// function did not write: no row of a head can follow it.
  void drop_unusable() noexcept;
  /// A head has the next rows; features that all heads have are dropped.
  void fill(size_t head, size_t rows) noexcept;
  /// Whether the rows that were seen are of this text.
  [[nodiscard]] bool is_of(std::span<const int32_t> text) const noexcept;

  const size_t width;
  const uint64_t fingerprint;
  std::vector<Filled> filled;  // by head
  int32_t base = 0;
  std::vector<int32_t> tokens;  // rows of the target that were seen
  std::vector<float> waiting;   // [rows, F] features of the last of them
  size_t open = 0;              // of the tokens: the last ones, which are a tree
  bool unsure = false;          // the text was cut: it may be another one before the cut as well
  int32_t resting = 0;          // proposals for which it is still skipped
};

/// A head's part of a saved session, every number and size checked; the bytes lie where they were.
struct SavedHead {
  static constexpr const char* kSection = "HEAD";
  struct Filled {
    int32_t rows = 0;
    std::optional<cache::SavedEntries> entries;  // of a head with a cache
  };
  /// kFormat for damage, and for rows beyond the `evaluated` tokens of the session.
  static Result<SavedHead> read(cache::StateReader& from, int32_t evaluated);

  uint64_t fingerprint = 0;
  int32_t base = 0;
  int32_t rows = 0;  // tokens that were seen
  int32_t width = 0;
  std::vector<Filled> heads;
  std::span<const std::byte> waiting;  // [rows that a head lacks, width] float32
};

}  // namespace gen::generate
