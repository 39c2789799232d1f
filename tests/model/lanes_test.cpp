// SPDX-License-Identifier: Apache-2.0
// A model whose layers see different distances runs over lanes of one store
// (cache/sequence/lane_store.h): several sequences at once, cut, grown again, forked, moved, with
// plans that are dropped. Each row's logits must be, bit for bit, those over a contiguous cache
// whose views carry the same windows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "cache/sequence/lane_store.h"
#include "engine/memory/host_memory.h"
#include "support/counting_allocator.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

using test::LoadedTiny;
using test::TinyModel;
using test::TinyModelSpec;

constexpr int32_t kSequences = 4;
constexpr int32_t kContext = 100;

struct Sequence {
  int32_t number = -1;  // of the lane; unknown after a fork
  std::vector<int32_t> tokens;
  std::unique_ptr<cache::KvCache> lane;
  std::unique_ptr<cache::KvCache> alone;
};

/// A llama with windows that no two kinds of layers share.
Status read_mixed(const arch::DenseStyle& style, KeyReader& keys, HParams* h) {
  GEN_TRY(arch::read_dense_decoder(style, keys, h));
  h->layers[0].attention.window = 5;
  h->layers[2].attention.chunk = 7;
  h->layers[3].attention.window = 5;
  h->layers[4].attention.window = 20;
  h->layers[4].attention.chunk = 16;
  return {};
}
const arch::Architecture kMixedRow = {"llama", arch::kLlama.style, read_mixed};
constexpr const arch::Architecture* kMixed[] = {&kMixedRow};

