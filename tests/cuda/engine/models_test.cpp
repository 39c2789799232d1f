// SPDX-License-Identifier: Apache-2.0
// Proves that models of every architecture and float format compute on the CUDA engine what their
// definition says, in double precision, and those of every quantised format what the CPU engine
// computes, to the bit; that windows and chunks do; and
// that a sequence's logits are bit for bit the same whatever runs beside it.
#include <cmath>
#include <string>

#include "base/rng.h"
#include "cuda/engine/op_bench.h"
#include "model/draft_head.h"
#include "quant/format.h"
#include "support/loaded_tiny.h"
#include "support/tiny_assistant.h"
#include "cuda/ops/weight/device_type.h"

namespace gen::model {
namespace {

using test::LoadedTiny;
using test::TinyModel;
using test::TinyModelSpec;

const std::vector<int32_t> kPrompt = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 46, 26, 43, 0};
/// float32 sums of a few hundred terms over two layers.
constexpr double kFloat = 2e-5;

double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

std::unique_ptr<cache::KvCache> cache_of(const LoadedTiny& model, engine::Engine& engine,
                                         const char* kind) {
  return cache::make_cache(kind, model.model().layer_shapes(), 128, engine.memory()).value();
}

/// The prompt in steps of three.
std::vector<float> feed(const LoadedTiny& model, cache::KvCache& cache,
                        std::span<const int32_t> prompt) {
  const auto state = model.state();
  std::vector<float> all;
  for (size_t at = 0; at < prompt.size(); at += 3) {
    const auto part =
        model.feed(cache, prompt.subspan(at, std::min<size_t>(3, prompt.size() - at)), state.get());
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

/// The emulator takes its time: where positions far apart make no difference, `tokens` are few.
void expect_definition(const TinyModelSpec& spec, size_t tokens = 5) {
  const std::vector<int32_t> prompt(kPrompt.begin(),
                                    kPrompt.begin() + static_cast<std::ptrdiff_t>(tokens));
  const TinyModel tiny(spec);
  const auto engine = test::cuda_engine();
  test::TinyEngineOptions options;
  options.engine = engine;
  const LoadedTiny model(tiny, options);
  const auto cache = cache_of(model, *engine, "fp32");
  EXPECT_LT(relative_error(feed(model, *cache, prompt), tiny.logits(prompt)), kFloat);
}

TEST(CudaModels, EveryArchitecture) {
  for (const arch::Architecture* row : arch::architectures()) {
    for (const bool more : {false, true}) {
      SCOPED_TRACE(testing::Message() << row->name << more);
      TinyModelSpec spec;
      spec.architecture = row->name;
      spec.tied = more;
      spec.biases = more;
      if (more) {
        spec.kv_heads = 1;
        spec.hidden = 40;
        spec.feed_forward = 100;
        spec.vocab = 61;
      }
      expect_definition(spec);
    }
  }
}

// A head that reads the cache of its model, on the model's engine.
TEST(CudaModels, AssistantsOfGemma) {
  TinyModelSpec spec;
  spec.architecture = "gemma4";
  spec.layers = 3;
  spec.window = 5;
  spec.local = {1, 1, 0};
  spec.local_head_dim = 8;
  const TinyModel tiny(spec);
  const test::TinyAssistant assistant(tiny, {.local = {1, 0}});
  const std::vector<std::byte> bytes = assistant.bytes();
  const auto engine = test::cuda_engine();
  test::TinyEngineOptions options;
  options.engine = engine;
  const LoadedTiny model(tiny, options);
  auto head = load_draft_head(gguf::GgufFile::parse(bytes).value(),
                              model.model().head_target().value(), false, true);
  ASSERT_TRUE(head.ok()) << head.status().message();
  const std::vector<float> features(64, 0.25F);
  for (const size_t n : {size_t{1}, size_t{5}, size_t{9}}) {
    const std::vector<int32_t> prompt(kPrompt.begin(),
                                      kPrompt.begin() + static_cast<std::ptrdiff_t>(n));
    const auto cache = cache_of(model, *engine, "fp32");
    feed(model, *cache, prompt);
    test::OwnedBatch batch;
    ASSERT_TRUE(batch.read(*cache, 9).ok());
    batch.finish(spec.vocab);
    batch.batch.features = features;
    std::vector<float> state(64);
    const graph::Tap tap = {0, state.data()};
    batch.batch.taps = {&tap, 1};
    const Status status = (*head)->first->forward(batch.batch);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto want = assistant.drafted(prompt, 9, features);
    EXPECT_LT(relative_error(batch.results(spec.vocab), want.logits), kFloat);
    EXPECT_LT(relative_error(state, want.state), kFloat);
  }
}

/// Products of quantised weights have the CPU engine's bits, and so has all else between them.
/// `logits(model, engine)` is run on both engines.
template <typename Logits>
void expect_cpu_bits(const TinyModelSpec& spec, const Logits& logits) {
  const TinyModel tiny(spec);
  std::vector<float> got[2];
  for (const bool cuda : {false, true}) {
    const auto engine = cuda ? test::cuda_engine() : test::cpu_engine();
    test::TinyEngineOptions options;
    options.engine = engine;
    const LoadedTiny model(tiny, options);
    got[cuda ? 1 : 0] = logits(model, *engine);
  }
  EXPECT_TRUE(test::same_bits(got[1], got[0]));
}

std::vector<float> feed_five(const LoadedTiny& model, engine::Engine& engine) {
  return feed(model, *cache_of(model, engine, "fp16"), std::span(kPrompt).first(5));
}

TEST(CudaModels, EveryWeightFormat) {
  for (const quant::Format& format : quant::formats()) {
    SCOPED_TRACE(dtype_name(format.type));
    const auto block = dtype_info(format.type)->block_elements;
    TinyModelSpec spec;
    spec.type = format.type;
    spec.layers = 1;
    if (block > 32) {
      spec.hidden = 256;
      spec.heads = 4;
      spec.head_dim = 64;
      spec.feed_forward = 256;
    }
    if (quant::find_traits(cuda::device_type(format.type)) == nullptr) {
      expect_definition(spec);
    } else {
      expect_cpu_bits(spec, feed_five);
    }
  }
}

TEST(CudaModels, QuantisedOfEveryArchitecture) {
  for (const arch::Architecture* row : arch::architectures()) {
    SCOPED_TRACE(row->name);
    TinyModelSpec spec;
    spec.architecture = row->name;
    spec.type = DType::kQ8_0;
    spec.router_type = DType::kQ8_0;
    spec.window = 2;
    spec.fused_qkv = true;
    spec.biases = true;
    expect_cpu_bits(spec, feed_five);
  }
}

/// Quantised weights keep the CPU engine's bits in steps of more rows than few, attention included.
TEST(CudaModels, QuantisedStepsOfSomeRows) {
  TinyModelSpec spec;
  spec.type = DType::kQ8_0;
  expect_cpu_bits(spec, [](const LoadedTiny& model, engine::Engine& engine) {
    return model.feed(*cache_of(model, engine, "fp16"), kPrompt);
  });
}

/// Steps of one row whose text grows beyond 256 and 512 positions: other numbers of chunks, and
/// other graphs, than those before.
TEST(CudaModels, TextsThatGrowBeyondTheirGraph) {
  TinyModelSpec spec;
  spec.type = DType::kQ8_0;
  spec.layers = 1;
  spec.context = 600;
  expect_cpu_bits(spec, [](const LoadedTiny& model, engine::Engine& engine) {
    const auto cache =
        cache::make_cache("fp16", model.model().layer_shapes(), 600, engine.memory()).value();
    std::vector<float> all;
    const auto step = [&](int32_t rows) {
      std::vector<int32_t> tokens;
      for (int32_t i = 0; i < rows; ++i) tokens.push_back(kPrompt[static_cast<size_t>(i) % 17]);
      const auto part = model.feed(*cache, tokens);
      if (rows == 1) all.insert(all.end(), part.begin(), part.end());
    };
    for (const int32_t far : {250, 506}) {
      step(far - cache->length());
      for (int i = 0; i < 12; ++i) step(1);
    }
    return all;
  });
}

/// The prompt in one step; `deterministic` has the CPU engine's bits of quantised weights.
std::vector<float> feed_at_once(const LoadedTiny& model, cache::KvCache& cache,
                                std::span<const int32_t> prompt, bool deterministic) {
  test::OwnedBatch batch;
  EXPECT_TRUE(batch.add(cache, prompt).ok());
  batch.batch.deterministic = deterministic;
  const Status status = model.model().forward(batch.finish(model.vocab()));
  EXPECT_TRUE(status.ok()) << status.message();
  batch.commit();
  return batch.results(model.vocab());
}

/// Products of rows in bfloat16, from nine rows on: what is rounded in a norm, in attention and
/// behind a gate is within what that allows.
TEST(CudaModels, RowsInBFloat16) {
  TinyModelSpec spec;
  spec.type = DType::kBF16;
  spec.layers = 2;
  const TinyModel tiny(spec);
  const auto engine = test::cuda_engine();
  test::TinyEngineOptions options;
  options.engine = engine;
  const LoadedTiny model(tiny, options);
  const auto logits = [&](const char* kind, bool deterministic) {
    const auto cache = cache_of(model, *engine, kind);
    return feed_at_once(model, *cache, kPrompt, deterministic);
  };
  const double error = relative_error(logits("fp16", false), tiny.logits(kPrompt));
  EXPECT_LT(error, 0x1p-6);
  EXPECT_GT(error, 0x1p-13);
  // With `deterministic` products round their rows themselves. Attention of such a cache has one
  // result, and so, without a library, has all else.
#ifndef GEN_ON_DEVICE
  EXPECT_TRUE(test::same_bits(logits("q4", false), logits("q4", true)));
#endif
}

/// Prompts of a wide device come in longer steps than the CPU's, and give the same.
TEST(CudaModels, LongSteps) {
  TinyModelSpec spec;
  spec.type = DType::kQ8_0;
  spec.layers = 1;
  spec.context = 700;
  const TinyModel tiny(spec);
  std::vector<int32_t> prompt(600);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>((i * 7 + i / 5) % 47);
  const LoadedTiny on_cpu(tiny);
  EXPECT_EQ(on_cpu.model().traits().prompt_rows, 0);
  EXPECT_EQ(on_cpu.model().traits().max_batch_rows, 512);
  const auto host = on_cpu.cache("fp16", 700);
  std::vector<float> want = on_cpu.feed(*host, std::span(prompt).first(300));
  const auto rest = on_cpu.feed(*host, std::span(prompt).subspan(300));
  want.insert(want.end(), rest.begin(), rest.end());
  test::TinyEngineOptions options;
  options.engine = test::cuda_engine();
  const LoadedTiny model(tiny, options);
  EXPECT_EQ(model.model().traits().prompt_rows, options.engine->prompt_rows());
  EXPECT_EQ(model.model().traits().max_batch_rows, 2048);
  const auto cache =
      cache::make_cache("fp16", model.model().layer_shapes(), 700, options.engine->memory())
          .value();
  EXPECT_TRUE(test::same_bits(feed_at_once(model, *cache, prompt, true), want));

  // Without, weights and rows are bfloat16, which is nearer to what the model says.
  const auto other =
      cache::make_cache("fp16", model.model().layer_shapes(), 700, options.engine->memory())
          .value();
  const auto got = feed_at_once(model, *other, prompt, false);
  const auto exact = tiny.logits(prompt);
  EXPECT_LE(relative_error(got, exact), relative_error(want, exact));
#ifndef GEN_ON_DEVICE
  EXPECT_FALSE(test::same_bits(got, want));
#endif
}

#ifndef GEN_ON_DEVICE
TEST(CudaModels, RowsThatADeviceLikes) {
  for (const auto& [processors, rows] :
       {std::pair(1, 256), std::pair(40, 256), std::pair(84, 512), std::pair(132, 1024),
        std::pair(300, 2048), std::pair(1000, 2048)}) {
    const test::Processors device(processors);
    EXPECT_EQ(test::cuda_engine()->prompt_rows(), rows) << processors;
  }
}
#endif

TEST(CudaModels, TypesMixedInStacksAndGates) {
  TinyModelSpec spec;
  spec.type = DType::kQ8_0;
  spec.v_type = DType::kQ5_0;
  expect_cpu_bits(spec, feed_five);
}

/// Experts of the first layers on the CPU, all else on the device.
TEST(CudaModels, ExpertsOnTheCpu) {
  for (const char* family : {"qwen3moe", "gpt-oss", "qwen2moe"}) {
    TinyModelSpec spec;
    spec.architecture = family;
    spec.type = DType::kQ8_0;
    spec.layers = 3;
    spec.biases = true;
    const LoadedTiny cpu{TinyModel(spec)};
    const auto own = cpu.cache();
    const std::vector<float> want = feed(cpu, *own, kPrompt);
    for (const int32_t experts : {0, 1, 3}) {
      test::TinyEngineOptions options;
      options.engine = test::cuda_engine();
      options.host = test::cpu_engine();
      options.on_device.experts = experts;
      const LoadedTiny split(TinyModel(spec), options);
      const auto cache = cache_of(split, *options.engine, "fp32");
      EXPECT_TRUE(test::same_bits(feed(split, *cache, kPrompt), want)) << family << ' ' << experts;
    }
  }
}

/// Steps of all rows, whose experts take them in groups, and which become one graph for prompts of
/// other experts, too. Steps of three rows do not.
TEST(CudaModels, ExpertsTakeRowsInGroups) {
  for (const DType type : {DType::kQ8_0, DType::kF32}) {
    TinyModelSpec spec;
    spec.architecture = "qwen3moe";
    spec.type = type;
    const TinyModel tiny(spec);
    test::TinyEngineOptions options;
    options.engine = test::cuda_engine();
    const LoadedTiny model(tiny, options);
    // Float products have the CPU engine's sums in another order.
    const LoadedTiny cpu(tiny);
    const auto cache = cache_of(model, *options.engine, "fp32");
    std::vector<int32_t> prompt = kPrompt;
    for (int turn = 0; turn < 5; ++turn) {
      const auto want = type == DType::kF32
                            ? feed(model, *cache_of(model, *options.engine, "fp32"), prompt)
                            : feed(cpu, *cpu.cache(), prompt);
      EXPECT_TRUE(cache->truncate(0).ok());
      EXPECT_TRUE(test::same_bits(model.feed(*cache, prompt, nullptr), want)) << turn;
      for (int32_t& token : prompt) token = (token * 3 + 1) % static_cast<int32_t>(spec.vocab);
    }
#ifndef GEN_ON_DEVICE
    EXPECT_GT(static_cast<cuda::CudaEngine&>(*options.engine).graphs().replayed, 0U);
#endif
  }
}

TEST(CudaModels, WindowsAndChunks) {
  TinyModelSpec spec;
  spec.layers = 3;
  spec.window = 5;
  spec.local = {1, 0, 1};
  expect_definition(spec, kPrompt.size());
  spec.window = 0;
  spec.chunk = 6;
  expect_definition(spec, kPrompt.size());
}

struct Sequence {
  std::vector<int32_t> tokens;
  std::vector<float> expected;
  std::vector<float> found;
  std::unique_ptr<cache::KvCache> cache;
  size_t done = 0;
};

/// Several sequences advance together in steps of random sizes; each has the bits that it has alone
/// and in one step.
void expect_one_result(const TinyModelSpec& spec, const char* kind, uint64_t seed) {
  uint64_t next = 0;
  const auto below = [&](size_t n) {
    return std::min(n - 1,
                    static_cast<size_t>(uniform_double(seed, 0, next++) * static_cast<double>(n)));
  };
  const TinyModel tiny(spec);
  const auto engine = test::cuda_engine();
  test::TinyEngineOptions options;
  options.engine = engine;
  const LoadedTiny model(tiny, options);
  std::vector<Sequence> sequences(2 + below(3));
  for (Sequence& sequence : sequences) {
    for (size_t i = 0; i <= below(12) + 4; ++i) {
      sequence.tokens.push_back(static_cast<int32_t>(below(static_cast<size_t>(model.vocab()))));
    }
    const auto own = cache_of(model, *engine, kind);
    test::OwnedBatch whole;
    ASSERT_TRUE(whole.add(*own, sequence.tokens).ok());
    whole.batch.deterministic = true;
    ASSERT_TRUE(model.model().forward(whole.finish(model.vocab())).ok());
    whole.commit();
    sequence.expected = whole.results(model.vocab());
    sequence.cache = cache_of(model, *engine, kind);
  }
  for (bool left = true; left;) {
    left = false;
    test::OwnedBatch batch;
    std::vector<std::pair<Sequence*, size_t>> rows;
    for (Sequence& sequence : sequences) {
      const size_t rest = sequence.tokens.size() - sequence.done;
      left = left || rest > 0;
      if (rest == 0 || below(3) == 0) continue;
      const size_t count = 1 + below(std::min<size_t>(rest, 9));
      ASSERT_TRUE(
          batch.add(*sequence.cache, std::span(sequence.tokens).subspan(sequence.done, count))
              .ok());
      rows.emplace_back(&sequence, count);
    }
    if (rows.empty()) continue;
    batch.batch.deterministic = true;
    const Status status = model.model().forward(batch.finish(model.vocab()));
    ASSERT_TRUE(status.ok()) << status.message();
    batch.commit();
    const std::vector<float> logits = batch.results(model.vocab());
    auto from = logits.begin();
    for (auto& [sequence, count] : rows) {
      const auto to = from + static_cast<std::ptrdiff_t>(count) * model.vocab();
      sequence->found.insert(sequence->found.end(), from, to);
      sequence->done += count;
      from = to;
    }
  }
  for (const Sequence& sequence : sequences) {
    EXPECT_TRUE(test::same_bits(sequence.found, sequence.expected));
  }
}

TEST(CudaModels, OneRowOneResult) {
  uint64_t seed = 0;
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kQ8_0};
  for (const char* kind : {"fp32", "fp16", "fp8", "q4", "q3"}) {
    TinyModelSpec spec;
    spec.type = kTypes[seed % 3];
    SCOPED_TRACE(testing::Message()
                 << kind << ", " << dtype_name(spec.type) << ", seed " << seed + 1);
    spec.architecture = seed % 2 == 0 ? "llama" : "qwen3";
    expect_one_result(spec, kind, ++seed);
  }
}

}  // namespace
}  // namespace gen::model
