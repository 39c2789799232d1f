// SPDX-License-Identifier: Apache-2.0
// The operations that keep a state between rows, as plain loops in double precision: what
// ReferenceEngine runs for them. States are rounded to float where engines keep them so.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/access.h"
#include "engine/ops.h"

namespace gen::test {

class ReferenceStates {
 public:
  static Status run(const engine::ScanArgs& args) {
    const auto row = [](const auto& view, int64_t t) { return at(view.data) + t * view.stride; };
    for (int32_t s = 0; s < args.n_sequences; ++s) {
      const engine::StateRows& rows = at(args.sequences)[s];
      for (int64_t c = 0; c < args.y.cols; ++c) {
        double h = rows.read ? static_cast<double>(at(rows.read)[args.layer.first + c]) : 0.0;
        const auto take = [&h](float a, double bx) {
          h = static_cast<double>(static_cast<float>(static_cast<double>(a) * h + bx));
        };
        const auto kept = [&](auto rows_of, int64_t i) {
          return at(rows_of) + i * args.layer.kept_stride + args.layer.kept + c;
        };
        for (int64_t i = 0; i < rows.unsettled; ++i) {
          const float* const inputs = kept(rows.kept, i);
          take(inputs[0], static_cast<double>(inputs[args.y.cols]));
        }
        float* const write = at(rows.write) + args.layer.first + c;
        *write = static_cast<float>(h);
        for (int64_t i = 0; i < rows.n_rows; ++i) {
          const int64_t t = rows.first_row + i;
          const float a = row(args.a, t)[c];
          const float bx = row(args.b, t)[c] * row(args.x, t)[c];
          take(a, static_cast<double>(bx));
          row(args.y, t)[c] = static_cast<float>(h);
          const int64_t behind = i - settled(rows);
          if (behind >= 0) {
            kept(rows.keep, behind)[0] = a;
            kept(rows.keep, behind)[args.y.cols] = bx;
          } else {
            *write = static_cast<float>(h);
          }
        }
      }
    }
    return {};
  }

  /// `past` are the rows before a sequence's next one: of the state, kept ones, those of the step.
  static Status run(const engine::CausalConvArgs& args) {
    const int64_t c_end = args.y.cols;
    for (int32_t s = 0; s < args.n_sequences; ++s) {
      const engine::StateRows& rows = at(args.sequences)[s];
      std::vector<std::vector<float>> past;
      for (int32_t j = 0; j < args.taps - 1; ++j) {
        past.emplace_back(static_cast<size_t>(c_end));
        if (!rows.read) continue;
        std::copy_n(at(rows.read) + args.layer.first + j * c_end, c_end, past.back().begin());
      }
      const auto kept = [&](auto rows_of, int64_t i) {
        return at(rows_of) + i * args.layer.kept_stride + args.layer.kept;
      };
      for (int64_t i = 0; i < rows.unsettled; ++i) {
        past.emplace_back(kept(rows.kept, i), kept(rows.kept, i) + c_end);
      }
      const size_t end = past.size() + index(settled(rows));
      for (int64_t i = 0; i < rows.n_rows; ++i) {
        const float* const x = at(args.x.data) + (rows.first_row + i) * args.x.stride;
        past.emplace_back(x, x + c_end);
        if (i >= settled(rows)) std::copy_n(x, c_end, kept(rows.keep, i - settled(rows)));
        for (int64_t c = 0; c < c_end; ++c) {
          double sum = args.b ? static_cast<double>(at(args.b)[c]) : 0.0;
          for (int32_t j = 0; j < args.taps; ++j) {
            const float before = past[past.size() - static_cast<size_t>(args.taps - j)][index(c)];
            sum += static_cast<double>(at(args.w)[j * c_end + c]) * static_cast<double>(before);
          }
          if (args.act == engine::Act::kSilu) sum /= 1.0 + std::exp(-sum);
          at(args.y.data)[(rows.first_row + i) * args.y.stride + c] = static_cast<float>(sum);
        }
      }
      for (int32_t j = 0; j < args.taps - 1; ++j) {
        const std::vector<float>& row = past[end - static_cast<size_t>(args.taps - 1 - j)];
        std::copy(row.begin(), row.end(), at(rows.write) + args.layer.first + j * c_end);
      }
    }
    return {};
  }

