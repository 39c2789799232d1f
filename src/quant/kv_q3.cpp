// SPDX-License-Identifier: Apache-2.0
// See kv_q3.h. A step of decoding quantises every new key and value, so the fit counts: distances
// run in vectors over elements, one centroid after the other, and sums go to two sets of
// accumulators, since neighbours often belong to the same centroid.
#include "quant/kv_q3.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/status.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

constexpr int kRounds = 8;
constexpr float kLargest = 65504.0F;

// Four numbers at once, which every supported machine can process: gcc does not vectorise this code
// by itself.
using Floats [[gnu::vector_size(16)]] = float;
using Ints [[gnu::vector_size(16)]] = int32_t;
constexpr size_t kLanes = 4;

/// What an element adds to its centroid's sums.
struct Share {
  double weighted = 0;
  double weight = 0;
};

/// The last vector of x is there in full.
struct Group {
  size_t n = 0;
  float x[kKvQ3Group];
  Share shares[kKvQ3Group];
  int32_t nearest[kKvQ3Group];
};

/// The index of the nearest centroid for each element, the lowest on ties.
void assign(Group& group, const float* centroids) noexcept {
  for (size_t i = 0; i < group.n; i += kLanes) {
    Floats x;
    std::memcpy(&x, group.x + i, sizeof(x));
    Floats best = (x - centroids[0]) * (x - centroids[0]);
    Ints nearest = {};
    for (int32_t c = 1; c < static_cast<int32_t>(kKvQ3Centroids); ++c) {
      const Floats apart = x - centroids[c];
      const Floats distance = apart * apart;
      const Ints nearer = distance < best;
      nearest = nearer ? Ints{c, c, c, c} : nearest;
      best = nearer ? distance : best;
    }
    std::memcpy(group.nearest + i, &nearest, sizeof(nearest));
  }
}

/// Moves each centroid to the mean of its elements; one without elements stays. False if none
/// moved: the rounds that are left would change nothing.
bool update(const Group& group, float* centroids) noexcept {
  Share sums[2][kKvQ3Centroids];
  for (size_t i = 0; i < group.n; ++i) {
    Share& sum = sums[i % 2][group.nearest[i]];
    sum.weighted += group.shares[i].weighted;
    sum.weight += group.shares[i].weight;
  }
  bool moved = false;
  for (size_t c = 0; c < kKvQ3Centroids; ++c) {
    const double weight = sums[0][c].weight + sums[1][c].weight;
    if (weight == 0) continue;
    const auto mean = static_cast<float>((sums[0][c].weighted + sums[1][c].weighted) / weight);
    moved = moved || mean != centroids[c];
    centroids[c] = mean;
  }
  return moved;
}

void pack(const int32_t* indices, size_t n, uint8_t* codes) noexcept {
  for (size_t i = 0; i < n; i += 8) {
    uint32_t bits = 0;
    const size_t count = std::min(n - i, size_t{8});
    for (size_t j = 0; j < count; ++j) bits |= static_cast<uint32_t>(indices[i + j]) << (3 * j);
    for (size_t byte = 0; byte < kv_q3_bytes(count); ++byte) {
      *codes++ = static_cast<uint8_t>(bits >> (8 * byte));
    }
  }
}

}  // namespace

void kv_q3_encode(const float* x, size_t n, uint16_t* centroids, uint8_t* codes) noexcept {
  GEN_ASSERT(n >= 1 && n <= kKvQ3Group);
  Group group;
  group.n = n;
  float least = kLargest;
  float most = -kLargest;
  for (size_t i = 0; i < n; ++i) {
    const float value = std::isnan(x[i]) ? 0.0F : std::clamp(x[i], -kLargest, kLargest);
    group.x[i] = value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  for (size_t i = n; i % kLanes != 0; ++i) group.x[i] = 0.0F;
  if (least == most) {
    std::fill_n(centroids, kKvQ3Centroids, f32_to_f16(least));
    std::fill_n(codes, kv_q3_bytes(n), uint8_t{0});
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    const auto weight = static_cast<double>(std::sqrt(std::fabs(group.x[i])) + 1e-4F);
    group.shares[i] = {weight * static_cast<double>(group.x[i]), weight};
  }
  float means[kKvQ3Centroids];
  for (size_t c = 0; c < kKvQ3Centroids; ++c) {
    means[c] = least + static_cast<float>(c) / 7.0F * (most - least);
  }
  for (int round = 0; round < kRounds; ++round) {
    assign(group, means);
    if (!update(group, means)) break;
  }
  for (size_t c = 0; c < kKvQ3Centroids; ++c) {
    centroids[c] = f32_to_f16(means[c]);
    means[c] = f16_to_f32(centroids[c]);
  }
  assign(group, means);
  pack(group.nearest, n, codes);
}

void kv_q3_decode(const uint16_t* centroids, const uint8_t* codes, size_t n, float* x) noexcept {
  float values[kKvQ3Centroids];
  for (size_t c = 0; c < kKvQ3Centroids; ++c) values[c] = f16_to_f32(centroids[c]);
  for (size_t i = 0; i < n; i += 8) {
    const size_t count = std::min(n - i, size_t{8});
    uint32_t bits = 0;
    for (size_t byte = 0; byte < kv_q3_bytes(count); ++byte) {
      bits |= static_cast<uint32_t>(*codes++) << (8 * byte);
    }
    for (size_t j = 0; j < count; ++j) x[i + j] = values[(bits >> (3 * j)) & 7U];
  }
}

}  // namespace gen::quant
