// SPDX-License-Identifier: Apache-2.0
// Proves that a step of one row as one kernel (cuda/step) has the bits of the operations that it
// stands for: models of every weight format over every format of keys and values, texts of several
// chunks, random lists of operations that read and write the same memory in all ways, best tokens
// with masks and tokens aside, steps between others; and that a list for which it would not do is
// left to its graph, as is one that gives something else, one for which there is no memory, and one
// that a device refuses. All blocks and threads go on in the order that the emulator's seed says,
// which takes its time: 15 seconds for formats, chunks and lists that have little in common.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "cuda/emulator/emulator.h"
#include "cuda/engine/allocators.h"
#include "cuda/engine/op_bench.h"
#include "cuda/step/memory_use.h"
#include "quant/format.h"
#include "support/gpu_allocator.h"
#include "support/loaded_tiny.h"
#include "support/sanitized.h"
#include "support/weight_blocks.h"

namespace gen::test {
namespace {

using Counts = cuda::StepGraphs::Counts;

/// Lists are tried as one kernel where it is "on", and never where it is "off".
std::shared_ptr<engine::Engine> engine_with(const char* megakernel,
                                            const engine::GpuTable* table = nullptr) {
  EXPECT_EQ(setenv("GEN_MEGAKERNEL", megakernel, 1), 0);
  engine::EngineOptions options;
  if (table != nullptr) options.gpu_allocator = {std::shared_ptr<void>(), table};
  auto engine = engine::create_engine(cuda::cuda_backend(), options);
  EXPECT_EQ(unsetenv("GEN_MEGAKERNEL"), 0);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}
Counts counts(engine::Engine& engine) { return static_cast<cuda::CudaEngine&>(engine).graphs(); }

// Ranges.

TEST(StepMemory, RangesUnitedAndTakenAway) {
  std::mt19937 random(3);
  const auto below = [&](uint32_t n) { return static_cast<uintptr_t>(random() % n); };
  for (int32_t round = 0; round < 200; ++round) {
    cuda::RangeSet set;
    std::vector<bool> bytes(64, false);
    for (int32_t i = 0; i < 8; ++i) {
      const uintptr_t begin = below(60);
      const cuda::MemoryRange range = {begin, begin + below(5)};
      const cuda::MemoryRange asked = {below(60), 0};
      const cuda::MemoryRange question = {asked.begin, asked.begin + 1 + below(4)};
      const bool adds = random() % 3 != 0;
      if (adds) {
        set.add(range);
      } else {
        set.remove(range);
      }
      for (uintptr_t at = range.begin; at < range.end; ++at) bytes[at] = adds;
      bool all = true;
      bool any = false;
      for (uintptr_t at = question.begin; at < question.end; ++at) {
        all = all && bytes[at];
        any = any || bytes[at];
      }
      ASSERT_EQ(set.covers(question), all);
      ASSERT_EQ(set.overlaps(question), any);
    }
    uintptr_t end = 0;
    for (const cuda::MemoryRange& range : set.all()) {
      ASSERT_TRUE(end == 0 || end < range.begin);  // those that touch are one
      end = range.end;
    }
  }
}

TEST(StepMemory, WhatHasToComeBeforeIsWaitedFor) {
  std::mt19937 random(5);
  for (int32_t round = 0; round < 100; ++round) {
    std::vector<cuda::MemoryUse> list(12);
    for (cuda::MemoryUse& use : list) {
      const auto range = [&]() -> cuda::MemoryRange {
        const uintptr_t at = 64 + random() % 12;
        return {at, at + 1 + random() % 2};
      };
      use.reads = {range(), range()};
      use.writes = {range()};
    }
    const auto waits = cuda::waits_of(list);
    // By and by, whom each waits for.
    std::vector<std::vector<bool>> before(list.size(), std::vector<bool>(list.size(), false));
    for (size_t i = 0; i < list.size(); ++i) {
      for (const int32_t each : waits[i]) {
        const auto j = static_cast<size_t>(each);
        ASSERT_LT(j, i);
        EXPECT_FALSE(before[i][j]) << "said twice";
        before[i][j] = true;
        for (size_t k = 0; k < j; ++k) before[i][k] = before[i][k] || before[j][k];
      }
      for (size_t j = 0; j < i; ++j) {
        EXPECT_TRUE(before[i][j] || !list[i].follows(list[j])) << i << " and " << j;
      }
    }
  }
}

// Models.

/// Logits of a text, a token after another, behind a prompt.
std::vector<float> text(const LoadedTiny& model, cache::KvCache& cache, size_t prompt, size_t n) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < prompt; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 7 + 3) % static_cast<size_t>(model.vocab())));
  }
  const auto state = model.state();
  std::vector<float> all;
  if (prompt > 0) all = model.feed(cache, tokens, state.get());
  for (size_t i = 0; i < n; ++i) {
    const std::vector<int32_t> token = {static_cast<int32_t>((i * 5 + 1) % 40)};
    const auto logits = model.feed(cache, token, state.get());
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

/// The same with and without. The text's steps are so many different lists.
void expect_same_text(const TinyModelSpec& spec, const char* kind, size_t prompt = 0, size_t n = 4,
                      size_t lists = 1, bool compiles = true) {
  const TinyModel tiny(spec);
  std::vector<float> logits[2];
  for (const bool on : {false, true}) {
    const auto engine = engine_with(on ? "on" : "off");
    {
      TinyEngineOptions options;
      options.engine = engine;
      const LoadedTiny model(tiny, options);
      const auto cache =
          cache::make_cache(kind, model.model().layer_shapes(), spec.context, engine->memory())
              .value();
      logits[on ? 1 : 0] = text(model, *cache, prompt, n);
    }
    const Counts done = counts(*engine);
    EXPECT_EQ(done.different, 0U);
    EXPECT_EQ(done.tried, on && compiles ? lists : 0U);
    // The first of each list is plain, the second tries.
    EXPECT_EQ(done.by_kernel, on && compiles ? n - 2 * lists : 0U);
  }
  EXPECT_TRUE(same_bits(logits[1], logits[0]));
}

TEST(StepKernel, EveryWeightFormat) {
  const char* const kinds[] = {"fp32", "fp16", "fp8", "q4", "q3"};
  size_t turn = 0;
  for (const quant::Format& format : quant::formats()) {
    if (kSanitized && turn % 2 == 1) {
      ++turn;
      continue;
    }
    const char* const kind = kinds[turn++ % std::size(kinds)];
    SCOPED_TRACE(testing::Message() << dtype_name(format.type) << ", " << kind);
    TinyModelSpec spec;
    spec.type = format.type;
    spec.layers = 1;
    if (dtype_info(format.type)->block_elements > 32) {
      spec.hidden = 256;
      spec.heads = 4;
      spec.head_dim = 64;
      spec.feed_forward = 256;
    }
    expect_same_text(spec, kind);
  }
}

TEST(StepKernel, EveryArchitectureAndOddSizes) {
  for (const model::arch::Architecture* row : model::arch::architectures()) {
    SCOPED_TRACE(row->name);
    TinyModelSpec spec;
    spec.architecture = row->name;
    spec.type = DType::kBF16;
    spec.kv_heads = 1;
    spec.hidden = 40;
    spec.feed_forward = 100;
    spec.vocab = 61;
    spec.biases = true;
    // Layer norms, norms in groups, scales by position, experts and states have no instruction.
    const bool compiles = row->style.norms.kind == model::arch::NormStyle::Kind::kRms &&
                          !row->style.value_norm && !row->style.query_temperature &&
                          row->style.experts.has != model::arch::Experts::kRequired &&
                          row->style.recurrence == model::arch::Recurrence::kNone;
    expect_same_text(spec, "fp16", 0, 4, 1, compiles);
  }
}

TEST(StepKernel, TypesMixedInStacks) {
  TinyModelSpec spec;
  spec.type = DType::kQ8_0;
  spec.v_type = DType::kQ5_0;
  expect_same_text(spec, "fp16");
}

TEST(StepKernel, TextsOfSeveralChunksAndWindows) {
  TinyModelSpec spec;
  spec.type = DType::kF16;
  spec.layers = 2;
  spec.hidden = 32;
  spec.head_dim = 8;
  spec.feed_forward = 32;
  spec.context = 600;
  spec.window = 300;
  spec.local = {1, 0};
  expect_same_text(spec, "fp16", 510, 7, 2);
}

// Lists of operations.

/// Memory that operations share, set to what it was before each run of a list.
class Lists {
 public:
  static constexpr int64_t kCols = 256;
  static constexpr size_t kRows = 5;
  static constexpr uint32_t kForms = engine::kActF32 | engine::kActQ8 | engine::kActQ8K;

  explicit Lists(const char* megakernel, const engine::GpuTable* table = nullptr)
      : bench_(engine_with(megakernel, table)) {
    for (size_t i = 0; i < kRows; ++i) {
      before_.push_back(random_row(kCols, static_cast<uint32_t>(i + 1)));
      rows_.push_back(bench_.put(before_.back()));
    }
    packed_bytes_ = bench_.engine().activation_bytes(kForms, kCols);
    for (auto& each : packed_) {
      each = bench_.put(std::vector<std::byte>(packed_bytes_, std::byte{0}));
    }
    constants_ = bench_.put(random_row(4 * kCols, 77));
    which_ = bench_.put(std::vector<int32_t>{2});
    norm_ = bench_.put(random_row(kCols, 78));
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_K,
                             DType::kQ6_K, DType::kQ5_1}) {
      for (const bool gated : {false, true}) weights_.push_back(weight(type, gated));
    }
  }

  OpBench& bench() { return bench_; }
  [[nodiscard]] engine::MatrixView row(size_t i) const { return {rows_[i], 1, kCols, kCols}; }
  [[nodiscard]] engine::ConstMatrixView const_row(size_t i) const {
    return {rows_[i], 1, kCols, kCols};
  }
  [[nodiscard]] engine::Activations packed(size_t i) const {
    return {packed_[i], kForms, 1, kCols};
  }

  /// All that operations write.
  std::vector<float> all() {
    std::vector<float> seen;
    for (const auto& each : rows_) {
      const auto got = bench_.get(each, kCols);
      seen.insert(seen.end(), got.begin(), got.end());
    }
    for (const auto& each : packed_) {
      const auto got = bench_.get(each.as<float>(), static_cast<int64_t>(packed_bytes_ / 4));
      seen.insert(seen.end(), got.begin(), got.end());
    }
    return seen;
  }
  void reset() {
    for (size_t i = 0; i < kRows; ++i) {
      std::vector<std::byte> bytes(kCols * sizeof(float));
      std::memcpy(bytes.data(), before_[i].data(), bytes.size());
      bench_.write(rows_[i].as<std::byte>(), bytes);
    }
    for (const auto& each : packed_) {
      bench_.write(each, std::vector<std::byte>(packed_bytes_, std::byte{0}));
    }
  }

  /// A list that begins with what all of its memory is from then on where `covered`, and goes on
  /// with `n` operations drawn by a seed.
  std::vector<engine::OpArgs> random_list(uint32_t seed, size_t n, bool covered) {
    std::mt19937 random(seed);
    const auto below = [&](size_t m) { return static_cast<size_t>(random()) % m; };
    std::vector<engine::OpArgs> list;
    const engine::ConstMatrixView constants = {constants_, 4, kCols, kCols};
    for (size_t i = 0; covered && i < kRows; ++i) {
      list.emplace_back(engine::SelectRowsArgs{constants, which_, row(i)});
    }
    for (size_t i = 0; covered && i < std::size(packed_); ++i) {
      list.emplace_back(engine::PackArgs{const_row(i), packed(i)});
    }
    engine::Activation silu;
    silu.kind = engine::Act::kSilu;
    while (list.size() < n) {
      const size_t a = below(kRows);
      const size_t b = below(kRows);
      const size_t y = below(kRows);
      const size_t p = below(std::size(packed_));
      switch (below(8)) {
        case 0:
          list.emplace_back(engine::AddArgs{const_row(a), const_row(b), row(y)});
          break;
        case 1:
          list.emplace_back(engine::GatedArgs{const_row(a), const_row(b), row(y), silu});
          // A gate for each run of columns.
          if (a != y && below(2) == 0)
            std::get<engine::GatedArgs>(list.back()).gate.cols = kCols / 4;
          break;
        case 2:
          list.emplace_back(engine::ActivateArgs{const_row(a), row(y), silu});
          break;
        case 3:
          list.emplace_back(engine::PackArgs{const_row(a), packed(p)});
          break;
        case 4:
          if (a != y) list.emplace_back(engine::SelectRowsArgs{const_row(a), zero(), row(y)});
          break;
        case 5: {
          engine::RmsNormArgs norm;
          norm.x = const_row(a);
          norm.w = norm_;
          norm.eps = 1e-5F;
          if (below(2) == 0) norm.y = row(y);
          if (!norm.y.data || below(2) == 0) norm.packed = packed(p);
          list.emplace_back(norm);
          break;
        }
        default: {
          engine::LinearArgs linear;
          linear.weight = weights_[below(weights_.size())].get();
          linear.x = packed(p);
          linear.activation = silu;
          if (below(2) == 0) linear.residual = const_row(below(2) == 0 ? y : a);
          linear.y = row(y);
          list.emplace_back(linear);
        }
      }
    }
    return list;
  }

  /// What it gives when it is run one operation after another.
  std::vector<float> plainly(const std::vector<engine::OpArgs>& list) {
    reset();
    for (const engine::OpArgs& args : list) bench_.run(args);
    return all();
  }
  std::vector<float> together(const std::vector<engine::OpArgs>& list) {
    reset();
    const Status status = bench_.run_all(list);
    EXPECT_TRUE(status.ok()) << status.message();
    return all();
  }

 private:
  engine::EnginePtr<int32_t> zero() {
    if (!zero_) zero_ = bench_.put(std::vector<int32_t>{0});
    return zero_;
  }
  std::unique_ptr<engine::Weight> weight(DType type, bool gated) {
    const DTypeInfo& info = *dtype_info(type);
    const auto values = random_row(static_cast<size_t>(2 * kCols * kCols), 79, 0.1F);
    std::vector<std::byte> bytes(values.size() / info.block_elements * info.block_bytes);
    write_weights(type, values.data(), bytes.data(), 2 * kCols * kCols);
    const auto half = std::span(bytes).first(bytes.size() / 2);
    const engine::WeightSource sources[] = {
        {"a", type, kCols, kCols, half, false},
        {"b", type, kCols, kCols, std::span(bytes).subspan(half.size()), false}};
    auto made =
        bench_.engine().prepare(gated ? engine::WeightRole::kGated : engine::WeightRole::kLinear,
                                std::span(sources).first(gated ? 2 : 1), nullptr);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }

  OpBench bench_;
  size_t packed_bytes_ = 0;
  std::vector<std::vector<float>> before_;
  std::vector<engine::EnginePtr<float>> rows_;
  engine::EnginePtr<std::byte> packed_[2];
  engine::EnginePtr<float> constants_;
  engine::EnginePtr<int32_t> which_;
  engine::EnginePtr<int32_t> zero_;
  engine::EnginePtr<float> norm_;
  std::vector<std::unique_ptr<engine::Weight>> weights_;
};

