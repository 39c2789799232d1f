// SPDX-License-Identifier: Apache-2.0
// best for 2 to 128 tokens: radix selection. Logit and token make one number of 64 bits, larger for
// what goes first, so no two are equal. Counts of its leading 11 bits tell which value of them the
// k-th largest has; counts of the next bits, among those numbers alone, narrow it down, until what
// is left is just as many as are wanted. For random logits that takes 3 passes over the row, for
// rows of equal ones 6. One more pass collects the k numbers, and each finds its place by counting
// the larger ones, so the order in which threads come does not show.
//
// Source: Alabi, Blanchard, Gordon, Steinbach, "Fast k-selection algorithms for graphics processing
// units" (2012), radixSelect.
#include "cuda/device/atomic.cuh"
#include "cuda/ops/best.cuh"
#include "cuda/ops/best_many.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 512;
constexpr int32_t kDigits = 2048;
constexpr int32_t kDigitsEach = kDigits / kThreads;
constexpr int32_t kSharesEach = kThreads / 32;  // of a lane of the first warp
constexpr unsigned kBits = 11;

/// Larger for what goes first: the larger logit, of equal ones the lower token; both zeros are one.
GEN_DEVICE uint64_t rank_of(float logit, int32_t token) {
  const uint32_t bits = logit == 0.0F ? 0U : float_bits(logit);
  const uint32_t order = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return static_cast<uint64_t>(order) << 32 | (0xFFFFFFFFU - static_cast<uint32_t>(token));
}

/// The digit that the `wanted`-th largest has, and how many have a larger one and the same one.
struct Found {
  int32_t digit = 0;
  int32_t above = 0;
  int32_t same = 0;
};

/// The first warp finds it from the top; `shares` has a place for each thread, `found` for three
/// numbers. The block waits before and after it.
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

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1)
    best_many_kernel(RowsView x, const engine::BestRow* rows, int32_t k, int32_t* tokens,
                     float* values) {
  after_predecessor();
  GEN_SHARED(int32_t, counts, kDigits);
  GEN_SHARED(int32_t, shares, kThreads);
  GEN_SHARED(int32_t, found, 3);
  GEN_SHARED(uint64_t, chosen, kBestMany);
  const int64_t t = block_x();
  tokens += t * k;
  values += t * k;
  LogitRow row = {x.data + t * x.stride, static_cast<int32_t>(x.cols)};
  const int32_t bad = first_bad(row, shares, kThreads);
  if (bad != kNoToken) {
    report_bad(row, bad, k, kThreads, tokens, values);
    return;
  }
  apply(rows != nullptr ? rows + t : nullptr, &row, kThreads);

  uint64_t prefix = 0;  // the leading bits of the k-th largest, all but `rest`
  unsigned rest = 64;
  int32_t wanted = k;  // of the numbers that begin with it
  bool exact = false;
  while (!exact && rest > 0) {
    const unsigned bits = rest < kBits ? rest : kBits;
    for (int32_t i = thread_x(); i < kDigits; i += kThreads) counts[i] = 0;
    sync_threads();
    for (int32_t i = thread_x(); i < row.cols; i += kThreads) {
      const uint64_t rank = rank_of(row.at(i), i);
      if (rest < 64 && rank >> rest != prefix) continue;
      const auto digit = static_cast<uint32_t>(rank >> (rest - bits)) & ((1U << bits) - 1);
      device::atomic_add(counts, digit, 1);
    }
    sync_threads();
    const Found next = find_digit(counts, shares, found, wanted);
    rest -= bits;
    prefix = prefix << bits | static_cast<uint64_t>(next.digit);
    wanted -= next.above;
    exact = next.same == wanted;
  }

  if (thread_x() == 0) found[0] = 0;
  sync_threads();
  for (int32_t i = thread_x(); i < row.cols; i += kThreads) {
    const uint64_t rank = rank_of(row.at(i), i);
    if (rank >> rest >= prefix) chosen[device::atomic_add(found, 0, 1)] = rank;
  }
  sync_threads();
  if (thread_x() >= k) return;
  const uint64_t own = chosen[thread_x()];
  int32_t place = 0;
  for (int32_t i = 0; i < k; ++i) place += static_cast<int32_t>(chosen[i] > own);
  const auto token = static_cast<int32_t>(0xFFFFFFFFU - static_cast<uint32_t>(own));
  tokens[place] = token;
  values[place] = row.at(token);
}

}  // namespace

Status best_many(const OpContext& context, const engine::BestArgs& args) {
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  return run_kernel(context, "best_many", best_many_kernel, grid, kThreads, 0, view(args.x),
                    pointer(args.rows), args.k, pointer(args.tokens), pointer(args.values));
}

}  // namespace gen::cuda
