// SPDX-License-Identifier: Apache-2.0
// Proves route, experts and combine on the CUDA engine: routes and sums with the CPU engine's bits,
// experts of quantised weights too, and of float weights with those of a product of one row. With
// many rows, a matrix is read once for a group of them.
#include <algorithm>
#include <string>

#include "cuda/engine/op_bench.h"
#include "quant/format.h"
#include "quant/traits.h"
#ifndef GEN_ON_DEVICE
#include "cuda/ops/weight/weight.h"
#include "support/weight_blocks.h"
#include "cuda/ops/weight/device_type.h"
#endif

namespace gen::test {
namespace {

using engine::Gating;
using engine::Routing;
using engine::WeightRole;
using engine::WeightSource;

std::vector<float> as_floats(const std::vector<int32_t>& words) {
  std::vector<float> all;
  for (const int32_t word : words) {
    all.push_back(static_cast<float>(word >> 16));
    all.push_back(static_cast<float>(word & 0xFFFF));
  }
  return all;
}

engine::Routes route(OpBench& bench, const Routing& routing, const std::vector<float>& logits,
                     bool bias) {
  const int64_t n = routing.n_experts;
  const auto rows = static_cast<int64_t>(logits.size()) / n;
  const int64_t stride = 2 * routing.n_used + 2;
  engine::RouteArgs args;
  args.logits = {bench.put(logits), rows, n, n};
  if (bias) args.bias = bench.put(random_row(static_cast<size_t>(n), 8, 0.3F));
  args.routing = routing;
  args.y = {bench.put(std::vector<int32_t>(static_cast<size_t>(rows * stride), -3)), rows,
            routing.n_used, stride};
  bench.run(args);
  return args.y;
}

TEST(CudaExperts, RoutesHaveTheCpuBits) {
  for (const Gating gating :
       {Gating::kSoftmax, Gating::kSigmoid, Gating::kSoftmaxChosen, Gating::kRootSoftplus}) {
    for (const int32_t variant : {0, 1, 2, 3}) {
      Routing routing = {gating, variant == 1 ? 100 : 8, variant == 1 ? 7 : 3};
      routing.normalise = variant >= 1;
      routing.scale = variant >= 2 ? 2.5F : 1.0F;
      if (variant == 3) routing.n_groups = 4;
      if (variant == 3) routing.n_groups_used = 2;
      std::vector<float> logits = random_row(static_cast<size_t>(routing.n_experts) * 5, 3, 4.0F);
      logits[2] = logits[1] = 9.0F;
      logits[static_cast<size_t>(routing.n_experts) + 1] = std::nanf("");
      expect_same([&](OpBench& bench) {
        const engine::Routes y = route(bench, routing, logits, variant >= 2);
        return as_floats(bench.get(y.data, y.rows * y.stride));
      });
    }
  }
}

TEST(CudaExperts, SumsHaveTheCpuBits) {
  const Routing routing = {Gating::kSigmoid, 8, 3};
  for (const int64_t cols : {1, 40, 300}) {
    expect_same([&](OpBench& bench) {
      const engine::Routes y = route(bench, routing, random_row(8 * 5, 3, 2.0F), false);
      engine::CombineArgs args;
      args.x = {bench.put(random_row(static_cast<size_t>(15 * cols), 4)), 15, cols, cols};
      args.routes = {y.data, y.rows, y.n_used, y.stride};
      args.y = {bench.room(5 * cols), 5, cols, cols};
      bench.run(args);
      return bench.get(args.y.data, 5 * cols);
    });
  }
}

/// A stack of matrices of random blocks.
struct Stack {
  Stack(DType type_in, int64_t count_in, int64_t rows_in, int64_t cols_in, uint32_t seed)
      : type(type_in), count(count_in), rows(rows_in), cols(cols_in) {
    const auto n = static_cast<size_t>(count * rows * cols);
    const DTypeInfo* info = dtype_info(type);
    bytes.resize(n / info->block_elements * info->block_bytes);
    write_weights(type, random_row(n, seed, 0.4F).data(), bytes.data(), static_cast<int64_t>(n));
  }
  [[nodiscard]] WeightSource source() const {
    WeightSource all = {"w", type, rows, cols, bytes, false};
    all.count = count;
    all.pitch = count > 1 ? bytes.size() / static_cast<size_t>(count) : 0;
    return all;
  }

