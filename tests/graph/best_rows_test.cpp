// SPDX-License-Identifier: Apache-2.0
// Proves what a step gives in place of logits: the best tokens of rows are those of the logits that
// the rows would have given, masked and without those aside, whatever stands beside them and in
// however many chunks; a caller's work comes before the choice, once, and its masks count; taps go
// to engine memory, too. The far engine gives the same, and does nothing before the caller has had
// its turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <utility>

#include "base/mass_slices.h"
#include "cache/sequence/registry.h"
#include "support/counting_allocator.h"
#include "support/far_engine.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

constexpr int32_t kVocab = 70;  // of two words and some
constexpr int32_t kRows = 20;   // more than a chunk
const test::TinyShape kShape = [] {
  test::TinyShape shape;
  shape.vocab = kVocab;
  return shape;
}();

/// A plan on an engine, whose selected rows come in chunks if there are more than 16.
struct Machine {
  explicit Machine(std::shared_ptr<engine::Engine> engine,
                   engine::EngineMemory& cache_memory = engine::system_memory())
      : pool(engine), caches(cache_memory) {
    CompileOptions options;
    options.max_seq_len = 64;
    options.selected_arena_bytes = 1;
    plan = compile(tiny.graph(), std::move(engine), options).value();
  }
  std::unique_ptr<cache::KvCache> cache() {
    return cache::make_cache("fp32", tiny.layer_shapes(), 64, caches).value();
  }
  Status run(const Batch& batch) {
    GEN_ASSIGN(const WorkspacePool::Lease workspace, pool.borrow());
    return plan->run(batch, *workspace);
  }

  test::TinyGraph tiny{kShape};
  WorkspacePool pool;
  engine::EngineMemory& caches;
  std::shared_ptr<const ExecutionPlan> plan;
};

std::vector<int32_t> some_tokens() {
  std::vector<int32_t> tokens(kRows);
  for (int32_t i = 0; i < kRows; ++i) tokens[static_cast<size_t>(i)] = (7 * i + 3) % kVocab;
  return tokens;
}

/// A batch of kRows rows of one sequence, with room for best.
struct BestBatch : test::OwnedBatch {
  BestBatch(cache::KvCache& cache, int32_t k) : best_of(k) {
    EXPECT_TRUE(add(cache, some_tokens()).ok());
  }
  Batch& finish_best() {
    finish(kVocab);
    tokens_found.assign(static_cast<size_t>(kRows * best_of), -77);
    logits_found.assign(static_cast<size_t>(kRows * best_of), -77.0F);
    mass_found.assign(kRows + 1, -77.0);
    slice_found.assign((kRows + 1) * kMassSlice, -77.0F);
    batch.best = {best_of, tokens_found.data(), logits_found.data(),
                  kRows,   mass_found.data(),   mass_slices(kVocab)};
    batch.best.slice = slice_found.data();
    batch.extras = extras;
    size_t n_aside = 0;
    for (const RowExtras& each : extras) n_aside += each.aside.size();
    aside_found.assign(n_aside + 1, -77.0F);
    batch.best.aside_logits = aside_found.data();
    return batch;
  }
  int32_t best_of;
  std::vector<int32_t> tokens_found;
  std::vector<float> logits_found;
  std::vector<RowExtras> extras;
  std::vector<float> aside_found;
  std::vector<double> mass_found;
  std::vector<float> slice_found;
};

/// All rows' logits.
std::vector<float> whole_logits(Machine& machine) {
  const auto cache = machine.cache();
  test::OwnedBatch batch;
  EXPECT_TRUE(batch.add(*cache, some_tokens()).ok());
  EXPECT_TRUE(machine.run(batch.finish(kVocab)).ok());
  return batch.results(kVocab);
}

