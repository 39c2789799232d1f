// SPDX-License-Identifier: Apache-2.0
// Proves that a compiled plan places what lives at once apart, and that runs give the same bits
// however rows arrive (chunks, batches, trees, chunks of selected rows, several threads), stop when
// told, show taps and traces, and fail without leaks.
#include "graph/execution_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "support/counting_allocator.h"
#include "support/reference_cache.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

CompileOptions options_for(int32_t max_seq_len) {
  CompileOptions options;
  options.max_seq_len = max_seq_len;
  return options;
}

struct Machine {
  explicit Machine(const test::TinyShape& shape = {}, CompileOptions options = options_for(64))
      : tiny(shape),
        engine(std::make_shared<test::ReferenceEngine>()),
        pool(engine),
        shapes(tiny.layer_shapes()) {
    auto compiled = compile(tiny.graph(), engine, options);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
    if (compiled.ok()) plan = std::move(compiled).value();
  }
  [[nodiscard]] int64_t vocab() const { return tiny.shape().vocab; }
  Status run(const Batch& batch) {
    GEN_ASSIGN(const WorkspacePool::Lease workspace, pool.borrow());
    return plan->run(batch, *workspace);
  }
  /// Runs the tokens as one batch and commits them.
  std::vector<float> feed(cache::KvCache& cache, std::span<const int32_t> tokens) {
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(cache, tokens).ok());
    const Status status = run(batch.finish(vocab()));
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    return batch.results(vocab());
  }
  test::ReferenceCache cache(int32_t capacity = 64) { return {shapes, capacity}; }
  /// Of the one workspace, without its step block.
  size_t arena_bytes() {
    const size_t all = pool.bytes();
    auto workspace = pool.borrow();
    return all - (**workspace).block().bytes();
  }

  test::TinyGraph tiny;
  std::shared_ptr<test::ReferenceEngine> engine;
  std::shared_ptr<const ExecutionPlan> plan;
  WorkspacePool pool;
  std::vector<cache::LayerShape> shapes;
};

const std::vector<int32_t> kPrompt = {3, 14, 15, 9, 26, 5, 3, 5, 8, 9, 7, 9};

// ---- Placement ----

TEST(ExecutionPlan, LiveValuesNeverOverlap) {
  for (const bool fused : {false, true}) {
    CompileOptions options = options_for(64);
    if (!fused) options.fusion = {false, false, false, false, false};
    const Machine machine({}, options);
    const auto instructions = machine.plan->instructions();
    const auto values = machine.plan->values();
    // By hand: the first and last instruction that names a value.
    std::vector<int> first(values.size(), -1);
    std::vector<int> last(values.size(), -1);
    const auto touch = [&](const Operand& operand, int at) {
      if (!operand.present()) return;
      const auto value = static_cast<size_t>(operand.value);
      if (first[value] < 0) first[value] = at;
      last[value] = at;
    };
    for (size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& in = instructions[i];
      std::vector<const Operand*> operands = {&in.y, &in.packed};
      for (const Operand* read : in.reads()) operands.push_back(read);
      for (const Operand* operand : operands) {
        touch(*operand, static_cast<int>(i));
      }
    }
    int in_place = 0;
    for (size_t a = 0; a < values.size(); ++a) {
      for (size_t b = 0; b < values.size(); ++b) {
        if (a == b || first[a] < 0 || first[b] < 0 || values[a].selected != values[b].selected) {
          continue;
        }
        // b begins while a is alive.
        if (first[b] < first[a] || first[b] > last[a]) continue;
        const bool apart = values[a].offset + values[a].row_bytes <= values[b].offset ||
                           values[b].offset + values[b].row_bytes <= values[a].offset;
        if (apart) continue;
        // Only what an operation may write in place lies over its operand, exactly, and only if
        // the operand ends there.
        const Instruction& in = instructions[static_cast<size_t>(first[b])];
        EXPECT_EQ(last[a], first[b]) << "values " << a << " and " << b;
        EXPECT_EQ(values[a].offset, values[b].offset);
        bool allowed = false;
        for (size_t i = 0; i < in.reads().size(); ++i) {
          const bool may = (engine::op_info(in.op).in_place >> i & 1) != 0;
          allowed = allowed || (may && in.reads()[i]->value == static_cast<int>(a));
        }
        EXPECT_TRUE(allowed) << engine::op_info(in.op).name;
        ++in_place;
      }
    }
    EXPECT_GT(in_place, 0);
    for (const ProgramValue& value : values) {
      EXPECT_EQ(value.row_bytes % 64, 0U);
      EXPECT_LE(value.offset + value.row_bytes,
                value.selected ? machine.plan->selected_row_bytes() : machine.plan->row_bytes());
    }
  }
}

