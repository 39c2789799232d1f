// SPDX-License-Identifier: Apache-2.0
// A row of logits in the kernels that find its best tokens: its bad logits, its tokens aside and
// its mask. A row has many blocks, each with a part of it.
#pragma once

#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {

inline constexpr int32_t kNoToken = 0x7FFFFFFF;
/// Tokens of a block's part of a row.
constexpr int32_t kPartTokens = 2048;
/// Warps of such a block.
constexpr int32_t kPartWarps = 8;
constexpr int32_t parts_of(int64_t cols) noexcept {
  return static_cast<int32_t>((cols + kPartTokens - 1) / kPartTokens);
}

struct LogitRow {
  float* logits = nullptr;
  int32_t from = 0;  // the part's tokens are [from, to)
  int32_t to = 0;
  const uint32_t* mask = nullptr;  // null: every token is allowed
  int32_t mask_words = 0;

  /// Of a token; -inf where it is not allowed.
  GEN_DEVICE float at(int32_t token) const {
    const bool allowed = mask == nullptr ||
                         (token / 32 < mask_words && (mask[token / 32] >> (token % 32) & 1U) != 0);
    return allowed ? logits[token] : minus_infinity();
  }
};

/// Part `part` of row t.
GEN_DEVICE LogitRow part_of(const RowsView& x, int64_t t, int32_t part) {
  const auto cols = static_cast<int32_t>(x.cols);
  LogitRow row;
  row.logits = x.data + t * x.stride;
  row.from = part * kPartTokens;
  row.to = cols - row.from < kPartTokens ? cols : row.from + kPartTokens;
  return row;
}

GEN_DEVICE bool is_bad(float logit) { return !(logit < float_from_bits(0x7F800000U)); }

/// The minimum over the block, returned to all threads; `each` has a place for each warp. Includes
/// a barrier before and after.
GEN_DEVICE int32_t least_of_block(int32_t value, const Shared<int32_t>& each) {
  for (uint32_t apart = 16; apart > 0; apart /= 2) {
    const int32_t other = shuffle_xor(value, apart);
    value = other < value ? other : value;
  }
  if (lane_of_warp() == 0) each[warp_of_block()] = value;
  sync_threads();
  for (int32_t i = 0; i < block_threads() / 32; ++i) {
    const int32_t other = each[i];
    value = other < value ? other : value;
  }
  sync_threads();
  return value;
}

/// The first of the part's tokens whose logit is NaN or +inf, or kNoToken; as least_of_block().
GEN_DEVICE int32_t first_bad(const LogitRow& row, const Shared<int32_t>& each) {
  int32_t bad = kNoToken;
  for (int32_t i = row.from + thread_x(); i < row.to; i += block_threads()) {
    if (is_bad(row.logits[i]) && i < bad) bad = i;
  }
  return least_of_block(bad, each);
}

/// The first bad logit of all parts of a row; as least_of_block().
GEN_DEVICE int32_t first_bad_of(const int32_t* bads, int32_t parts, const Shared<int32_t>& each) {
  int32_t bad = kNoToken;
  for (int32_t i = thread_x(); i < parts; i += block_threads()) bad = bads[i] < bad ? bads[i] : bad;
  return least_of_block(bad, each);
}

/// Writes the result that BestArgs defines for a row with a bad logit.
GEN_DEVICE void report_bad(const float* logits, int32_t bad, int32_t k, int32_t* tokens,
                           float* values) {
  for (int32_t i = thread_x(); i < k; i += block_threads()) {
    tokens[i] = -1 - bad;
    values[i] = logits[bad];
  }
}

/// Applies the row's parameters to the tokens of the part. Includes barriers, also at its end.
GEN_DEVICE void apply(const engine::BestRow& with, LogitRow* row) {
  row->mask = at(with.mask);
  row->mask_words = with.mask_words;
  const int32_t* const aside = at(with.aside);
  float* const to = at(with.aside_logits);
  const auto has = [&](int32_t token) { return token >= row->from && token < row->to; };
  for (int32_t i = thread_x(); i < with.n_aside; i += block_threads()) {
    if (has(aside[i])) to[i] = row->logits[aside[i]];
  }
  sync_threads();  // all are read before one is overwritten, which another may be again
  for (int32_t i = thread_x(); i < with.n_aside; i += block_threads()) {
    if (has(aside[i])) row->logits[aside[i]] = minus_infinity();
  }
  sync_threads();
}

/// The rank of a logit and its token. It is larger for larger logits and, among equal logits, for
/// lower tokens; both zeros are equal. It is never 0 unless the logit is NaN.
GEN_DEVICE uint64_t rank_of(float logit, int32_t token) {
  const uint32_t bits = logit == 0.0F ? 0U : float_bits(logit);
  const uint32_t order = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return static_cast<uint64_t>(order) << 32 | (0xFFFFFFFFU - static_cast<uint32_t>(token));
}
GEN_DEVICE int32_t token_of(uint64_t rank) {
  return static_cast<int32_t>(0xFFFFFFFFU - static_cast<uint32_t>(rank));
}
/// The logit of a rank, with the sign of zeros taken from the row.
GEN_DEVICE float logit_of(const RowsView& x, const engine::BestRow* with, int64_t t,
                          int32_t token) {
  LogitRow row;
  row.logits = x.data + t * x.stride;
  if (with != nullptr) {
    row.mask = at(with[t].mask);
    row.mask_words = with[t].mask_words;
  }
  return row.at(token);
}