/// By hand: the row's logits without those aside and under the mask, sorted.
void expect_sorted(const BestBatch& batch, std::span<const float> logits, size_t row,
                   size_t place) {
  std::vector<float> edited(logits.begin(), logits.end());
  size_t at = 0;
  for (const RowExtras& each : batch.extras) {
    for (const int32_t token : each.aside) {
      const float found = batch.aside_found[at++];
      if (each.row != static_cast<int32_t>(row)) continue;
      EXPECT_EQ(found, logits[static_cast<size_t>(token)]) << "row " << row << ", " << token;
      edited[static_cast<size_t>(token)] = -INFINITY;
    }
  }
  EXPECT_EQ(batch.aside_found[at], -77.0F);
  for (const RowExtras& each : batch.extras) {
    if (each.row != static_cast<int32_t>(row) || each.mask.empty()) continue;
    for (size_t i = 0; i < edited.size(); ++i) {
      const bool there = i / 32 < each.mask.size() && (each.mask[i / 32] >> (i % 32) & 1U) != 0;
      if (!there) edited[i] = -INFINITY;
    }
  }
  std::vector<int32_t> order(edited.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return edited[static_cast<size_t>(a)] > edited[static_cast<size_t>(b)];
  });
  for (const RowExtras& mass : batch.extras) {
    if (mass.row != static_cast<int32_t>(row) || mass.temperature == 0.0) continue;
    double want = 0.0;
    for (const float logit : edited) {
      const auto best = static_cast<double>(edited[static_cast<size_t>(order[0])]);
      want += std::exp((static_cast<double>(logit) - best) / mass.temperature);
    }
    EXPECT_NEAR(batch.mass_found[place], want, 1e-12 * want) << "row " << row;
    if (mass.place < 0.0) continue;  // there is one slice
    for (size_t i = 0; i < kMassSlice; ++i) {
      EXPECT_EQ(batch.slice_found[place * kMassSlice + i],
                i < edited.size() ? edited[i] : -INFINITY);
    }
  }
  const auto k = static_cast<size_t>(batch.best_of);
  for (size_t i = 0; i < k; ++i) {
    EXPECT_EQ(batch.tokens_found[place * k + i], order[i]) << "row " << row << ", " << i;
    EXPECT_EQ(batch.logits_found[place * k + i], edited[static_cast<size_t>(order[i])]);
  }
}

/// Wants of all kinds, masks and tokens aside, on one engine; what came back.
std::vector<float> check_mixed(Machine& machine, int32_t k, bool only_best) {
  const std::vector<float> logits = whole_logits(machine);
  const auto cache = machine.cache();
  BestBatch batch(*cache, k);
  for (size_t row = 0; row < kRows; ++row) {
    batch.wants[row] = only_best || row == 1 ? uint8_t{kWantsBest} : static_cast<uint8_t>(row % 3);
  }
  const std::vector<uint32_t> odd(3, 0xAAAAAAAAU);
  const std::vector<uint32_t> few = {0x00000110U};
  const std::vector<int32_t> many = {69, 4, 60, 4, 0};  // one of them twice
  const std::vector<int32_t> one = {7};
  batch.extras = {{.row = 1, .mask = odd, .temperature = 0.5, .place = 0.2},
                  {.row = 2, .aside = one},
                  {.row = 8, .mask = few, .aside = many, .temperature = 2.0},
                  {.row = 11, .aside = many},
                  {.row = 17, .mask = odd, .temperature = 1.0, .place = 0.0}};
  if (!only_best) batch.wants[17] = kWantsBest;
  EXPECT_TRUE(machine.run(batch.finish_best()).ok());
  size_t n_logits = 0;
  size_t n_best = 0;
  for (size_t row = 0; row < kRows; ++row) {
    const auto of_row = std::span(logits).subspan(row * kVocab, kVocab);
    if (batch.wants[row] == kWantsBest) expect_sorted(batch, of_row, row, n_best++);
    if (batch.wants[row] != kWantsLogits) continue;
    const auto given = std::span(batch.logits).subspan(n_logits++ * kVocab, kVocab);
    EXPECT_TRUE(std::equal(given.begin(), given.end(), of_row.begin())) << row;
  }
  EXPECT_GT(n_best, 6U);
  EXPECT_EQ(batch.mass_found[n_best], -77.0);
  EXPECT_EQ(batch.slice_found[n_best * kMassSlice], -77.0F);
  if (n_best < kRows) {
    EXPECT_EQ(batch.tokens_found[n_best * static_cast<size_t>(k)], -77);
  }
  std::vector<float> seen = batch.logits_found;
  seen.insert(seen.end(), batch.aside_found.begin(), batch.aside_found.end());
  seen.insert(seen.end(), batch.logits.begin(), batch.logits.end());
  for (const int32_t token : batch.tokens_found) seen.push_back(static_cast<float>(token));
  return seen;
}