TEST(StepKernel, RandomLists) {
  Lists lists("on");
  uint64_t by_kernel = 0;
  for (uint32_t seed = 1; seed <= (kSanitized ? 3 : 8); ++seed) {
    SCOPED_TRACE(seed);
    const auto list = lists.random_list(seed, 24, true);
    const auto want = lists.plainly(list);
    for (int32_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(same_bits(lists.together(list), want)) << i;
    }
    by_kernel += 3;
    const Counts done = counts(lists.bench().engine());
    EXPECT_EQ(done.by_kernel, by_kernel);
    EXPECT_EQ(done.different, 0U);
  }
}

TEST(StepKernel, ListsThatWouldNotDoTheSameAgainAreLeft) {
  Lists lists("on");
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const auto list = lists.random_list(seed, 24, false);
    const auto want = lists.plainly(list);
    for (int32_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(lists.together(list), want)) << i;
  }
  EXPECT_EQ(counts(lists.bench().engine()).tried, 0U);
}

/// Ends in the best token of a row of logits.
TEST(StepKernel, BestTokens) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr int64_t kLogits = 5000;  // three parts
  for (const bool with : {false, true}) {
    Lists lists("on");
    OpBench& bench = lists.bench();
    auto table = random_row(static_cast<size_t>(6 * kLogits), 4);
    for (float& value : table) value = std::round(value * 40.0F);
    table[4500] = NAN;
    table[static_cast<size_t>(kLogits) + 4999] = kInfinity;
    for (size_t i = 0; i < kLogits; ++i) table[2 * kLogits + i] = -kInfinity;
    const engine::ConstMatrixView rows = {bench.put(table), 6, kLogits, kLogits};
    const auto which = bench.put(std::vector<int32_t>{0});
    auto list = lists.random_list(1, 8, true);
    const engine::MatrixView logits = {bench.room(kLogits), 1, kLogits, kLogits};
    list.emplace_back(engine::SelectRowsArgs{rows, which, logits});
    engine::BestArgs best;
    best.x = logits;
    best.tokens = bench.put(std::vector<int32_t>{-77});
    best.values = bench.room(1);
    const engine::EnginePtr<float> aside = bench.put(std::vector<float>(5, -77.0F));
    if (with) {
      std::vector<uint32_t> words((kLogits + 31) / 32 - 1, 0xAAAAAAAAU);
      engine::BestRow row;
      row.mask = bench.put(words);
      row.mask_words = static_cast<int32_t>(words.size());
      row.aside = bench.put(std::vector<int32_t>{33, 33, 4001, 2049, 2});
      row.aside_logits = aside;
      row.n_aside = 5;
      best.rows = bench.put(std::vector<engine::BestRow>{row});
    }
    list.emplace_back(best);
    for (int32_t row = 0; row < 6; ++row) {
      SCOPED_TRACE(testing::Message() << row << with);
      std::vector<std::byte> bytes(sizeof row);
      std::memcpy(bytes.data(), &row, sizeof row);
      bench.write(which.as<std::byte>(), bytes);
      const auto seen = [&] {
        auto all = bench.get(best.values, 1);
        all.push_back(static_cast<float>(bench.get(best.tokens, 1)[0]));
        const auto kept = bench.get(aside, 5);
        all.insert(all.end(), kept.begin(), kept.end());
        const auto changed = bench.get(logits.data, kLogits);
        all.insert(all.end(), changed.begin(), changed.end());
        return all;
      };
      static_cast<void>(lists.plainly(list));
      const auto want = seen();
      for (int32_t i = 0; i < 4; ++i) {
        static_cast<void>(lists.together(list));
        EXPECT_TRUE(same_bits(seen(), want)) << i;
      }
    }
    EXPECT_EQ(counts(bench.engine()).different, 0U);
    EXPECT_EQ(counts(bench.engine()).by_kernel, 22U);
  }
}