  DType type;
  int64_t count;
  int64_t rows;
  int64_t cols;
  std::vector<std::byte> bytes;
};

struct Case {
  int64_t rows;
  int64_t cols;
  bool gated;
  bool slots;
};

engine::Activations packed(OpBench& bench, uint32_t forms, const std::vector<float>& x,
                           int64_t cols) {
  const auto rows = static_cast<int64_t>(x.size()) / cols;
  const auto stride = static_cast<int64_t>(bench.engine().activation_bytes(forms, cols));
  const std::vector<float> nothing(static_cast<size_t>(rows * stride / 4), std::nanf(""));
  const engine::Activations to = {bench.put(nothing).as<std::byte>(), forms, rows, cols};
  bench.run(engine::PackArgs{{bench.put(x), rows, cols, cols}, to});
  return to;
}

constexpr int64_t kCount = 4;
constexpr int32_t kUsed = 2;
constexpr int64_t kTokens = 3;

std::vector<float> experts(OpBench& bench, DType type, const Case& of, bool each_alone,
                           bool scaled = false) {
  const Stack gate(type, kCount, of.rows, of.cols, 5);
  const Stack up(type, kCount, of.rows, of.cols, 6);
  std::vector<WeightSource> sources = {gate.source()};
  if (of.gated) sources.push_back(up.source());
  const WeightRole role = of.gated ? WeightRole::kGated : WeightRole::kLinear;
  auto weight = bench.engine().prepare(role, sources, nullptr);
  EXPECT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(weight.value()->count(), kCount);
  const engine::Routes routes =
      route(bench, {Gating::kSoftmax, kCount, kUsed}, random_row(kCount * kTokens, 9, 2.0F), false);
  const int64_t x_rows = of.slots ? kTokens * kUsed : kTokens;
  const std::vector<float> x = random_row(static_cast<size_t>(x_rows * of.cols), 7);
  const uint32_t forms = weight.value()->activation_forms();
  const std::vector<float> bias =
      random_row(static_cast<size_t>(kCount * of.rows * (of.gated ? 2 : 1)), 11);
  const engine::Activation act = {of.gated ? engine::Act::kSilu : engine::Act::kRelu2};
  if (!each_alone) {
    engine::ExpertsArgs args;
    args.weight = weight.value().get();
    args.x = packed(bench, forms, x, of.cols);
    args.routes = {routes.data, routes.rows, routes.n_used, routes.stride};
    args.bias = bench.put(bias);
    if (scaled) args.scales = bench.put(random_row(of.gated ? 2 * kCount : kCount, 21, 3.0F));
    args.activation = act;
    const int64_t all = kTokens * kUsed * (of.rows + 1);
    args.y = {bench.room(all), kTokens * kUsed, of.rows, of.rows + 1};
    bench.run(args);
    return bench.get(args.y.data, all);
  }
  const std::vector<int32_t> words = bench.get(routes.data, routes.rows * routes.stride);
  std::vector<float> y;
  for (int64_t place = 0; place < kTokens * kUsed; ++place) {
    const int64_t t = place / kUsed;
    const int64_t e = words[static_cast<size_t>(t * routes.stride + place % kUsed)];
    std::vector<WeightSource> own;
    for (const WeightSource& source : sources) own.push_back(source.matrix(e));
    auto alone = std::move(bench.engine().prepare(role, own, nullptr)).value();
    std::vector<float> own_bias;
    for (int64_t half = 0; half < (of.gated ? 2 : 1); ++half) {
      const auto from = bias.begin() + (half * kCount + e) * of.rows;
      own_bias.insert(own_bias.end(), from, from + of.rows);
    }
    const auto row = x.begin() + (of.slots ? place : t) * of.cols;
    engine::LinearArgs args;
    args.weight = alone.get();
    args.x = packed(bench, forms, {row, row + of.cols}, of.cols);
    args.bias = bench.put(own_bias);
    args.activation = act;
    args.y = {bench.room(of.rows), 1, of.rows, of.rows};
    bench.run(args);
    const auto one = bench.get(args.y.data, of.rows);
    y.insert(y.end(), one.begin(), one.end());
    y.push_back(7.25F);
  }
  return y;
}

std::vector<DType> all_types() {
  std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBF16};
  for (const quant::Traits& traits : quant::kTraits) types.push_back(traits.type);
  return types;
}

TEST(CudaExperts, ARowHasTheBitsOfItsMatrixAlone) {
  for (const DType type : all_types()) {
    SCOPED_TRACE(dtype_name(type));
    const bool floats = quant::find_traits(cuda::device_type(type)) == nullptr;
    for (const Case& of : {Case{19, 256, true, false}, {9, 512, false, true}}) {
      OpBench cuda(cuda_engine());
      const std::vector<float> want = experts(cuda, type, of, true);
      const std::vector<float> got = experts(cuda, type, of, false);
      EXPECT_TRUE(same_bits(got, want));
      if (floats) continue;
      OpBench cpu(cpu_engine());
      EXPECT_TRUE(same_bits(got, experts(cpu, type, of, false)));
      const std::vector<float> scaled = experts(cuda, type, of, false, true);
      EXPECT_TRUE(same_bits(scaled, experts(cpu, type, of, false, true)));
      EXPECT_FALSE(same_bits(scaled, got));
    }
  }
  OpBench cuda(cuda_engine());
  const Case odd = {5, 35, true, false};  // columns that are no whole pieces
  EXPECT_TRUE(
      same_bits(experts(cuda, DType::kF32, odd, false), experts(cuda, DType::kF32, odd, true)));
}

/// Which experts rows have.
struct Load {
  int64_t count;
  int32_t used;
  std::vector<int32_t> chosen;  // [rows][used]

  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(chosen.size()) / used; }
  [[nodiscard]] int64_t places() const { return static_cast<int64_t>(chosen.size()); }
};

