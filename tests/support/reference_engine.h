// SPDX-License-Identifier: Apache-2.0
// ReferenceEngine: every operation of engine.h as plain loops in double precision, one thread, no
// layout tricks. An oracle for other engines and a stand-in where a test is about the plan. It can
// refuse kinds of weights, so that the ways around missing kernels are tested, too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <variant>
#include <vector>

#include "base/mass.h"
#include "engine/access.h"
#include "engine/engine.h"
#include "engine/kv_view.h"
#include "engine/memory/host_memory.h"
#include "quant/format.h"
#include "support/kv_side.h"
#include "support/reference_act.h"
#include "support/reference_states.h"

namespace gen::test {

class ReferenceStream final : public engine::Stream {};

class ReferenceWeight final : public engine::Weight {
 public:
  [[nodiscard]] engine::WeightRole role() const noexcept override { return used; }
  [[nodiscard]] int64_t out_features() const noexcept override { return rows / (gated ? 2 : 1); }
  [[nodiscard]] int64_t in_features() const noexcept override { return cols; }
  [[nodiscard]] int64_t count() const noexcept override { return matrices; }
  [[nodiscard]] uint32_t activation_forms() const noexcept override { return engine::kActF32; }
  [[nodiscard]] size_t resident_bytes() const noexcept override {
    return borrowed ? 0 : values.size() * sizeof(float);
  }
  [[nodiscard]] size_t stream_bytes() const noexcept override {
    return values.size() * sizeof(float);
  }

  int64_t rows = 0;
  int64_t cols = 0;
  int64_t matrices = 1;  // of stacks; `values` has the sources' one after another for each
  bool gated = false;
  engine::WeightRole used = engine::WeightRole::kLinear;
  bool borrowed = false;  // claims to point at its source
  std::vector<float> values;
};

class ReferenceEngine final : public engine::Engine {
 public:
  struct Options {
    bool gate_up = true;                  // has gated products
    bool mixed_stacks = true;             // stacks weights of different types
    bool stacks = true;                   // stacks weights at all
    bool borrow = false;                  // claims to point at lasting sources
    engine::Op lacks = engine::Op::kTap;  // an operation that it has not
  };

  ReferenceEngine() = default;
  explicit ReferenceEngine(Options options, Allocator& allocator = system_allocator())
      : options_(options), memory_(allocator) {}

  [[nodiscard]] const char* name() const noexcept override { return "reference"; }
  [[nodiscard]] engine::EngineMemory& memory() noexcept override { return memory_; }
  [[nodiscard]] bool reaches_host() const noexcept override { return true; }

  Result<std::unique_ptr<engine::Weight>> prepare(
      engine::WeightRole role, std::span<const engine::WeightSource> sources,
      const std::shared_ptr<engine::WeightMemory>&) override {
    const bool gated = role == engine::WeightRole::kGated;
    if (gated && !options_.gate_up) return error(Code::kUnsupported, "no gated products");
    if (!gated && sources.size() > 1 && !options_.stacks) {
      return error(Code::kUnsupported, "no stacks");
    }
    auto weight = std::make_unique<ReferenceWeight>();
    weight->gated = gated;
    weight->used = role;
    weight->borrowed = options_.borrow;
    weight->matrices = sources[0].count;
    for (int64_t i = 0; i < sources[0].count; ++i) {
      weight->rows = 0;
      for (const engine::WeightSource& source : sources) {
        GEN_TRY(take(source.matrix(i), sources, weight.get()));
      }
    }
    return std::unique_ptr<engine::Weight>(std::move(weight));
  }
  Status take(const engine::WeightSource& source, std::span<const engine::WeightSource> sources,
              ReferenceWeight* weight) const {
    if (source.type != sources[0].type && !options_.mixed_stacks) {
      return error(Code::kUnsupported, "no mixed stacks");
    }
    const quant::Format* format = quant::find_format(source.type);
    if (format == nullptr) return error(Code::kUnsupported, "%s", dtype_name(source.type));
    uint64_t row_bytes = 0;
    if (!dtype_row_bytes(source.type, static_cast<uint64_t>(source.cols), &row_bytes) ||
        source.data.size() != row_bytes * static_cast<uint64_t>(source.rows) ||
        (weight->cols != 0 && weight->cols != source.cols)) {
      return error(Code::kFormat, "%s does not fit", source.name);
    }
    weight->cols = source.cols;
    weight->rows += source.rows;
    const size_t before = weight->values.size();
    weight->values.resize(before + static_cast<size_t>(source.rows * source.cols));
    format->decode(source.data.data(), weight->values.data() + before, source.rows * source.cols);
    return {};
  }