/// Tokens aside that lie where another operation writes: nothing says so, and run again they are
/// others.
TEST(StepKernel, WhatGivesSomethingElseIsNotUsed) {
  Lists lists("on");
  OpBench& bench = lists.bench();
  constexpr int64_t kLogits = 40;
  const engine::MatrixView logits = {bench.room(kLogits), 1, kLogits, kLogits};
  auto values = random_row(kLogits, 4);
  values[7] = 100.0F;
  values[9] = 90.0F;
  const engine::ConstMatrixView table = {bench.put(values), 1, kLogits, kLogits};
  const auto zero = bench.put(std::vector<int32_t>{0});
  const std::vector<int32_t> first = {7};
  const std::vector<int32_t> later = {9};
  const auto aside = bench.put(first);
  const auto others = bench.put(later);
  engine::BestArgs best;
  best.x = logits;
  best.tokens = bench.put(std::vector<int32_t>{-77});
  best.values = bench.room(1);
  engine::BestRow row;
  row.aside = aside;
  row.aside_logits = bench.room(1);
  row.n_aside = 1;
  best.rows = bench.put(std::vector<engine::BestRow>{row});
  std::vector<engine::OpArgs> list;
  list.emplace_back(engine::SelectRowsArgs{table, zero, logits});
  list.emplace_back(best);
  const auto random = lists.random_list(2, 8, true);
  list.insert(list.end(), random.begin(), random.end());
  list.emplace_back(
      engine::SelectRowsArgs{{others.as<float>(), 1, 1, 1}, zero, {aside.as<float>(), 1, 1, 1}});
  std::vector<std::byte> bytes(sizeof first[0]);
  std::memcpy(bytes.data(), first.data(), bytes.size());
  // As one kernel what is aside is as it was, then, as a graph, as it is afterwards.
  for (int32_t i = 0; i < 5; ++i) {
    bench.write(aside.as<std::byte>(), bytes);
    ASSERT_TRUE(bench.run_all(list).ok());
    EXPECT_EQ(bench.get(best.tokens, 1)[0], i == 1 ? 7 : 9) << i;
  }
  const Counts done = counts(bench.engine());
  EXPECT_EQ(done.different, 1U);
  EXPECT_EQ(done.tried, 1U);
  EXPECT_EQ(done.by_kernel, 0U);
}

