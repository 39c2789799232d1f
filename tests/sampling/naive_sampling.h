// SPDX-License-Identifier: Apache-2.0
// Sampling as the specification says it, plainly: doubles, std::exp and std::log, and the whole
// vocabulary sorted at every stage. The oracle of the tests of this room.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "sampling/params.h"
#include "sampling/token_mask.h"

namespace gen::sampling {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kOut = -std::numeric_limits<double>::infinity();

/// About one in fifty is -inf. With `steps` above 0 there are only so many values, so many ties.
inline std::vector<float> random_row(size_t size, uint64_t seed, double spread = 12.0,
                                     int steps = 0) {
  std::vector<float> logits(size);
  for (size_t i = 0; i < size; ++i) {
    double u = uniform_double(seed, 99, i);
    const bool out = u < 0.02;
    if (steps > 0) u = std::floor(u * steps) / steps;
    logits[i] = out ? -kInf : static_cast<float>(spread * (u - 0.5));
  }
  return logits;
}

inline std::vector<double> softmax(const std::vector<double>& x) {
  const double max = *std::max_element(x.begin(), x.end());
  std::vector<double> p(x.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += p[i] = std::exp(x[i] - max);
  for (double& one : p) one /= sum;
  return p;
}

/// Indices by descending key, then by descending second key, then ascending.
inline std::vector<size_t> ranking(const std::vector<double>& key,
                                   const std::vector<double>& second) {
  std::vector<size_t> order(key.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return key[a] != key[b] ? key[a] > key[b] : second[a] > second[b];
  });
  return order;
}

/// Takes out what comes after the shortest run, in this order, whose probability reaches `wanted`.
inline void keep_run(const std::vector<size_t>& order, const std::vector<double>& p, double wanted,
                     std::vector<double>* x) {
  double mass = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && mass >= wanted) (*x)[order[i]] = kOut;
    mass += p[order[i]];
  }
}

/// The logits that bias, mask and penalties leave. The chain keeps logits as float between stages,
/// and so does this.
inline std::vector<double> naive_logits(const std::vector<float>& row, const SamplingParams& params,
                                        std::vector<int32_t> said, const TokenMask* mask) {
  const auto rounded = [](double one) { return static_cast<double>(static_cast<float>(one)); };
  std::vector<double> x(row.begin(), row.end());
  for (const LogitBias& entry : params.logit_bias) {
    double& one = x[static_cast<size_t>(entry.token)];
    one = rounded(one + static_cast<double>(entry.bias));
  }
  for (size_t i = 0; mask != nullptr && i < x.size(); ++i) {
    const bool allowed =
        i / 32 < mask->bits.size() && (mask->bits[i / 32] >> (i % 32) & uint32_t{1}) != 0;
    if (!allowed) x[i] = kOut;
  }
  const auto window = static_cast<size_t>(params.penalty_window);
  if (window > 0 && window < said.size()) {
    said.erase(said.begin(), said.end() - static_cast<std::ptrdiff_t>(window));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto count = std::count(said.begin(), said.end(), static_cast<int32_t>(i));
    if (count == 0) continue;
    const double power = params.compound_penalty ? static_cast<double>(count) : 1.0;
    const double factor = std::pow(params.repetition_penalty, power);
    x[i] = x[i] > 0 ? x[i] / factor : x[i] * factor;
    x[i] -= params.frequency_penalty * static_cast<double>(count) + params.presence_penalty;
    x[i] = rounded(x[i]);
  }
  return x;
}

/// Probabilities right before the draw; one is 1 if the choice is greedy.
inline std::vector<double> naive_distribution(const std::vector<float>& row,
                                              const SamplingParams& params,
                                              const std::vector<int32_t>& said,
                                              const TokenMask* mask = nullptr) {
  std::vector<double> x = naive_logits(row, params, said, mask);
  const size_t size = x.size();
  if (params.temperature <= 0) {
    std::vector<double> p(size, 0.0);
    p[ranking(x, x)[0]] = 1.0;
    return p;
  }
  for (double& one : x) one /= params.temperature;
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < size) {
    const double bar = x[ranking(x, x)[static_cast<size_t>(params.top_k) - 1]];
    for (double& one : x) {
      if (one < bar) one = kOut;
    }
  }
  if (params.typical_p > 0 && params.typical_p < 1) {
    const std::vector<double> p = softmax(x);
    double entropy = 0;
    for (const double one : p) entropy -= one > 0 ? one * std::log(one) : 0.0;
    std::vector<double> nearness(size, kOut);
    for (size_t i = 0; i < size; ++i) {
      if (p[i] > 0) nearness[i] = -std::abs(-std::log(p[i]) - entropy);
    }
    keep_run(ranking(nearness, p), p, params.typical_p, &x);
  }
  if (params.top_p > 0 && params.top_p < 1) {
    const std::vector<double> p = softmax(x);
    keep_run(ranking(p, p), p, params.top_p, &x);
  }
  const std::vector<double> p = softmax(x);
  const double best = *std::max_element(p.begin(), p.end());
  for (size_t i = 0; i < size; ++i) {
    if (p[i] < params.min_p * best) x[i] = kOut;
  }
  return softmax(x);
}

inline int32_t naive_draw(const std::vector<double>& p, double uniform) {
  double mass = 0;
  int32_t last = -1;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0) last = static_cast<int32_t>(i);
    mass += p[i];
    if (mass > uniform) return static_cast<int32_t>(i);
  }
  return last;
}

}  // namespace gen::sampling