  [[nodiscard]] size_t activation_bytes(uint32_t forms, int64_t cols) const noexcept override {
    const auto bytes = static_cast<size_t>(cols) * sizeof(float);
    return forms == 0 ? 0 : (bytes + 63) / 64 * 64;
  }

  Result<std::unique_ptr<engine::Stream>> new_stream() override {
    return std::unique_ptr<engine::Stream>(std::make_unique<ReferenceStream>());
  }

  [[nodiscard]] bool can(engine::Op op) const noexcept override { return op != options_.lacks; }
  Status run(engine::Stream&, const engine::OpArgs& args) override {
    return std::visit([this](const auto& of) { return run_one(of); }, args);
  }

  Status run_one(const engine::EmbedArgs& args) {
    const auto& weight = dynamic_cast<const ReferenceWeight&>(*args.weight);
    for (int64_t t = 0; t < args.y.rows; ++t) {
      const int64_t id = at(args.ids)[t];
      if (id < 0) continue;
      for (int64_t d = 0; d < args.y.cols; ++d) {
        auto value = static_cast<double>(weight.values[static_cast<size_t>(id * weight.cols + d)]);
        each_part(args.low_rank, t, [&](int32_t, const engine::LowRankPart& part, int64_t) {
          for (int64_t r = 0; r < part.rank; ++r) {
            value += static_cast<double>(at(part.a)[id * part.rank + r]) *
                     static_cast<double>(part.scale) *
                     static_cast<double>(at(part.b)[r * args.y.cols + d]);
          }
        });
        at(args.y.data)[t * args.y.stride + d] = static_cast<float>(value) * args.scale;
      }
    }
    return {};
  }

  Status run_one(const engine::PackArgs& args) {
    for (int64_t t = 0; t < args.x.rows; ++t) {
      std::memcpy(packed_row(args.y, t), at(args.x.data) + t * args.x.stride,
                  static_cast<size_t>(args.x.cols) * sizeof(float));
    }
    return {};
  }

  Status run_one(const engine::RmsNormArgs& args) {
    for (int64_t t = 0; t < args.x.rows; ++t) {
      std::vector<float> row(at(args.x.data) + t * args.x.stride,
                             at(args.x.data) + t * args.x.stride + args.x.cols);
      normalise(row.data(), args.x.cols, at(args.w), args.eps);
      write(row, t, args.y, args.packed);
    }
    return {};
  }

  Status run_one(const engine::LayerNormArgs& args) {
    const int64_t n = args.x.cols / args.groups;
    for (int64_t t = 0; t < args.x.rows; ++t) {
      std::vector<float> row(at(args.x.data) + t * args.x.stride,
                             at(args.x.data) + t * args.x.stride + args.x.cols);
      for (int64_t first = 0; first < args.x.cols; first += n) {
        const std::span<float> part(row.data() + first, static_cast<size_t>(n));
        double mean = 0.0;
        for (const float x : args.centred ? part : std::span<const float>())
          mean += static_cast<double>(x) / static_cast<double>(n);
        double variance = static_cast<double>(args.eps);
        for (const float x : part) {
          const double off = static_cast<double>(x) - mean;
          variance += off * off / static_cast<double>(n);
        }
        for (int64_t d = first; d < first + n; ++d) {
          double value =
              (static_cast<double>(row[static_cast<size_t>(d)]) - mean) / std::sqrt(variance);
          if (args.w) value *= static_cast<double>(at(args.w)[d]);
          if (args.b) value += static_cast<double>(at(args.b)[d]);
          row[static_cast<size_t>(d)] = static_cast<float>(value);
        }
      }
      write(row, t, args.y, args.packed);
    }
    return {};
  }

