// SPDX-License-Identifier: Apache-2.0
// cuda/device: kernels that are right compute what they should, whatever the order of lanes and
// blocks is, and the emulator's tensor-core products have the fragment layout that the hardware's
// manual gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "cuda/device_buffer.h"
#include "cuda/emulator/emulator.h"
#include "cuda/sample_kernels.h"
#include "tensor/half.h"

namespace gen::test {
namespace {

/// Every test with several orders.
class Emulated : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override { cuda::emulator::configure({.seed = GetParam()}); }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Emulated, testing::Values(1, 2, 3, 17));

/// Small integers, whose sums are exact in any order.
std::vector<float> whole_numbers(int n) {
  std::vector<float> values;
  for (int i = 0; i < n; ++i) values.push_back(static_cast<float>(i * 7 % 31 - 15));
  return values;
}
float sum_of(const std::vector<float>& values, size_t begin, size_t end) {
  end = std::min(end, values.size());
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(begin),
                         values.begin() + static_cast<std::ptrdiff_t>(end), 0.0f);
}

TEST_P(Emulated, SumsByBarriersAndByShuffles) {
  const DeviceStream stream;
  for (const int n : {1, 31, 256, 257, 1000}) {
    const std::vector<float> values = whole_numbers(n);
    const DeviceArray<float> in(stream, values);
    const size_t blocks = (values.size() + 255) / 256;
    std::vector<float> expected;
    for (size_t b = 0; b < blocks; ++b) expected.push_back(sum_of(values, b * 256, b * 256 + 256));
    const DeviceArray<float> out(stream, blocks);
    GEN_EXPECT_OK(block_sums(in.get(), out.get(), n, stream.get()));
    EXPECT_EQ(out.read(), expected) << n;
    for (const bool down : {false, true}) {
      const DeviceArray<float> other(stream, blocks);
      GEN_EXPECT_OK(warp_sums(in.get(), other.get(), n, down, stream.get()));
      EXPECT_EQ(other.read(), expected) << n << " " << down;
    }
  }
}

TEST_P(Emulated, Scans) {
  const DeviceStream stream;
  for (const int n : {1, 33, 1024}) {
    std::vector<int32_t> values;
    for (int i = 0; i < n; ++i) values.push_back(i * 13 % 29 - 9);
    std::vector<int32_t> expected(values.size());
    std::partial_sum(values.begin(), values.end(), expected.begin());
    const DeviceArray<int32_t> in(stream, values);
    const DeviceArray<int32_t> out(stream, values.size());
    GEN_EXPECT_OK(scan(in.get(), out.get(), n, stream.get()));
    EXPECT_EQ(out.read(), expected) << n;
  }
}

TEST_P(Emulated, CooperativeBlocksWaitForEachOther) {
  const DeviceStream stream;
  const std::vector<float> values = whole_numbers(3000);
  const DeviceArray<float> in(stream, values);
  const DeviceArray<float> part(stream, 7);
  const DeviceArray<float> out(stream, values.size());
  GEN_EXPECT_OK(sum_everywhere(in.get(), part.get(), out.get(), 3000, 7, stream.get()));
  EXPECT_EQ(out.read(), std::vector<float>(3000, sum_of(values, 0, 3000)));

  const DeviceArray<uint32_t> counter(stream, std::vector<uint32_t>{0});
  const DeviceArray<uint32_t> order(stream, 9);
  GEN_EXPECT_OK(relay(counter.get(), order.get(), 9, stream.get()));
  std::vector<uint32_t> expected(9);
  std::iota(expected.begin(), expected.end(), 1u);
  EXPECT_EQ(order.read(), expected);
}

TEST_P(Emulated, CountsAtomically) {
  const DeviceStream stream;
  std::vector<uint32_t> values;
  std::vector<int32_t> expected(16);
  for (uint32_t i = 0; i < 900; ++i) {
    values.push_back(i * i % 16);
    ++expected[i * i % 16];
  }
  const DeviceArray<uint32_t> in(stream, values);
  const DeviceArray<int32_t> counts(stream, std::vector<int32_t>(16));
  const DeviceArray<int32_t> most(stream, std::vector<int32_t>(1));
  GEN_EXPECT_OK(histogram(in.get(), 900, counts.get(), most.get(), stream.get()));
  EXPECT_EQ(counts.read(), expected);
  EXPECT_EQ(most.read()[0], *std::max_element(expected.begin(), expected.end()));
}

TEST_P(Emulated, Votes) {
  const DeviceStream stream;
  std::vector<int32_t> values;
  for (int i = 0; i < 300; ++i) values.push_back(i < 64 ? i : i * i % 7 - 2);
  std::vector<uint32_t> expected(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t lane = 0; lane < 32; ++lane) {
      const size_t other = i / 32 * 32 + lane;
      if (other < values.size() && values[other] > 0) expected[i] |= 1u << lane;
    }
  }
  const DeviceArray<int32_t> in(stream, values);
  const DeviceArray<uint32_t> out(stream, values.size());
  GEN_EXPECT_OK(votes(in.get(), out.get(), 300, stream.get()));
  EXPECT_EQ(out.read(), expected);
}