TEST(StepKernel, StepsBetweenOthers) {
  TinyModelSpec spec;
  spec.type = DType::kQ4_0;
  const TinyModel tiny(spec);
  std::vector<float> logits[2];
  for (const bool on : {false, true}) {
    const auto engine = engine_with(on ? "on" : "off");
    TinyEngineOptions options;
    options.engine = engine;
    const LoadedTiny model(tiny, options);
    std::unique_ptr<cache::KvCache> caches[2];
    for (auto& each : caches) {
      each = cache::make_cache("fp16", model.model().layer_shapes(), 128, engine->memory()).value();
    }
    for (int32_t i = 0; i < 12; ++i) {
      OwnedBatch batch;
      // A row or two of one text, then two steps of the other.
      const std::vector<int32_t> rows = {i, i + 1};
      const size_t n = i % 4 == 1 ? 1 : 2;
      ASSERT_TRUE(batch.add(*caches[0], std::span(rows).first(n)).ok());
      const Status status = model.model().forward(batch.finish(model.vocab()));
      ASSERT_TRUE(status.ok()) << status.message();
      batch.commit();
      const auto got = batch.results(model.vocab());
      logits[on ? 1 : 0].insert(logits[on ? 1 : 0].end(), got.begin(), got.end());
      for (int32_t j = 0; j < 2; ++j) {
        const auto one = model.feed(*caches[1], std::vector<int32_t>{i + j});
        logits[on ? 1 : 0].insert(logits[on ? 1 : 0].end(), one.begin(), one.end());
      }
    }
    EXPECT_EQ(counts(*engine).different, 0U);
    EXPECT_EQ(counts(*engine).by_kernel > 10U, on);
  }
  EXPECT_TRUE(same_bits(logits[1], logits[0]));
}

