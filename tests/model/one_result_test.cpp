// SPDX-License-Identifier: Apache-2.0
// One row, one result, drawn at random: several sequences of one model advance together, in steps
// of random sizes of which only the first rows may stay, on a random number of threads, at a random
// CPU level, through either cache, with weights packed or left in the file; each sequence's logits
// must be, bit for bit, those of the sequence alone in one step on one thread. For every weight
// format and every architecture. BF16 at level avx512_bf16 has bits of its own, and is compared
// with itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "quant/traits.h"
#include "support/loaded_tiny.h"
#include "support/sanitized.h"

namespace gen::model {
namespace {

using test::LoadedTiny;
using test::TinyModel;
using test::TinyModelSpec;

// Draws of one trial; the seed names the trial.
class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  /// One of 0 … count - 1.
  int32_t below(int32_t count) {
    const auto value = static_cast<int32_t>(uniform_double(seed_, 0, next_++) * count);
    return std::min(value, count - 1);
  }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

struct Sequence {
  std::vector<int32_t> tokens;
  std::vector<float> expected;
  std::vector<float> found;
  std::unique_ptr<cache::KvCache> cache;
  std::unique_ptr<cache::SequenceState> state;
  size_t done = 0;
};

std::vector<Sequence> draw_sequences(Draws& draws, const LoadedTiny& alone, const LoadedTiny& model,
                                     const char* kind) {
  std::vector<Sequence> sequences(static_cast<size_t>(1 + draws.below(4)));
  for (Sequence& sequence : sequences) {
    const int32_t length = 1 + draws.below(30);
    for (int32_t i = 0; i < length; ++i) sequence.tokens.push_back(draws.below(alone.vocab()));
    const auto own = alone.cache(kind);
    const auto own_state = alone.state();
    sequence.expected = alone.feed(*own, sequence.tokens, own_state.get());
    sequence.cache = model.cache(kind);
    sequence.state = model.state();
  }
  return sequences;
}

/// One step over some of the sequences; false when all are through.
bool advance(Draws& draws, const LoadedTiny& model, std::vector<Sequence>& sequences) {
  test::OwnedBatch batch;
  struct Rows {
    Sequence* sequence;
    int32_t count;
    int32_t kept;
  };
  std::vector<Rows> rows;
  bool left = false;
  for (Sequence& sequence : sequences) {
    const size_t rest = sequence.tokens.size() - sequence.done;
    left = left || rest > 0;
    if (rest == 0 || draws.below(3) == 0) continue;
    const auto most = static_cast<int32_t>(std::min(rest, size_t{12}));
    const auto count = static_cast<size_t>(sequence.done == 0 ? 1 : 1 + draws.below(most));
    const bool all = draws.below(3) > 0;
    const int32_t kept =
        all ? static_cast<int32_t>(count) : draws.below(static_cast<int32_t>(count) + 1);
    EXPECT_TRUE(batch
                    .add(*sequence.cache, std::span(sequence.tokens).subspan(sequence.done, count),
                         true, sequence.state.get(), all ? cache::Keep::kAll : cache::Keep::kSome)
                    .ok());
    rows.push_back({&sequence, static_cast<int32_t>(count), kept});
  }
  if (rows.empty()) return left;
  const Status status = model.model().forward(batch.finish(model.vocab()));
  EXPECT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < rows.size(); ++i) {
    test::OwnedBatch::commit(batch.sequences[i], rows[i].kept);
  }
  const std::vector<float> logits = batch.results(model.vocab());
  auto from = logits.begin();
  for (auto& [sequence, count, kept] : rows) {
    sequence->found.insert(sequence->found.end(), from,
                           from + static_cast<std::ptrdiff_t>(kept) * model.vocab());
    sequence->done += static_cast<size_t>(kept);
    from += static_cast<std::ptrdiff_t>(count) * model.vocab();
  }
  return true;
}

/// Six, under a sanitizer three, or as many as GEN_TRIALS says.
uint64_t trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : test::kSanitized ? 3 : 6;
}

void expect_one_result(const TinyModelSpec& spec) {
  const TinyModel tiny(spec);
  const auto has_dots = [&](CpuLevel level) {
    return spec.type == DType::kBF16 && cpu_level_runs(CpuLevel::kAvx512Bf16, level);
  };
  test::TinyEngineOptions common;
  if (has_dots(detect_cpu_level())) common.level = CpuLevel::kAvx512Vnni;
  const LoadedTiny alone(tiny, common);
  const LoadedTiny alone_with_dots(tiny);
  std::vector<CpuLevel> levels;
  for (const CpuLevel level : {CpuLevel::kScalar, CpuLevel::kAvx2, CpuLevel::kAvx512,
                               CpuLevel::kAvx512Vnni, CpuLevel::kAvx512Bf16, CpuLevel::kNeon}) {
    if (cpu_level_runs(level, detect_cpu_level())) levels.push_back(level);
  }
  for (uint64_t seed = 1; seed <= trials(); ++seed) {
    Draws draws(seed * 1000 + static_cast<uint64_t>(spec.type));
    test::TinyEngineOptions options;
    options.threads = 1 + draws.below(3);
    // Every other trial at the level that is used here, with a step of one row for certain.
    options.level =
        seed % 2 == 0
            ? detect_cpu_level()
            : levels[static_cast<size_t>(draws.below(static_cast<int32_t>(levels.size())))];
    options.repack = draws.below(3) > 0;
    const char* kind = draws.below(2) == 0 ? "fp32" : "fp16";
    const LoadedTiny model(tiny, options);
    std::vector<Sequence> sequences =
        draw_sequences(draws, has_dots(options.level) ? alone_with_dots : alone, model, kind);
    while (advance(draws, model, sequences)) {
    }
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_EQ(sequences[i].found, sequences[i].expected)
          << spec.architecture << ", " << dtype_name(spec.type) << ", seed " << seed
          << ", sequence " << i << ", " << options.threads << " threads, "
          << cpu_level_name(options.level) << ", " << kind;
    }
  }
}

class OneResult : public testing::TestWithParam<DType> {};

TEST_P(OneResult, WhateverTheBatch) {
  TinyModelSpec spec;
  spec.type = GetParam();
  spec.layers = 1;
  spec.hidden = 256;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 64;
  spec.feed_forward = 256;
  expect_one_result(spec);
}

TEST(OneResultOf, EveryArchitecture) {
  for (const arch::Architecture* row : arch::architectures()) {
    for (const DType type : {DType::kF32, DType::kQ8_0}) {
      TinyModelSpec spec;
      spec.architecture = row->name;
      spec.type = type;
      spec.layers = 4;
      spec.window = 9;
      spec.biases = true;
      expect_one_result(spec);
      if (row->style.experts.has != arch::Experts::kOptional) continue;
      spec.experts = 6;
      expect_one_result(spec);
    }
  }
}

/// Rows of a batch share few experts, or all.
TEST(OneResultOf, ManyExperts) {
  for (const int32_t used : {1, 7, 60}) {
    TinyModelSpec spec;
    spec.architecture = "qwen3moe";
    spec.type = DType::kQ4_0;
    spec.experts = 60;
    spec.experts_used = used;
    spec.expert_width = 32;
    expect_one_result(spec);
  }
}

std::vector<DType> all_types() {
  std::vector<DType> types = {DType::kF32, DType::kF16, DType::kBF16};
  for (const quant::Traits& traits : quant::kTraits) types.push_back(traits.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Formats, OneResult, testing::ValuesIn(all_types()),
                         [](const auto& each) { return std::string(dtype_name(each.param)); });

}  // namespace
}  // namespace gen::model
