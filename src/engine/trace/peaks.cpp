// SPDX-License-Identifier: Apache-2.0
// Peak measurements. Each loop keeps enough independent chains in registers to fill the execution
// units. Results are folded into a value that is opaque to the compiler, so nothing is optimised
// away. Intrinsics are in functions with a target attribute of their own, never under per-file
// flags.
#include "engine/trace/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gen::engine {
namespace {

constexpr int kRuns = 5;
constexpr size_t kPiece = 4096;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <typename T>
void keep(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

/// One burst of work; returns the number of operations.
using Burst = double (*)(int64_t iterations);

double burst_fma_scalar(int64_t iterations) {
  float acc[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int64_t i = 0; i < iterations; ++i) {
    for (float& a : acc) a = a * 0.999F + 0.001F;
  }
  keep(acc);
  return static_cast<double>(iterations) * 8 * 2;
}

double burst_dot_scalar(int64_t iterations) {
  int32_t acc[8] = {};
  int8_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int64_t i = 0; i < iterations; ++i) {
    for (int j = 0; j < 8; ++j) acc[j] += x[j] * x[7 - j];
    keep(x);
  }
  keep(acc);
  return static_cast<double>(iterations) * 8 * 2;
}

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) double burst_fma_avx2(int64_t iterations) {
  __m256 acc[12];
  for (auto& a : acc) a = _mm256_set1_ps(1.0F);
  __m256 m = _mm256_set1_ps(0.999F);
  __m256 c = _mm256_set1_ps(0.001F);
  asm volatile("" : "+x"(m), "+x"(c));
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm256_fmadd_ps(acc[j], m, c);
  }
  keep(acc);
  return static_cast<double>(iterations) * 12 * 8 * 2;
}

__attribute__((target("avx512f"))) double burst_fma_avx512(int64_t iterations) {
  __m512 acc[12];
  for (auto& a : acc) a = _mm512_set1_ps(1.0F);
  __m512 m = _mm512_set1_ps(0.999F);
  __m512 c = _mm512_set1_ps(0.001F);
  asm volatile("" : "+v"(m), "+v"(c));
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm512_fmadd_ps(acc[j], m, c);
  }
  keep(acc);
  return static_cast<double>(iterations) * 12 * 16 * 2;
}

__attribute__((target("avx2"))) double burst_dot_avx2(int64_t iterations) {
  __m256i acc[10];
  for (auto& a : acc) a = _mm256_setzero_si256();
  __m256i u = _mm256_set1_epi8(3);
  __m256i s = _mm256_set1_epi8(-2);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < 10; ++j) {
      asm volatile("" : "+x"(u), "+x"(s));
      const __m256i pairs = _mm256_maddubs_epi16(u, s);
      acc[j] = _mm256_add_epi32(acc[j], _mm256_madd_epi16(pairs, ones));
    }
  }
  keep(acc);
  return static_cast<double>(iterations) * 10 * 32 * 2;
}

__attribute__((target("avx512f,avx512vnni"))) double burst_dot_vnni(int64_t iterations) {
  __m512i acc[12];
  for (auto& a : acc) a = _mm512_setzero_si512();
  __m512i u = _mm512_set1_epi8(3);
  __m512i s = _mm512_set1_epi8(-2);
  asm volatile("" : "+v"(u), "+v"(s));
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm512_dpbusd_epi32(acc[j], u, s);
  }
  keep(acc);
  return static_cast<double>(iterations) * 12 * 64 * 2;
}

__attribute__((target("avx512f,avx512bf16"))) double burst_dot_bf16(int64_t iterations) {
  __m512 acc[12];
  for (auto& a : acc) a = _mm512_setzero_ps();
  __m512 one = _mm512_set1_ps(1.0F);
  asm volatile("" : "+v"(one));
  const __m512bh x = _mm512_cvtne2ps_pbh(one, one);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm512_dpbf16_ps(acc[j], x, x);
  }
  keep(acc);
  return static_cast<double>(iterations) * 12 * 32 * 2;
}

#endif

/// Operations per second of `burst` on all threads: the best of several runs of about 10 ms.
double best_rate(ThreadPool& pool, Burst burst) {
  int64_t iterations = 1 << 14;
  double operations = 0;
  for (;;) {
    const auto start = std::chrono::steady_clock::now();
    operations = burst(iterations);
    if (seconds_since(start) > 0.008) break;
    iterations *= 2;
  }
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    pool.run([&](int32_t) { burst(iterations); });
    best = std::max(best, operations * pool.size() / seconds_since(start));
  }
  return best;
}

using Sum = uint64_t (*)(const std::byte* data, size_t bytes);