class Lanes : public testing::TestWithParam<const char*> {
 protected:
  Lanes() : tiny_(spec()), model_(tiny_, mixed_windows()) {
    shapes_.assign(model_.model().layer_shapes().begin(), model_.model().layer_shapes().end());
  }
  static test::TinyEngineOptions mixed_windows() {
    test::TinyEngineOptions options;
    options.architectures = kMixed;
    return options;
  }
  static TinyModelSpec spec() {
    TinyModelSpec spec;
    spec.layers = 5;
    spec.hidden = 32;
    spec.heads = 2;
    spec.kv_heads = 1;
    spec.feed_forward = 32;
    return spec;
  }
  void make_store(const cache::LaneLimits& limits) {
    auto made = cache::LaneStore::create(GetParam(), shapes_, limits, allocator_);
    ASSERT_TRUE(made.ok()) << made.status().message();
    store_ = std::move(made).value();
    EXPECT_EQ(store_->groups(), 4u);
  }
  Sequence begin() {
    Sequence sequence;
    auto lane = store_->lane(next_number_);
    while (!lane.ok() && lane.status().code() == Code::kState) {
      lane = store_->lane(++next_number_);  // a fork has it
    }
    EXPECT_TRUE(lane.ok()) << lane.status().message();
    sequence.number = next_number_++;
    sequence.lane = std::move(lane).value();
    sequence.alone =
        cache::make_cache(GetParam(), shapes_, kContext, engine::system_memory()).value();
    return sequence;
  }
  /// One step over some sequences; false if the store is full, and then nothing has changed.
  bool step(const std::vector<std::pair<Sequence*, std::vector<int32_t>>>& parts) {
    test::OwnedBatch batch;
    for (const auto& [sequence, tokens] : parts) {
      const int32_t length = sequence->lane->length();
      const Status planned = batch.add(*sequence->lane, tokens);
      EXPECT_EQ(sequence->lane->length(), length);
      if (planned.ok()) continue;
      EXPECT_EQ(planned.code(), Code::kCacheFull) << planned.message();
      return false;
    }
    const Status status = model_.model().forward(batch.finish(model_.vocab()));
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const std::vector<float> logits = batch.results(model_.vocab());
    size_t from = 0;
    for (const auto& [sequence, tokens] : parts) {
      const std::vector<float> want = model_.feed(*sequence->alone, tokens);
      EXPECT_TRUE(
          std::equal(want.begin(), want.end(), logits.begin() + static_cast<std::ptrdiff_t>(from)))
          << "after " << sequence->tokens.size() << " tokens";
      from += want.size();
      sequence->tokens.insert(sequence->tokens.end(), tokens.begin(), tokens.end());
    }
    return true;
  }
  int32_t below(int32_t n) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(n)); }
  std::vector<int32_t> draw(int32_t n) {
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < n; ++i) tokens.push_back(below(model_.vocab()));
    return tokens;
  }
  /// Keeps n tokens, as a session does: where the lane cannot go back it is made anew.
  void cut(Sequence* sequence, int32_t n) {
    ASSERT_TRUE(sequence->alone->truncate(n).ok());
    sequence->tokens.resize(static_cast<size_t>(n));
    const int32_t length = sequence->lane->length();
    const Status status = sequence->lane->truncate(n);
    if (status.ok()) {
      ASSERT_EQ(sequence->lane->length(), n);
      return;
    }
    ASSERT_EQ(status.code(), Code::kUnsupported);
    ASSERT_EQ(sequence->lane->length(), length);
    ++rebuilt_;
    const std::vector<int32_t> tokens = sequence->tokens;
    sequence->lane.reset();
    *sequence = begin();
    for (size_t at = 0; at < tokens.size(); at += 9) {
      const size_t end = std::min(at + 9, tokens.size());
      ASSERT_TRUE(step({{sequence,
                         {tokens.begin() + static_cast<std::ptrdiff_t>(at),
                          tokens.begin() + static_cast<std::ptrdiff_t>(end)}}}));
    }
  }

  TinyModel tiny_;
  LoadedTiny model_;
  std::vector<cache::LayerShape> shapes_;
  test::CountingAllocator allocator_;
  std::shared_ptr<cache::LaneStore> store_;
  std::mt19937 random_{3};
  int32_t next_number_ = 0;
  int32_t rebuilt_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Formats, Lanes, testing::Values("fp32", "fp16", "fp8", "q4", "q3"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(Lanes, HaveTheBitsOfACacheAlone) {
  make_store({kSequences, kContext, 40, 0, 0});
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < kSequences; ++i) sequences.push_back(begin());
  // Past every window, in steps of different sizes, all together.
  for (const int32_t rows : {1, 10, 3, 1, 1, 7, 1, 9, 1, 1}) {
    std::vector<std::pair<Sequence*, std::vector<int32_t>>> parts;
    for (int32_t i = 0; i < kSequences; ++i) {
      parts.emplace_back(&sequences[static_cast<size_t>(i)], draw(1 + (rows + i) % 10));
    }
    ASSERT_TRUE(step(parts));
  }
}

/// Two hundred steps, or as many as GEN_TRIALS says.
int32_t trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::atoi(wanted) : 200;
}

