// SPDX-License-Identifier: Apache-2.0
// See row_peaks.h.
#include "sampling/row_peaks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "sampling/selection.h"

namespace gen::sampling {
namespace {

constexpr float kEndless = std::numeric_limits<float>::infinity();

std::span<const float> block_of(std::span<const float> row, size_t block) noexcept {
  const size_t begin = block * RowPeaks::kBlock;
  return row.subspan(begin, std::min(RowPeaks::kBlock, row.size() - begin));
}

size_t block_count(std::span<const float> row) noexcept {
  return (row.size() + RowPeaks::kBlock - 1) / RowPeaks::kBlock;
}

}  // namespace

size_t RowPeaks::read(std::span<const float> row) {
  const size_t blocks = block_count(row);
  peaks_.resize(blocks);
  stale_.assign(blocks, 0);
  for (size_t i = 0; i < blocks; ++i) {
    const Peak peak = peak_of(block_of(row, i));
    if (peak.bad) return i * kBlock + first_not_finite(block_of(row, i));
    peaks_[i] = peak.max;
  }
  return row.size();
}

void RowPeaks::refresh(std::span<const float> row) noexcept {
  for (size_t i = 0; i < peaks_.size(); ++i) {
    if (stale_[i] == 0) continue;
    peaks_[i] = peak_of(block_of(row, i)).max;
    stale_[i] = 0;
  }
}

float RowPeaks::max() const noexcept { return row_max(peaks_); }

size_t RowPeaks::first_index_of(std::span<const float> row, float value) const noexcept {
  const size_t block = gen::first_index_of(peaks_, value);
  return block * kBlock + gen::first_index_of(block_of(row, block), value);
}

float RowPeaks::kth_largest(std::span<const float> row, size_t k,
                            std::vector<float>* scratch) const {
  // k blocks have a value of at least the k-th largest peak, so the answer is no smaller. If nearly
  // every block would have to be scanned, scanning the whole row is cheaper.
  if (k > peaks_.size() / 4) return sampling::kth_largest(row, k, scratch);
  const float low = sampling::kth_largest(peaks_, k, scratch);
  if (low == -kEndless) return sampling::kth_largest(row, k, scratch);
  scratch->clear();
  for (size_t i = 0; i < peaks_.size(); ++i) {
    if (peaks_[i] < low) continue;
    for (const float value : block_of(row, i)) {
      if (value >= low) scratch->push_back(value);
    }
  }
  const auto kth = scratch->begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(scratch->begin(), kth, scratch->end(), std::greater<>());
  return *kth;
}

void RowPeaks::collect(std::span<const float> row, float bar,
                       std::vector<Candidate>* candidates) const {
  bar = std::max(bar, std::numeric_limits<float>::lowest());  // leaves out -inf
  candidates->clear();
  for (size_t i = 0; i < peaks_.size(); ++i) {
    if (peaks_[i] < bar) continue;
    // Through an array, so that a value is kept or skipped without a branch.
    std::array<Candidate, kBlock> some;
    const std::span<const float> block = block_of(row, i);
    const auto first = static_cast<int32_t>(i * kBlock);
    size_t kept = 0;
    for (size_t at = 0; at < block.size(); ++at) {
      some[kept].token = first + static_cast<int32_t>(at);
      some[kept].logit = block[at];
      kept += static_cast<size_t>(block[at] >= bar);
    }
    candidates->insert(candidates->end(), some.begin(),
                       some.begin() + static_cast<std::ptrdiff_t>(kept));
  }
}

}  // namespace gen::sampling