  Status run_one(const engine::AdapterInArgs& args) {
    const int64_t used = args.routes.data ? args.routes.n_used : 1;
    for (int64_t row = 0; row < args.u.rows; ++row) {
      const int64_t t = row / used;
      const int64_t e = args.routes.data ? expert_of(args.routes, row) : 0;
      const float* const x =
          at(args.x.data) + (args.x.rows == args.u.rows ? row : t) * args.x.stride;
      each_part(args.low_rank, t, [&](int32_t, const engine::LowRankPart& part, int64_t place) {
        const float* const a = at(part.a) + e * part.rank * args.x.cols;
        for (int64_t r = 0; r < part.rank; ++r) {
          double sum = 0.0;
          for (int64_t c = 0; c < args.x.cols; ++c) {
            sum += static_cast<double>(a[r * args.x.cols + c]) * static_cast<double>(x[c]);
          }
          at(args.u.data)[row * args.u.stride + place + r] =
              static_cast<float>(sum * static_cast<double>(part.scale));
        }
      });
    }
    return {};
  }

  Status run_one(const engine::LinearArgs& args) {
    const auto& weight = dynamic_cast<const ReferenceWeight&>(*args.weight);
    const int64_t n = weight.out_features();
    for (int64_t t = 0; t < args.y.rows; ++t) {
      const float* x = packed_row(args.x, t);
      for (int64_t o = 0; o < n; ++o) {
        const int32_t site = weight.gated ? 0 : -1;
        double sum =
            dot(weight, o, x) + low_rank(args.low_rank, args.u, t, t, site, o) + bias(args, o);
        if (weight.gated) {
          sum = static_cast<double>(static_cast<float>(sum));
          const auto up = static_cast<double>(
              static_cast<float>(dot(weight, o + n, x) +
                                 low_rank(args.low_rank, args.u, t, t, 1, o) + bias(args, o + n)));
          sum = reference_gated(args.activation, sum, up);
        } else if (args.activation.kind != engine::Act::kNone) {
          sum = reference_act(args.activation, static_cast<double>(static_cast<float>(sum)));
        }
        auto value = static_cast<float>(sum);
        if (args.residual.data) {
          value += at(args.residual.data)[t * args.residual.stride + o];
        }
        at(args.y.data)[t * args.y.stride + o] = value;
      }
    }
    return {};
  }

  Status run_one(const engine::RopeAnglesArgs& args) {
    for (int64_t t = 0; t < args.cs.rows; ++t) {
      for (int32_t i = 0; i < args.cs.cols / 2; ++i) {
        const double angle =
            static_cast<double>(at(args.positions)[t]) * static_cast<double>(at(args.inv_freq)[i]);
        float* cs = at(args.cs.data) + t * args.cs.stride + 2 * i;
        cs[0] = static_cast<float>(std::cos(angle) * static_cast<double>(args.magnitude));
        cs[1] = static_cast<float>(std::sin(angle) * static_cast<double>(args.magnitude));
      }
    }
    return {};
  }

