// SPDX-License-Identifier: Apache-2.0
// A row of logits as kernels see it that look for its best tokens: what makes it unusable, what is
// set aside and its mask.
#pragma once

#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {

inline constexpr int32_t kNoToken = 0x7FFFFFFF;

struct LogitRow {
  float* logits = nullptr;
  int32_t cols = 0;
  const uint32_t* mask = nullptr;  // null: every token is allowed
  int32_t mask_words = 0;

  /// Of a token; -inf where it is not allowed.
  GEN_DEVICE float at(int32_t token) const {
    const bool allowed = mask == nullptr ||
                         (token / 32 < mask_words && (mask[token / 32] >> (token % 32) & 1U) != 0);
    return allowed ? logits[token] : minus_infinity();
  }
};

/// The first logit that is NaN or +inf, or kNoToken; `found` has a place for each of `threads`, a
/// power of two. The block waits before and after it.
GEN_DEVICE int32_t first_bad(const LogitRow& row, const Shared<int32_t>& found, int32_t threads) {
  int32_t bad = kNoToken;
  for (int32_t i = thread_x(); i < row.cols && bad == kNoToken; i += threads) {
    if (!(row.logits[i] < float_from_bits(0x7F800000U))) bad = i;
  }
  found[thread_x()] = bad;
  sync_threads();
  for (int32_t half = threads / 2; half > 0; half /= 2) {
    if (thread_x() < half) {
      const int32_t other = found[thread_x() + half];
      const int32_t own = found[thread_x()];
      found[thread_x()] = other < own ? other : own;
    }
    sync_threads();
  }
  bad = found[0];
  sync_threads();
  return bad;
}

/// What BestArgs says of a row with a bad logit.
GEN_DEVICE void report_bad(const LogitRow& row, int32_t bad, int32_t k, int32_t threads,
                           int32_t* tokens, float* values) {
  for (int32_t i = thread_x(); i < k; i += threads) {
    tokens[i] = -1 - bad;
    values[i] = row.logits[bad];
  }
}

/// Takes in what comes with the row; `with` may be null. The block waits in and after it.
GEN_DEVICE void apply(const engine::BestRow* with, LogitRow* row, int32_t threads) {
  if (with == nullptr) return;
  row->mask = at(with->mask);
  row->mask_words = with->mask_words;
  const int32_t* const aside = at(with->aside);
  float* const to = at(with->aside_logits);
  for (int32_t i = thread_x(); i < with->n_aside; i += threads) to[i] = row->logits[aside[i]];
  sync_threads();  // all are read before one is overwritten, which another may be again
  for (int32_t i = thread_x(); i < with->n_aside; i += threads) {
    row->logits[aside[i]] = minus_infinity();
  }
  sync_threads();
}

}  // namespace gen::cuda