TEST_P(Lanes, SurviveWhateverSequencesDo) {
  make_store({kSequences, 50, 20, 2, 0});
  std::vector<Sequence> sequences;
  for (int32_t i = 0; i < kSequences; ++i) sequences.push_back(begin());
  int32_t full = 0;
  for (int32_t trial = 0; trial < trials() && !HasFailure(); ++trial) {
    SCOPED_TRACE("step " + std::to_string(trial));
    const int32_t number = below(kSequences);
    Sequence& sequence = sequences[static_cast<size_t>(number)];
    const auto length = static_cast<int32_t>(sequence.tokens.size());
    const int32_t pick = below(16);
    if (pick < 10) {
      std::vector<std::pair<Sequence*, std::vector<int32_t>>> parts;
      int32_t rows = 0;
      for (Sequence& one : sequences) {
        const int32_t room = std::min(one.lane->capacity() - one.lane->length(), 20 - rows);
        if (room < 1 || below(2) == 0) continue;
        parts.emplace_back(&one, draw(1 + below(std::min(room, below(3) == 0 ? 12 : 2))));
        rows += static_cast<int32_t>(parts.back().second.size());
      }
      if (!parts.empty() && !step(parts)) ++full;
    } else if (pick < 12) {
      cut(&sequence, below(length + 1));
    } else if (pick == 12) {
      cut(&sequence, std::max(0, length - 1 - below(3)));
    } else if (pick == 13) {  // plans that come to nothing
      if (sequence.lane->capacity() - length > 3) {
        EXPECT_TRUE(sequence.lane->plan(3).ok());
        EXPECT_TRUE(sequence.lane->plan(1).ok());
      }
      EXPECT_EQ(sequence.lane->plan(51 - length).status().code(), Code::kCacheFull);
    } else if (pick == 14) {
      ASSERT_TRUE(store_->compact(below(8)).ok());
    } else {  // a sequence goes, and another one forks
      Sequence& source =
          sequences[static_cast<size_t>((number + 1 + below(kSequences - 1)) % kSequences)];
      auto n = static_cast<int32_t>(source.tokens.size());
      sequence.lane.reset();
      if (below(2) == 0 || source.number < 0) {
        auto forked = source.lane->fork();
        ASSERT_TRUE(forked.ok()) << forked.status().message();
        sequence.lane = std::move(*forked);
        sequence.number = -1;
      } else {
        sequence = begin();
        EXPECT_EQ(store_->copy_prefix(source.number, sequence.number, n + 1).code(),
                  Code::kOutOfRange);
        const int32_t some = below(n + 1);
        const Status copied = store_->copy_prefix(source.number, sequence.number, some);
        EXPECT_TRUE(copied.ok() || copied.code() == Code::kUnsupported) << copied.message();
        n = copied.ok() ? some : 0;
      }
      EXPECT_EQ(sequence.lane->length(), n);
      sequence.tokens.assign(source.tokens.begin(), source.tokens.begin() + n);
      sequence.alone = source.alone->fork().value();
      ASSERT_TRUE(sequence.alone->truncate(n).ok());
    }
  }
  EXPECT_GT(rebuilt_, 0);
  sequences.clear();
  for (size_t group = 0; group < store_->groups(); ++group) {
    EXPECT_EQ(store_->free_cells(group), store_->cells(group));
  }
  store_.reset();
  EXPECT_EQ(allocator_.live_bytes, 0u);
}

TEST(MixedWindows, AFileGeneratesThroughLanes) {
  TinyModelSpec spec;
  spec.layers = 4;
  spec.window = 6;
  spec.local = {1, 0, 1, 0};
  const TinyModel tiny(spec);
  const LoadedTiny model(tiny);
  auto store = cache::LaneStore::create("fp32", model.model().layer_shapes(), {2, 64, 64, 0, 0},
                                        engine::system_memory())
                   .value();
  EXPECT_EQ(store->groups(), 2u);
  EXPECT_EQ(store->cells(0), 2 * 6 + 64);  // the window's five, one more, and a batch
  EXPECT_EQ(store->cells(1), 2 * 64);
  auto lane = store->lane(0).value();
  auto other = store->lane(1).value();
  const auto alone = model.cache();
  std::vector<int32_t> tokens = {7, 3, 30, 12, 9, 1, 44, 20, 5};
  std::vector<int32_t> next = tokens;
  while (tokens.size() < 60) {
    const std::vector<float> got = model.feed(*lane, next);
    EXPECT_EQ(got, model.feed(*alone, next));
    model.feed(*other, std::vector<int32_t>{1});  // takes cells between
    const auto last = got.end() - model.vocab();
    next = {static_cast<int32_t>(std::max_element(last, got.end()) - last)};
    tokens.push_back(next[0]);
  }
  // And what it generated is what the definition of the model, without any cache, says.
  const std::vector<double> want = tiny.logits(tokens);
  for (size_t t = 8; t + 1 < tokens.size(); ++t) {
    const auto row = want.begin() + static_cast<std::ptrdiff_t>(t) * model.vocab();
    EXPECT_EQ(std::max_element(row, row + model.vocab()) - row, tokens[t + 1]) << t;
  }
}

}  // namespace
}  // namespace gen::model