uint64_t sum_plain(const std::byte* data, size_t bytes) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 64 <= bytes; i += 64) {
    uint64_t words[8];
    std::memcpy(words, data + i, sizeof words);
    for (int j = 0; j < 8; ++j) sums[j] ^= words[j];
  }
  uint64_t all = 0;
  for (const uint64_t sum : sums) all ^= sum;
  return all;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t sum_avx2(const std::byte* data, size_t bytes) {
  __m256i sums[8];
  for (auto& sum : sums) sum = _mm256_setzero_si256();
  for (size_t i = 0; i + 256 <= bytes; i += 256) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      const auto* line = reinterpret_cast<const __m256i*>(data + i + 32 * j);
      if (j % 2 == 0) _mm_prefetch(reinterpret_cast<const char*>(line) + 2048, _MM_HINT_T0);
      sums[j] = _mm256_xor_si256(sums[j], _mm256_loadu_si256(line));
    }
  }
  uint64_t words[32];
  std::memcpy(words, sums, sizeof words);
  uint64_t all = 0;
  for (const uint64_t word : words) all ^= word;
  return all;
}
#endif

Sum pick_sum() {
#if defined(__x86_64__)
  if (cpu_level_runs(CpuLevel::kAvx2, detect_cpu_level())) return sum_avx2;
#endif
  return sum_plain;
}

/// The share of a thread, in whole pieces.
IndexRange piece(const Buffer& buffer, int32_t threads, int32_t index) {
  return split_range(static_cast<int64_t>(buffer.size()), int64_t{kPiece}, threads, index);
}

}  // namespace

Result<ReadPass> ReadPass::create(size_t bytes, ThreadPool& pool, Allocator& allocator) {
  const size_t size = std::max<size_t>(bytes / kPiece * kPiece, kPiece);
  GEN_ASSIGN(Buffer buffer, Buffer::allocate_large(allocator, size));
  pool.run([&](int32_t index) {
    const IndexRange range = piece(buffer, pool.size(), index);
    std::memset(buffer.data() + range.begin, 1, static_cast<size_t>(range.end - range.begin));
  });
  return ReadPass(std::move(buffer));
}

double ReadPass::run(ThreadPool& pool) const {
  const Sum sum = pick_sum();
  const auto start = std::chrono::steady_clock::now();
  pool.run([&](int32_t index) {
    const IndexRange range = piece(buffer_, pool.size(), index);
    keep(sum(buffer_.data() + range.begin, static_cast<size_t>(range.end - range.begin)));
  });
  return seconds_since(start);
}

Result<double> measure_read_bandwidth(ThreadPool& pool, Allocator& allocator) {
  constexpr size_t kBytes = size_t{256} << 20;
  GEN_ASSIGN(const ReadPass pass, ReadPass::create(kBytes, pool, allocator));
  double best = pass.run(pool);
  for (int run = 1; run < kRuns; ++run) best = std::min(best, pass.run(pool));
  return static_cast<double>(kBytes) / best;
}

double measure_fma_f32(ThreadPool& pool, CpuLevel level) {
  Burst burst = burst_fma_scalar;
#if defined(__x86_64__)
  if (cpu_level_runs(CpuLevel::kAvx512, level)) {
    burst = burst_fma_avx512;
  } else if (cpu_level_runs(CpuLevel::kAvx2, level)) {
    burst = burst_fma_avx2;
  }
#else
  static_cast<void>(level);
#endif
  return best_rate(pool, burst);
}

double measure_dot_i8(ThreadPool& pool, CpuLevel level) {
  Burst burst = burst_dot_scalar;
#if defined(__x86_64__)
  if (cpu_level_runs(CpuLevel::kAvx512Vnni, level)) {
    burst = burst_dot_vnni;
  } else if (cpu_level_runs(CpuLevel::kAvx2, level)) {
    burst = burst_dot_avx2;
  }
#else
  static_cast<void>(level);
#endif
  return best_rate(pool, burst);
}

Result<double> measure_dot_bf16(ThreadPool& pool, CpuLevel level) {
#if defined(__x86_64__)
  if (cpu_level_runs(CpuLevel::kAvx512Bf16, level)) return best_rate(pool, burst_dot_bf16);
#endif
  static_cast<void>(pool);
  return error(Code::kUnsupported, "dot_bf16 needs AVX512-BF16, the CPU level is %s",
               cpu_level_name(level));
}

Result<double> measure_peak(std::string_view name, ThreadPool& pool) {
  GEN_ASSIGN(const CpuLevel level, chosen_cpu_level());
  if (name == "read_bandwidth") return measure_read_bandwidth(pool, system_allocator());
  if (name == "fma_f32") return measure_fma_f32(pool, level);
  if (name == "dot_i8") return measure_dot_i8(pool, level);
  if (name == "dot_bf16") return measure_dot_bf16(pool, detect_cpu_level());
  return error(Code::kInvalidArgument, "unknown peak \"%.*s\"",
               static_cast<int>(std::min<size_t>(name.size(), 60)), name.data());
}

}  // namespace gen::engine