TEST(StepKernel, LackOfMemoryLeavesTheGraph) {
  auto pool = cuda::PoolAllocator::create(0);
  ASSERT_TRUE(pool.ok());
  // Device memory for the program, then pinned memory for what a trial finds.
  for (const size_t piece : {size_t{0}, size_t{1}}) {
    SCOPED_TRACE(piece);
    TestGpuAllocator refusing(pool.value()->table());
    Lists lists("on", &refusing.table());
    const auto list = lists.random_list(3, 20, true);
    const auto want = lists.plainly(list);
    EXPECT_TRUE(same_bits(lists.together(list), want));
    refusing.refused = refusing.calls + piece;
    for (int32_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(lists.together(list), want)) << i;
    EXPECT_GT(refusing.calls, refusing.refused);  // it was asked
    const Counts done = counts(lists.bench().engine());
    EXPECT_EQ(done.tried + done.by_kernel, 0U);
    EXPECT_EQ(done.replayed, 3U);
    // Other lists are not the worse for it.
    const auto other = lists.random_list(4, 20, true);
    const auto want_other = lists.plainly(other);
    for (int32_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(same_bits(lists.together(other), want_other)) << i;
    }
    EXPECT_EQ(counts(lists.bench().engine()).by_kernel, 2U);
  }
}

