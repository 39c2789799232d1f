// SPDX-License-Identifier: Apache-2.0
// Proves that a graph may look up several tables, by tokens, by positions or the same row for all,
// wherever it wants: rows are the sums of what the tables hold, whatever the step, the engines and
// the rows that a caller gives; and that tables which are too short are refused by name.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "graph/execution_plan.h"
#include "support/cpu_engine.h"
#include "support/reference_engine.h"

namespace gen::graph {
namespace {

constexpr int64_t kHidden = 8;
constexpr int64_t kWide = 12;
constexpr int32_t kVocab = 10;
constexpr int32_t kContext = 6;

/// Values apart from one another, whose sums of a few are exact.
std::vector<float> table(int64_t rows, int64_t cols, float step) {
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (size_t i = 0; i < values.size(); ++i) values[i] = step * static_cast<float>(i + 1);
  return values;
}

class Tables {
 public:
  Tables() {
    for (size_t i = 0; i < kHidden; ++i) head_[i * (kHidden + 1)] = 1.0F;
    GraphBuilder b;
    ValueId x = b.embed(source("tokens", tokens_, kHidden), 2.0F);
    b.tap(0, x);
    x = b.add(x, b.embed(source("positions", positions_, kHidden), 1.0F, Lookup::kPositions));
    x = b.add(x, b.embed_row(source("types", types_, kHidden), 1, 0.5F));
    b.begin_block(0);
    const ValueId wide = b.embed(source("wide", wide_, kWide), 4.0F);
    x = b.add(x, b.slice(b.slice(wide, 1, 10), 2, kHidden));
    b.tap(1, x);
    b.begin_block(1);
    // Once more, where another engine may be.
    x = b.add(x, b.embed(source("positions", positions_, kHidden), 1.0F, Lookup::kPositions));
    x = b.add(x, b.embed_row(source("types", types_, kHidden), 0));
    x = b.add(x, b.slice(wide, 4, kHidden));
    b.tap(2, x);
    b.begin_block(2);
    b.logits(b.linear(b.select_rows(x), source("head", head_, kHidden), {}, -1));
    graph_ = b.finish().value();
  }
  [[nodiscard]] const Graph& graph() const { return graph_; }

  /// Of a row; `given` in place of its token's where that is not null.
  [[nodiscard]] std::vector<float> want(int32_t token, int32_t position,
                                        const float* given = nullptr) const {
    const auto at = [](const std::vector<float>& from, int64_t cols, int32_t row, int64_t c) {
      return from[static_cast<size_t>(row * cols + c)];
    };
    std::vector<float> row;
    const int32_t wide = given != nullptr ? 0 : token;
    for (int64_t c = 0; c < kHidden; ++c) {
      const float own = given != nullptr ? given[c] : 2.0F * at(tokens_, kHidden, token, c);
      row.push_back(own + 2.0F * at(positions_, kHidden, position, c) +
                    0.5F * at(types_, kHidden, 1, c) + at(types_, kHidden, 0, c) +
                    4.0F * at(wide_, kWide, wide, c + 3) + 4.0F * at(wide_, kWide, wide, c + 4));
    }
    return row;
  }

 private:
  static engine::WeightSource source(const char* name, const std::vector<float>& values,
                                     int64_t cols) {
    const auto rows = static_cast<int64_t>(values.size()) / cols;
    return {name, DType::kF32, rows, cols, std::as_bytes(std::span(values)), true};
  }

  const std::vector<float> tokens_ = table(kVocab, kHidden, 1.0F);
  const std::vector<float> positions_ = table(kContext, kHidden, 128.0F);
  const std::vector<float> types_ = table(2, kHidden, 16.0F);
  const std::vector<float> wide_ = table(kVocab + 3, kWide, 0.25F);
  std::vector<float> head_ = std::vector<float>(kHidden * kHidden);
  Graph graph_;
};

/// One sequence of rows that all want their results.
std::vector<float> run(const ExecutionPlan& plan, const std::vector<int32_t>& tokens,
                       const std::vector<int32_t>& positions, std::span<const float> given = {}) {
  const std::vector<uint8_t> wants(tokens.size(), kWantsLogits);
  BatchSequence sequence;
  sequence.n_rows = static_cast<int32_t>(tokens.size());
  std::vector<float> results(tokens.size() * kHidden);
  Batch batch;
  batch.tokens = tokens;
  batch.embeddings = given;
  batch.positions = positions;
  batch.wants = wants;
  batch.sequences = {&sequence, 1};
  batch.logits = results.data();
  batch.logits_rows = tokens.size();
  const auto workspace = Workspace::create(plan.engines()).value();
  const Status status = plan.run(batch, *workspace);
  EXPECT_TRUE(status.ok()) << status.message();
  return results;
}

std::vector<std::shared_ptr<const ExecutionPlan>> plans(const Graph& graph) {
  const std::shared_ptr<engine::Engine> cpu =
      test::cpu_engine({2, detect_cpu_level(), &system_allocator(), true});
  const std::shared_ptr<engine::Engine> reference = std::make_shared<test::ReferenceEngine>();
  std::vector<std::shared_ptr<const ExecutionPlan>> made;
  for (const bool early : {true, false}) {
    CompileOptions options;
    options.max_seq_len = kContext;
    options.fusion.select_early = early;
    options.fusion.residual = early;
    made.push_back(compile(graph, cpu, options).value());
    made.push_back(compile(graph, reference, options).value());
    for (const std::vector<int32_t>& blocks : {std::vector{0, 1, 1}, {1, 0, 1}, {0, 0, 1}}) {
      made.push_back(compile(graph, {reference, cpu}, blocks, options).value());
    }
  }
  return made;
}

TEST(Embeddings, RowsAreSumsOfTheirTables) {
  const Tables tables;
  const std::vector<int32_t> tokens = {3, 0, 9, 9, 5, 1, 7};
  const std::vector<int32_t> positions = {0, 1, 2, 3, 5, 4, 5};
  std::vector<float> want;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto row = tables.want(tokens[t], positions[t]);
    want.insert(want.end(), row.begin(), row.end());
  }
  for (const auto& plan : plans(tables.graph())) {
    EXPECT_EQ(run(*plan, tokens, positions), want);
    EXPECT_EQ(run(*plan, {9}, {3}), tables.want(9, 3));
  }
}

TEST(Embeddings, ARowThatIsGivenStandsForNoTokenOfOtherTables) {
  const Tables tables;
  const std::vector<float> given = table(2, kHidden, 1024.0F);
  std::vector<float> want = tables.want(0, 0, given.data() + kHidden);
  for (const auto& row : {tables.want(4, 1), tables.want(0, 2, given.data())}) {
    want.insert(want.end(), row.begin(), row.end());
  }
  for (const auto& plan : plans(tables.graph())) {
    EXPECT_EQ(run(*plan, {-2, 4, -1}, {0, 1, 2}, given), want);
  }
}

TEST(Embeddings, ATableOfPositionsIsAsLongAsTheContext) {
  const Tables tables;
  CompileOptions options;
  options.max_seq_len = kContext + 1;
  const auto plan = compile(tables.graph(), std::make_shared<test::ReferenceEngine>(), options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::kFormat);
  EXPECT_STREQ(plan.status().message(), "positions: 6 rows for a context of 7");
}

}  // namespace
}  // namespace gen::graph