TEST_P(Emulated, CopiesThroughTwoBuffers) {
  const DeviceStream stream;
  const std::vector<float> values = whole_numbers(16 * 256);
  std::vector<float> expected;
  for (const float value : values) expected.push_back(value + 1.0f);
  const DeviceArray<float> in(stream, values);
  const DeviceArray<float> out(stream, values.size());
  GEN_EXPECT_OK(pipeline(in.get(), out.get(), stream.get()));
  EXPECT_EQ(out.read(), expected);
}

/// Rows of a by rows of b, as whole numbers between -8 and 8.
struct Factors {
  explicit Factors(size_t k) : depth(k) {
    uint32_t state = 12345;
    const auto draw = [&] {
      state = state * 1664525u + 1013904223u;
      return static_cast<int>(state >> 24) % 17 - 8;
    };
    for (size_t i = 0; i < 16 * k; ++i) a.push_back(draw());
    for (size_t i = 0; i < 8 * k; ++i) b.push_back(draw());
  }
  /// Exact: small whole numbers.
  template <typename T>
  [[nodiscard]] std::vector<T> product() const {
    std::vector<T> d;
    for (size_t row = 0; row < 16; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        double sum = 0;
        for (size_t k = 0; k < depth; ++k) sum += a[row * depth + k] * b[column * depth + k];
        d.push_back(static_cast<T>(sum));
      }
    }
    return d;
  }
  size_t depth;
  std::vector<int> a;
  std::vector<int> b;
};

TEST_P(Emulated, TensorCoreProductsOfSixteenBits) {
  const DeviceStream stream;
  for (const Product what : {Product::kF16, Product::kBf16, Product::kF16K8}) {
    const Factors factors(what == Product::kF16K8 ? 8 : 16);
    const auto encode = [&](int value) {
      const auto x = static_cast<float>(value);
      return what == Product::kBf16 ? f32_to_bf16(x) : f32_to_f16(x);
    };
    std::vector<uint16_t> a;
    std::vector<uint16_t> b;
    std::vector<uint16_t> turned;
    for (const int value : factors.a) a.push_back(encode(value));
    for (const int value : factors.b) b.push_back(encode(value));
    for (size_t k = 0; k < factors.depth; ++k) {
      for (size_t column = 0; column < 8; ++column) {
        turned.push_back(b[column * factors.depth + k]);
      }
    }
    const DeviceArray<uint16_t> da(stream, a);
    const DeviceArray<uint16_t> db(stream, b);
    const DeviceArray<float> d(stream, 16 * 8);
    GEN_EXPECT_OK(product(what, da.get(), db.get(), d.get(), false, stream.get()));
    EXPECT_EQ(d.read(), factors.product<float>()) << static_cast<int>(what);
    if (what == Product::kF16K8) continue;
    const DeviceArray<uint16_t> dt(stream, turned);
    const DeviceArray<float> again(stream, 16 * 8);
    GEN_EXPECT_OK(product(what, da.get(), dt.get(), again.get(), true, stream.get()));
    EXPECT_EQ(again.read(), factors.product<float>()) << static_cast<int>(what);
  }
}

TEST_P(Emulated, TensorCoreProductsOfBytes) {
  const DeviceStream stream;
  const Factors factors(32);
  const std::vector<int8_t> a(factors.a.begin(), factors.a.end());
  const std::vector<int8_t> b(factors.b.begin(), factors.b.end());
  const DeviceArray<int8_t> da(stream, a);
  const DeviceArray<int8_t> db(stream, b);
  const DeviceArray<int32_t> d(stream, 16 * 8);
  GEN_EXPECT_OK(product(Product::kS8, da.get(), db.get(), d.get(), false, stream.get()));
  EXPECT_EQ(d.read(), factors.product<int32_t>());
}

TEST_P(Emulated, ArithmeticIsTheProcessors) {
  const DeviceStream stream;
  const DeviceArray<uint32_t> out(stream, 4);
  // Bytes, lowest first: 0xFF 0x02 0x80 0x7F by 0x03 0xFE 0x10 0x81.
  GEN_EXPECT_OK(arithmetic(0x7F8002FF, static_cast<int32_t>(0x8110FE03u), 1.00390625f, out.get(),
                           stream.get()));
  const std::vector<uint32_t> got = out.read();
  EXPECT_EQ(static_cast<int32_t>(got[0]), -1 * 3 + 2 * -2 + -128 * 16 + 127 * -127 - 7);
  EXPECT_EQ(static_cast<int32_t>(got[1]), 255 * 3 + 2 * -2 + 128 * 16 + 127 * -127 + 9);
  EXPECT_EQ(got[2], 0x3C04u);  // 1 + 2^-8: four units of 2^-10
  EXPECT_EQ(got[3], 0x3F80u);  // a tie, to even
}

TEST(EmulatedOrder, IsTheSeeds) {
  std::set<std::vector<uint32_t>> orders;
  for (const uint64_t seed : {5U, 6U, 7U}) {
    std::vector<uint32_t> first;
    for (int again = 0; again < 2; ++again) {
      cuda::emulator::configure({.seed = seed});
      const DeviceStream stream;
      const DeviceArray<uint32_t> counter(stream, std::vector<uint32_t>{0});
      const DeviceArray<uint32_t> places(stream, 20);
      GEN_EXPECT_OK(arrivals(counter.get(), places.get(), 20, stream.get()));
      if (again == 0) first = places.read();
      EXPECT_EQ(places.read(), first);
    }
    orders.insert(first);
  }
  EXPECT_EQ(orders.size(), 3U);
}

}  // namespace
}  // namespace gen::test
