// SPDX-License-Identifier: Apache-2.0
// best for 2 to 128 tokens: radix selection, of the k best of each part of a row and then of those
// of all parts. Logit and token are combined into one number of 64 bits that is larger for better
// tokens, so no two are equal. A histogram of the leading 11 bits gives those of the k-th largest.
// Histograms of the next bits among the numbers with this prefix narrow it down, until exactly as
// many are left as are wanted. Random logits take 3 passes, rows of equal ones 6. One more pass
// collects the k numbers. Each finds its place by counting the larger ones, so the result does not
// depend on the order of threads.
//
// Source: Alabi, Blanchard, Gordon, Steinbach, "Fast k-selection algorithms for graphics processing
// units" (2012), radixSelect.
#include "cuda/device/atomic.cuh"
#include "cuda/ops/logits/best_many.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 512;
constexpr int32_t kDigits = 2048;
constexpr int32_t kDigitsEach = kDigits / kThreads;
constexpr int32_t kSharesEach = kThreads / 32;  // of a lane of the first warp
constexpr unsigned kBits = 11;

/// The digit of the `wanted`-th largest number, and how many numbers have a larger and the same
/// one.
struct Found {
  int32_t digit = 0;
  int32_t above = 0;
  int32_t same = 0;
};

/// The first warp searches from the top; `shares` has a place for each thread, `found` for three
/// numbers. Includes a barrier before and after.
GEN_DEVICE Found find_digit(const Shared<int32_t>& counts, const Shared<int32_t>& shares,
                            const Shared<int32_t>& found, int32_t wanted) {
  // Thread 0 has the largest digits.
  const int32_t top = kDigits - 1 - thread_x() * kDigitsEach;
  int32_t share = 0;
  for (int32_t i = 0; i < kDigitsEach; ++i) share += counts[top - i];
  shares[thread_x()] = share;
  sync_threads();
  if (thread_x() < 32) {
    const int32_t first = thread_x() * kSharesEach;
    int32_t own = 0;
    for (int32_t i = 0; i < kSharesEach; ++i) own += shares[first + i];
    int32_t sum = own;  // of this lane and those before
    for (unsigned step = 1; step < 32; step *= 2) {
      const int32_t before = device::shuffle_up(sum, step);
      if (thread_x() >= static_cast<int32_t>(step)) sum += before;
    }
    int32_t above = sum - own;
    if (above < wanted && wanted <= sum) {
      int32_t at = first;
      while (above + shares[at] < wanted) above += shares[at++];
      int32_t digit = kDigits - 1 - at * kDigitsEach;
      while (above + counts[digit] < wanted) above += counts[digit--];
      found[0] = digit;
      found[1] = above;
      found[2] = static_cast<int32_t>(counts[digit]);
    }
  }
  sync_threads();
  const Found result = {found[0], found[1], found[2]};
  sync_threads();
  return result;
}

/// Shared memory of a selection.
struct Selection {
  Shared<int32_t> counts;   // [kDigits]
  Shared<int32_t> shares;   // [kThreads]
  Shared<int32_t> found;    // [3]
  Shared<uint64_t> chosen;  // [kBestMany]
};

/// chosen[0 … k) are the k largest of rank(0) … rank(n - 1), in any order. Ranks are distinct,
/// except for zeros, which are not counted. If fewer than k are left, all are chosen and zeros
/// follow. Ends with a barrier.
template <typename Rank>
GEN_DEVICE void select(const Selection& in, int32_t n, int32_t k, const Rank& rank) {
  uint64_t prefix = 0;  // the leading bits of the k-th largest, all but `rest`
  unsigned rest = n > k ? 64 : 0;
  int32_t wanted = k;  // of the numbers that begin with it
  bool exact = false;
  while (!exact && rest > 0) {
    const unsigned bits = rest < kBits ? rest : kBits;
    for (int32_t i = thread_x(); i < kDigits; i += kThreads) in.counts[i] = 0;
    sync_threads();
    for (int32_t i = thread_x(); i < n; i += kThreads) {
      const uint64_t own = rank(i);
      if (rest < 64 && own >> rest != prefix) continue;
      const auto digit = static_cast<uint32_t>(own >> (rest - bits)) & ((1U << bits) - 1);
      device::atomic_add(in.counts, digit, 1);
    }
    sync_threads();
    const Found next = find_digit(in.counts, in.shares, in.found, wanted);
    rest -= bits;
    prefix = prefix << bits | static_cast<uint64_t>(next.digit);
    wanted -= next.above;
    exact = next.same == wanted;
  }
  if (thread_x() == 0) in.found[0] = 0;
  if (thread_x() < k) in.chosen[thread_x()] = 0;
  sync_threads();
  for (int32_t i = thread_x(); i < n; i += kThreads) {
    const uint64_t own = rank(i);
    if (own >> rest >= prefix) in.chosen[device::atomic_add(in.found, 0, 1)] = own;
  }
  sync_threads();
}

