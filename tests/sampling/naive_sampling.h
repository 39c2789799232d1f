// SPDX-License-Identifier: Apache-2.0
// Sampling directly by the specification: doubles, std::exp and std::log, and the whole vocabulary
// sorted at every stage. The oracle of this room's tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
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

/// DRY penalties of tokens: for each earlier occurrence of a suffix of the text, its length,
/// counted token by token.
inline std::map<int32_t, double> naive_dry(std::vector<int32_t> text, size_t unbroken,
                                           const SamplingParams& params, size_t vocab) {
  const auto window = static_cast<size_t>(params.dry_window);
  if (window > 0 && window < text.size()) {
    text.erase(text.begin(), text.end() - static_cast<std::ptrdiff_t>(window));
  }
  const size_t size = text.size();
  std::map<int32_t, double> penalties;
  for (size_t next = 1; next < size; ++next) {
    size_t length = 0;
    while (length < next && length < unbroken &&
           text[next - 1 - length] == text[size - 1 - length]) {
      ++length;
    }
    const int32_t token = text[next];
    if (length < static_cast<size_t>(params.dry_allowed_length) || token < 0 ||
        static_cast<size_t>(token) >= vocab) {
      continue;
    }
    const double beyond = static_cast<double>(length) - params.dry_allowed_length;
    const double penalty = std::min(1e6, params.dry_multiplier * std::pow(params.dry_base, beyond));
    penalties[token] = std::max(penalties[token], penalty);
  }
  return penalties;
}

/// The inputs of a step besides logits and parameters.
struct NaiveStep {
  std::map<int32_t, double> penalties = {};
  std::vector<int32_t> barred = {};
  bool takes_out_the_best = false;  // XTC acts
  double bar = -1.0;                // of mirostat, in bits; below 0: it is off
};

/// The logits that bias, mask, penalties and barred tokens leave. The chain keeps logits as float
/// between stages, and so does this.
inline std::vector<double> naive_logits(const std::vector<float>& row, const SamplingParams& params,
                                        std::vector<int32_t> said, const TokenMask* mask,
                                        const NaiveStep& step = {}) {
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
  for (const auto& [token, penalty] : step.penalties) {
    double& one = x[static_cast<size_t>(token)];
    one = rounded(one - penalty);
  }
  std::vector<double> left = x;
  for (const int32_t token : step.barred) {
    if (token >= 0 && static_cast<size_t>(token) < x.size()) {
      left[static_cast<size_t>(token)] = kOut;
    }
  }
  return std::all_of(left.begin(), left.end(), [](double one) { return one == kOut; }) ? x : left;
}

/// Probabilities right before the draw; one is 1 if the choice is greedy.
inline std::vector<double> naive_distribution(const std::vector<float>& row,
                                              const SamplingParams& params,
                                              const std::vector<int32_t>& said,
                                              const TokenMask* mask = nullptr,
                                              const NaiveStep& step = {}) {
  std::vector<double> x = naive_logits(row, params, said, mask, step);
  const size_t size = x.size();
  if (params.temperature <= 0) {
    std::vector<double> p(size, 0.0);
    p[ranking(x, x)[0]] = 1.0;
    return p;
  }
  if (params.top_n_sigma > 0) {
    std::vector<double> finite;
    for (const float one : row) {
      if (one != -kInf) finite.push_back(static_cast<double>(one));
    }
    const auto count = static_cast<double>(finite.size());
    const double mean = std::accumulate(finite.begin(), finite.end(), 0.0) / count;
    double squares = 0;
    for (const double one : finite) squares += std::pow(one - mean, 2);
    const double bar =
        *std::max_element(x.begin(), x.end()) - params.top_n_sigma * std::sqrt(squares / count);
    for (double& one : x) {
      if (one < bar) one = kOut;
    }
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
  if (step.takes_out_the_best) {
    const std::vector<double> q = softmax(x);
    const std::vector<size_t> order = ranking(q, q);
    for (size_t i = 0; i + 1 < size; ++i) {
      const double next = q[order[i + 1]];
      if (next > 0 && next >= params.xtc_threshold) x[order[i]] = kOut;
    }
  }
  if (step.bar >= 0) {
    const std::vector<double> q = softmax(x);
    const size_t first = ranking(q, q)[0];
    for (size_t i = 0; i < size; ++i) {
      if (i != first && -std::log2(q[i]) > step.bar) x[i] = kOut;
    }
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
