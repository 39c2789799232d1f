// SPDX-License-Identifier: Apache-2.0
// A row of logits as kernels see it that look for its best tokens: what makes it unusable, its
// edits and its mask.
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

/// The least of the threads' numbers; `all` has a place for each of `threads`, a power of two. The
/// block waits before and after it.
GEN_DEVICE int32_t least_of_block(const Shared<int32_t>& all, int32_t threads, int32_t own) {
  all[thread_x()] = own;
  sync_threads();
  for (int32_t half = threads / 2; half > 0; half /= 2) {
    if (thread_x() < half) {
      const int32_t other = all[thread_x() + half];
      const int32_t here = all[thread_x()];
      all[thread_x()] = other < here ? other : here;
    }
    sync_threads();
  }
  const int32_t least = all[0];
  sync_threads();
  return least;
}

/// The first logit that is NaN or +inf, or kNoToken; `found` has a place for each of `threads`, a
/// power of two. The block waits before and after it.
GEN_DEVICE int32_t first_bad(const LogitRow& row, const Shared<int32_t>& found, int32_t threads) {
  int32_t bad = kNoToken;
  for (int32_t i = thread_x(); i < row.cols && bad == kNoToken; i += threads) {
    if (!(row.logits[i] < float_from_bits(0x7F800000U))) bad = i;
  }
  return least_of_block(found, threads, bad);
}

/// Whether (value, token) goes before (other, its token).
GEN_DEVICE bool goes_before(float value, int32_t token, float other, int32_t other_token) {
  if (token == kNoToken) return false;
  if (other_token == kNoToken) return true;
  return value > other || (value == other && token < other_token);
}

/// Puts into values[0] and tokens[0] what goes first of the threads' pairs; each array has a
/// place for each of `threads`, a power of two. The block waits in it.
GEN_DEVICE void best_of_block(const Shared<float>& values, const Shared<int32_t>& tokens,
                              int32_t threads, float value, int32_t token) {
  values[thread_x()] = value;
  tokens[thread_x()] = token;
  sync_threads();
  for (int32_t half = threads / 2; half > 0; half /= 2) {
    if (thread_x() < half) {
      const float other = values[thread_x() + half];
      const int32_t other_token = tokens[thread_x() + half];
      if (goes_before(other, other_token, values[thread_x()], tokens[thread_x()])) {
        values[thread_x()] = other;
        tokens[thread_x()] = other_token;
      }
    }
    sync_threads();
  }
}

/// What BestArgs says of a row with a bad logit.
GEN_DEVICE void report_bad(const LogitRow& row, int32_t bad, int32_t k, int32_t threads,
                           int32_t* tokens, float* values) {
  for (int32_t i = thread_x(); i < k; i += threads) {
    tokens[i] = -1 - bad;
    values[i] = row.logits[bad];
  }
}

/// Takes in which tokens are allowed.
GEN_DEVICE void take_mask(const engine::BestRow& with, LogitRow* row) {
  row->mask = at(with.mask);
  row->mask_words = with.mask_words;
}

/// Takes in what comes with the row; `with` may be null. The block waits after it.
GEN_DEVICE void apply(const engine::BestRow* with, LogitRow* row) {
  if (with != nullptr) {
    take_mask(*with, row);
    const engine::LogitEdit* const edits = at(with->edits);
    // In order, since several may be of one token.
    for (int32_t i = 0; thread_x() == 0 && i < with->n_edits; ++i) {
      row->logits[edits[i].token] += edits[i].add;
    }
  }
  sync_threads();
}

}  // namespace gen::cuda