TEST(BestRows, AreThoseOfTheLogits) {
  test::FarMemory memory;
  for (const int32_t k : {1, 3, kVocab}) {
    for (const bool only_best : {false, true}) {
      Machine reference(std::make_shared<test::ReferenceEngine>());
      check_mixed(reference, k, only_best);
      Machine near(test::cpu_engine());
      Machine far(std::make_shared<test::FarEngine>(memory), memory);
      EXPECT_EQ(check_mixed(far, k, only_best), check_mixed(near, k, only_best));
    }
  }
}

// The engine chooses for the rows that were added, too; the caller has no place for them.
TEST(BestRows, OfAddedRowsNothingComesBack) {
  test::FarMemory memory;
  const auto engine = std::make_shared<test::FarEngine>(memory);
  Machine machine(engine, memory);
  const std::vector<float> logits = whole_logits(machine);
  engine->pads = true;
  for (const size_t n_logits : {size_t{0}, size_t{2}}) {
    for (const int32_t k : {1, 3}) {
      const auto cache = machine.cache();
      BestBatch batch(*cache, k);
      constexpr size_t kBest = 5;  // eight places
      for (size_t row = 0; row < kRows; ++row) {
        batch.wants[row] = row < kBest              ? kWantsBest
                           : row < kBest + n_logits ? kWantsLogits
                                                    : kWantsNothing;
      }
      batch.extras = {{.row = 0, .temperature = 1.0}, {.row = 4, .temperature = 0.5, .place = 0.5}};
      batch.finish_best().best.rows = kBest;
      ASSERT_TRUE(machine.run(batch.batch).ok());
      for (size_t row = 0; row < kBest; ++row) {
        expect_sorted(batch, std::span(logits).subspan(row * kVocab, kVocab), row, row);
      }
      for (size_t i = kBest * static_cast<size_t>(k); i < batch.tokens_found.size(); ++i) {
        EXPECT_EQ(batch.tokens_found[i], -77) << "of " << k << ", " << i;
        EXPECT_EQ(batch.logits_found[i], -77.0F) << "of " << k << ", " << i;
      }
      for (size_t i = kBest; i < kRows; ++i) EXPECT_EQ(batch.mass_found[i], -77.0) << i;
      EXPECT_EQ(batch.slice_found[kBest * kMassSlice], -77.0F);
    }
  }
}

TEST(BestRows, ARowThatIsNotFiniteSaysSo) {
  Machine machine(test::cpu_engine());
  const auto cache = machine.cache();
  BestBatch batch(*cache, 2);
  batch.tokens[kRows - 1] = -2;  // later rows would see it
  std::vector<float> given(2 * 24, 0.5F);
  given[24 + 3] = NAN;
  std::fill(batch.wants.begin(), batch.wants.end(), uint8_t{kWantsBest});
  batch.finish_best().embeddings = given;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  const size_t last = 2 * (kRows - 1);
  EXPECT_EQ(batch.tokens_found[last], -1);
  EXPECT_EQ(batch.tokens_found[last + 1], -1);
  EXPECT_TRUE(std::isnan(batch.logits_found[last]));
  for (size_t i = 0; i < last; ++i) EXPECT_GE(batch.tokens_found[i], 0);
}

// ---- While the pass runs ----

/// Writes a mask when it is called.
struct Rule {
  std::vector<uint32_t> bits = std::vector<uint32_t>(3, 0);
  const BestBatch* batch = nullptr;
  int32_t calls = 0;
  bool early = false;  // nothing had come back yet
  Status answer;

