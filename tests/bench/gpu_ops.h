// SPDX-License-Identifier: Apache-2.0
// Operations of an engine, each checked against double precision and then timed. gpu_bench runs
// them on a device; a test runs small ones on the emulator.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/access.h"
#include "engine/engine.h"
#include "quant/format.h"
#include "tensor/half.h"
#include "support/weight_blocks.h"

namespace gen::test {

struct GpuFigure {
  std::string name;
  int64_t rows = 0;
  double seconds = 0.0;   // of one run
  double bytes = 0.0;     // that it must read and write
  double products = 0.0;  // multiply-adds, for operations bound by them
  double worst = 0.0;     // error as a share of what the check allows; above 1 it is wrong
};

/// Of a model.
struct LayerShape {
  int64_t width = 2048;
  int32_t heads = 32;
  int32_t kv_heads = 4;
  int32_t dim = 64;
  int64_t ffn = 5632;
};

class GpuOps {
 public:
  /// `width` of matrices: a multiple of 256. `seconds` a figure may take.
  static Result<std::unique_ptr<GpuOps>> create(std::shared_ptr<engine::Engine> engine,
                                                int64_t width, double seconds) {
    std::unique_ptr<GpuOps> made(new GpuOps(std::move(engine), width, seconds));
    GEN_ASSIGN(made->stream_, made->engine_->new_stream());
    return made;
  }

  /// y = x W^T with W [width, width] in a weight format. `bf16`: rows are bfloat16, and quantised
  /// weights are converted to it.
  Result<GpuFigure> linear(const quant::Format& format, int64_t rows, bool deterministic = false,
                           bool bf16 = false) {
    const DTypeInfo& info = *dtype_info(format.type);
    const size_t row_bytes = static_cast<size_t>(width_) / info.block_elements * info.block_bytes;
    constexpr int64_t kDistinct = 7;  // rows that are repeated over and over
    std::vector<std::byte> some(row_bytes * kDistinct);
    const auto values = random(width_ * kDistinct, 0.4F);
    write_weights(format.type, values.data(), some.data(), width_ * kDistinct);
    std::vector<float> decoded(values.size());
    format.decode(some.data(), decoded.data(), width_ * kDistinct);
    std::vector<std::byte> bytes;
    for (int64_t row = 0; row < width_; ++row) {
      const auto from = some.begin() + static_cast<std::ptrdiff_t>(row_bytes) * (row % kDistinct);
      bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(row_bytes));
    }
    // As in a model, whose weights do not fit a cache: runs use the sets in turn.
    const size_t copies =
        seconds_ > 0.0 ? std::min<size_t>(kUncachedBytes / bytes.size() + 1, kMaxCopies) : 1;
    std::vector<std::unique_ptr<engine::Weight>> weights;
    for (size_t i = 0; i < copies; ++i) {
      const engine::WeightSource source = {"w", format.type, width_, width_, bytes, false};
      GEN_ASSIGN(auto weight,
                 engine_->prepare(engine::WeightRole::kLinear, std::span(&source, 1), nullptr));
      weights.push_back(std::move(weight));
    }
    const auto x = random(rows * width_, 1.0F);
    GEN_ASSIGN(const auto at, put(x));
    const uint32_t forms = weights[0]->activation_forms();
    const size_t stride = engine_->activation_bytes(forms, width_);
    GEN_ASSIGN(const auto packed, room(stride * static_cast<size_t>(rows)));
    GEN_ASSIGN(const auto y, room(static_cast<size_t>(rows * width_) * sizeof(float)));
    engine::LinearArgs args;
    args.weight = weights[0].get();
    args.x = {packed, forms, rows, width_, bf16};
    args.y = {y.as<float>(), rows, width_, width_};
    args.deterministic = deterministic;
    GEN_TRY(engine_->run(*stream_, engine::PackArgs{{at, rows, width_, width_}, args.x}));
    GpuFigure figure = {std::string("linear ") + dtype_name(format.type), rows};
    figure.bytes =
        static_cast<double>(bytes.size()) + static_cast<double>(2 * rows * width_) * sizeof(float);
    figure.products = 2.0 * static_cast<double>(rows * width_) * static_cast<double>(width_);
    size_t next = 0;
    GEN_TRY(measure(
        [&] {
          args.weight = weights[next++ % copies].get();
          return engine_->run(*stream_, args);
        },
        [&] { return engine_->finish(*stream_); }, &figure));
    GEN_ASSIGN(const auto got, get(args.y.data, rows * width_));
    const int64_t apart = rows > 16 ? rows / 16 : 1;  // rows that are looked at, the last included
    for (int64_t t = (rows - 1) % apart; t < rows; t += apart) {
      for (int64_t n = 0; n < kDistinct; ++n) {
        double want = 0.0;
        double size = 0.0;
        for (int64_t c = 0; c < width_; ++c) {
          const double product = static_cast<double>(decoded[static_cast<size_t>(n * width_ + c)]) *
                                 static_cast<double>(x[static_cast<size_t>(t * width_ + c)]);
          want += product;
          size += std::fabs(product);
        }
        // Activations in 8 or 16 bits move a product by up to 2^-8 of it; in float32 by far less.
        const bool rounded = forms != engine::kActF32 || deterministic || rows > 8;
        const double bound = size * (rounded ? 0x1p-8 : 1e-5);
        const auto last = static_cast<size_t>(t * width_ + width_ - kDistinct + n);
        const int64_t row = (width_ - kDistinct + n) % kDistinct;
        if (row == n) note(got[last] - want, bound, &figure);
        note(got[static_cast<size_t>(t * width_ + n)] - want, bound, &figure);
      }
    }
    return figure;
  }

