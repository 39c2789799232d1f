// SPDX-License-Identifier: Apache-2.0
// Speed of attention over every cache kind: one decode step (or --rows of a prefill) over --layers
// layers that hold --depth entries each, beside two floors: a pass that only reads as many bytes as
// the cache has, timed after each step, and what the multiplications cost at the measured peak of
// fused multiply-add. Medians of --runs after a warm-up.
//   attention_bench [--depth 1024,8192] [--heads 32] [--kv-heads 4] [--dim 64] [--rows 1]
//                   [--layers 22] [--threads 2] [--runs 9] [--kind fp16] [--level avx512]
// Many layers, so that a step finds nothing in the caches that the step before has read.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cache/sequence/registry.h"
#include "engine/cpu/sequence/sequence_ops.h"
#include "engine/trace/peaks.h"
#include "engine/cpu_fixture.h"
#include "engine/memory/host_memory.h"
#include "support/host_view.h"

namespace gen::engine::cpu {
namespace {

struct Options {
  std::vector<int32_t> depths = {1024, 8192};
  int32_t heads = 32;
  int32_t kv_heads = 4;
  int32_t dim = 64;
  int32_t rows = 1;
  int32_t layers = 22;
  int32_t threads = 2;
  int32_t runs = 9;
  std::string kind;
  CpuLevel level = detect_cpu_level();
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One step: `rows` new entries after `depth`, in every layer.
class Step {
 public:
  Step(const Options& options, int32_t depth, CpuContext& context, cache::KvCache& cache)
      : options_(options), depth_(depth), context_(context), cache_(cache) {
    const auto rows = static_cast<size_t>(options.rows);
    q_ = random_floats(rows * static_cast<size_t>(options.heads * options.dim), 1, 2.0F);
    k_ = random_floats(rows * static_cast<size_t>(options.kv_heads * options.dim), 2);
    out_.resize(q_.size());
  }

  /// Fills the cache with `depth` made-up entries; every 32nd row is other than the one before.
  bool fill() {
    for (int32_t at = 0; at < depth_;) {
      const int32_t n = std::min(options_.rows, depth_ - at);
      auto plan = cache_.plan(n);
      if (!plan.ok()) return false;
      if (at % 32 == 0) k_ = random_floats(k_.size(), static_cast<uint32_t>(at + 3));
      for (int32_t layer = 0; layer < options_.layers; ++layer) {
        if (!append(layer, *plan)) return false;
      }
      cache_.commit(*plan);
      at += n;
    }
    return true;
  }

  bool run(double* append_seconds, double* attend_seconds) {
    auto plan = cache_.plan(options_.rows);
    if (!plan.ok()) return false;
    for (int32_t layer = 0; layer < options_.layers; ++layer) {
      const double start = now();
      if (!append(layer, *plan)) return false;
      const double appended = now();
      if (!attend(layer, *plan)) return false;
      *append_seconds += appended - start;
      *attend_seconds += now() - appended;
    }
    return true;
  }

 private:
  SequenceRows sequence(int32_t layer, const cache::CachePlan& plan) {
    SequenceRows rows;
    rows.n_rows = plan.count;
    rows.first_entry = plan.start;
    rows.view = cache::host_view(cache_, layer, plan).value();
    return rows;
  }

  bool append(int32_t layer, const cache::CachePlan& plan) {
    const SequenceRows rows = sequence(layer, plan);
    const int64_t cols = int64_t{options_.kv_heads} * options_.dim;
    AppendArgs args;
    args.q = {q_.data(), plan.count, 0, 0};
    args.k = {k_.data(), plan.count, cols, cols};
    args.v = args.k;
    args.n_heads = 0;
    args.n_kv_heads = options_.kv_heads;
    args.k_dim = args.v_dim = options_.dim;
    args.sequences = {&rows, 1};
    return cpu::append(context_, args).ok();
  }

  bool attend(int32_t layer, const cache::CachePlan& plan) {
    const SequenceRows rows = sequence(layer, plan);
    const int64_t cols = int64_t{options_.heads} * options_.dim;
    AttendArgs args;
    args.q = {q_.data(), plan.count, cols, cols};
    args.out = {out_.data(), plan.count, cols, cols};
    args.n_heads = options_.heads;
    args.n_kv_heads = options_.kv_heads;
    args.k_dim = args.v_dim = options_.dim;
    args.scale = 0.125F;
    args.sequences = {&rows, 1};
    return cpu::attend(context_, args).ok();
  }