  static Status write(void* context) noexcept {
    auto& rule = *static_cast<Rule*>(context);
    ++rule.calls;
    rule.early = rule.batch->tokens_found[0] == -77 && rule.batch->logits[0] == 0.0F;
    rule.bits = {0, 0x00010001U, 0};  // tokens 32 and 48
    return std::exchange(rule.answer, Status());
  }
};

TEST(During, MasksThatItWritesCount) {
  test::FarMemory memory;
  for (const bool is_far : {false, true}) {
    Machine machine(is_far ? std::make_shared<test::FarEngine>(memory) : test::cpu_engine(),
                    is_far ? static_cast<engine::EngineMemory&>(memory) : engine::system_memory());
    const std::vector<float> logits = whole_logits(machine);
    const auto cache = machine.cache();
    BestBatch batch(*cache, 2);
    Rule rule;
    rule.batch = &batch;
    std::fill(batch.wants.begin(), batch.wants.end(), uint8_t{kWantsBest});
    batch.wants[0] = kWantsLogits;
    batch.extras = {{.row = 3, .mask = rule.bits}, {.row = 18, .mask = rule.bits}};
    batch.finish_best().during = {Rule::write, &rule};
    ASSERT_TRUE(machine.run(batch.batch).ok());
    EXPECT_EQ(rule.calls, 1);  // of two chunks
    EXPECT_TRUE(rule.early || !is_far);
    for (size_t row = 1; row < kRows; ++row) {
      expect_sorted(batch, std::span(logits).subspan(row * kVocab, kVocab), row, row - 1);
    }
  }
}

TEST(During, IsCalledWhateverIsWanted) {
  Machine machine(test::cpu_engine());
  for (const uint8_t wants : {kWantsNothing, kWantsLogits}) {
    const auto cache = machine.cache();
    BestBatch batch(*cache, 1);
    Rule rule;
    rule.batch = &batch;
    std::fill(batch.wants.begin(), batch.wants.end(), wants);
    batch.finish_best().during = {Rule::write, &rule};
    ASSERT_TRUE(machine.run(batch.batch).ok());
    EXPECT_EQ(rule.calls, 1);
  }
}

TEST(During, ItsFailureIsThePasss) {
  test::FarMemory memory;
  Machine machine(std::make_shared<test::FarEngine>(memory), memory);
  const auto cache = machine.cache();
  BestBatch batch(*cache, 1);
  Rule rule;
  rule.batch = &batch;
  rule.answer = error(Code::kGrammar, "no rule for this");
  std::fill(batch.wants.begin(), batch.wants.end(), uint8_t{kWantsBest});
  batch.finish_best().during = {Rule::write, &rule};
  const Status status = machine.run(batch.batch);
  EXPECT_EQ(status.code(), Code::kGrammar);
  EXPECT_STREQ(status.message(), "no rule for this");
  EXPECT_EQ(cache->length(), 0);
  EXPECT_TRUE(machine.run(batch.batch).ok());  // the rule fails once
  EXPECT_EQ(rule.calls, 2);
  // A pass that fails before does not ask.
  CancelFlag cancel;
  cancel.fire();
  batch.batch.cancel = &cancel;
  EXPECT_EQ(machine.run(batch.batch).code(), Code::kCancelled);
  EXPECT_EQ(rule.calls, 2);
}

// What was enqueued before has ended when the caller takes its memory back.
TEST(BestRows, AnOperationThatThrowsEndsThePass) {
  test::FarMemory memory;
  const auto engine = std::make_shared<test::FarEngine>(memory);
  Machine machine(engine, memory);
  const std::vector<float> logits = whole_logits(machine);
  const auto cache = machine.cache();
  BestBatch batch(*cache, 1);
  std::fill(batch.wants.begin(), batch.wants.end(), uint8_t{kWantsBest});
  batch.wants[0] = kWantsLogits;
  batch.finish_best();
  const size_t before = engine->operations;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  batch.finish_best();
  engine->refused = engine->operations + (engine->operations - before) - 1;  // the last one
  EXPECT_THROW((void)machine.run(batch.batch), std::bad_alloc);
  EXPECT_TRUE(std::equal(logits.begin(), logits.begin() + kVocab, batch.logits.begin()));
}