/// A block is a part of a row.
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1)
    best_many_part_kernel(RowsView x, const engine::BestRow* rows, int32_t k, BestParts parts) {
  after_predecessor();
  GEN_SHARED(int32_t, counts, kDigits);
  GEN_SHARED(int32_t, shares, kThreads);
  GEN_SHARED(int32_t, found, 3);
  GEN_SHARED(uint64_t, chosen, kBestMany);
  const Selection in = {counts, shares, found, chosen};
  const int64_t t = block_y();
  const int64_t place = t * parts.parts + block_x();
  LogitRow row = part_of(x, t, block_x());
  if (rows != nullptr) {
    const int32_t* const bads = parts.bads + t * parts.parts;
    if (first_bad_of(bads, parts.parts, shares) != kNoToken) return;
    apply(rows[t], &row);
  } else {
    const int32_t bad = first_bad(row, shares);
    if (thread_x() == 0) parts.bads[place] = bad;
    if (bad != kNoToken) return;
  }
  sync_threads();
  select(in, row.to - row.from, k,
         [&](int32_t i) { return rank_of(row.at(row.from + i), row.from + i); });
  if (thread_x() < k) parts.ranks[place * k + thread_x()] = chosen[thread_x()];
}

/// A block is a row.
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1)
    best_many_kernel(RowsView x, const engine::BestRow* rows, int32_t k, BestParts parts,
                     int32_t* tokens, float* values) {
  after_predecessor();
  GEN_SHARED(int32_t, counts, kDigits);
  GEN_SHARED(int32_t, shares, kThreads);
  GEN_SHARED(int32_t, found, 3);
  GEN_SHARED(uint64_t, chosen, kBestMany);
  const Selection in = {counts, shares, found, chosen};
  const int64_t t = block_x();
  tokens += t * k;
  values += t * k;
  const int32_t bad = first_bad_of(parts.bads + t * parts.parts, parts.parts, shares);
  if (bad != kNoToken) {
    report_bad(x.data + t * x.stride, bad, k, tokens, values);
    return;
  }
  const uint64_t* const ranks = parts.ranks + t * parts.parts * k;
  select(in, parts.parts * k, k, [&](int32_t i) { return ranks[i]; });
  if (thread_x() >= k) return;
  const uint64_t own = chosen[thread_x()];
  int32_t place = 0;
  for (int32_t i = 0; i < k; ++i) place += static_cast<int32_t>(chosen[i] > own);
  tokens[place] = token_of(own);
  values[place] = logit_of(x, rows, t, token_of(own));
}

}  // namespace

Status best_many(const OpContext& context, const engine::BestArgs& args, const BestParts& parts) {
  const auto rows = static_cast<unsigned>(args.x.rows);
  const device::Dim3 grid = {static_cast<unsigned>(parts.parts), rows, 1};
  GEN_TRY(run_kernel(context, "best_many_part", best_many_part_kernel, grid, kThreads, 0,
                     view(args.x), pointer(args.rows), args.k, parts));
  return run_kernel(context, "best_many", best_many_kernel, {rows, 1, 1}, kThreads, 0, view(args.x),
                    pointer(args.rows), args.k, parts, pointer(args.tokens), pointer(args.values));
}

}  // namespace gen::cuda