TEST(ExecutionPlan, ArenaDoesNotGrowWithLayers) {
  test::TinyShape two;
  test::TinyShape nine;
  nine.layers = 9;
  EXPECT_EQ(Machine(two).plan->row_bytes(), Machine(nine).plan->row_bytes());
}

TEST(ExecutionPlan, ResidualsAreAddedInPlace) {
  const Machine machine;
  for (const Instruction& in : machine.plan->instructions()) {
    if (in.op != Op::kLinear || !in.x[1].present()) continue;
    const auto values = machine.plan->values();
    EXPECT_EQ(values[static_cast<size_t>(in.x[1].value)].offset,
              values[static_cast<size_t>(in.y.value)].offset);
  }
}

TEST(ExecutionPlan, ASumLeavesATermThatIsReadLater) {
  // x + (x + W x) with W = 1 and a head of 1 is 3 x, once x was not overwritten by x + W x.
  std::vector<float> one(16 * 16, 0.0F);
  for (size_t i = 0; i < 16; ++i) one[i * 17] = 1.0F;
  std::vector<float> table(4 * 16);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) + 1.0F;
  const auto weight = [](const char* name, const std::vector<float>& values) {
    return engine::WeightSource{name,
                                DType::kF32,
                                static_cast<int64_t>(values.size() / 16),
                                16,
                                std::as_bytes(std::span(values)),
                                false};
  };
  for (const bool fused : {false, true}) {
    GraphBuilder builder;
    const ValueId x = builder.embed(weight("table", table));
    const ValueId sum = builder.add(x, builder.linear(x, weight("w", one), {}, 0));
    const ValueId all = builder.add(x, sum);
    builder.logits(builder.linear(builder.select_rows(all), weight("head", one), {}, 1));
    const auto graph = builder.finish();
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    CompileOptions options = options_for(8);
    options.fusion.residual = fused;
    auto engine = std::make_shared<test::ReferenceEngine>();
    const auto plan = compile(graph.value(), engine, options);
    ASSERT_TRUE(plan.ok());
    WorkspacePool pool(engine);
    auto workspace = pool.borrow();
    test::ReferenceCache cache({}, 8);
    test::OwnedBatch batch;
    ASSERT_TRUE(batch.add(cache, std::vector<int32_t>{2, 0}).ok());
    ASSERT_TRUE(plan.value()->run(batch.finish(16), **workspace).ok());
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(batch.logits[i], 3.0F * table[2 * 16 + i]);
      EXPECT_EQ(batch.logits[16 + i], 3.0F * table[i]);
    }
  }
}

// ---- One row, one result ----

TEST(ExecutionPlan, ChunksGiveTheBitsOfOneBatch) {
  Machine machine;
  test::ReferenceCache whole_cache = machine.cache();
  const std::vector<float> whole = machine.feed(whole_cache, kPrompt);
  ASSERT_EQ(whole.size(), kPrompt.size() * 30);
  for (const size_t chunk : {1U, 2U, 5U, 11U}) {
    test::ReferenceCache cache = machine.cache();
    std::vector<float> parts;
    for (size_t first = 0; first < kPrompt.size(); first += chunk) {
      const auto tokens =
          std::span(kPrompt).subspan(first, std::min(chunk, kPrompt.size() - first));
      const auto results = machine.feed(cache, tokens);
      parts.insert(parts.end(), results.begin(), results.end());
    }
    EXPECT_EQ(parts, whole) << "chunks of " << chunk;
    EXPECT_EQ(cache.keys(1), whole_cache.keys(1));
  }
}

TEST(ExecutionPlan, NeighboursDoNotMatter) {
  Machine machine;
  const std::vector<int32_t> other = {1, 2, 3, 4};
  test::ReferenceCache alone = machine.cache();
  const std::vector<float> expected = machine.feed(alone, kPrompt);
  test::ReferenceCache a = machine.cache();
  test::ReferenceCache b = machine.cache();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(b, other).ok());
  ASSERT_TRUE(batch.add(a, kPrompt).ok());
  ASSERT_TRUE(machine.run(batch.finish(30)).ok());
  const std::vector<float> both = batch.results(30);
  EXPECT_EQ(std::vector<float>(both.begin() + 4 * 30, both.end()), expected);
}

