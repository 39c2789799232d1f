// SPDX-License-Identifier: Apache-2.0
// best: the k largest logits of rows. The most common case, k = 1 without a mask, is one pass.
// Otherwise the k best so far are kept sorted in the result; few tokens enter this list.
#include <algorithm>
#include <limits>

#include "base/mass.h"
#include "base/row_peak.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();

/// The k best tokens so far. Tokens must be offered in ascending order.
class BestList {
 public:
  BestList(int32_t* tokens, float* values, int64_t k) : tokens_(tokens), values_(values), k_(k) {}

  void offer(int64_t token, float value) {
    if (n_ == k_ && !(value > values_[k_ - 1])) return;
    int64_t at = n_ < k_ ? n_++ : k_ - 1;
    for (; at > 0 && value > values_[at - 1]; --at) {
      tokens_[at] = tokens_[at - 1];
      values_[at] = values_[at - 1];
    }
    tokens_[at] = static_cast<int32_t>(token);
    values_[at] = value;
  }

 private:
  int32_t* tokens_;
  float* values_;
  int64_t k_;
  int64_t n_ = 0;
};

/// Logits, -inf for tokens that the mask does not allow. The mask may be null.
struct MaskedRow {
  std::span<const float> row;
  const uint32_t* mask;
  int32_t mask_words;
  float operator()(size_t i) const {
    const bool allowed = mask == nullptr || (i / 32 < static_cast<size_t>(mask_words) &&
                                             (mask[i / 32] >> (i % 32) & 1U) != 0);
    return allowed ? row[i] : kOut;
  }
};

void find_best(std::span<const float> row, const uint32_t* mask, int64_t mask_words,
               BestList* list) {
  constexpr int64_t kWord = 32;
  const auto n = static_cast<int64_t>(row.size());
  for (int64_t begin = 0; begin < n; begin += kWord) {
    const int64_t word = begin / kWord;
    const uint32_t bits = mask == nullptr ? ~uint32_t{0} : word < mask_words ? mask[word] : 0;
    const int64_t end = std::min(begin + kWord, n);
    for (int64_t i = begin; i < end; ++i) {
      const bool allowed = (bits >> (i - begin) & 1U) != 0;
      list->offer(i, allowed ? row[static_cast<size_t>(i)] : kOut);
    }
  }
}

}  // namespace

Status run(CpuContext& context, const BestArgs& args) {
  if (context.dry_run) return {};
  const Rows x = context.at(args.x);
  const BestRow* const rows = context.at(args.rows);
  int32_t* const tokens = context.at(args.tokens);
  float* const values = context.at(args.values);
  double* const mass = context.at(args.mass);
  float* const slice = context.at(args.slice);
  const int64_t k = args.k;
  parallel_rows(context, x.rows, x.cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      const std::span<float> row(x.row(t), static_cast<size_t>(x.cols));
      int32_t* const best = tokens + t * k;
      float* const logits = values + t * k;
      size_t bad = 0;
      *best = static_cast<int32_t>(argmax(row, logits, &bad));
      if (bad < row.size()) {
        std::fill_n(best, k, -1 - static_cast<int32_t>(bad));
        std::fill_n(logits, k, row[bad]);
        continue;
      }
      const BestRow with = rows != nullptr ? rows[t] : BestRow();
      const auto weigh = [&] {
        if (mass == nullptr || !(with.temperature > 0.0) || *logits == kOut) return;
        const MaskedRow masked = {row, context.at(with.mask), with.mask_words};
        const size_t slices = mass_slices(row.size());
        const std::span sums(mass + static_cast<size_t>(t) * slices, slices);
        weigh_slices(row.size(), masked, *logits, with.temperature, sums);
        if (slice == nullptr || !(with.place >= 0.0)) return;
        const size_t at = mass_place(sums, with.place * mass_total(sums)).slice;
        for (size_t i = 0; at < slices && i < kMassSlice; ++i) {
          const size_t token = at * kMassSlice + i;
          slice[t * kMassSlice + static_cast<int64_t>(i)] =
              token < row.size() ? masked(token) : kOut;
        }
      };
      if (k == 1 && !with.mask && with.n_aside == 0) {
        weigh();
        continue;
      }
      const std::span aside(context.at(with.aside), static_cast<size_t>(with.n_aside));
      float* to = context.at(with.aside_logits);
      for (const int32_t token : aside) *to++ = row[static_cast<size_t>(token)];
      for (const int32_t token : aside) row[static_cast<size_t>(token)] = kOut;
      BestList list(best, logits, k);
      find_best(row, context.at(with.mask), with.mask_words, &list);
      weigh();
    }
  });
  return {};
}

}  // namespace gen::engine::cpu