/// Lists of the same weights, as a model's are for texts of different lengths.
TEST(StepKernel, WhatWasSlowerIsNotTriedForEachLength) {
  Lists lists("auto");
  auto list = lists.random_list(3, 20, true);
  for (int32_t length = 0; length < 2; ++length) {
    list.emplace_back(engine::AddArgs{lists.const_row(0), lists.const_row(1), lists.row(2)});
    for (int32_t i = 0; i < 20; ++i) ASSERT_TRUE(lists.bench().run_all(list).ok());
  }
  const Counts done = counts(lists.bench().engine());
  EXPECT_EQ(done.different, 0U);
  // Emulated, one kernel of many blocks that wait for one another is the slower way.
  if (done.by_kernel == 0) {
    EXPECT_EQ(done.tried, 4U);
  }
}

TEST(StepKernel, DevicesThatCannot) {
  cuda::emulator::Options old;
  old.major = 7;
  old.minor = 5;
  cuda::emulator::configure(old);
  {
    Lists lists("on");
    const auto list = lists.random_list(3, 20, true);
    const auto want = lists.plainly(list);
    for (int32_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(lists.together(list), want)) << i;
    EXPECT_EQ(counts(lists.bench().engine()).tried, 0U);
  }
  cuda::emulator::configure({});
}