  Status run_one(const engine::RopeAppendArgs& args) {
    for (int32_t s = 0; s < args.n_sequences; ++s) {
      const engine::SequenceRows rows = engine::resolve(args.layer, at(args.sequences)[s], 0);
      for (int32_t i = 0; i < rows.n_rows; ++i) {
        const int64_t t = rows.first_row + i;
        for (int32_t h = 0; h < args.n_heads; ++h) {
          float* q = at(args.q.data) + t * args.q.stride + int64_t{h} * args.k_dim;
          if (args.q_norm && !args.norm_last) {
            normalise(q, args.k_dim, at(args.q_norm), args.norm_eps);
          }
          rotate(q, args, t);
          if (args.q_norm && args.norm_last) {
            normalise(q, args.k_dim, at(args.q_norm), args.norm_eps);
          }
        }
        for (int32_t g = 0; args.k.data && g < args.n_kv_heads; ++g) {
          const float* k = at(args.k.data) + t * args.k.stride + int64_t{g} * args.k_dim;
          std::vector<float> head(k, k + args.k_dim);
          if (args.k_norm && !args.norm_last) {
            normalise(head.data(), args.k_dim, at(args.k_norm), args.norm_eps);
          }
          rotate(head.data(), args, t);
          if (args.k_norm && args.norm_last) {
            normalise(head.data(), args.k_dim, at(args.k_norm), args.norm_eps);
          }
          const float* v = at(args.v.data) + t * args.v.stride + int64_t{g} * args.v_dim;
          put(rows.view.k, rows.first_entry + i, g, head.data());
          put(rows.view.v, rows.first_entry + i, g, v);
        }
      }
    }
    return {};
  }

  Status run_one(const engine::AttentionArgs& args) {
    const int64_t cols = int64_t{args.n_heads} * args.v_dim;
    for (int32_t s = 0; s < args.n_sequences; ++s) {
      const engine::SequenceRows rows = engine::resolve(args.layer, at(args.sequences)[s], 0);
      for (int32_t i = 0; i < rows.n_rows; ++i) {
        std::vector<float> out(static_cast<size_t>(cols));
        for (int32_t h = 0; h < args.n_heads; ++h) attend(args, rows, i, h, out.data());
        write(out, rows.first_row + i, args.out, args.packed);
      }
    }
    return {};
  }

  Status run_one(const engine::SelectRowsArgs& args) {
    for (int64_t i = 0; i < args.y.rows; ++i) {
      std::memcpy(at(args.y.data) + i * args.y.stride,
                  at(args.x.data) + int64_t{at(args.rows)[i]} * args.x.stride,
                  static_cast<size_t>(args.y.cols) * sizeof(float));
    }
    return {};
  }

  Status run_one(const engine::PositionScaleArgs& args) {
    for (int64_t t = 0; t < args.x.rows; ++t) {
      const int32_t step = at(args.positions)[t] / args.every;
      const float factor = at(args.factors)[step < args.n_factors ? step : args.n_factors - 1];
      for (int64_t d = 0; d < args.x.cols; ++d) {
        at(args.y.data)[t * args.y.stride + d] = at(args.x.data)[t * args.x.stride + d] * factor;
      }
    }
    return {};
  }

  Status run_one(const engine::MeanRowsArgs& args) {
    for (int64_t i = 0; i < args.y.rows; ++i) {
      for (int64_t d = 0; d < args.y.cols; ++d) {
        double sum = 0.0;
        int64_t n = 0;
        for (int64_t t = at(args.first)[i]; t <= at(args.last)[i]; ++t, ++n) {
          sum += static_cast<double>(at(args.x.data)[t * args.x.stride + d]);
        }
        at(args.y.data)[i * args.y.stride + d] = static_cast<float>(sum / static_cast<double>(n));
      }
    }
    return {};
  }