// Nor does it leave operations to the next pass, where all of a pass are asked for at its end.
TEST(BestRows, AnOperationThatThrowsAtTheEndOfAPassIsDropped) {
  test::FarMemory memory;
  const auto engine = std::make_shared<test::FarEngine>(memory);
  engine->gathered = true;
  Machine machine(engine, memory);
  const auto cache = machine.cache();
  BestBatch batch(*cache, 1);
  std::fill(batch.wants.begin(), batch.wants.end(), uint8_t{kWantsNothing});
  batch.finish_best();
  const size_t before = engine->operations;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  const size_t each = engine->operations - before;
  engine->refused = engine->operations + each / 2;
  const size_t finishes = engine->finishes;
  EXPECT_THROW((void)machine.run(batch.batch), std::bad_alloc);
  EXPECT_GT(engine->finishes, finishes);  // what was enqueued has ended
  const size_t thrown = engine->operations;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  EXPECT_EQ(engine->operations - thrown, each);
}

// ---- Taps ----

TEST(Taps, GoToEngineMemory) {
  test::FarMemory memory;
  auto engine = std::make_shared<test::FarEngine>(memory);
  Machine machine(engine, memory);
  constexpr size_t kBytes = kRows * 24 * sizeof(float);
  for (const int32_t layer : {0, 2}) {  // the last is computed for selected rows, in chunks
    const auto cache = machine.cache();
    BestBatch batch(*cache, 1);
    const engine::EngineBuffer there = std::move(engine->memory().allocate(kBytes)).value();
    std::vector<float> here(kRows * 24);
    const Tap taps[] = {{layer, here.data()}, {layer, nullptr, there.data().as<float>()}};
    batch.wants[0] = kWantsNothing;
    batch.finish_best().taps = taps;
    ASSERT_TRUE(machine.run(batch.batch).ok());
    std::vector<float> fetched(kRows * 24);
    const auto stream = std::move(engine->new_stream()).value();
    ASSERT_TRUE(engine->download(*stream, fetched.data(), there.data(), kBytes).ok());
    ASSERT_TRUE(engine->finish(*stream).ok());
    EXPECT_EQ(fetched, here);
    EXPECT_NE(here[kRows * 24 - 1], 0.0F);
  }
}

// ---- Memory ----

TEST(BestRows, EveryFailedAllocationIsReportedAndTheStepCanBeMadeAgain) {
  test::CountingAllocator allocator;
  bool succeeded = false;
  for (size_t n = 0; n < 100 && !succeeded; ++n) {
    allocator.fail_at = ~size_t{0};
    {
      Machine machine(
          std::make_shared<test::ReferenceEngine>(test::ReferenceEngine::Options(), allocator));
      const auto cache = machine.cache();
      BestBatch batch(*cache, 2);
      const std::vector<uint32_t> odd(3, 0xAAAAAAAAU);
      std::fill(batch.wants.begin(), batch.wants.end(), uint8_t{kWantsBest});
      const std::vector<int32_t> aside = {4};
      batch.extras = {{.row = 1, .mask = odd}, {.row = 8, .aside = aside}};
      batch.finish_best();
      allocator.calls = 0;
      allocator.fail_at = n;
      const Status status = machine.run(batch.batch);
      succeeded = status.ok();
      if (!succeeded) {
        EXPECT_EQ(status.code(), Code::kOutOfMemory);
        allocator.fail_at = ~size_t{0};
        EXPECT_TRUE(machine.run(batch.batch).ok());
      }
      EXPECT_GE(batch.tokens_found[2], 0);
    }
    EXPECT_EQ(allocator.live_blocks, 0U) << "request " << n;
  }
  EXPECT_TRUE(succeeded);
}

}  // namespace
}  // namespace gen::graph