TEST(ExecutionPlan, OnlyWantedRowsAreWritten) {
  Machine machine;
  test::ReferenceCache all_cache = machine.cache();
  const std::vector<float> all = machine.feed(all_cache, kPrompt);
  test::ReferenceCache cache = machine.cache();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(cache, kPrompt).ok());
  batch.finish(30);
  std::fill(batch.wants.begin(), batch.wants.end(), uint8_t{0});
  batch.wants[2] = 1;
  batch.wants[11] = 1;
  std::fill(batch.logits.begin(), batch.logits.end(), -77.0F);
  batch.batch.logits_rows = 2;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(batch.logits[i], all[2 * 30 + i]);
    EXPECT_EQ(batch.logits[30 + i], all[11 * 30 + i]);
  }
  EXPECT_EQ(batch.logits[60], -77.0F);
}

TEST(ExecutionPlan, SelectedRowsRunInChunksWhenLogitsAreWide) {
  CompileOptions options = options_for(64);
  options.selected_arena_bytes = 1;  // as if each row were too wide
  Machine machine({}, options);
  EXPECT_EQ(machine.plan->selected_chunk(), 16);
  const auto vocab = static_cast<std::ptrdiff_t>(machine.vocab());
  const std::vector<int32_t> tokens = {5, 4, 3, 2, 1, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 11, 12};
  test::ReferenceCache cache = machine.cache();
  const std::vector<float> all = machine.feed(cache, tokens);
  test::ReferenceCache single = machine.cache();
  std::vector<float> one;
  for (const int32_t token : tokens) one = machine.feed(single, std::span(&token, 1));
  // So does the last tap, which is computed for all rows.
  test::ReferenceCache tapped = machine.cache();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(tapped, tokens, /*all=*/false).ok());
  std::vector<float> hidden(18 * 24, -77.0F);
  const Tap taps[] = {{2, hidden.data()}};
  batch.finish(vocab).taps = taps;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  EXPECT_EQ(std::count(hidden.begin(), hidden.end(), -77.0F), 0);
  EXPECT_TRUE(std::equal(all.end() - vocab, all.end(), batch.logits.begin()));
  // The last row lies in the second chunk.
  const auto last = all.end() - vocab;
  EXPECT_TRUE(std::equal(one.begin(), one.end(), last));
  EXPECT_EQ(machine.arena_bytes(),
            18 * machine.plan->row_bytes() + 16 * machine.plan->selected_row_bytes());
}

TEST(ExecutionPlan, TreeBranchesSeeTheirOwnPath) {
  Machine machine;
  // Row 0 has two children (1 and 3); 2 follows 1, 4 follows 3.
  const std::vector<int32_t> tree = {7, 11, 12, 21, 22};
  test::ReferenceCache cache = machine.cache();
  machine.feed(cache, kPrompt);
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(cache, tree).ok());
  batch.parents = {-1, 0, 1, 0, 3};
  const int32_t start = cache.length();
  batch.positions = {start, start + 1, start + 2, start + 1, start + 2};
  ASSERT_TRUE(machine.run(batch.finish(30)).ok());
  const std::vector<float> rows = batch.results(30);

  for (const auto& [path, row] : {std::pair{std::vector<int32_t>{7, 11, 12}, 2},
                                  std::pair{std::vector<int32_t>{7, 21, 22}, 4}}) {
    test::ReferenceCache chain = machine.cache();
    machine.feed(chain, kPrompt);
    const std::vector<float> expected = machine.feed(chain, path);
    for (size_t i = 0; i < 30; ++i) {
      EXPECT_EQ(rows[static_cast<size_t>(row) * 30 + i], expected[2 * 30 + i]) << "row " << row;
    }
  }
}

TEST(ExecutionPlan, EmbeddingsStandForTokens) {
  Machine machine;
  test::ReferenceCache first = machine.cache();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(first, kPrompt).ok());
  std::vector<float> hidden(kPrompt.size() * 24);
  const Tap taps[] = {{0, hidden.data()}};
  batch.finish(30).taps = taps;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  const std::vector<float> expected = batch.results(30);

  test::ReferenceCache second = machine.cache();
  test::OwnedBatch again;
  ASSERT_TRUE(again.add(second, kPrompt).ok());
  again.finish(30);
  again.batch.embeddings = hidden;
  for (const int32_t every : {1, 3}) {  // all rows, and some among tokens, the last given first
    test::ReferenceCache cache = machine.cache();
    again.sequences[0].cache = &cache;
    again.sequences[0].plan = cache.plan(static_cast<int32_t>(kPrompt.size())).value();
    again.tokens = kPrompt;
    for (size_t i = 0; i < kPrompt.size(); i += static_cast<size_t>(every)) {
      again.tokens[i] = -1 - static_cast<int32_t>(i);
    }
    again.finish(30);
    ASSERT_TRUE(machine.run(again.batch).ok());
    EXPECT_EQ(again.results(30), expected) << every;
  }
}