  /// By sorting all tokens.
  Status run_one(const engine::BestArgs& args) {
    for (int64_t t = 0; t < args.x.rows; ++t) {
      float* const row = at(args.x.data) + t * args.x.stride;
      int32_t* const tokens = at(args.tokens) + t * args.k;
      float* const values = at(args.values) + t * args.k;
      const auto n = static_cast<int32_t>(args.x.cols);
      int32_t bad = 0;
      while (bad < n && !std::isnan(row[bad]) && row[bad] != INFINITY) ++bad;
      if (bad < n) {
        std::fill_n(tokens, args.k, -1 - bad);
        std::fill_n(values, args.k, row[bad]);
        continue;
      }
      std::vector<float> edited(row, row + n);
      if (args.rows) {
        const engine::BestRow& with = at(args.rows)[t];
        for (int32_t i = 0; i < with.n_aside; ++i) {
          const int32_t token = at(with.aside)[i];
          at(with.aside_logits)[i] = row[token];
          edited[static_cast<size_t>(token)] = -INFINITY;
        }
        for (int32_t i = 0; with.mask && i < n; ++i) {
          const bool there = i / 32 < with.mask_words;
          if (!there || (at(with.mask)[i / 32] >> (i % 32) & 1U) == 0) {
            edited[static_cast<size_t>(i)] = -INFINITY;
          }
        }
      }
      std::vector<int32_t> order(edited.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return edited[static_cast<size_t>(a)] > edited[static_cast<size_t>(b)];
      });
      for (int32_t i = 0; i < args.k; ++i) {
        tokens[i] = order[static_cast<size_t>(i)];
        values[i] = edited[static_cast<size_t>(tokens[i])];
      }
      const double temperature = args.mass && args.rows ? at(args.rows)[t].temperature : 0.0;
      if (!(temperature > 0.0) || values[0] == -INFINITY) continue;
      const size_t slices = mass_slices(edited.size());
      double* const mass = at(args.mass) + static_cast<size_t>(t) * slices;
      std::fill_n(mass, slices, 0.0);
      for (size_t i = 0; i < edited.size(); ++i) {
        const double below = static_cast<double>(edited[i]) - static_cast<double>(values[0]);
        mass[i / kMassSlice] += std::exp(below / temperature);
      }
      if (!args.slice || !(at(args.rows)[t].place >= 0.0)) continue;
      const double target = at(args.rows)[t].place * std::accumulate(mass, mass + slices, 0.0);
      size_t place = 0;
      for (double sum = mass[0]; place < slices && sum <= target;) {
        if (++place < slices) sum += mass[place];
      }
      for (size_t i = 0; place < slices && i < kMassSlice; ++i) {
        const size_t token = place * kMassSlice + i;
        at(args.slice)[static_cast<size_t>(t) * kMassSlice + i] =
            token < edited.size() ? edited[token] : -INFINITY;
      }
    }
    return {};
  }

  Status run_one(const engine::ScanArgs& args) { return ReferenceStates::run(args); }
  Status run_one(const engine::CausalConvArgs& args) { return ReferenceStates::run(args); }
  Status run_one(const engine::DeltaNetArgs& args) { return ReferenceStates::run(args); }
  Status run_one(const engine::SelectiveScanArgs& args) { return ReferenceStates::run(args); }

