// SPDX-License-Identifier: Apache-2.0
// Operations of an engine, each checked against double precision and then timed: what gpu_bench
// runs on a device and a test runs, small, on the emulator.
#pragma once

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

namespace gen::test {

struct GpuFigure {
  std::string name;
  int64_t rows = 0;
  double seconds = 0.0;  // of one run
  double bytes = 0.0;    // that it must read and write
  double worst = 0.0;    // error as a share of what the check allows; above 1 it is wrong
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

  /// y = x W^T with W [width, width] in a weight format.
  Result<GpuFigure> linear(const quant::Format& format, int64_t rows) {
    const DTypeInfo& info = *dtype_info(format.type);
    const size_t row_bytes = static_cast<size_t>(width_) / info.block_elements * info.block_bytes;
    constexpr int64_t kDistinct = 7;  // rows that are repeated over and over
    std::vector<std::byte> some(row_bytes * kDistinct);
    const auto values = random(width_ * kDistinct, 0.4F);
    format.encode(values.data(), some.data(), width_ * kDistinct);
    std::vector<float> decoded(values.size());
    format.decode(some.data(), decoded.data(), width_ * kDistinct);
    std::vector<std::byte> bytes;
    for (int64_t row = 0; row < width_; ++row) {
      const auto from = some.begin() + static_cast<std::ptrdiff_t>(row_bytes) * (row % kDistinct);
      bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(row_bytes));
    }
    const engine::WeightSource source = {"w", format.type, width_, width_, bytes, false};
    GEN_ASSIGN(auto weight,
               engine_->prepare(engine::WeightRole::kLinear, std::span(&source, 1), nullptr));
    const auto x = random(rows * width_, 1.0F);
    GEN_ASSIGN(const auto at, put(x));
    const uint32_t forms = weight->activation_forms();
    const size_t stride = engine_->activation_bytes(forms, width_);
    GEN_ASSIGN(const auto packed, room(stride * static_cast<size_t>(rows)));
    GEN_ASSIGN(const auto y, room(static_cast<size_t>(rows * width_) * sizeof(float)));
    engine::LinearArgs args;
    args.weight = weight.get();
    args.x = {packed, forms, rows, width_};
    args.y = {y.as<float>(), rows, width_, width_};
    GEN_TRY(engine_->run(*stream_, engine::PackArgs{{at, rows, width_, width_}, args.x}));
    GpuFigure figure = {std::string("linear ") + dtype_name(format.type), rows};
    figure.bytes =
        static_cast<double>(bytes.size()) + static_cast<double>(2 * rows * width_) * sizeof(float);
    GEN_TRY(time(args, &figure));
    GEN_ASSIGN(const auto got, get(args.y.data, rows * width_));
    for (int64_t t = 0; t < rows; ++t) {
      for (int64_t n = 0; n < kDistinct; ++n) {
        double want = 0.0;
        double size = 0.0;
        for (int64_t c = 0; c < width_; ++c) {
          const double product = static_cast<double>(decoded[static_cast<size_t>(n * width_ + c)]) *
                                 static_cast<double>(x[static_cast<size_t>(t * width_ + c)]);
          want += product;
          size += std::fabs(product);
        }
        // Activations in 8 bits move a product by up to 2^-8 of it; in float32 by far less.
        const double bound = size * (forms == engine::kActF32 ? 1e-5 : 0x1p-8);
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

  /// A copy within the engine's memory: the rate that others are a share of.
  Result<GpuFigure> copy(size_t bytes) {
    GEN_ASSIGN(const auto from, room(bytes));
    GEN_ASSIGN(const auto to, room(bytes));
    GpuFigure figure = {"copy", 1};
    figure.bytes = 2.0 * static_cast<double>(bytes);
    const engine::MemoryOp op = engine::CopyArgs{to, from, bytes};
    GEN_TRY(measure([&] { return engine_->memory().run(op); }, [] { return Status(); }, &figure));
    return figure;
  }

 private:
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
  Result<engine::EnginePtr<float>> put(const std::vector<float>& values) {
    GEN_ASSIGN(const auto at, room(values.size() * sizeof(float)));
    GEN_TRY(engine_->upload(*stream_, at, values.data(), values.size() * sizeof(float)));
    return at.as<float>();
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
  std::unique_ptr<engine::Stream> stream_;
  std::deque<engine::EngineBuffer> buffers_;
};

}  // namespace gen::test
