// SPDX-License-Identifier: Apache-2.0
// A row of logits as kernels see it that look for its best tokens: what makes it unusable, what is
// set aside and its mask. A row has many blocks, each with a part of it.
#pragma once

#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {

inline constexpr int32_t kNoToken = 0x7FFFFFFF;
/// Tokens of a block's part of a row.
constexpr int32_t kPartTokens = 2048;
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

/// The part of row t that is the block's by its x; all of the row where there is one part.
GEN_DEVICE LogitRow part_of(const RowsView& x, int64_t t) {
  const auto cols = static_cast<int32_t>(x.cols);
  LogitRow row;
  row.logits = x.data + t * x.stride;
  row.from = block_x() * kPartTokens;
  row.to = cols - row.from < kPartTokens ? cols : row.from + kPartTokens;
  return row;
}

GEN_DEVICE bool is_bad(float logit) { return !(logit < float_from_bits(0x7F800000U)); }

/// The least of what the threads have, in all of them; `each` has a place for each warp. The block
/// waits before and after it.
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

/// What the parts of a row have found; as least_of_block().
GEN_DEVICE int32_t first_bad_of(const int32_t* bads, int32_t parts, const Shared<int32_t>& each) {
  int32_t bad = kNoToken;
  for (int32_t i = thread_x(); i < parts; i += block_threads()) bad = bads[i] < bad ? bads[i] : bad;
  return least_of_block(bad, each);
}

/// What BestArgs says of a row with a bad logit.
GEN_DEVICE void report_bad(const float* logits, int32_t bad, int32_t k, int32_t* tokens,
                           float* values) {
  for (int32_t i = thread_x(); i < k; i += block_threads()) {
    tokens[i] = -1 - bad;
    values[i] = logits[bad];
  }
}

/// Takes in what comes with the row, as far as it is of the part's tokens. The block waits in and
/// after it.
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

/// Larger for what goes first: the larger logit, of equal ones the lower token; both zeros are one.
/// No logit that is a number has 0.
GEN_DEVICE uint64_t rank_of(float logit, int32_t token) {
  const uint32_t bits = logit == 0.0F ? 0U : float_bits(logit);
  const uint32_t order = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return static_cast<uint64_t>(order) << 32 | (0xFFFFFFFFU - static_cast<uint32_t>(token));
}
GEN_DEVICE int32_t token_of(uint64_t rank) {
  return static_cast<int32_t>(0xFFFFFFFFU - static_cast<uint32_t>(rank));
}
/// Of a rank, with the sign that the row gives its zeros.
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

/// Takes it, and enqueues the search for bad logits where rows come with more: that may change
/// nothing of a row that has one. Else whoever looks for the best finds them.
Status begin_parts(const OpContext& context, const engine::BestArgs& args, BestParts* parts);

}  // namespace gen::cuda