/// Memory of an operation: for each row and part its first bad logit, then the ranks of its best.
struct BestParts {
  int32_t* bads;    // [rows][parts]
  uint64_t* ranks;  // [rows][parts][k], 0 where a part has fewer tokens
  int32_t parts;
};

GEN_DEVICE uint64_t largest_of_warp_rank(uint64_t rank) {
  for (uint32_t apart = 16; apart > 0; apart /= 2) {
    const uint64_t other = shuffle_xor(rank, apart);
    rank = other > rank ? other : rank;
  }
  return rank;
}

/// The first bad logit of part `part` of row t.
GEN_DEVICE void find_bad(const RowsView& x, const BestParts& parts, int64_t t, int32_t part) {
  GEN_SHARED(int32_t, each, kPartWarps);
  const int32_t bad = first_bad(part_of(x, t, part), each);
  if (thread_x() == 0) parts.bads[t * parts.parts + part] = bad;
}

/// The best token of a part and, if rows have no parameters, its first bad logit. Called by a block
/// of kPartWarps warps.
GEN_DEVICE void find_best(const RowsView& x, const engine::BestRow* rows, const BestParts& parts,
                          int64_t t, int32_t part) {
  GEN_SHARED(int32_t, each, kPartWarps);
  GEN_SHARED(uint64_t, ranks, kPartWarps);
  LogitRow row = part_of(x, t, part);
  const int64_t place = t * parts.parts + part;
  if (rows != nullptr) {
    const int32_t* const bads = parts.bads + t * parts.parts;
    if (first_bad_of(bads, parts.parts, each) != kNoToken) return;
    apply(rows[t], &row);
  }
  constexpr int32_t kEach = kPartTokens / (32 * kPartWarps);
  float logits[static_cast<size_t>(kEach)];
  GEN_UNROLL
  for (int32_t i = 0; i < kEach; ++i) {
    const int32_t token = row.from + i * 32 * kPartWarps + thread_x();
    logits[i] = token < row.to ? row.at(token) : minus_infinity();
  }
  uint64_t rank = 0;
  int32_t bad = kNoToken;
  GEN_UNROLL
  for (int32_t i = 0; i < kEach; ++i) {
    const int32_t token = row.from + i * 32 * kPartWarps + thread_x();
    if (token >= row.to) continue;
    if (is_bad(logits[i]) && token < bad) bad = token;
    const uint64_t own = rank_of(logits[i], token);
    rank = own > rank ? own : rank;
  }
  rank = largest_of_warp_rank(rank);
  if (lane_of_warp() == 0) ranks[warp_of_block()] = rank;
  if (rows == nullptr) {
    bad = least_of_block(bad, each);
    if (thread_x() == 0) parts.bads[place] = bad;
  } else {
    sync_threads();
  }
  if (thread_x() != 0) return;
  for (int32_t i = 0; i < kPartWarps; ++i) {
    const uint64_t other = ranks[i];
    rank = other > rank ? other : rank;
  }
  parts.ranks[place] = rank;
}

/// The best token of the parts of row t, by a block of kWarps warps.
template <int32_t kWarps>
GEN_DEVICE void merge_best(const RowsView& x, const engine::BestRow* rows, const BestParts& parts,
                           int64_t t, int32_t* tokens, float* values) {
  GEN_SHARED(int32_t, each, kWarps);
  GEN_SHARED(uint64_t, ranks, kWarps);
  uint64_t rank = 0;
  int32_t bad = kNoToken;
  for (int32_t i = thread_x(); i < parts.parts; i += 32 * kWarps) {
    const int64_t place = t * parts.parts + i;
    const int32_t other_bad = parts.bads[place];
    bad = other_bad < bad ? other_bad : bad;
    const uint64_t other = parts.ranks[place];
    rank = other > rank ? other : rank;
  }
  rank = largest_of_warp_rank(rank);
  if (lane_of_warp() == 0) ranks[warp_of_block()] = rank;
  bad = least_of_block(bad, each);
  if (bad != kNoToken) {
    report_bad(x.data + t * x.stride, bad, 1, tokens + t, values + t);
    return;
  }
  if (thread_x() != 0) return;
  for (int32_t i = 1; i < kWarps; ++i) {
    const uint64_t other = ranks[i];
    rank = other > rank ? other : rank;
  }
  const int32_t token = token_of(rank);
  tokens[t] = token;
  values[t] = logit_of(x, rows, t, token);
}

/// Allocates the memory. If rows have parameters, it also enqueues the search for bad logits, since
/// a row with one must not be changed. Otherwise the search for the best finds them.
Status begin_parts(const OpContext& context, const engine::BestArgs& args, BestParts* parts);

}  // namespace gen::cuda
