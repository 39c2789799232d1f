// SPDX-License-Identifier: Apache-2.0
// What the stub of cuBLASLt calls in the test's program: it computes the products.
#include "cuda/engine/cublaslt_calls.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "cuda/device/launch.h"
#include "cuda/device/thread.cuh"
#include "cuda/emulator/emulator.h"
#include "tensor/half.h"
extern "C" {
#include "cuda/engine/cublaslt_stub.h"
}

namespace gen::test {
namespace {

float value(const void* at, int64_t i, int bf16) {
  const uint16_t bits = static_cast<const uint16_t*>(at)[i];
  return bf16 != 0 ? bf16_to_f32(bits) : f16_to_f32(bits);
}

/// A kernel's name, behind which the way's number comes.
const std::string kMultiply = "multiply ";

/// [first, end) of a sum in one double.
double part_of_sum(const stub_product& of, int64_t i, int64_t j, int64_t first, int64_t end,
                   double sum) {
  for (int64_t k = first; k < end; ++k) {
    sum += static_cast<double>(value(of.a, i * of.a_stride + k, of.bf16)) *
           static_cast<double>(value(of.b, j * of.b_stride + k, of.bf16));
  }
  return sum;
}

/// A block of one thread is a row of b.
void multiply_kernel(stub_product of, AddsUp adds_up) {
  const int64_t j = cuda::device::block_index().x;
  for (int64_t i = 0; i < of.a_rows; ++i) {
    float sum = 0.0F;
    const bool last = adds_up == AddsUp::kAsWeDoButTheLast && j + 1 == of.b_rows;
    if (adds_up == AddsUp::kAtOnce || last) {
      sum = static_cast<float>(part_of_sum(of, i, j, 0, of.k, 0.0));
    } else if (adds_up == AddsUp::kInHalves) {
      const int64_t half = of.k / 2;
      sum = static_cast<float>(part_of_sum(of, i, j, 0, half, 0.0)) +
            static_cast<float>(part_of_sum(of, i, j, half, of.k, 0.0));
    } else {
      // As products of 16 columns do that one after another add to a float32.
      for (int64_t k = 0; k < of.k; k += 16) {
        const auto before = static_cast<double>(sum);
        sum = static_cast<float>(part_of_sum(of, i, j, k, std::min(k + 16, of.k), before));
      }
    }
    const int64_t at = j * of.d_stride + i;
    of.d[at] = sum + (of.c != nullptr ? of.c[at] : 0.0F);
  }
}

}  // namespace

LibraryCalls& calls() {
  static LibraryCalls all;
  return all;
}

void begin_calls() {
  calls() = {};
  cuda::emulator::time_kernels([](const std::string& kernel) {
    const std::vector<double>& us = calls().way_us;
    if (kernel == "linear_rows") return calls().own_us;
    if (kernel.rfind(kMultiply, 0) != 0) return 0.0;
    const auto way = static_cast<size_t>(kernel.back() - '0');
    return way < us.size() ? us[way] : 1.0;
  });
}

std::shared_ptr<engine::Engine> engine_with(const char* library) {
  setenv("GEN_CUBLASLT", library, 1);
  auto made = cuda_engine();
  unsetenv("GEN_CUBLASLT");
  begin_calls();
  return made;
}

}  // namespace gen::test

extern "C" __attribute__((visibility("default"), used)) int gen_test_ways(void) {
  return static_cast<int>(gen::test::calls().ways.size());
}

extern "C" __attribute__((visibility("default"), used)) int gen_test_multiply(
    const stub_product* product, void* stream) {
  using namespace gen::cuda;
  using gen::test::kMultiply;
  auto& calls = gen::test::calls();
  const auto way = static_cast<size_t>(product->way);
  ++calls.made;
  if (product->c != nullptr) ++calls.residuals;
  if (product->whole_sums != 0) calls.whole.push_back(product->way);
  if (calls.answer != 0) return calls.answer;
  if (way >= calls.ways.size()) return 7;
  device::LaunchConfig config;
  const std::string name = kMultiply + std::to_string(way);
  config.name = name.c_str();
  config.grid = {static_cast<unsigned>(product->b_rows), 1, 1};
  config.stream = static_cast<device::Stream>(stream);
  return device::launch(gen::test::multiply_kernel, config, *product, calls.ways[way]).code;
}