TEST(ExecutionPlan, TapsShowEveryLayer) {
  Machine machine;
  test::ReferenceCache cache = machine.cache();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(cache, std::vector<int32_t>{6, 2}).ok());
  std::vector<float> h0(48, -1.0F);
  std::vector<float> h1(48, -1.0F);
  std::vector<float> h2(48, -1.0F);
  std::vector<float> again(48, -1.0F);
  const Tap taps[] = {{2, h2.data()}, {0, h0.data()}, {1, h1.data()}, {2, again.data()}};
  batch.finish(30).taps = taps;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  // Layer 0 is the embedding of the token, times its scale.
  std::vector<float> table(30 * 24);
  quant::find_format(DType::kF32)
      ->decode(machine.tiny.graph().weights[0].data.data(), table.data(), 30 * 24);
  for (size_t d = 0; d < 24; ++d) {
    EXPECT_EQ(h0[d], table[6 * 24 + d] * 1.5F);
    EXPECT_EQ(h0[24 + d], table[2 * 24 + d] * 1.5F);
  }
  EXPECT_NE(h1, h0);
  EXPECT_NE(h2, h1);
  EXPECT_EQ(again, h2);
  // The last tap shows all rows, whoever wants logits, and the bits of a plan that computes all.
  CompileOptions whole_options = options_for(64);
  whole_options.fusion.select_early = false;
  Machine whole({}, whole_options);
  for (const bool wants : {false, true}) {
    for (Machine* each : {&machine, &whole}) {
      test::ReferenceCache fresh = each->cache();
      test::OwnedBatch other;
      ASSERT_TRUE(other.add(fresh, std::vector<int32_t>{6, 2}).ok());
      std::vector<float> seen(48, -1.0F);
      const Tap last[] = {{2, seen.data()}};
      other.wants = {0, wants ? uint8_t{1} : uint8_t{0}};
      other.finish(30).taps = last;
      ASSERT_TRUE(each->run(other.batch).ok());
      EXPECT_EQ(seen, h2);
      if (wants) {
        for (size_t i = 0; i < 30; ++i) EXPECT_EQ(other.logits[i], batch.logits[30 + i]);
      }
    }
  }
}

TEST(ExecutionPlan, ManyThreadsShareOnePlan) {
  Machine machine;
  test::ReferenceCache reference = machine.cache();
  const std::vector<float> expected = machine.feed(reference, kPrompt);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        test::ReferenceCache cache = machine.cache();
        if (machine.feed(cache, kPrompt) != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// ---- Telling and being told ----

class Recorder final : public engine::Tracer {
 public:
  void record(const engine::TraceEvent& event) noexcept override { events.push_back(event); }
  std::vector<engine::TraceEvent> events;
};

TEST(ExecutionPlan, TracesEveryInstruction) {
  Machine machine;
  test::ReferenceCache cache = machine.cache();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(cache, kPrompt, /*all=*/false).ok());
  Recorder recorder;
  batch.finish(30).tracer = &recorder;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  // All but the last tap and best, which nobody asked for.
  ASSERT_EQ(recorder.events.size(), machine.plan->instructions().size() - 2);
  const engine::TraceEvent& stack = recorder.events[4];
  EXPECT_STREQ(stack.op, "linear");
  EXPECT_STREQ(stack.detail, "q+k+v");
  EXPECT_EQ(stack.rows, 12);
  EXPECT_EQ(stack.cols, 56);
  EXPECT_STREQ(recorder.events[6].op, "attention");
  EXPECT_EQ(recorder.events[6].layer, 0);
  EXPECT_STREQ(recorder.events.back().op, "logits");
  EXPECT_EQ(recorder.events.back().rows, 1);
}

TEST(ExecutionPlan, RowsWithoutLogitsSkipTheEnd) {
  Machine machine;
  test::ReferenceCache cache = machine.cache();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(cache, kPrompt).ok());
  std::fill(batch.wants.begin(), batch.wants.end(), uint8_t{0});
  Recorder recorder;
  batch.finish(30).tracer = &recorder;
  ASSERT_TRUE(machine.run(batch.batch).ok());
  batch.commit();
  std::string ops;
  for (const engine::TraceEvent& event : recorder.events) ops += std::string(event.op) + " ";
  EXPECT_EQ(ops,
            "rope_angles embed tap "
            "rms_norm linear rope_append attention linear rms_norm linear pack linear tap "
            "rms_norm linear rope_append ");
  // What they left in the cache is all that the next token needs.
  test::ReferenceCache full = machine.cache();
  machine.feed(full, kPrompt);
  EXPECT_EQ(cache.keys(1), full.keys(1));
  EXPECT_EQ(machine.feed(cache, std::vector<int32_t>{5}),
            machine.feed(full, std::vector<int32_t>{5}));
}

