// SPDX-License-Identifier: Apache-2.0
// See linear_rows_trial.h.
#include "cuda/ops/linear/linear_rows_trial.h"

#include "cuda/ops/linear/compare_sums.h"

namespace gen::cuda {
namespace {

/// The least number of sums that a trial compares; half of them must depend on the order of
/// additions.
constexpr int64_t kLeastCompared = 512;
/// The layout of a trial in the workspace, followed by our own kernel's sums.
constexpr size_t kFoundBytes = 256;

/// Times enqueued work by the device's clock.
class Stopwatch {
 public:
  explicit Stopwatch(device::Stream stream) noexcept : stream_(stream) {
    for (device::Event& event : events_) {
      if (failed_.ok()) failed_ = device::event_create(&event, true);
    }
    if (!failed_.ok()) static_cast<void>(device::last_error());
  }
  ~Stopwatch() {
    for (device::Event event : events_) {
      if (event != nullptr) static_cast<void>(device::event_destroy(event));
    }
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// Milliseconds of what `enqueue` enqueues, after once to warm up; kUntimed where events fail.
  /// A status of `enqueue`, and of a device that is lost. Waits for the device.
  template <typename Enqueue>
  Status time(const Enqueue& enqueue, float* ms) const {
    *ms = MatrixProducts::kUntimed;
    device::Error failed = failed_;
    if (failed.ok()) GEN_TRY(enqueue());
    if (failed.ok()) failed = device::event_record(events_[0], stream_);
    for (int32_t i = 0; i < kTimed && failed.ok(); ++i) GEN_TRY(enqueue());
    if (failed.ok()) failed = device::event_record(events_[1], stream_);
    if (failed.ok()) failed = device::event_synchronize(events_[1]);
    float all = 0.0F;
    if (failed.ok()) failed = device::event_elapsed_ms(events_[0], events_[1], &all);
    if (failed.ok()) *ms = all / kTimed;
    if (failed.sticky()) return device_status(failed, "timing a product");
    if (!failed.ok()) static_cast<void>(device::last_error());
    return {};
  }

 private:
  static constexpr int32_t kTimed = 3;

  device::Stream stream_;
  device::Event events_[2] = {nullptr, nullptr};
  device::Error failed_;
};

}  // namespace

bool RowsTrial::tells(int64_t rows, int64_t outputs, size_t workspace_bytes) noexcept {
  return rows * outputs >= kLeastCompared &&
         kFoundBytes + static_cast<size_t>(rows) * sizeof(float) <= workspace_bytes;
}

Status RowsTrial::run(MatrixProducts& library, const MatrixProduct& product) {
  using Verdict = MatrixProducts::Verdict;
  const Stopwatch watch(context_.stream);
  float ms = MatrixProducts::kUntimed;
  auto verdict = Verdict::kDiffers;
  bool same = false;
  while (verdict != Verdict::kUndecided && library.ways(product) == MatrixProducts::Ways::kToTry) {
    if (!library.multiply(product, context_.stream)) continue;  // one algorithm fewer
    GEN_ASSIGN(verdict, compare(product));
    if (verdict == Verdict::kSame) {
      bool made = true;
      const auto again = [&] {
        made = made && library.multiply(product, context_.stream);
        return Status();
      };
      GEN_TRY(watch.time(again, &ms));
      if (!made) continue;
      same = true;
    }
    library.judge(product, verdict, ms);
  }
  if (!same) return {};
  float own_ms = MatrixProducts::kUntimed;
  const auto own = [&] { return own_sums(product); };
  Status status = ms != MatrixProducts::kUntimed ? watch.time(own, &own_ms) : Status();
  library.settle(product, own_ms);
  return status;
}

Status RowsTrial::own_sums(const MatrixProduct& product) {
  return own_sums(product, 0, product.outputs, product.y, product.y_stride);
}

Status RowsTrial::own_sums(const MatrixProduct& product, int64_t first, int64_t n, float* y,
                           int64_t stride) {
  FloatRowsView of = {};
  of.x = rows_;
  of.end.y = {y, product.rows, n, stride};
  of.end.rows = n;
  if (product.residual != nullptr) {
    of.end.residual = {product.residual + first, product.rows, n, product.y_stride};
  }
  of.weight = weight_.data + static_cast<size_t>(first) * weight_.row_bytes;
  of.row_bytes = weight_.row_bytes;
  return multiply_float_rows(context_, product.type, of);
}

Result<MatrixProducts::Verdict> RowsTrial::compare(const MatrixProduct& product) {
  using Verdict = MatrixProducts::Verdict;
  // The library no longer uses the workspace, so it holds our own sums, a range of outputs at a
  // time.
  auto* const workspace = static_cast<uint8_t*>(product.workspace);
  auto* const found = reinterpret_cast<SumsFound*>(workspace);
  auto* const own = reinterpret_cast<float*>(workspace + kFoundBytes);
  const size_t row_bytes = static_cast<size_t>(product.rows) * sizeof(float);
  const auto fit = static_cast<int64_t>((product.workspace_bytes - kFoundBytes) / row_bytes);
  const int64_t each =
      fit < kLargestTileOutputs ? fit : fit / kLargestTileOutputs * kLargestTileOutputs;
  GEN_TRY(device_status(device::memset_async(found, 0, sizeof(SumsFound), context_.stream),
                        "clearing what a trial finds"));
  for (int64_t first = 0; first < product.outputs; first += each) {
    const int64_t n = product.outputs - first < each ? product.outputs - first : each;
    GEN_TRY(own_sums(product, first, n, own, n));
    const SumsView sums = {own,
                           product.y + first,
                           product.y_stride,
                           product.type == DType::kF16 ? rows_.factors : nullptr,
                           product.rows,
                           n};
    GEN_TRY(compare_sums(context_, sums, found));
  }
  SumsFound sums = {};
  if (Status read = context_.scratch->read_back(found, sizeof(sums), &sums); !read.ok()) {
    if (read.code() == Code::kOutOfMemory) return Verdict::kUndecided;
    return read;
  }
  if (sums.differ != 0) return Verdict::kDiffers;
  const bool tells = int64_t{sums.telling} * 2 >= product.rows * product.outputs;
  return tells ? Verdict::kSame : Verdict::kUndecided;
}

}  // namespace gen::cuda
