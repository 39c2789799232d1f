// SPDX-License-Identifier: Apache-2.0
// Log-softmax of a row. See logprobs.h.
#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/mass.h"
#include "base/row_peak.h"
#include "base/portable_math.h"
#include "sampling/selection.h"

namespace gen::sampling {

double log_sum_exp(std::span<const float> logits, float max) noexcept {
  double total = 0.0;
  for (size_t begin = 0; begin < logits.size(); begin += kMassSlice) {
    const auto slice = logits.subspan(begin, std::min<size_t>(kMassSlice, logits.size() - begin));
    double sum = 0.0;
    weigh_slices(
        slice.size(), [&](size_t i) { return slice[i]; }, max, 1.0, std::span(&sum, 1));
    total += sum;
  }
  return log_sum_exp(max, total);
}

double log_sum_exp(float max, double mass) noexcept {
  return static_cast<double>(max) + portable_log(mass);
}

Status check_read(std::span<const float> logits, int64_t row, size_t bad, float max) {
  if (bad < logits.size()) {
    return error(Code::kModel, "row %lld, token %zu: logit is %s", static_cast<long long>(row), bad,
                 std::isnan(logits[bad]) ? "nan" : "+inf");
  }
  if (max == -std::numeric_limits<float>::infinity()) return all_impossible(row, logits.size());
  return {};
}

Status all_impossible(int64_t row, size_t n) {
  return error(Code::kModel, "row %lld: all %zu logits are -inf", static_cast<long long>(row), n);
}

Result<float> token_logprob(std::span<const float> logits, size_t token, int64_t row) {
  float max = 0.0F;
  size_t bad = 0;
  argmax(logits, &max, &bad);
  GEN_TRY(check_read(logits, row, bad, max));
  return static_cast<float>(static_cast<double>(logits[token]) - log_sum_exp(logits, max));
}

void top_logprobs(std::span<const float> logits, double log_sum, int32_t count,
                  std::vector<float>* scratch, std::vector<TokenLogprob>* out) {
  out->clear();
  const size_t wanted = std::min(static_cast<size_t>(std::max(count, 0)), logits.size());
  if (wanted == 0) return;
  out->reserve(wanted);
  const float bar = kth_largest(logits, wanted, scratch);
  const auto add = [&](size_t i) {
    out->push_back(
        {static_cast<int32_t>(i), static_cast<float>(static_cast<double>(logits[i]) - log_sum)});
  };
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > bar) add(i);
  }
  for (size_t i = 0; i < logits.size() && out->size() < wanted; ++i) {
    if (logits[i] == bar) add(i);
  }
  std::sort(out->begin(), out->end(), [&](const TokenLogprob& a, const TokenLogprob& b) {
    const float x = logits[static_cast<size_t>(a.token)];
    const float y = logits[static_cast<size_t>(b.token)];
    return x != y ? x > y : a.token < b.token;
  });
}

}  // namespace gen::sampling