/// Fires a flag when the nth instruction begins.
class Stopper final : public engine::Tracer {
 public:
  Stopper(CancelFlag& flag, size_t at) : flag_(flag), at_(at) {}
  void record(const engine::TraceEvent&) noexcept override {
    if (seen++ == at_) flag_.fire();
  }
  size_t seen = 0;

 private:
  CancelFlag& flag_;
  size_t at_;
};

TEST(ExecutionPlan, StopsBetweenLayersAndLeavesTheCache) {
  Machine machine;
  test::ReferenceCache cache = machine.cache();
  machine.feed(cache, kPrompt);
  CancelFlag cancel;
  Stopper stopper(cancel, 8);
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(cache, kPrompt).ok());
  batch.finish(30).cancel = &cancel;
  batch.batch.tracer = &stopper;
  const Status status = machine.run(batch.batch);
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(stopper.seen, 9U);
  EXPECT_EQ(cache.length(), static_cast<int32_t>(kPrompt.size()));
  // The same step runs once nobody objects.
  cancel.reset();
  EXPECT_TRUE(machine.run(batch.batch).ok());
}

TEST(Compile, ReportsProgressAndReleasesSourcesOnce) {
  const test::TinyGraph tiny;
  CompileOptions options = options_for(8);
  std::vector<double> fractions;
  options.progress = [&](double fraction) {
    fractions.push_back(fraction);
    return true;
  };
  size_t released = 0;
  options.release = [&](std::span<const std::byte> data) { released += data.size(); };
  ASSERT_TRUE(compile(tiny.graph(), std::make_shared<test::ReferenceEngine>(), options).ok());
  ASSERT_GT(fractions.size(), 5U);
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_GT(fractions.front(), 0.0);
  EXPECT_EQ(fractions.back(), 1.0);
  EXPECT_EQ(std::count(fractions.begin(), fractions.end(), 1.0), 1);
  EXPECT_EQ(released, tiny.weight_bytes());
}

TEST(Compile, KeepsSourcesThatWeightsPointInto) {
  const test::TinyGraph tiny;
  CompileOptions options = options_for(8);
  bool released = false;
  options.release = [&](std::span<const std::byte>) { released = true; };
  test::ReferenceEngine::Options borrowing;
  borrowing.borrow = true;
  const auto plan =
      compile(tiny.graph(), std::make_shared<test::ReferenceEngine>(borrowing), options);
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(released);
  EXPECT_TRUE(plan.value()->borrows_sources());
}

TEST(Compile, ReleasesATiedSourceAfterItsLastUse) {
  // One matrix is embedding and head.
  std::vector<float> table(8 * 16, 0.25F);
  const engine::WeightSource source = {"tied", DType::kF32, 8, 16, std::as_bytes(std::span(table)),
                                       false};
  GraphBuilder builder;
  const ValueId x = builder.select_rows(builder.embed(source));
  builder.logits(builder.linear(x, source, {}, 0));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph.ok());
  CompileOptions options = options_for(8);
  double done = 0.0;
  options.progress = [&](double fraction) {
    done = fraction;
    return true;
  };
  int released = 0;
  options.release = [&](std::span<const std::byte>) {
    ++released;
    EXPECT_GE(done, 0.5);  // the embedding was reported before
  };
  ASSERT_TRUE(compile(graph.value(), std::make_shared<test::ReferenceEngine>(), options).ok());
  EXPECT_EQ(released, 1);
}