  const Options& options_;
  int32_t depth_;
  CpuContext& context_;
  cache::KvCache& cache_;
  std::vector<float> q_;
  std::vector<float> k_;
  std::vector<float> out_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool bench(const Options& options, double peak_flops, ThreadPool& pool,
           const cache::CacheKind& kind, int32_t depth) {
  CpuBench context(options.level, options.threads);
  const cache::LayerShape shape = {
      options.kv_heads, options.dim, options.dim, 0, RopeKind::kNone, 0};
  const std::vector<cache::LayerShape> shapes(static_cast<size_t>(options.layers), shape);
  auto cache = cache::make_cache(kind.name, shapes, depth + options.rows, engine::system_memory());
  if (!cache.ok()) {
    std::printf("%s\n", cache.status().message());
    return false;
  }
  Step step(options, depth, *context, **cache);
  if (!step.fill()) return false;
  const double seen = depth + (options.rows + 1) / 2.0;
  const double bytes = static_cast<double>((*cache)->traits().bytes_per_entry) * seen;
  auto pass = ReadPass::create(static_cast<size_t>(bytes), pool, system_allocator());
  if (!pass.ok()) return false;
  std::vector<double> append;
  std::vector<double> attend;
  std::vector<double> read;
  for (int32_t run = 0; run <= options.runs; ++run) {
    double append_seconds = 0;
    double attend_seconds = 0;
    if (!step.run(&append_seconds, &attend_seconds)) return false;
    const double read_seconds = pass->run(pool);
    if (run == 0) continue;
    read.push_back(read_seconds);
    append.push_back(append_seconds);
    attend.push_back(attend_seconds);
  }
  const double flops = 4.0 * seen * options.rows * options.heads * options.dim * options.layers;
  const double byte_floor = median(read);
  const double flop_floor = flops / peak_flops;
  const double time = median(attend);
  std::printf("%-6s %6d %5d  %9.3f %9.3f  %9.3f %9.3f  %6.2f\n", kind.name, depth, options.rows,
              median(append) * 1e3, time * 1e3, byte_floor * 1e3, flop_floor * 1e3,
              time / std::max(byte_floor, flop_floor));
  std::fflush(stdout);
  return true;
}

std::vector<int32_t> numbers(const char* text) {
  std::vector<int32_t> list;
  while (*text != '\0') {
    char* end = nullptr;
    list.push_back(static_cast<int32_t>(std::strtol(text, &end, 10)));
    if (end == text || list.back() <= 0) return {};
    text = *end == ',' ? end + 1 : end;
  }
  return list;
}

bool parse(int argc, char** argv, Options* options) {
  const struct {
    const char* name;
    int32_t* value;
  } scalars[] = {{"--heads", &options->heads},   {"--kv-heads", &options->kv_heads},
                 {"--dim", &options->dim},       {"--rows", &options->rows},
                 {"--layers", &options->layers}, {"--threads", &options->threads},
                 {"--runs", &options->runs}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--kind") {
      options->kind = argv[i + 1];
      continue;
    }
    if (name == "--level") {
      for (const CpuLevel level : levels_here()) {
        if (std::string(cpu_level_name(level)) == argv[i + 1]) options->level = level;
      }
      continue;
    }
    const std::vector<int32_t> values = numbers(argv[i + 1]);
    bool known = name == "--depth" && !values.empty();
    if (known) options->depths = values;
    for (const auto& scalar : scalars) {
      if (name != scalar.name || values.empty()) continue;
      *scalar.value = values[0];
      known = true;
    }
    if (!known) {
      std::printf("cannot make sense of %s %s\n", argv[i], argv[i + 1]);
      return false;
    }
  }
  return options->heads % options->kv_heads == 0;
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) return 2;
  auto pool = ThreadPool::create(options.threads);
  if (!pool.ok()) return 1;
  const double flops = measure_fma_f32(**pool, options.level);
  std::printf("%d heads on %d of %d, %d layers, %d threads, %s: float32 %.0f GFLOP/s\n",
              options.heads, options.kv_heads, options.dim, options.layers, options.threads,
              cpu_level_name(options.level), flops * 1e-9);
  std::printf("%-6s %6s %5s  %9s %9s  %9s %9s  %6s\n", "kind", "depth", "rows", "append ms",
              "attend ms", "bytes ms", "flops ms", "ratio");
  bool good = true;
  for (const int32_t depth : options.depths) {
    for (const cache::CacheKind& kind : cache::cache_kinds()) {
      if (!options.kind.empty() && options.kind != kind.name) continue;
      good = bench(options, flops, **pool, kind, depth) && good;
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace gen::engine::cpu

int main(int argc, char** argv) { return gen::engine::cpu::run(argc, argv); }
