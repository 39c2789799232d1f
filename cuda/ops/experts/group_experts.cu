// SPDX-License-Identifier: Apache-2.0
// Sorts the places of a step's rows by expert, so that a matrix is read once for a group of them.
//   Work    A block is an expert. It counts the places of the experts before it, which tells where
//           its own begin, and then writes its own, ascending. So blocks need nothing from one
//           another.
//   Groups  Those of expert e begin at e + first / size, `first` being where its places begin. With
//           n places it has at least 1 + n / size groups of its own, as many as it needs; those
//           that are left over are empty. All experts have E + places / size.
//   Bytes   the chosen experts of all rows, twice for each expert, from the L2 cache.
#include "cuda/ops/experts/experts.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kSortThreads = 256;
constexpr int32_t kSortWarps = kSortThreads / 32;

struct SortView {
  const int32_t* routes;
  int64_t stride;
  int32_t used;
  int32_t rows;
  int32_t size;
  ExpertGroup* groups;
  int32_t* places;
};

/// The lane's number plus those of the lanes before it.
GEN_DEVICE int32_t sum_up_to_lane(int32_t n) {
  for (uint32_t apart = 1; apart < 32; apart *= 2) {
    const int32_t before = device::shuffle_up(n, apart);
    if (lane_of_warp() >= static_cast<int32_t>(apart)) n += before;
  }
  return n;
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kSortThreads) group_experts_kernel(SortView of) {
  GEN_SHARED(int32_t, own_of_warp, kSortWarps);
  GEN_SHARED(int32_t, before_of_warp, kSortWarps);
  after_predecessor();
  const int32_t expert = block_x();
  // A thread has adjacent rows, so its places come after those of the threads before it.
  const int32_t rows_each = (of.rows + kSortThreads - 1) / kSortThreads;
  const int32_t begin = thread_x() * rows_each;
  const int32_t end = begin + rows_each < of.rows ? begin + rows_each : of.rows;
  int32_t own = 0;
  int32_t before = 0;
  for (int32_t t = begin; t < end; ++t) {
    const int32_t* const chosen = of.routes + t * of.stride;
    for (int32_t s = 0; s < of.used; ++s) {
      own += chosen[s] == expert ? 1 : 0;
      before += chosen[s] < expert ? 1 : 0;
    }
  }
  const int32_t own_so_far = sum_up_to_lane(own);
  const int32_t before_so_far = sum_up_to_lane(before);
  if (lane_of_warp() == 31) {
    own_of_warp[warp_of_block()] = own_so_far;
    before_of_warp[warp_of_block()] = before_so_far;
  }
  sync_threads();
  int32_t first = 0;
  int32_t count = 0;
  int32_t place = own_so_far - own;
  for (int32_t warp = 0; warp < kSortWarps; ++warp) {
    const int32_t in_warp = own_of_warp[warp];
    if (warp < warp_of_block()) place += in_warp;
    count += in_warp;
    first += before_of_warp[warp];
  }
  place += first;
  for (int32_t t = begin; own > 0 && t < end; ++t) {
    const int32_t* const chosen = of.routes + t * of.stride;
    for (int32_t s = 0; s < of.used; ++s) {
      if (chosen[s] == expert) of.places[place++] = t * of.used + s;
    }
  }
  const int32_t first_group = expert + first / of.size;
  const int32_t end_group = expert + 1 + (first + count) / of.size;
  for (int32_t i = thread_x(); i < end_group - first_group; i += kSortThreads) {
    const int32_t from = i * of.size;
    const int32_t left = count > from ? count - from : 0;
    of.groups[first_group + i] = {expert, first + from, left < of.size ? left : of.size};
  }
}

}  // namespace

Status group_experts(const OpContext& context, const ExpertsView& of, ExpertGroups* out) {
  const auto places = static_cast<int32_t>(of.end.y.rows);
  const auto experts = static_cast<int32_t>(of.experts);
  // Larger blocks multiply faster, but where experts have few places they would be mostly empty.
  out->size = places > kExpertGroup / 2 * experts ? kExpertGroup : kExpertGroup / 2;
  out->count = experts + places / out->size;
  const size_t bytes = static_cast<size_t>(out->count) * sizeof(ExpertGroup);
  uint8_t* scratch = nullptr;
  GEN_TRY(context.scratch->take_scratch(bytes + static_cast<size_t>(places) * sizeof(int32_t),
                                        &scratch));
  auto* const groups = reinterpret_cast<ExpertGroup*>(scratch);
  auto* const sorted = reinterpret_cast<int32_t*>(scratch + bytes);
  out->groups = groups;
  out->places = sorted;
  const SortView view = {of.routes, of.stride, of.used, places / of.used,
                         out->size, groups,    sorted};
  return run_kernel(context, "group_experts", group_experts_kernel,
                    {static_cast<unsigned>(experts), 1, 1}, kSortThreads, 0, view);
}

}  // namespace gen::cuda