TEST(Compile, StopsWhenTold) {
  const test::TinyGraph tiny;
  auto engine = std::make_shared<test::ReferenceEngine>();
  CompileOptions options = options_for(8);
  CancelFlag cancel;
  options.cancel = &cancel;
  int calls = 0;
  options.progress = [&](double) {
    if (++calls == 3) cancel.fire();
    return true;
  };
  EXPECT_EQ(compile(tiny.graph(), engine, options).status().code(), Code::kCancelled);
  EXPECT_EQ(calls, 3);
  options.cancel = nullptr;
  options.progress = [](double) { return false; };
  EXPECT_EQ(compile(tiny.graph(), engine, options).status().code(), Code::kCancelled);
}

TEST(Compile, RefusesWhatCannotBe) {
  const test::TinyGraph tiny;
  auto engine = std::make_shared<test::ReferenceEngine>();
  EXPECT_EQ(compile(tiny.graph(), nullptr, options_for(8)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(compile(tiny.graph(), engine, options_for(0)).status().code(), Code::kInvalidArgument);
  CompileOptions no_rows = options_for(8);
  no_rows.max_rows = 0;
  EXPECT_EQ(compile(tiny.graph(), engine, no_rows).status().code(), Code::kInvalidArgument);
}

TEST(Compile, NamesAWeightThatDoesNotFit) {
  test::TinyGraph tiny;
  Graph graph = tiny.graph();
  graph.weights[4].data = graph.weights[4].data.first(8);
  const auto plan = compile(graph, std::make_shared<test::ReferenceEngine>(), options_for(8));
  EXPECT_EQ(plan.status().code(), Code::kFormat);
  EXPECT_NE(std::string(plan.status().message()).find(graph.weights[4].name), std::string::npos);
}

// ---- Memory ----

TEST(Memory, EveryFailedAllocationIsReportedAndNothingLeaks) {
  const test::TinyGraph tiny;
  const auto shapes = tiny.layer_shapes();
  test::CountingAllocator allocator;
  bool succeeded = false;
  size_t failures = 0;
  for (size_t n = 0; n < 100 && !succeeded; ++n) {
    allocator.calls = 0;
    allocator.fail_at = n;
    {
      auto engine =
          std::make_shared<test::ReferenceEngine>(test::ReferenceEngine::Options(), allocator);
      WorkspacePool pool(engine);
      test::ReferenceCache cache(shapes, 16);
      test::OwnedBatch batch;
      ASSERT_TRUE(batch.add(cache, std::vector<int32_t>{1, 2}).ok());
      const auto plan = compile(tiny.graph(), engine, options_for(16));
      Status status = plan.status();
      if (status.ok()) {
        auto workspace = pool.borrow();
        ASSERT_TRUE(workspace.ok());
        status = plan.value()->run(batch.finish(30), **workspace);
        // A failed step can be tried again once there is memory.
        if (!status.ok()) {
          allocator.fail_at = ~size_t{0};
          EXPECT_TRUE(plan.value()->run(batch.batch, **workspace).ok());
        }
      }
      succeeded = status.ok();
      if (!succeeded) {
        ++failures;
        EXPECT_EQ(status.code(), Code::kOutOfMemory);
      }
    }
    EXPECT_EQ(allocator.live_blocks, 0U) << "request " << n;
  }
  EXPECT_TRUE(succeeded);
  EXPECT_EQ(failures, 4U);  // constants, rows, selected rows, step block
}

TEST(Memory, ArenasGrowToTheLargestStepAndStay) {
  Machine machine;
  test::ReferenceCache cache = machine.cache();
  machine.feed(cache, std::span(kPrompt).first(1));
  const size_t row = machine.plan->row_bytes();
  const size_t selected = machine.plan->selected_row_bytes();
  EXPECT_EQ(machine.arena_bytes(), row + selected);
  machine.feed(cache, kPrompt);
  EXPECT_EQ(machine.arena_bytes(), 12 * (row + selected));
  machine.feed(cache, std::span(kPrompt).first(1));
  EXPECT_EQ(machine.arena_bytes(), 12 * (row + selected));
}

TEST(ExecutionPlan, AnEngineWithoutAnOperationIsRefusedByName) {
  const test::TinyGraph tiny;
  test::ReferenceEngine::Options lacking;
  lacking.lacks = Op::kGated;
  CompileOptions options;
  options.max_seq_len = 8;
  const auto plan =
      compile(tiny.graph(), std::make_shared<test::ReferenceEngine>(lacking), options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::kUnsupported);
  EXPECT_STREQ(plan.status().message(), "engine reference has no gated");
}

}  // namespace
}  // namespace gen::graph