  Result<GpuFigure> add(int64_t rows) {
    const auto a = random(rows * width_, 1.0F);
    GEN_ASSIGN(const auto at, put(a));
    GEN_ASSIGN(const auto y, room(a.size() * sizeof(float)));
    engine::AddArgs args;
    args.a = args.b = {at, rows, width_, width_};
    args.y = {y.as<float>(), rows, width_, width_};
    GpuFigure figure = {"add", rows};
    figure.bytes = 3.0 * static_cast<double>(a.size() * sizeof(float));
    GEN_TRY(time(args, &figure));
    GEN_ASSIGN(const auto got, get(args.y.data, rows * width_));
    for (size_t i = 0; i < a.size(); ++i) note(got[i] - 2.0F * a[i], 1e-30, &figure);
    return figure;
  }

  Result<GpuFigure> rms_norm(int64_t rows) {
    const auto x = random(rows * width_, 1.0F);
    const auto w = random(width_, 1.0F);
    GEN_ASSIGN(const auto at, put(x));
    GEN_ASSIGN(const auto by, put(w));
    GEN_ASSIGN(const auto y, room(x.size() * sizeof(float)));
    engine::RmsNormArgs args;
    args.x = {at, rows, width_, width_};
    args.w = by;
    args.eps = 1e-5F;
    args.y = {y.as<float>(), rows, width_, width_};
    GpuFigure figure = {"rms_norm", rows};
    figure.bytes = 2.0 * static_cast<double>(x.size() * sizeof(float));
    GEN_TRY(time(args, &figure));
    GEN_ASSIGN(const auto got, get(args.y.data, rows * width_));
    for (int64_t t = 0; t < rows; ++t) {
      double squares = 0.0;
      for (int64_t i = 0; i < width_; ++i) {
        const double each = static_cast<double>(x[static_cast<size_t>(t * width_ + i)]);
        squares += each * each;
      }
      const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width_) + 1e-5);
      for (int64_t i = 0; i < width_; ++i) {
        const auto at_i = static_cast<size_t>(t * width_ + i);
        const double want =
            static_cast<double>(x[at_i]) * scale * static_cast<double>(w[static_cast<size_t>(i)]);
        note(got[at_i] - want, 1e-5 * std::fabs(want) + 1e-9, &figure);
      }
    }
    return figure;
  }

  /// What a decode step of `sequences` sequences reads of one layer's cache in float16, in blocks
  /// of 16 entries; each has `entries` of them, the last `rows` of which ask. With `any_bits` on
  /// tensor cores where rows are many.
  Result<GpuFigure> attention(int32_t sequences, int32_t rows, int32_t entries, int32_t heads,
                              int32_t kv_heads, int32_t dim, bool any_bits = false,
                              engine::KvFormat format = engine::KvFormat::kF16) {
    const bool wide = format == engine::KvFormat::kF32;
    const size_t element_bytes = wide ? sizeof(float) : sizeof(uint16_t);
    engine::KvLayer layer;
    layer.kv_heads = kv_heads;
    layer.block_size = engine::kKvTile;
    const auto head_bytes = static_cast<size_t>(engine::kKvTile * dim) * element_bytes;
    const size_t side_bytes = head_bytes * static_cast<size_t>(kv_heads);
    layer.k = {format, engine::KvOrder::kKeys, dim, 0, side_bytes, head_bytes, 0, 0};
    layer.v = layer.k;
    layer.v.order = engine::KvOrder::kValues;
    layer.v.block_offset = side_bytes;
    // One sequence's worth of contents, the same for all; the places differ.
    const int32_t blocks = (entries + engine::kKvTile - 1) / engine::kKvTile;
    const auto keys = halves(int64_t{kv_heads} * blocks * engine::kKvTile * dim);
    const auto values = halves(int64_t{kv_heads} * blocks * engine::kKvTile * dim);
    const auto element = [&](int32_t head, int32_t entry, int32_t d) {
      return static_cast<size_t>((int64_t{head} * blocks * engine::kKvTile + entry) * dim + d);
    };
    const size_t side = side_bytes / element_bytes;
    std::vector<uint16_t> elements(static_cast<size_t>(blocks) * side * 2);
    for (int32_t head = 0; head < kv_heads; ++head) {
      for (int32_t entry = 0; entry < blocks * engine::kKvTile; ++entry) {
        const int32_t i = entry % engine::kKvTile;
        uint16_t* const block = elements.data() +
                                static_cast<size_t>(entry / engine::kKvTile) * side * 2 +
                                static_cast<size_t>(head * engine::kKvTile * dim);
        for (int32_t d = 0; d < dim; ++d) {
          block[d * engine::kKvTile + i] = keys[element(head, entry, d)];
          block[side + static_cast<size_t>(i * dim + d)] = values[element(head, entry, d)];
        }
      }
    }
    std::vector<float> wide_elements;
    if (wide) {
      for (const uint16_t each : elements) wide_elements.push_back(f16_to_f32(each));
    }
    std::vector<engine::EnginePtr<std::byte>> places;
    std::vector<engine::KvRows> records;
    for (int32_t s = 0; s < sequences; ++s) {
      engine::EnginePtr<std::byte> data;
      if (wide) {
        GEN_ASSIGN(const auto at, put(wide_elements));
        data = at.template as<std::byte>();
      } else {
        GEN_ASSIGN(const auto at, put(elements));
        data = at.template as<std::byte>();
      }
      for (int32_t b = 0; b < blocks; ++b) {
        places.push_back(data + static_cast<std::ptrdiff_t>(2 * side_bytes) * b);
      }
      engine::KvRows of;
      of.first_row = s * rows;
      of.n_rows = rows;
      of.first_entry = entries - rows;
      of.entries = entries;
      records.push_back(of);
    }
    GEN_ASSIGN(const auto table, put(places));
    for (int32_t s = 0; s < sequences; ++s)
      records[static_cast<size_t>(s)].blocks = table + int64_t{s} * blocks;
    const int64_t all = int64_t{sequences} * rows;
    const auto q = random(all * heads * dim, 2.0F);
    engine::AttentionArgs args;
    GEN_ASSIGN(const auto q_at, put(q));
    GEN_ASSIGN(const auto out, room(q.size() * sizeof(float)));
    GEN_ASSIGN(const auto sequences_at, put(records));
    args.q = {q_at, all, int64_t{heads} * dim, int64_t{heads} * dim};
    args.out = {out.as<float>(), all, int64_t{heads} * dim, int64_t{heads} * dim};
    args.n_heads = heads;
    args.n_kv_heads = kv_heads;
    args.k_dim = args.v_dim = dim;
    args.scale = 1.0F / std::sqrt(static_cast<float>(dim));
    args.layer = layer;
    args.sequences = sequences_at;
    args.n_sequences = sequences;
    args.any_bits = any_bits;
    args.max_chunks = 1;
    while (args.max_chunks * engine::kKvChunk < entries) args.max_chunks *= 2;
    GpuFigure figure = {"attention", all};
    figure.bytes = 2.0 * static_cast<double>(sequences * kv_heads * dim) *
                   static_cast<double>(entries) * static_cast<double>(element_bytes);
    figure.products = 4.0 * static_cast<double>(all) * entries * heads * dim;
    GEN_TRY(time(args, &figure));
    GEN_ASSIGN(const auto got, get(args.out.data, static_cast<int64_t>(q.size())));
    for (const int64_t t : {int64_t{0}, all - 1}) {
      for (int32_t h = 0; h<heads; h += heads> 4 ? 5 : 1) {
        const float* const asks = q.data() + (t * heads + h) * dim;
        check_row(asks, keys, values, element(h / (heads / kv_heads), 0, 0),
                  entries - rows + static_cast<int32_t>(t % rows) + 1, dim,
                  static_cast<double>(args.scale), got.data() + (t * heads + h) * dim,
                  any_bits && !wide ? 2e-4 : 2e-5, &figure);
      }
    }
    return figure;
  }

  /// Seconds by which the second run of a list of `n` operations, in which it becomes a graph,
  /// takes longer than the third.
  Result<GpuFigure> capture(int32_t n) {
    GEN_ASSIGN(const auto x, put(random(width_, 1.0F)));
    GEN_ASSIGN(const auto y, room(static_cast<size_t>(width_) * sizeof(float)));
    engine::AddArgs args;
    args.a = args.b = {x, 1, width_, width_};
    args.y = {y.as<float>(), 1, width_, width_};
    const std::vector<engine::OpArgs> list(static_cast<size_t>(n), args);
    double seconds[3] = {};
    for (double& each : seconds) {
      const auto begin = std::chrono::steady_clock::now();
      GEN_TRY(engine_->run_all(*stream_, list));
      GEN_TRY(engine_->finish(*stream_));
      each = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    GpuFigure figure = {"capture", n};
    figure.seconds = std::fmax(seconds[1] - seconds[2], 1e-9);
    figure.bytes = 3.0 * static_cast<double>(width_) * sizeof(float) * n;
    return figure;
  }

  /// A list such as a decode step of one text is, without attention: `layers` times a norm, a gated
  /// product and one back to the row, with weights [width, width] of a format that no cache holds.
  /// Checked against what its operations give one after another.
  Result<GpuFigure> step(const quant::Format& format, int32_t layers) {
    const DTypeInfo& info = *dtype_info(format.type);
    const auto n = static_cast<size_t>(width_ * width_);
    const size_t matrix = n / info.block_elements * info.block_bytes;
    const size_t row = matrix / static_cast<size_t>(width_);
    const auto values = random(width_, 0.1F);
    std::vector<std::byte> bytes(2 * matrix);
    write_weights(format.type, values.data(), bytes.data(), width_);
    for (size_t at = row; at < bytes.size(); at += row) {
      std::copy_n(bytes.begin(), row, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
    const auto half = std::span<const std::byte>(bytes).first(matrix);
    const engine::WeightSource sources[] = {{"a", format.type, width_, width_, half, false},
                                            {"b", format.type, width_, width_, half, false}};
    const size_t copies =
        seconds_ > 0.0 ? std::min<size_t>(kUncachedBytes / (3 * matrix) + 1, kMaxCopies) : 1;
    std::vector<std::unique_ptr<engine::Weight>> weights;
    for (size_t i = 0; i < 2 * copies; ++i) {
      const bool gated = i % 2 == 0;
      GEN_ASSIGN(auto weight,
                 engine_->prepare(gated ? engine::WeightRole::kGated : engine::WeightRole::kLinear,
                                  std::span(sources).first(gated ? 2 : 1), nullptr));
      weights.push_back(std::move(weight));
    }
    const uint32_t forms = weights[0]->activation_forms();
    GEN_ASSIGN(const auto from, put(random(width_, 1.0F)));
    GEN_ASSIGN(const auto norm, put(random(width_, 1.0F)));
    GEN_ASSIGN(const auto which, put(std::vector<int32_t>{0}));
    GEN_ASSIGN(const auto packed, room(engine_->activation_bytes(forms, width_)));
    GEN_ASSIGN(const auto wide, room(static_cast<size_t>(width_) * sizeof(float)));
    GEN_ASSIGN(const auto x, room(static_cast<size_t>(width_) * sizeof(float)));
    const engine::MatrixView row_x = {x.as<float>(), 1, width_, width_};
    const engine::MatrixView row_wide = {wide.as<float>(), 1, width_, width_};
    const auto constant = [](const engine::MatrixView& of) -> engine::ConstMatrixView {
      return {of.data, of.rows, of.cols, of.stride};
    };
    const engine::Activations row_packed = {packed, forms, 1, width_};
    std::vector<engine::OpArgs> list = {
        engine::SelectRowsArgs{{from, 1, width_, width_}, which, row_x}};
    for (int32_t i = 0; i < layers; ++i) {
      engine::RmsNormArgs normed;
      normed.x = constant(row_x);
      normed.w = norm;
      normed.eps = 1e-5F;
      normed.packed = row_packed;
      list.emplace_back(normed);
      engine::LinearArgs gated;
      gated.weight = weights[2 * (static_cast<size_t>(i) % copies)].get();
      gated.x = row_packed;
      gated.activation.kind = engine::Act::kSilu;
      gated.y = row_wide;
      list.emplace_back(gated);
      list.emplace_back(engine::PackArgs{constant(row_wide), row_packed});
      engine::LinearArgs back;
      back.weight = weights[2 * (static_cast<size_t>(i) % copies) + 1].get();
      back.x = row_packed;
      back.residual = constant(row_x);
      back.y = row_x;
      list.emplace_back(back);
    }
    for (const engine::OpArgs& args : list) GEN_TRY(engine_->run(*stream_, args));
    GEN_ASSIGN(const auto want, get(row_x.data, width_));
    GpuFigure figure = {"step", 1};
    figure.bytes = 3.0 * static_cast<double>(matrix) * layers;
    // Lists are captured, and tried as one kernel, when they have come a few times.
    for (int32_t i = 0; i < 16; ++i) {
      GEN_TRY(engine_->run_all(*stream_, list));
      GEN_TRY(engine_->finish(*stream_));
    }
    GEN_TRY(measure([&] { return engine_->run_all(*stream_, list); },
                    [&] { return engine_->finish(*stream_); }, &figure));
    GEN_ASSIGN(const auto got, get(row_x.data, width_));
    for (size_t i = 0; i < want.size(); ++i) note(got[i] - want[i], 1e-30, &figure);
    return figure;
  }

  /// `n_layers` layers of a model over a text of so many tokens, as a decode step of one text runs
  /// them; four sets of weights where it is timed (gpu_layer.h). Checked against what the
  /// operations give one by one, to the bit.
  Result<GpuFigure> layers(const quant::Format& format, const LayerShape& shape, int32_t n_layers,
                           int32_t text);

  /// A copy within the engine's memory: the rate that others are a share of.
  Result<GpuFigure> copy(size_t bytes) {
    GEN_ASSIGN(const auto from, room(bytes));
    GEN_ASSIGN(const auto to, room(bytes));
    GEN_TRY(engine_->memory().fill(from, std::byte{7}, bytes));
    GpuFigure figure = {"copy", 1};
    figure.bytes = 2.0 * static_cast<double>(bytes);
    const engine::MemoryOp op = engine::CopyArgs{to, from, bytes};
    std::byte last{};
    // Only a read waits.
    GEN_TRY(measure([&] { return engine_->memory().run(op); },
                    [&] { return engine_->memory().read(&last, to, 1); }, &figure));
    GEN_TRY(engine_->memory().read(&last, to + static_cast<std::ptrdiff_t>(bytes - 1), 1));
    note(std::to_integer<int>(last) - 7, 1e-30, &figure);
    return figure;
  }

 private:
  static constexpr size_t kUncachedBytes = size_t{512} << 20;
  static constexpr size_t kMaxCopies = 16;

  GpuOps(std::shared_ptr<engine::Engine> engine, int64_t width, double seconds)
      : engine_(std::move(engine)), width_(width), seconds_(seconds) {}

  static void note(double error, double bound, GpuFigure* figure) {
    const double share = std::fabs(error) / bound;
    if (!(share <= figure->worst)) figure->worst = share;
  }
  std::vector<float> random(int64_t n, float scale) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) {
      value = scale * static_cast<float>(2.0 * uniform_double(1, 2, next_++) - 1.0);
    }
    return values;
  }
  Result<engine::EnginePtr<std::byte>> room(size_t bytes) {
    GEN_ASSIGN(auto buffer, engine_->memory().allocate(bytes));
    buffers_.push_back(std::move(buffer));
    return buffers_.back().data();
  }
  std::vector<uint16_t> halves(int64_t n) {
    std::vector<uint16_t> values;
    for (const float value : random(n, 1.0F)) values.push_back(f32_to_f16(value));
    return values;
  }
  /// A head of a row of attention over the first `entries` entries from `first` on.
  static void check_row(const float* q, const std::vector<uint16_t>& keys,
                        const std::vector<uint16_t>& values, size_t first, int32_t entries,
                        int32_t dim, double scale, const float* got, double bound,
                        GpuFigure* figure) {
    const auto n = static_cast<size_t>(dim);
    std::vector<double> want(n);
    double sum = 0.0;
    for (size_t entry = 0; entry < static_cast<size_t>(entries); ++entry) {
      double score = 0.0;
      for (size_t d = 0; d < n; ++d) {
        score += static_cast<double>(q[d]) *
                 static_cast<double>(f16_to_f32(keys[first + entry * n + d]));
      }
      const double weight = std::exp(score * scale);
      sum += weight;
      for (size_t d = 0; d < n; ++d) {
        want[d] += weight * static_cast<double>(f16_to_f32(values[first + entry * n + d]));
      }
    }
    for (size_t d = 0; d < n; ++d) note(got[d] - want[d] / sum, bound, figure);
  }
  template <typename T>
  Result<engine::EnginePtr<T>> put(const std::vector<T>& values) {
    GEN_ASSIGN(const auto at, room(values.size() * sizeof(T)));
    GEN_TRY(engine_->upload(*stream_, at, values.data(), values.size() * sizeof(T)));
    return at.template as<T>();
  }
  Result<std::vector<float>> get(engine::EnginePtr<float> at, int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    GEN_TRY(engine_->download(*stream_, values.data(),
                              engine::EnginePtr<const float>(at).as<const std::byte>(),
                              values.size() * sizeof(float)));
    GEN_TRY(engine_->finish(*stream_));
    return values;
  }
  Status time(const engine::OpArgs& args, GpuFigure* figure) {
    return measure([&] { return engine_->run(*stream_, args); },
                   [&] { return engine_->finish(*stream_); }, figure);
  }
  /// The fewest seconds of five batches of runs that fill the time together.
  template <typename Run, typename Finish>
  Status measure(Run run, Finish finish, GpuFigure* figure) {
    using Clock = std::chrono::steady_clock;
    const auto batch = [&](int64_t n, double* seconds) -> Status {
      const auto begin = Clock::now();
      for (int64_t i = 0; i < n; ++i) GEN_TRY(run());
      GEN_TRY(finish());
      *seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      return {};
    };
    double first = 0.0;
    GEN_TRY(batch(1, &first));  // what is made at first use
    GEN_TRY(batch(1, &first));
    const auto runs =
        static_cast<int64_t>(std::fmin(1000.0, 1.0 + seconds_ / 5.0 / std::fmax(first, 1e-7)));
    for (int round = 0; round < (seconds_ > 0.0 ? 5 : 1); ++round) {
      double seconds = 0.0;
      GEN_TRY(batch(runs, &seconds));
      const double one = seconds / static_cast<double>(runs);
      if (round == 0 || one < figure->seconds) figure->seconds = one;
    }
    return {};
  }

  std::shared_ptr<engine::Engine> engine_;
  int64_t width_;
  double seconds_;
  uint64_t next_ = 0;
  double figure_bytes_ = 0.0;  // of weights
  std::unique_ptr<engine::Stream> stream_;
  std::deque<engine::EngineBuffer> buffers_;
};

}  // namespace gen::test