/// Whichever call to the device fails once, of those that capture a list and try it as one kernel:
/// nothing is released that copies under way have to do with, and later steps are right.
TEST(StepKernel, ACallThatFailsInATrial) {
  bool whole = false;
  for (uint64_t after = 0; after < 400 && !whole; ++after) {
    SCOPED_TRACE(after);
    Lists lists("on");
    const auto list = lists.random_list(3, 8, true);
    const auto want = lists.plainly(list);
    EXPECT_TRUE(same_bits(lists.together(list), want));
    cuda::emulator::fail_call(after, cuda::device::kInvalidValue);
    const Status status = lists.bench().run_all(list);
    whole = cuda::emulator::forget_failing_call();
    EXPECT_TRUE(status.ok() || status.code() == Code::kDevice) << status.message();
    static_cast<void>(lists.all());  // what is under way ends
    for (int32_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(lists.together(list), want)) << i;
  }
  EXPECT_TRUE(whole);
}

TEST(StepKernel, ADeviceLostInAStep) {
  // From before the list is captured to behind its trial; not while weights are loaded.
  uint64_t loading = cuda::emulator::kernels_run();
  static_cast<void>(Lists("on"));
  loading = cuda::emulator::kernels_run() - loading;
  bool whole = false;
  for (uint64_t after = 0; after < 150 && !whole; after += 3) {
    SCOPED_TRACE(after);
    cuda::emulator::Options options;
    options.lost_after = cuda::emulator::kernels_run() + loading + 1 + after;
    cuda::emulator::configure(options);
    {
      Lists lists("on");
      const auto list = lists.random_list(3, 20, true);
      Status status;
      for (int32_t i = 0; i < 5 && status.ok(); ++i) status = lists.bench().run_all(list);
      whole = status.ok();
      if (!whole) {
        EXPECT_EQ(status.code(), Code::kDevice) << status.message();
        EXPECT_EQ(lists.bench().run_all(list).code(), Code::kDevice);
      }
    }
    cuda::emulator::configure({});
  }
  EXPECT_TRUE(whole);
}

TEST(StepKernel, ACancelledStepLeavesNothing) {
  TinyModelSpec spec;
  spec.type = DType::kF16;
  const TinyModel tiny(spec);
  const auto engine = engine_with("on");
  TinyEngineOptions options;
  options.engine = engine;
  const LoadedTiny model(tiny, options);
  const auto cache_of = [&] {
    return cache::make_cache("fp16", model.model().layer_shapes(), 128, engine->memory()).value();
  };
  const auto apart = cache_of();
  const auto want = text(model, *apart, 0, 8);
  const auto own = cache_of();
  auto got = text(model, *own, 0, 4);
  CancelFlag cancel;
  cancel.fire();
  OwnedBatch batch;
  ASSERT_TRUE(batch.add(*own, std::vector<int32_t>{1}).ok());
  batch.finish(model.vocab());
  batch.batch.cancel = &cancel;
  EXPECT_EQ(model.model().forward(batch.batch).code(), Code::kCancelled);
  for (int32_t i = 4; i < 8; ++i) {
    const auto logits = model.feed(*own, std::vector<int32_t>{(i * 5 + 1) % 40});
    got.insert(got.end(), logits.begin(), logits.end());
  }
  EXPECT_TRUE(same_bits(got, want));
  EXPECT_EQ(counts(*engine).different, 0U);
}

}  // namespace
}  // namespace gen::test
