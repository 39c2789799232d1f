// SPDX-License-Identifier: Apache-2.0
// Proves that columns of a value serve operations as a copy of them does, to the bit, in every way
// that a plan is made, on one engine and two.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "support/cpu_engine.h"
#include "support/reference_engine.h"
#include "support/sliced_graph.h"

namespace gen::graph {
namespace {

TEST(Slice, IsAsGoodAsACopy) {
  const std::shared_ptr<engine::Engine> cpu = test::cpu_engine();
  const std::shared_ptr<engine::Engine> reference = std::make_shared<test::ReferenceEngine>();
  for (const auto& [engine, means] :
       {std::pair{cpu, false}, {reference, false}, {cpu, true}, {reference, true}}) {
    const test::SlicedGraph sliced(true, means);
    const test::SlicedGraph copied(false, means);
    CompileOptions plain;
    plain.max_seq_len = 32;
    plain.fusion = {false, false, false, false, false, false};
    const std::vector<float> want =
        test::run_sliced(*compile(copied.graph(), engine, plain).value());
    for (int32_t bits = 0; bits < 64; ++bits) {
      CompileOptions options = plain;
      const auto on = [bits](int32_t i) { return (bits >> i & 1) != 0; };
      options.fusion = {on(0), on(1), on(2), on(3), on(4), on(5)};
      EXPECT_EQ(test::run_sliced(*compile(sliced.graph(), engine, options).value()), want) << bits;
    }
    CompileOptions options;
    options.max_seq_len = 32;
    for (const std::vector<int32_t>& blocks : {std::vector{0, 1, 1}, {0, 1, 0}, {0, 0, 1}}) {
      const auto plan = compile(sliced.graph(), {engine, engine}, blocks, options).value();
      EXPECT_EQ(test::run_sliced(*plan), want) << blocks[1] << blocks[2];
    }
  }
}

// Recurrences included.
TEST(Slice, EnginesAgree) {
  const test::SlicedGraph sliced(true);
  CompileOptions options;
  options.max_seq_len = 32;
  const auto of = [&](std::shared_ptr<engine::Engine> engine) {
    return test::run_sliced(*compile(sliced.graph(), std::move(engine), options).value());
  };
  const std::vector<float> got = of(test::cpu_engine());
  const std::vector<float> want = of(std::make_shared<test::ReferenceEngine>());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5F) << i;
}

// Columns where they lie: no operation makes them.
TEST(Slice, CostsNoInstruction) {
  const test::SlicedGraph sliced(true);
  CompileOptions options;
  options.max_seq_len = 32;
  const auto plan = compile(sliced.graph(), test::cpu_engine(), options).value();
  for (const Instruction& in : plan->instructions()) EXPECT_NE(in.op, Op::kSlice);
}

}  // namespace
}  // namespace gen::graph