/// Expert e has loads[e] rows, which lie apart. One expert a row.
Load one_of(const std::vector<int32_t>& loads) {
  Load load = {static_cast<int64_t>(loads.size()), 1, {}};
  for (size_t e = 0; e < loads.size(); ++e) {
    load.chosen.insert(load.chosen.end(), static_cast<size_t>(loads[e]), static_cast<int32_t>(e));
  }
  std::shuffle(load.chosen.begin(), load.chosen.end(), std::mt19937(5));
  return load;
}
/// `used` of the experts a row; the last one is never chosen, the first one by half of the rows.
Load some_of(int32_t count, int32_t used, int64_t rows) {
  Load load = {count, used, {}};
  std::mt19937 bits(6);
  std::vector<int32_t> experts;
  for (int32_t e = 0; e + 1 < count; ++e) experts.push_back(e);
  for (int64_t t = 0; t < rows; ++t) {
    std::shuffle(experts.begin(), experts.end(), bits);
    const auto first = std::find(experts.begin(), experts.end(), 0);
    if (t % 2 == 0) std::iter_swap(first, experts.begin() + used - 1);
    load.chosen.insert(load.chosen.end(), experts.begin(), experts.begin() + used);
  }
  return load;
}

/// A product of experts with all that an epilogue has.
class Product {
 public:
  Product(OpBench& bench, DType type, const Case& of, const Load& load)
      : bench_(bench),
        of_(of),
        load_(load),
        gate_(type, load.count, of.rows, of.cols, 5),
        up_(type, load.count, of.rows, of.cols, 6) {
    std::vector<WeightSource> sources = {gate_.source()};
    if (of.gated) sources.push_back(up_.source());
    const WeightRole role = of.gated ? WeightRole::kGated : WeightRole::kLinear;
    weight_ = std::move(bench.engine().prepare(role, sources, nullptr)).value();
    const int64_t halves = of.gated ? 2 : 1;
    bias_ = bench.put(random_row(static_cast<size_t>(halves * load.count * of.rows), 11));
    scales_ = bench.put(random_row(static_cast<size_t>(halves * load.count), 21, 3.0F));
  }

  [[nodiscard]] const engine::Weight& weight() const { return *weight_; }

  /// In steps of so many rows.
  std::vector<float> rows(int64_t at_once) {
    const int64_t used = load_.used;
    const int64_t stride = 2 * used + 1;
    std::vector<int32_t> words(static_cast<size_t>(load_.rows() * stride), 1);  // weights
    for (int64_t i = 0; i < load_.places(); ++i) {
      words[static_cast<size_t>(i / used * stride + i % used)] =
          load_.chosen[static_cast<size_t>(i)];
    }
    const uint32_t forms = weight_->activation_forms();
    const int64_t of_row = of_.slots ? used : 1;
    const std::vector<float> x =
        random_row(static_cast<size_t>(load_.rows() * of_row * of_.cols), 7);
    const auto x_bytes = static_cast<int64_t>(bench_.engine().activation_bytes(forms, of_.cols));
    const engine::Activations all_x = packed(bench_, forms, x, of_.cols);
    const engine::EnginePtr<int32_t> all_words = bench_.put(words);
    const int64_t y_stride = of_.rows + 1;
    const engine::EnginePtr<float> y = bench_.room(load_.places() * y_stride);
    for (int64_t first = 0; first < load_.rows(); first += at_once) {
      const int64_t n = std::min(at_once, load_.rows() - first);
      engine::ExpertsArgs args;
      args.weight = weight_.get();
      args.x = {all_x.data + first * of_row * x_bytes, forms, n * of_row, of_.cols};
      args.routes = {all_words + first * stride, n, load_.used, stride};
      args.bias = bias_;
      args.scales = scales_;
      args.activation = {of_.gated ? engine::Act::kSilu : engine::Act::kRelu2};
      args.y = {y + first * used * y_stride, n * used, of_.rows, y_stride};
      bench_.run(args);
    }
    return bench_.get(y, load_.places() * y_stride);
  }
  /// The most rows that do not make groups.
  [[nodiscard]] int64_t few() const {
    return std::max<int64_t>((2 * load_.count - 1) / load_.used, 1);
  }

