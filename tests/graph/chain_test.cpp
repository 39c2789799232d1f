// SPDX-License-Identifier: Apache-2.0
// Proves that rows which run one after another without the host, each of the token that the one
// before it found best, give the tokens and logits that they give step by step, to the bit, for
// several sequences in caches of every kind, padded or not; that what is not kept of them leaves no
// trace; that the host waits once; and that a row without a best token harms nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string_view>

#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "support/far_engine.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

constexpr int32_t kVocab = 70;
constexpr size_t kTokens = 14;  // that each sequence says
const test::TinyShape kShape = [] {
  test::TinyShape shape;
  shape.vocab = kVocab;
  return shape;
}();

/// A plan on an engine, and a sequence in each kind of cache.
struct Machine {
  explicit Machine(std::shared_ptr<engine::Engine> engine,
                   engine::EngineMemory& memory = engine::system_memory())
      : pool(engine), caches(memory) {
    CompileOptions options;
    options.max_seq_len = 64;
    plan = compile(tiny.graph(), std::move(engine), options).value();
    for (const char* kind : {"fp32", "fp16", "fp8", "q4", "q3"}) {
      sequences.push_back(cache::make_cache(kind, tiny.layer_shapes(), 64, caches).value());
      auto blocks = cache::CachePool::create(kind, tiny.layer_shapes(), 5, 1, caches).value();
      sequences.push_back(cache::make_paged_cache(std::move(blocks), 64).value());
    }
    cache::LaneLimits limits;
    limits.max_sequences = 2;
    limits.capacity = 64;
    limits.max_batch = 32;
    sequences.push_back(cache::LaneStore::create("fp32", tiny.layer_shapes(), limits, caches)
                            .value()
                            ->lane(0)
                            .value());
  }
  Status run(const Batch& batch) {
    GEN_ASSIGN(const WorkspacePool::Lease workspace, pool.borrow());
    return plan->run(batch, *workspace);
  }
  /// All but the last token of each prompt, which comes back.
  std::vector<int32_t> begin() {
    test::OwnedBatch batch;
    std::vector<int32_t> last;
    for (size_t i = 0; i < sequences.size(); ++i) {
      std::vector<int32_t> prompt;
      for (size_t t = 0; t < 3 + i; ++t)
        prompt.push_back(static_cast<int32_t>((7 * i + 3 * t) % kVocab));
      EXPECT_TRUE(batch.add(*sequences[i], prompt, false).ok());
      last.push_back(static_cast<int32_t>((5 * i + 11) % kVocab));
    }
    EXPECT_TRUE(run(batch.finish(kVocab)).ok());
    batch.commit();
    return last;
  }

  test::TinyGraph tiny{kShape};
  WorkspacePool pool;
  engine::EngineMemory& caches;
  std::vector<std::unique_ptr<cache::KvCache>> sequences;
  std::shared_ptr<const ExecutionPlan> plan;
};

/// A batch of `links` rows of each sequence that want best.
struct BestBatch : test::OwnedBatch {
  BestBatch(Machine& machine, const std::vector<int32_t>& first, int32_t links) {
    const auto rows = static_cast<size_t>(links);
    for (size_t i = 0; i < first.size(); ++i) {
      std::vector<int32_t> more(rows, 0);
      more[0] = first[i];
      EXPECT_TRUE(add(*machine.sequences[i], more).ok());
    }
    finish(kVocab);
    std::fill(wants.begin(), wants.end(), uint8_t{kWantsBest});
    found.assign(tokens.size() + 1, -77);
    values.assign(tokens.size() + 1, -77.0F);
    batch.best = {1, found.data(), values.data(), tokens.size()};
    batch.multi_steps = links;
  }
  std::vector<int32_t> found;
  std::vector<float> values;
};

/// What sequences say, and the logit of each token.
struct Said {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::vector<float>> values;
  friend bool operator==(const Said&, const Said&) = default;
};