  /// All in double, by sorting.
  Status run_one(const engine::RouteArgs& args) {
    const engine::Routing& of = args.routing;
    const auto n = static_cast<size_t>(of.n_experts);
    for (int64_t t = 0; t < args.y.rows; ++t) {
      const float* const x = at(args.logits.data) + t * args.logits.stride;
      const std::vector<double> logits(x, x + n);
      std::vector<double> p = logits;
      if (of.gating == engine::Gating::kSoftmax) p = softmax(logits);
      for (size_t e = 0; of.gating == engine::Gating::kSigmoid && e < n; ++e) {
        p[e] = 1.0 / (1.0 + std::exp(-logits[e]));
      }
      for (size_t e = 0; of.gating == engine::Gating::kRootSoftplus && e < n; ++e) {
        p[e] = std::sqrt(std::log1p(std::exp(logits[e])));
      }
      std::vector<double> score = args.bias || of.n_groups > 1 ? p : logits;
      for (size_t e = 0; e < n; ++e) {
        if (args.bias) score[e] += static_cast<double>(at(args.bias)[e]);
        if (std::isnan(score[e])) score[e] = -INFINITY;
      }
      const auto ranked = [](const std::vector<double>& by, size_t first, size_t count) {
        std::vector<size_t> order(count);
        std::iota(order.begin(), order.end(), first);
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return by[a] > by[b]; });
        return order;
      };
      const size_t size = n / static_cast<size_t>(of.n_groups);
      std::vector<double> sums;
      for (size_t first = 0; first < n; first += size) {
        const std::vector<size_t> best = ranked(score, first, size);
        sums.push_back(score[best[0]] + (size > 1 ? score[best[1]] : 0.0));
      }
      std::vector<size_t> groups = ranked(sums, 0, sums.size());
      groups.resize(static_cast<size_t>(of.n_groups_used));
      std::vector<size_t> chosen;
      for (const size_t e : ranked(score, 0, n)) {
        if (std::count(groups.begin(), groups.end(), e / size) != 0) chosen.push_back(e);
      }
      chosen.resize(static_cast<size_t>(of.n_used));
      std::vector<double> weights;
      for (const size_t e : chosen) weights.push_back(p[e]);
      if (of.gating == engine::Gating::kSoftmaxChosen) weights = softmax(weights);
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      int32_t* const y = at(args.y.data) + t * args.y.stride;
      for (size_t s = 0; s < chosen.size(); ++s) {
        if (of.normalise) weights[s] /= sum < 0x1p-14 ? 0x1p-14 : sum;
        const auto weight = static_cast<float>(weights[s] * static_cast<double>(of.scale));
        y[s] = static_cast<int32_t>(chosen[s]);
        std::memcpy(y + chosen.size() + s, &weight, sizeof(weight));
      }
    }
    return {};
  }

  Status run_one(const engine::ExpertsArgs& args) {
    const auto& weight = dynamic_cast<const ReferenceWeight&>(*args.weight);
    const int64_t n = weight.out_features();
    const int64_t used = args.routes.n_used;
    for (int64_t row = 0; row < args.y.rows; ++row) {
      const int64_t e = expert_of(args.routes, row);
      const float* const x = packed_row(args.x, args.x.rows == args.y.rows ? row : row / used);
      const auto sum = [&](int64_t o, int64_t half) {
        double all = dot(weight, e * weight.rows + half * n + o, x);
        if (args.scales) {
          all *= static_cast<double>(at(args.scales)[half * weight.matrices + e]);
        }
        all += low_rank(args.low_rank, args.u, row, row / used, weight.gated ? half : -1, o, e);
        if (args.bias) {
          all += static_cast<double>(at(args.bias)[(half * weight.matrices + e) * n + o]);
        }
        return static_cast<double>(static_cast<float>(all));
      };
      for (int64_t o = 0; o < n; ++o) {
        double value = sum(o, 0);
        if (weight.gated) {
          value = reference_gated(args.activation, value, sum(o, 1));
        } else if (args.activation.kind != engine::Act::kNone) {
          value = reference_act(args.activation, value);
        }
        at(args.y.data)[row * args.y.stride + o] = static_cast<float>(value);
      }
    }
    return {};
  }

  Status run_one(const engine::CombineArgs& args) {
    const int64_t used = args.routes.n_used;
    for (int64_t t = 0; t < args.y.rows; ++t) {
      for (int64_t d = 0; d < args.y.cols; ++d) {
        double sum = 0.0;
        for (int64_t s = 0; s < used; ++s) {
          float weight = 0.0F;
          std::memcpy(&weight, at(args.routes.data) + t * args.routes.stride + used + s,
                      sizeof(weight));
          sum += static_cast<double>(weight) *
                 static_cast<double>(at(args.x.data)[(t * used + s) * args.x.stride + d]);
        }
        at(args.y.data)[t * args.y.stride + d] = static_cast<float>(sum);
      }
    }
    return {};
  }

  Status run_one(const engine::AddArgs& args) {
    for (int64_t t = 0; t < args.y.rows; ++t) {
      for (int64_t d = 0; d < args.y.cols; ++d) {
        at(args.y.data)[t * args.y.stride + d] =
            at(args.a.data)[t * args.a.stride + d] + at(args.b.data)[t * args.b.stride + d];
      }
    }
    return {};
  }

  Status run_one(const engine::GatedArgs& args) {
    const int64_t run = args.up.cols / args.gate.cols;
    for (int64_t t = 0; t < args.y.rows; ++t) {
      for (int64_t d = 0; d < args.y.cols; ++d) {
        const auto gate = static_cast<double>(at(args.gate.data)[t * args.gate.stride + d / run]);
        const auto up = static_cast<double>(at(args.up.data)[t * args.up.stride + d]);
        at(args.y.data)[t * args.y.stride + d] =
            static_cast<float>(reference_gated(args.activation, gate, up));
      }
    }
    return {};
  }

  Status run_one(const engine::ActivateArgs& args) {
    for (int64_t t = 0; t < args.y.rows; ++t) {
      for (int64_t d = 0; d < args.y.cols; ++d) {
        const auto x = static_cast<double>(at(args.x.data)[t * args.x.stride + d]);
        at(args.y.data)[t * args.y.stride + d] =
            static_cast<float>(reference_act(args.activation, x));
      }
    }
    return {};
  }

  Status upload(engine::Stream&, engine::EnginePtr<std::byte> to, const void* from,
                size_t bytes) override {
    if (bytes > 0) std::memcpy(at(to), from, bytes);
    return {};
  }
  Status download(engine::Stream&, void* to, engine::EnginePtr<const std::byte> from,
                  size_t bytes) override {
    if (bytes > 0) std::memcpy(to, at(from), bytes);
    return {};
  }
  Status finish(engine::Stream&) override { return {}; }

 private:
  template <typename T>
  static T* at(engine::EnginePtr<T> address) {
    return engine::Access::pointer(address);
  }
  float* packed_row(const engine::Activations& rows, int64_t t) const {
    return reinterpret_cast<float*>(at(rows.data) + static_cast<size_t>(t) *
                                                        activation_bytes(rows.forms, rows.cols));
  }
  void write(const std::vector<float>& row, int64_t t, const engine::MatrixView& y,
             const engine::Activations& packed) const {
    const size_t bytes = row.size() * sizeof(float);
    if (y.data) std::memcpy(at(y.data) + t * y.stride, row.data(), bytes);
    if (packed.data) std::memcpy(packed_row(packed, t), row.data(), bytes);
  }
  static std::vector<double> softmax(const std::vector<double>& x) {
    const double most = *std::max_element(x.begin(), x.end());
    std::vector<double> y;
    for (const double each : x) y.push_back(std::exp(each - most));
    const double sum = std::accumulate(y.begin(), y.end(), 0.0);
    for (double& each : y) each /= sum;
    return y;
  }
  static void normalise(float* row, int64_t n, const float* w, float eps) {
    double squares = 0.0;
    for (int64_t d = 0; d < n; ++d) squares += static_cast<double>(row[d]) * row[d];
    const double scale =
        1.0 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(eps));
    for (int64_t d = 0; d < n; ++d) {
      row[d] = static_cast<float>(static_cast<double>(row[d]) * scale * static_cast<double>(w[d]));
    }
  }
  static double dot(const ReferenceWeight& weight, int64_t row, const float* x) {
    double sum = 0.0;
    for (int64_t c = 0; c < weight.cols; ++c) {
      sum += static_cast<double>(weight.values[static_cast<size_t>(row * weight.cols + c)]) *
             static_cast<double>(x[c]);
    }
    return sum;
  }
  /// Calls visit(site, part, place of its u) for all that row t has.
  template <typename Visit>
  static void each_part(const engine::LowRank& of, int64_t t, const Visit& visit) {
    if (!of.table) return;
    const int32_t mix = at(of.mixes)[of.rows ? at(of.rows)[t] : t];
    for (int32_t s = 0; s < of.n_sites && mix >= 0; ++s) {
      const engine::LowRankSite& site = at(of.sites)[s];
      const engine::LowRankMix& here = at(of.table)[mix * of.stride + site.site];
      int64_t place = site.u;
      for (int32_t i = 0; i < here.n; ++i) {
        visit(s, here.parts[i], place);
        place += here.parts[i].rank;
      }
    }
  }
  /// What adapters add to an output of a row of u, which is row t of the batch.
  static double low_rank(const engine::LowRank& of, const engine::ConstMatrixView& u, int64_t row,
                         int64_t t, int64_t gated, int64_t output, int64_t expert = 0) {
    double sum = 0.0;
    each_part(of, t, [&](int32_t s, const engine::LowRankPart& part, int64_t place) {
      const engine::LowRankSite& site = at(of.sites)[s];
      const int64_t column = output - site.first;
      if ((gated >= 0 && gated != s) || column < 0 || column >= site.cols) return;
      for (int64_t r = 0; r < part.rank; ++r) {
        sum += static_cast<double>(at(part.b)[(expert * part.rank + r) * site.cols + column]) *
               static_cast<double>(at(u.data)[row * u.stride + place + r]);
      }
    });
    return sum;
  }
  /// Of a row of what experts make.
  static int64_t expert_of(const engine::ConstRoutes& routes, int64_t row) {
    return at(routes.data)[row / routes.n_used * routes.stride + row % routes.n_used];
  }
  static double bias(const engine::LinearArgs& args, int64_t n) {
    return args.bias ? static_cast<double>(at(args.bias)[n]) : 0.0;
  }
  static void rotate(float* head, const engine::RopeAppendArgs& args, int64_t t) {
    if (args.rope == engine::RopeKind::kNone) return;
    for (int32_t i = 0; i < args.rope_dims / 2; ++i) {
      const float* cs = at(args.cs.data) + t * args.cs.stride + 2 * i;
      const bool adjacent = args.rope == engine::RopeKind::kAdjacent;
      float& a = head[adjacent ? 2 * i : i];
      float& b = head[adjacent ? 2 * i + 1 : i + args.rope_dims / 2];
      const auto x = static_cast<double>(a);
      const auto y = static_cast<double>(b);
      a = static_cast<float>(x * static_cast<double>(cs[0]) - y * static_cast<double>(cs[1]));
      b = static_cast<float>(x * static_cast<double>(cs[1]) + y * static_cast<double>(cs[0]));
    }
  }
  static void put(const engine::KvSide& side, int64_t entry, int32_t head, const float* x) {
    for (int32_t d = 0; d < side.head_dim; ++d) kv_write(side, entry, head, d, x[d]);
  }
  static bool sees(const engine::SequenceRows& rows, int32_t row, int64_t entry) {
    const int64_t other = entry - rows.first_entry;
    if (other > row) return false;
    if (other < 0 || rows.visible == nullptr) return true;
    const int64_t words = (rows.n_rows + 63) / 64;
    return (rows.visible[row * words + other / 64] >> (other % 64) & 1U) != 0;
  }
  static void attend(const engine::AttentionArgs& args, const engine::SequenceRows& rows,
                     int32_t row, int32_t head, float* out) {
    const int64_t own = rows.first_entry + row;
    const int32_t group = head / (args.n_heads / args.n_kv_heads);
    const float* q =
        at(args.q.data) + (rows.first_row + row) * args.q.stride + int64_t{head} * args.k_dim;
    std::vector<double> weights(static_cast<size_t>(own + 1), 0.0);
    double total = args.sinks ? std::exp(static_cast<double>(at(args.sinks)[head])) : 0.0;
    for (int64_t e = 0; e <= own; ++e) {
      if (!sees(rows, row, e) || (rows.view.window > 0 && own - e >= rows.view.window)) continue;
      double score = 0.0;
      for (int32_t d = 0; d < args.k_dim; ++d) {
        score += static_cast<double>(q[d]) * static_cast<double>(kv_read(rows.view.k, e, group, d));
      }
      score *= static_cast<double>(args.scale);
      if (args.soft_cap > 0.0F) {
        const auto cap = static_cast<double>(args.soft_cap);
        score = cap * std::tanh(score / cap);
      }
      // Scores of tests are small, so no maximum is needed.
      weights[static_cast<size_t>(e)] = std::exp(score);
      total += std::exp(score);
    }
    for (int32_t d = 0; d < args.v_dim; ++d) {
      double sum = 0.0;
      for (int64_t e = 0; e <= own; ++e) {
        sum += weights[static_cast<size_t>(e)] *
               static_cast<double>(kv_read(rows.view.v, e, group, d));
      }
      out[int64_t{head} * args.v_dim + d] = static_cast<float>(sum / total);
    }
  }

  Options options_;
  engine::HostMemory memory_{system_allocator()};
};

}  // namespace gen::test
