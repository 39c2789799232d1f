// SPDX-License-Identifier: Apache-2.0
// See acceptance.h.
#include "sampling/acceptance.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "sampling/streams.h"

namespace gen::sampling {
namespace {

/// The first of `n` indices whose cumulated share exceeds `uniform`; the last one with a positive
/// weight if rounding leaves none, `n` if all weights are 0.
template <typename Weight>
size_t place_by(size_t n, Weight weight, double uniform) noexcept {
  double total = 0.0;
  for (size_t i = 0; i < n; ++i) total += weight(i);
  const double wanted = uniform * total;
  double mass = 0.0;
  size_t last = n;
  for (size_t i = 0; i < n; ++i) {
    const double w = weight(i);
    if (w > 0.0) last = i;
    mass += w;
    if (mass > wanted) return i;
  }
  return last;
}

double sum_of(std::span<const Candidate> candidates) noexcept {
  double total = 0.0;
  for (const Candidate& one : candidates) total += one.weight;
  return total;
}

double share(std::span<const Candidate> ascending, double total, int32_t token) noexcept {
  const auto found =
      std::lower_bound(ascending.begin(), ascending.end(), token,
                       [](const Candidate& one, int32_t wanted) { return one.token < wanted; });
  return found != ascending.end() && found->token == token ? found->weight / total : 0.0;
}

size_t largest(std::span<const float> row) noexcept {
  return static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

Status check_row(std::span<const float> row, const char* what, size_t index, bool may_be_zero) {
  double total = 0.0;
  for (size_t token = 0; token < row.size(); ++token) {
    if (!(row[token] >= 0.0F) || !std::isfinite(row[token])) {
      return error(Code::kInvalidArgument, "%s row %zu gives token %zu the probability %g", what,
                   index, token, static_cast<double>(row[token]));
    }
    total += row[token];
  }
  if (total > 0.0 || may_be_zero) return {};
  return error(Code::kInvalidArgument, "%s row %zu has no token of a probability above 0", what,
               index);
}

double total_of(std::span<const float> row) noexcept {
  double total = 0.0;
  for (const float p : row) total += p;
  return total;
}

}  // namespace

int32_t accept_or_draw(std::span<const Candidate> candidates, const Proposal& proposal,
                       double accepts, double draws) noexcept {
  const double p_total = sum_of(candidates);
  const double q_total = sum_of(proposal.from);
  const bool certain = !(q_total > 0.0);
  const auto q_of = [&](int32_t token) {
    if (certain) return token == proposal.token ? 1.0 : 0.0;
    return share(proposal.from, q_total, token);
  };
  const auto own = std::find_if(candidates.begin(), candidates.end(),
                                [&](const Candidate& one) { return one.token == proposal.token; });
  const double q = q_of(proposal.token);
  if (own != candidates.end() && q > 0.0 && accepts * q < own->weight / p_total) {
    return proposal.token;
  }
  size_t place = place_by(
      candidates.size(),
      [&](size_t i) {
        return std::max(0.0, candidates[i].weight / p_total - q_of(candidates[i].token));
      },
      draws);
  // Nothing is left if p and q are equal except for rounding.
  if (place == candidates.size()) {
    place = place_by(
        candidates.size(), [&](size_t i) { return candidates[i].weight; }, draws);
  }
  return candidates[place].token;
}

Status accept_tokens(std::span<const int32_t> draft, std::span<const float> draft_probs,
                     std::span<const float> target_probs, size_t vocab,
                     const AcceptanceDraws* draws, std::vector<int32_t>* out, size_t* accepted) {
  out->clear();
  *accepted = 0;
  const size_t k = draft.size();
  for (size_t i = 0; i < k; ++i) {
    if (draft[i] < 0 || static_cast<size_t>(draft[i]) >= vocab) {
      return error(Code::kOutOfRange, "token %d of the draft is outside [0, %zu)", draft[i], vocab);
    }
    if (draws != nullptr) {
      GEN_TRY(check_row(draft_probs.subspan(i * vocab, vocab), "draft", i, true));
    }
  }
  if (k == 0) return {};
  for (size_t i = 0; i <= k; ++i) {
    GEN_TRY(check_row(target_probs.subspan(i * vocab, vocab), "target", i, false));
  }
  out->reserve(k + 1);
  for (size_t i = 0; i < k; ++i) {
    const auto p = target_probs.subspan(i * vocab, vocab);
    const auto token = static_cast<size_t>(draft[i]);
    size_t said = 0;
    if (draws == nullptr) {
      said = largest(p);
    } else {
      const auto q = draft_probs.subspan(i * vocab, vocab);
      const double p_total = total_of(p);
      const double q_total = total_of(q);
      const double q_sum = q_total > 0.0 ? q_total : 1.0;
      const double accepts = uniform_double(draws->seed, kAcceptStream, draws->step + i);
      const double uniform = uniform_double(draws->seed, kDrawStream, draws->step + i);
      if (q[token] > 0.0F && accepts * (q[token] / q_sum) < p[token] / p_total) {
        said = token;
      } else {
        said = place_by(
            vocab, [&](size_t t) { return std::max(0.0, p[t] / p_total - q[t] / q_sum); }, uniform);
        if (said == vocab)
          said = place_by(
              vocab, [&](size_t t) { return double{p[t]}; }, uniform);
        // A rejected guess that is drawn again ends the proposal like any other token.
        out->push_back(static_cast<int32_t>(said));
        return {};
      }
    }
    out->push_back(static_cast<int32_t>(said));
    if (said != token) return {};
    ++*accepted;
  }
  const auto last = target_probs.subspan(k * vocab, vocab);
  const size_t bonus = draws == nullptr
                           ? largest(last)
                           : place_by(
                                 vocab, [&](size_t t) { return double{last[t]}; },
                                 uniform_double(draws->seed, kDrawStream, draws->step + k));
  out->push_back(static_cast<int32_t>(bonus));
  return {};
}

}  // namespace gen::sampling