  /// States are rounded to float after every row.
  static Status run(const engine::DeltaNetArgs& args) {
    const engine::DeltaShape& of = args.shape;
    const auto row = [](const auto& view, int64_t t) { return at(view.data) + t * view.stride; };
    for (int32_t s = 0; s < args.n_sequences; ++s) {
      const engine::StateRows& rows = at(args.sequences)[s];
      for (int32_t h = 0; h < of.v_heads; ++h) delta_head(args, rows, h, row);
    }
    return {};
  }

  /// States are rounded to float after every row, as deltas are, which are kept.
  static Status run(const engine::SelectiveScanArgs& args) {
    for (int32_t s = 0; s < args.n_sequences; ++s) {
      for (int64_t p = 0; p < args.y.cols; ++p) selective_channel(args, at(args.sequences)[s], p);
    }
    return {};
  }

 private:
  template <typename T>
  static T* at(engine::EnginePtr<T> address) {
    return engine::Access::pointer(address);
  }
  static size_t index(int64_t i) { return static_cast<size_t>(i); }
  /// First rows that enter the state.
  static int64_t settled(const engine::StateRows& rows) {
    return rows.keep ? rows.certain : rows.n_rows;
  }

  template <typename Row>
  static void delta_head(const engine::DeltaNetArgs& args, const engine::StateRows& rows, int32_t h,
                         const Row& row) {
    const engine::DeltaShape& of = args.shape;
    const int64_t cells = int64_t{of.k_dim} * of.v_dim;
    const int32_t group = of.grouped ? h / (of.v_heads / of.k_heads) : h % of.k_heads;
    std::vector<float> state(index(cells));
    const int64_t first = args.layer.first + h * cells;
    if (rows.read) std::copy_n(at(rows.read) + first, cells, state.begin());
    const auto recur = [&](const float* k, const float* v, double decay, double strength) {
      for (int32_t j = 0; j < of.v_dim; ++j) {
        double seen = 0.0;
        for (int32_t i = 0; i < of.k_dim; ++i) {
          seen += static_cast<double>(state[index(i * of.v_dim + j)]) * static_cast<double>(k[i]);
        }
        const double change = strength * (static_cast<double>(v[j]) - decay * seen);
        for (int32_t i = 0; i < of.k_dim; ++i) {
          float& cell = state[index(i * of.v_dim + j)];
          cell = static_cast<float>(decay * static_cast<double>(cell) +
                                    static_cast<double>(k[i]) * change);
        }
      }
    };
    const int64_t v_at = of.k_cols() + int64_t{h} * of.v_dim;
    const int64_t decay_at = of.k_cols() + of.v_cols() + h;
    const auto kept = [&](auto rows_of, int64_t i) {
      return at(rows_of) + i * args.layer.kept_stride + args.layer.kept;
    };
    for (int64_t i = 0; i < rows.unsettled; ++i) {
      const float* const in = kept(rows.kept, i);
      recur(in + int64_t{group} * of.k_dim, in + v_at, static_cast<double>(in[decay_at]),
            static_cast<double>(in[decay_at + of.v_heads]));
    }
    std::copy(state.begin(), state.end(), at(rows.write) + first);
    for (int64_t i = 0; i < rows.n_rows; ++i) {
      const int64_t t = rows.first_row + i;
      const auto unit = [&](const float* x, double scale) {
        double squares = 0.0;
        for (int32_t d = 0; d < of.k_dim; ++d) {
          squares += static_cast<double>(x[d]) * static_cast<double>(x[d]);
        }
        std::vector<float> y(index(of.k_dim));
        for (size_t d = 0; d < y.size(); ++d) {
          y[d] = static_cast<float>(static_cast<double>(x[d]) * scale /
                                    std::sqrt(squares + static_cast<double>(of.eps)));
        }
        return y;
      };
      const float* const qkv = row(args.qkv, t);
      const std::vector<float> q =
          unit(qkv + int64_t{group} * of.k_dim, 1.0 / std::sqrt(static_cast<double>(of.k_dim)));
      const std::vector<float> k = unit(qkv + of.k_cols() + int64_t{group} * of.k_dim, 1.0);
      const float* const v = qkv + 2 * of.k_cols() + int64_t{h} * of.v_dim;
      const double open = static_cast<double>(row(args.alpha, t)[h] + at(args.dt)[h]);
      const auto decay = static_cast<float>(
          std::exp(static_cast<double>(at(args.a)[h]) * std::log1p(std::exp(open))));
      const auto strength =
          static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(row(args.beta, t)[h]))));
      recur(k.data(), v, static_cast<double>(decay), static_cast<double>(strength));
      for (int32_t j = 0; j < of.v_dim; ++j) {
        double sum = 0.0;
        for (int32_t d = 0; d < of.k_dim; ++d) {
          sum += static_cast<double>(state[index(d * of.v_dim + j)]) *
                 static_cast<double>(q[index(d)]);
        }
        row(args.y, t)[int64_t{h} * of.v_dim + j] = static_cast<float>(sum);
      }
      if (i < settled(rows)) {
        std::copy(state.begin(), state.end(), at(rows.write) + first);
        continue;
      }
      float* const in = kept(rows.keep, i - settled(rows));
      std::copy(k.begin(), k.end(), in + int64_t{group} * of.k_dim);
      std::copy_n(v, of.v_dim, in + v_at);
      in[decay_at] = decay;
      in[decay_at + of.v_heads] = strength;
    }
  }

  static void selective_channel(const engine::SelectiveScanArgs& args,
                                const engine::StateRows& rows, int64_t p) {
    const auto row = [](const auto& view, int64_t t) { return at(view.data) + t * view.stride; };
    const int64_t heads = args.dt.cols;
    const int64_t n = args.b.cols / args.n_groups;
    const int64_t h = p / (args.y.cols / heads);
    const int64_t group = h / (heads / args.n_groups) * n;
    std::vector<float> state(index(n));
    if (rows.read) std::copy_n(at(rows.read) + args.layer.first + p * n, n, state.begin());
    const auto recur = [&](double x, double delta, const float* b) {
      for (int64_t i = 0; i < n; ++i) {
        const float a = at(args.a)[args.y.cols == heads ? p * n + i : h];
        float& cell = state[index(i)];
        cell = static_cast<float>(static_cast<double>(cell) *
                                      std::exp(delta * static_cast<double>(a)) +
                                  static_cast<double>(b[group + i]) * delta * x);
      }
    };
    const auto kept = [&](auto rows_of, int64_t i) {
      return at(rows_of) + i * args.layer.kept_stride + args.layer.kept;
    };
    for (int64_t i = 0; i < rows.unsettled; ++i) {
      const float* const in = kept(rows.kept, i);
      recur(static_cast<double>(in[p]), static_cast<double>(in[args.y.cols + h]),
            in + args.y.cols + heads);
    }
    std::copy(state.begin(), state.end(), at(rows.write) + args.layer.first + p * n);
    for (int64_t i = 0; i < rows.n_rows; ++i) {
      const int64_t t = rows.first_row + i;
      const double open = static_cast<double>(row(args.dt, t)[h] + at(args.dt_bias)[h]);
      const auto delta = static_cast<float>(std::log1p(std::exp(open)));
      const float x = row(args.x, t)[p];
      recur(static_cast<double>(x), static_cast<double>(delta), row(args.b, t));
      double sum = static_cast<double>(at(args.d)[h]) * static_cast<double>(x);
      for (int64_t j = 0; j < n; ++j) {
        sum +=
            static_cast<double>(state[index(j)]) * static_cast<double>(row(args.c, t)[group + j]);
      }
      row(args.y, t)[p] = static_cast<float>(sum);
      if (i < settled(rows)) {
        std::copy(state.begin(), state.end(), at(rows.write) + args.layer.first + p * n);
        continue;
      }
      float* const in = kept(rows.keep, i - settled(rows));
      in[p] = x;
      in[args.y.cols + h] = delta;
      std::copy_n(row(args.b, t) + group, n, in + args.y.cols + heads + group);
    }
  }
};

}  // namespace gen::test