 private:
  OpBench& bench_;
  Case of_;
  const Load& load_;
  Stack gate_;
  Stack up_;
  std::shared_ptr<const engine::Weight> weight_;
  engine::EnginePtr<const float> bias_;
  engine::EnginePtr<const float> scales_;
};

void expect_rows_alone(DType type, const Case& of, const Load& load) {
  SCOPED_TRACE(dtype_name(type));
  OpBench cuda(cuda_engine());
  Product product(cuda, type, of, load);
  const std::vector<float> got = product.rows(load.rows());
  EXPECT_TRUE(same_bits(got, product.rows(product.few())));
  if (quant::find_traits(cuda::device_type(type)) == nullptr) return;
  OpBench cpu(cpu_engine());
  EXPECT_TRUE(same_bits(got, Product(cpu, type, of, load).rows(load.rows())));
}

TEST(CudaExperts, RowsInGroupsHaveTheBitsOfARowAlone) {
  for (const DType type : all_types()) {
    expect_rows_alone(type, {19, 256, true, false}, some_of(4, 2, 25));  // groups of 32
    expect_rows_alone(type, {9, 512, false, true}, one_of({70, 0, 3}));  // of 64
  }
}

TEST(CudaExperts, GroupsMayBeFullEmptyOrOfOneRow) {
  const Case of = {9, 256, false, false};
  for (const DType type : {DType::kBF16, DType::kQ8_0, DType::kQ4_K}) {
    for (const auto& loads : std::vector<std::vector<int32_t>>{{0, 0, 0, 33},
                                                               {32, 0, 64, 0},
                                                               {8, 0, 0, 1, 2},
                                                               {0, 64, 1, 0},
                                                               {64, 128},
                                                               {65, 1},
                                                               {3}}) {
      expect_rows_alone(type, of, one_of(loads));
    }
    // More rows than the threads that sort them.
    expect_rows_alone(type, {3, 256, true, true}, some_of(6, 3, 300));
  }
  expect_rows_alone(DType::kF32, {5, 35, true, false}, some_of(4, 2, 9));  // no whole pieces
}

#ifndef GEN_ON_DEVICE
/// Bytes of weights that a product of all rows reads, in matrices.
double matrices_read(DType type, const Load& load) {
  OpBench cuda(cuda_engine());
  Product product(cuda, type, {64, 512, false, false}, load);
  const auto& segments = static_cast<const cuda::DeviceWeight&>(product.weight()).segments();
  EXPECT_EQ(segments.size(), 1U);
  const size_t pitch = segments[0].pitch;
  cuda::emulator::count_reads(segments[0].data, pitch * static_cast<size_t>(load.count));
  product.rows(load.rows());
  const auto bytes = static_cast<double>(cuda::emulator::counted_bytes());
  cuda::emulator::count_reads(nullptr, 0);
  return bytes / static_cast<double>(pitch);
}

TEST(CudaExperts, AMatrixIsReadOnceForAGroup) {
  const Load few = one_of({3, 1, 2, 1});
  const Load many = one_of({40, 0, 9, 33});
  const Load more = one_of({100, 40});
  for (const DType type : {DType::kQ8_0, DType::kQ4_K}) {
    SCOPED_TRACE(dtype_name(type));
    EXPECT_EQ(matrices_read(type, many), 5.0);
    EXPECT_EQ(matrices_read(type, more), 3.0);
  }
  EXPECT_EQ(matrices_read(DType::kBF16, few), 7.0);
  EXPECT_EQ(matrices_read(DType::kBF16, many), 5.0 + 2.0 + 5.0);  // of eight rows
}
#endif

}  // namespace
}  // namespace gen::test
