// SPDX-License-Identifier: Apache-2.0
// Speed of matrix products per weight format, CPU level and number of rows: GB/s of weights read
// for one row (and of the file's, which are fewer where types are unpacked), billions of
// multiplications and additions per second (GOP/s) for many, medians of several runs after a
// warm-up. Every product is first compared, bit for bit, with the scalar level's (BF16 at
// avx512_bf16 within a tolerance).
//   linear_bench [--rows 1,128] [--outputs 2048] [--cols 2048] [--mib 64] [--threads 2] [--runs 5]
//                [--format Q8_0] [--level avx512_vnni] [--peaks 1] [--cpu-time 1]
// --mib is the memory that the weights of one measurement take, so that a large value measures
// memory and a small one the caches.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/cpu/kernel_table.h"
#include "engine/cpu/linear/linear_kernels.h"
#include "engine/trace/peaks.h"
#include "engine/linear_cases.h"

namespace gen::engine {
namespace {

struct Options {
  std::vector<int64_t> rows = {1, 8, 128};
  int64_t outputs = 2048;
  int64_t cols = 2048;
  int64_t mib = 64;
  int32_t threads = 2;
  int runs = 5;
  bool peaks = false;
  bool cpu_time = false;
  std::string format;
  std::string level;
};

void print_peaks(int32_t threads) {
  auto pool = ThreadPool::create(threads);
  if (!pool.ok()) return;
  const auto bandwidth = measure_read_bandwidth(*pool.value(), system_allocator());
  const CpuLevel level = detect_cpu_level();
  const auto dot_bf16 = measure_dot_bf16(*pool.value(), level);
  std::printf(
      "peaks: read %.1f GB/s, 8-bit dot %.0f GOP/s, bf16 dot %.0f GFLOP/s, float32 %.0f GFLOP/s\n",
      bandwidth.ok() ? bandwidth.value() * 1e-9 : 0.0, measure_dot_i8(*pool.value(), level) * 1e-9,
      dot_bf16.ok() ? dot_bf16.value() * 1e-9 : 0.0, measure_fma_f32(*pool.value(), level) * 1e-9);
}

// Wall time, or the time this thread computed: of use with one thread on a busy machine.
double now(bool cpu_time) {
  timespec time = {};
  clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<float> product(Engine& engine, Stream& stream, const Weight& weight,
                           const Activations& x) {
  std::vector<float> y(static_cast<size_t>(x.rows * weight.out_features()));
  LinearArgs args;
  args.weight = &weight;
  args.x = x;
  args.y = {engine_ptr(y.data()), x.rows, weight.out_features(), weight.out_features()};
  if (!engine.run(stream, args).ok()) std::exit(1);
  return y;
}

bool bench(const Options& options, DType type, CpuLevel level) {
  const auto engine = make_engine(level, options.threads);
  const auto scalar = make_engine(CpuLevel::kScalar, options.threads);
  const auto stream = std::move(engine->new_stream()).value();
  const TestMatrix small(type, 48, options.cols, 1);
  const std::vector<float> few = random_floats(2, 9 * options.cols);
  const uint32_t form = cpu::activation_form(cpu::kernel_table(level), type);
  {
    const auto fast = prepare(*engine, WeightRole::kLinear, {small.source()});
    const auto slow = prepare(*scalar, WeightRole::kLinear, {small.source()});
    const uint32_t scalar_form = cpu::activation_form(cpu::kernel_table(CpuLevel::kScalar), type);
    const PackedRows x(*engine, form | scalar_form, few, 9, options.cols);
    const std::vector<float> found = product(*engine, *stream, *fast, x.view);
    const std::vector<float> wanted = product(*scalar, *stream, *slow, x.view);
    // Where x is rounded otherwise, sums of random terms are off by a little of what they could be.
    bool close = found.size() == wanted.size();
    for (size_t i = 0; close && i < found.size(); ++i) {
      close =
          std::fabs(found[i] - wanted[i]) <= 0x1p-7F * std::sqrt(static_cast<float>(options.cols));
    }
    if (form == scalar_form ? !same_bits(found, wanted) : !close) {
      std::printf("%s %s: wrong result\n", dtype_name(type), cpu_level_name(level));
      return false;
    }
  }
  // The same 48 rows over and over: the values do not matter to the speed.
  WeightSource source = small.source();
  std::vector<std::byte> bytes(source.data.size() / 48 * static_cast<size_t>(options.outputs));
  for (size_t at = 0; at < bytes.size(); at += source.data.size()) {
    std::memcpy(bytes.data() + at, source.data.data(),
                std::min(source.data.size(), bytes.size() - at));
  }
  source.rows = options.outputs;
  source.data = bytes;
  std::vector<std::unique_ptr<Weight>> weights;
  size_t total = 0;
  while (weights.empty() || total + weights[0]->stream_bytes() <= static_cast<size_t>(options.mib)
                                                                      << 20) {
    weights.push_back(prepare(*engine, WeightRole::kLinear, {source}));
    total += weights.back()->stream_bytes();
  }
  for (const int64_t rows : options.rows) {
    const PackedRows x(*engine, form, random_floats(3, rows * options.cols), rows, options.cols);
    std::vector<float> y(static_cast<size_t>(rows * options.outputs));
    std::vector<double> seconds;
    // Enough products for a steady figure: at least a millisecond's worth a run.
    const size_t products = rows <= 16 ? weights.size() : std::min<size_t>(weights.size(), 4);
    for (int run = 0; run <= options.runs; ++run) {
      const double start = now(options.cpu_time);
      for (size_t i = 0; i < products; ++i) {
        LinearArgs args;
        args.weight = weights[i].get();
        args.x = x.view;
        args.y = {engine_ptr(y.data()), rows, options.outputs, options.outputs};
        if (!engine->run(*stream, args).ok()) return false;
      }
      if (run > 0) seconds.push_back(now(options.cpu_time) - start);
    }
    const double time = median(seconds) / static_cast<double>(products);
    const double spread = (*std::max_element(seconds.begin(), seconds.end()) -
                           *std::min_element(seconds.begin(), seconds.end())) /
                          median(seconds) * 100.0;
    const double operations =
        2.0 * static_cast<double>(rows) * static_cast<double>(options.outputs * options.cols);
    std::printf(
        "%-7s %-12s rows %4lld  %8.1f us  %7.2f GB/s (file %6.2f)  %8.1f GOP/s  spread %3.0f%%\n",
        dtype_name(type), cpu_level_name(level), static_cast<long long>(rows), time * 1e6,
        static_cast<double>(weights[0]->stream_bytes()) / time * 1e-9,
        static_cast<double>(source.data.size()) / time * 1e-9, operations / time * 1e-9, spread);
    std::fflush(stdout);
  }
  return true;
}

std::vector<int64_t> numbers(const char* text) {
  std::vector<int64_t> list;
  while (*text != '\0') {
    char* end = nullptr;
    list.push_back(std::strtoll(text, &end, 10));
    if (end == text) return {};
    text = *end == ',' ? end + 1 : end;
  }
  return list;
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::vector<int64_t> values = numbers(argv[i + 1]);
    if (name == "--format") {
      options.format = argv[i + 1];
    } else if (name == "--level") {
      options.level = argv[i + 1];
    } else if (values.empty() || values[0] <= 0) {
      std::printf("%s wants a number above 0\n", argv[i]);
      return 2;
    } else if (name == "--rows") {
      options.rows = values;
    } else if (name == "--outputs") {
      options.outputs = values[0];
    } else if (name == "--cols") {
      options.cols = values[0];
    } else if (name == "--mib") {
      options.mib = values[0];
    } else if (name == "--threads") {
      options.threads = static_cast<int32_t>(values[0]);
    } else if (name == "--peaks") {
      options.peaks = true;
    } else if (name == "--cpu-time") {
      options.cpu_time = true;
    } else if (name == "--runs") {
      options.runs = static_cast<int>(values[0]);
    } else {
      std::printf("unknown option %s\n", argv[i]);
      return 2;
    }
  }
  if (options.peaks) print_peaks(options.threads);
  bool good = true;
  std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBF16};
  for (const quant::Traits& traits : quant::kTraits) types.push_back(traits.type);
  for (const DType type : types) {
    for (const CpuLevel level : levels_here()) {
      const bool wanted = options.level.empty() ? level != CpuLevel::kScalar
                                                : options.level == cpu_level_name(level);
      if (wanted && (options.format.empty() || options.format == dtype_name(type))) {
        good = bench(options, type, level) && good;
      }
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace gen::engine

int main(int argc, char** argv) { return gen::engine::run(argc, argv); }