Said step_by_step(Machine& machine) {
  std::vector<int32_t> last = machine.begin();
  Said said{std::vector<std::vector<int32_t>>(last.size()),
            std::vector<std::vector<float>>(last.size())};
  for (size_t n = 0; n < kTokens; ++n) {
    BestBatch batch(machine, last, 1);
    batch.batch.multi_steps = 0;
    EXPECT_TRUE(machine.run(batch.batch).ok());
    batch.commit();
    for (size_t i = 0; i < last.size(); ++i) {
      last[i] = batch.found[i];
      said.tokens[i].push_back(batch.found[i]);
      said.values[i].push_back(batch.values[i]);
    }
  }
  return said;
}

/// In chains of several lengths, of which some rows are not kept.
Said in_chains(Machine& machine, test::FarEngine* far) {
  std::vector<int32_t> last = machine.begin();
  const size_t n = last.size();
  Said said{std::vector<std::vector<int32_t>>(n), std::vector<std::vector<float>>(n)};
  for (int32_t turn = 0; said.tokens[0].size() < kTokens; ++turn) {
    const int32_t links = 1 + turn % 5;
    const auto left = static_cast<int32_t>(kTokens - said.tokens[0].size());
    const int32_t kept = std::min({links - (turn % 3 == 2 ? 1 : 0), left});
    BestBatch batch(machine, last, links);
    const size_t finishes = far != nullptr ? far->finishes.load() : 0;
    const Status status = machine.run(batch.batch);
    EXPECT_TRUE(status.ok()) << status.message();
    if (far != nullptr) {
      EXPECT_EQ(far->finishes - finishes, 1U);
    }
    EXPECT_EQ(batch.found.back(), -77);
    EXPECT_EQ(batch.values.back(), -77.0F);
    for (size_t i = 0; i < n; ++i) {
      for (size_t link = 0; link < static_cast<size_t>(kept); ++link) {
        last[i] = batch.found[link * n + i];
        said.tokens[i].push_back(last[i]);
        said.values[i].push_back(batch.values[link * n + i]);
      }
      test::OwnedBatch::commit(batch.sequences[i], kept);
    }
  }
  return said;
}

TEST(Chains, SayWhatStepsSay) {
  Machine plain(test::cpu_engine());
  const Said want = step_by_step(plain);
  EXPECT_NE(want.tokens[0], want.tokens[1]);
  Machine near(test::cpu_engine({.threads = 3}));
  EXPECT_EQ(in_chains(near, nullptr), want);
  for (const bool pads : {false, true}) {
    test::FarMemory memory;
    const auto engine = std::make_shared<test::FarEngine>(memory);
    engine->pads = pads;
    Machine far(engine, memory);
    EXPECT_EQ(in_chains(far, engine.get()), want) << pads;
  }
}

/// The embedding of a token is no number from here on.
void spoil(const Graph& graph, int32_t token) {
  for (const engine::WeightSource& weight : graph.weights) {
    if (std::string_view(weight.name) != "embed") continue;
    const size_t row = weight.data.size() / kVocab;
    auto* const at = const_cast<std::byte*>(weight.data.data());
    const float none = NAN;
    std::memcpy(at + row * static_cast<size_t>(token), &none, sizeof none);
  }
}

// What follows it is worth nothing, but runs.
TEST(Chains, ARowThatIsNotFiniteSaysSo) {
  int32_t said = 0;
  {
    Machine machine(test::cpu_engine());
    const std::vector<int32_t> last = machine.begin();
    BestBatch batch(machine, last, 1);
    ASSERT_TRUE(machine.run(batch.batch).ok());
    said = batch.found[0];
  }
  const auto spoilt = [said](Machine& machine) {
    const std::vector<int32_t> last = machine.begin();
    spoil(machine.tiny.graph(), said);
    BestBatch batch(machine, last, 4);
    EXPECT_TRUE(machine.run(batch.batch).ok());
    EXPECT_EQ(batch.found[0], said);
    EXPECT_EQ(batch.found[last.size()], -1);  // of the second link
    EXPECT_TRUE(std::isnan(batch.values[last.size()]));
  };
  Machine near(test::cpu_engine());
  spoilt(near);
}

}  // namespace
}  // namespace gen::graph
