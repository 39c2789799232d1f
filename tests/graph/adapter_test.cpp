// SPDX-License-Identifier: Apache-2.0
// Proves that rows with adapters give what a model gives whose weights were changed by them, in
// double precision; that rows without them keep their bits beside others that have some; that rows
// depend on no others, in whatever steps they come; and that a plan for adapters works with the
// weights of the first.
#include "graph/adapter_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cache/sequence/registry.h"
#include "graph/execution_plan.h"
#include "support/cpu_engine.h"
#include "support/far_engine.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<int32_t>;

/// An adapter for every site, or for some.
struct Made {
  Made(std::span<const SiteShape> sites, int32_t rank_in, uint64_t seed, int32_t every = 1)
      : rank(rank_in) {
    for (size_t i = 0; i < sites.size(); i += static_cast<size_t>(every)) {
      const auto fill = [&](int64_t n, uint64_t which) {
        Floats values(static_cast<size_t>(sites[i].matrices * n * rank));
        for (size_t k = 0; k < values.size(); ++k) {
          values[k] = static_cast<float>(uniform_double(seed, 2 * i + which, k) - 0.5);
        }
        return values;
      };
      matrices[sites[i].site] = {fill(sites[i].in, 0), fill(sites[i].out, 1)};
    }
  }
  [[nodiscard]] std::vector<AdapterSite> parts() const {
    std::vector<AdapterSite> all;
    for (const auto& [site, ab] : matrices) all.push_back({site, rank, ab.first, ab.second});
    return all;
  }
  int32_t rank;
  std::map<int32_t, std::pair<Floats, Floats>> matrices;
};

struct Scaled {
  const Made* made;
  float scale;
};

/// The graph with W + scale B A in the place of W.
struct Merged {
  Merged(const Graph& from, std::span<const Scaled> uses) : graph(from) {
    for (const Node& node : from.nodes) {
      if (node.weight < 0) continue;
      engine::WeightSource& source = graph.weights[static_cast<size_t>(node.weight)];
      const auto count = static_cast<size_t>(source.count * source.rows * source.cols);
      Floats values(count);
      std::memcpy(values.data(), source.data.data(), count * sizeof(float));
      for (const Scaled& use : uses) {
        const auto found = use.made->matrices.find(node.site);
        if (found == use.made->matrices.end()) continue;
        const auto& [a, b] = found->second;
        for (size_t i = 0; i < count; ++i) {
          const auto cols = static_cast<size_t>(source.cols);
          const size_t n = i / cols;  // of all matrices
          const size_t c = i % cols;
          const auto rank = static_cast<size_t>(use.made->rank);
          const size_t first_a = n / static_cast<size_t>(source.rows) * rank * cols;
          double sum = 0.0;
          for (size_t r = 0; r < rank; ++r) {
            // Of an embedding, A has a row for each token and B one for each column.
            sum += node.op == Op::kEmbed
                       ? static_cast<double>(a[n * rank + r]) * static_cast<double>(b[c * rank + r])
                       : static_cast<double>(b[n * rank + r]) *
                             static_cast<double>(a[first_a + r * cols + c]);
          }
          if (node.op == Op::kExperts && node.vector2 >= 0) {  // scales, of the base alone
            sum /= static_cast<double>(graph.vectors[static_cast<size_t>(node.vector2)]
                                                    [n / static_cast<size_t>(source.rows)]);
          }
          values[i] = static_cast<float>(static_cast<double>(values[i]) +
                                         static_cast<double>(use.scale) * sum);
        }
      }
      data.push_back(std::move(values));
      source.data = std::as_bytes(std::span(data.back()));
    }
  }
  Graph graph;
  std::vector<Floats> data;
};

constexpr int32_t kContext = 64;

std::shared_ptr<const ExecutionPlan> compiled(const Graph& graph, const Engines& engines,
                                              std::shared_ptr<const ExecutionPlan> base = nullptr,
                                              int32_t rank = 0, FusionOptions fusion = {},
                                              const EngineOfBlock& blocks = {}) {
  CompileOptions options;
  options.max_seq_len = kContext;
  options.base = std::move(base);
  options.adapter_rank = rank;
  options.fusion = fusion;
  auto plan = compile(graph, engines, blocks, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

/// A part of a step: which sequence, how many tokens of its text, with which mix.
struct Part {
  size_t sequence;
  size_t n;
  int32_t mix;
};

/// Runs steps over sequences that all say kText, a plan and a table; logits by sequence.
constexpr size_t kSequences = 4;
const Tokens kText = {3, 14, 15, 9, 26, 5, 3, 5, 8, 9, 7, 9, 11, 0};

std::vector<Floats> run(const ExecutionPlan& plan, const AdapterTable* table,
                        const std::vector<std::vector<Part>>& steps, int64_t vocab,
                        engine::EngineMemory& memory = engine::system_memory()) {
  WorkspacePool pool(plan.engines());
  std::unique_ptr<cache::KvCache> caches[kSequences];
  for (auto& cache : caches) {
    cache = cache::make_cache("fp32", plan.cache_layers(), kContext, memory).value();
  }
  std::vector<Floats> all(kSequences);
  for (const auto& step : steps) {
    test::OwnedBatch batch;
    for (const Part& part : step) {
      const auto at = static_cast<size_t>(caches[part.sequence]->length());
      EXPECT_TRUE(batch.add(*caches[part.sequence], std::span(kText).subspan(at, part.n)).ok());
      batch.sequences.back().adapter = part.mix;
    }
    batch.finish(vocab);
    batch.batch.adapters = table;
    auto workspace = pool.borrow();
    const Status status = plan.run(batch.batch, **workspace);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const Floats got = batch.results(vocab);
    auto next = got.begin();
    for (const Part& part : step) {
      const auto end = next + static_cast<ptrdiff_t>(part.n) * vocab;
      all[part.sequence].insert(all[part.sequence].end(), next, end);
      next = end;
    }
  }
  return all;
}

/// A graph, adapters for it, and mixes: one adapter, two at once, one of some sites only.
struct World {
  World(std::shared_ptr<engine::Engine> of, FusionOptions fusion = {}, test::TinyShape shape = {})
      : World(Engines{std::move(of)}, {}, {}, fusion, shape) {}
  World(Engines of, const std::vector<int32_t>& blocks, const std::vector<int32_t>& experts,
        FusionOptions fusion, test::TinyShape shape)
      : tiny(shape),
        engines(std::move(of)),
        base(compiled(tiny.graph(), engines, nullptr, 0, fusion, {blocks, experts})) {
    const auto sites = base->site_shapes();
    mades.emplace_back(sites, 3, 1);
    mades.emplace_back(sites, 5, 2);
    mades.emplace_back(sites, 1, 3, 2);
    std::vector<std::shared_ptr<const Adapter>> loaded;
    for (const Made& made : mades) {
      loaded.push_back(Adapter::create(engines, sites, made.parts()).value());
    }
    const std::vector<AdapterUse> mixes[] = {
        {{loaded[0], 0.7F}}, {{loaded[1], -0.4F}, {loaded[0], 1.5F}}, {{loaded[2], 2.0F}}};
    table = AdapterTable::create(engines, sites, mixes).value();
    plan = compiled(tiny.graph(), engines, base, table->rank(), fusion, {blocks, experts});
  }
  [[nodiscard]] std::vector<Scaled> uses(int32_t mix) const {
    if (mix == 0) return {{&mades[0], 0.7F}};
    if (mix == 1) return {{&mades[1], -0.4F}, {&mades[0], 1.5F}};
    if (mix == 2) return {{&mades[2], 2.0F}};
    return {};
  }

  test::TinyGraph tiny;
  Engines engines;
  std::shared_ptr<const ExecutionPlan> base;
  std::vector<Made> mades;
  std::shared_ptr<const AdapterTable> table;
  std::shared_ptr<const ExecutionPlan> plan;
};

/// All sequences whole: sequence 3 has none, the others a mix each.
const std::vector<std::vector<Part>> kTogether = {
    {{0, 14, 0}, {3, 14, -1}, {1, 14, 1}, {2, 14, 2}}};

double distance(const Floats& got, const Floats& want) {
  double off = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(want[i]);
    off += d * d;
    size += static_cast<double>(want[i]) * static_cast<double>(want[i]);
  }
  return std::sqrt(off / size);
}

void expect_merged(const World& world) {
  const int64_t vocab = world.tiny.shape().vocab;
  const auto got = run(*world.plan, world.table.get(), kTogether, vocab);
  const auto exact = std::make_shared<test::ReferenceEngine>();
  const auto plain = run(*world.base, nullptr, {{{0, 14, -1}}}, vocab)[0];
  for (const int32_t mix : {0, 1, 2}) {
    const Merged merged(world.tiny.graph(), world.uses(mix));
    const auto plan = compiled(merged.graph, {exact});
    const Floats want = run(*plan, nullptr, {{{0, 14, -1}}}, vocab)[0];
    const Floats& have = got[static_cast<size_t>(mix)];
    ASSERT_EQ(have.size(), want.size());
    EXPECT_LT(distance(have, want), 1e-5) << mix;
    EXPECT_GT(distance(plain, want), 1e-2) << mix;  // it does something
  }
  EXPECT_EQ(got[3], plain);
}

TEST(Adapters, AreAsGoodAsChangedWeights) {
  for (const CpuLevel level : {CpuLevel::kScalar, detect_cpu_level()}) {
    for (const int32_t threads : {1, 3}) {
      expect_merged(World(test::cpu_engine({threads, level})));
    }
  }
  expect_merged(World(std::make_shared<test::ReferenceEngine>()));
}

TEST(Adapters, OfExperts) {
  test::TinyShape shape;
  shape.experts = 5;
  for (const int32_t threads : {1, 3}) {
    expect_merged(World(test::cpu_engine({threads, detect_cpu_level()}), {}, shape));
  }
  expect_merged(World(test::cpu_engine({1, CpuLevel::kScalar}), {}, shape));
  expect_merged(World(std::make_shared<test::ReferenceEngine>(), {}, shape));
  FusionOptions apart;
  apart.gate_up = false;
  expect_merged(World(test::cpu_engine(), apart, shape));
  test::ReferenceEngine::Options options;
  options.gate_up = false;
  expect_merged(World(std::make_shared<test::ReferenceEngine>(options), {}, shape));
}

TEST(Adapters, OnSeveralEngines) {
  const auto one = test::cpu_engine();
  const auto two = test::cpu_engine({3, detect_cpu_level()});
  const auto exact = std::make_shared<test::ReferenceEngine>();
  test::TinyShape shape;
  for (const Engines& engines : {Engines{one, two}, Engines{exact, one}}) {
    expect_merged(World(engines, {0, 1}, {}, {}, shape));
    expect_merged(World(engines, {1, 0}, {}, {}, shape));
    test::TinyShape experts;
    experts.experts = 5;
    expect_merged(World(engines, {0, 1}, {}, {}, experts));
    expect_merged(World(engines, {0, 0}, {1, 1}, {}, experts));
  }
}

TEST(Adapters, WhateverIsFused) {
  for (int off = 0; off < 6; ++off) {
    SCOPED_TRACE(off);
    FusionOptions fusion;
    bool* const switches[] = {&fusion.stack,      &fusion.gate_up,      &fusion.residual,
                              &fusion.pack_early, &fusion.select_early, &fusion.activate};
    *switches[off] = false;
    expect_merged(World(test::cpu_engine(), fusion));
  }
  // Products that an engine has no kernel for are split in both plans.
  test::ReferenceEngine::Options options;
  options.gate_up = false;
  expect_merged(World(std::make_shared<test::ReferenceEngine>(options)));
  options.stacks = false;
  expect_merged(World(std::make_shared<test::ReferenceEngine>(options)));
}

TEST(Adapters, OneRowOneResult) {
  const World world(test::cpu_engine({3, detect_cpu_level()}));
  const int64_t vocab = world.tiny.shape().vocab;
  const auto want = run(*world.plan, world.table.get(), kTogether, vocab);
  const auto expect_same = [&](const std::vector<std::vector<Part>>& steps, const char* what) {
    const auto got = run(*world.plan, world.table.get(), steps, vocab);
    for (size_t i = 0; i < kSequences; ++i) {
      EXPECT_TRUE(got[i].empty() || got[i] == want[i]) << what << " " << i;
    }
  };
  expect_same({{{0, 14, 0}}}, "alone");
  expect_same({{{1, 14, 1}}}, "alone");
  expect_same({{{2, 14, 2}}}, "alone");
  std::vector<std::vector<Part>> singly;
  std::vector<std::vector<Part>> mixed;
  for (size_t i = 0; i < 14; ++i) singly.push_back({{1, 1, 1}});
  for (size_t i = 0; i < 7; ++i) {
    mixed.push_back({{3, 2, -1}, {1, 2, 1}, {0, 2, 0}});
    if (i % 2 == 0) std::reverse(mixed.back().begin(), mixed.back().end());
  }
  expect_same(singly, "row by row");
  expect_same(mixed, "two by two");
}

TEST(Adapters, RowsWithoutKeepTheirBits) {
  const World world(test::cpu_engine());
  const int64_t vocab = world.tiny.shape().vocab;
  const std::vector<std::vector<Part>> without = {{{0, 9, -1}, {1, 4, -1}}, {{0, 5, -1}}};
  const auto want = run(*world.base, nullptr, without, vocab);
  EXPECT_EQ(run(*world.plan, nullptr, without, vocab), want);
  EXPECT_EQ(run(*world.plan, world.table.get(), without, vocab), want);
  EXPECT_EQ(run(*world.base, world.table.get(), without, vocab), want);
}

TEST(Adapters, OnAnEngineWhoseMemoryNobodyMayTouch) {
  test::FarMemory memory;
  {
    const World here(test::cpu_engine());
    const World far(std::make_shared<test::FarEngine>(memory));
    const int64_t vocab = here.tiny.shape().vocab;
    EXPECT_EQ(run(*far.plan, far.table.get(), kTogether, vocab, memory),
              run(*here.plan, here.table.get(), kTogether, vocab));
  }
}

TEST(Adapters, ASecondPlanTakesNoWeights) {
  const World world(test::cpu_engine());
  EXPECT_GT(world.base->resident_bytes(), world.tiny.weight_bytes() / 2);
  EXPECT_LT(world.plan->resident_bytes(), world.tiny.weight_bytes() / 4);
  EXPECT_EQ(world.base->adapter_rank(), 0);
  EXPECT_EQ(world.plan->adapter_rank(), 8);
  // Its sites are all products, each once: seven in a layer, the head, and the embedding.
  std::vector<int32_t> sites;
  for (const SiteShape& shape : world.plan->site_shapes()) sites.push_back(shape.site);
  std::sort(sites.begin(), sites.end());
  EXPECT_EQ(sites.size(), 2U * 7 + 2);
  EXPECT_EQ(std::adjacent_find(sites.begin(), sites.end()), sites.end());
}

TEST(Adapters, WhatIsRefused) {
  const World world(test::cpu_engine());
  const auto sites = world.base->site_shapes();
  const auto refused = [&](const AdapterSite& part) {
    const AdapterSite parts[] = {part};
    const Status status = Adapter::create(world.engines, sites, parts).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return std::string(status.message());
  };
  const Floats values(1000);
  const std::span<const float> all(values);
  // That of the first q; the embedding is before it.
  const auto in = static_cast<size_t>(sites[1].in);
  const auto out = static_cast<size_t>(sites[1].out);
  const int32_t site = sites[1].site;
  EXPECT_EQ(refused({15, 1, all.first(in), all.first(out)}),
            "an adapter for site 15, which the model has not");
  EXPECT_EQ(refused({site, 0, {}, {}}),
            "an adapter of rank 0 for site 0 of 24 inputs and 24 outputs has matrices of 0 and 0 "
            "values");
  EXPECT_EQ(refused({site, 2, all.first(in), all.first(2 * out)}),
            "an adapter of rank 2 for site 0 of 24 inputs and 24 outputs has matrices of 24 and 48 "
            "values");
  const AdapterSite twice[] = {{site, 1, all.first(in), all.first(out)},
                               {site, 1, all.first(in), all.first(out)}};
  EXPECT_EQ(Adapter::create(world.engines, sites, twice).status().code(), Code::kInvalidArgument);
  const auto good = Adapter::create(world.engines, sites, std::span(twice).first(1)).value();
  const std::vector<AdapterUse> mixes[] = {std::vector<AdapterUse>(5, {good, 1.0F})};
  EXPECT_EQ(AdapterTable::create(world.engines, sites, mixes).status().code(),
            Code::kInvalidArgument);

  const auto forward = [&](const ExecutionPlan& plan, const AdapterTable* table, int32_t mix) {
    const auto cache =
        cache::make_cache("fp32", plan.cache_layers(), kContext, engine::system_memory()).value();
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, Tokens{1, 2}).ok());
    batch.sequences[0].adapter = mix;
    batch.finish(world.tiny.shape().vocab);
    batch.batch.adapters = table;
    WorkspacePool pool(plan.engines());
    auto workspace = pool.borrow();
    return plan.run(batch.batch, **workspace);
  };
  EXPECT_EQ(forward(*world.plan, nullptr, 0).code(), Code::kUnsupported);
  EXPECT_EQ(forward(*world.base, world.table.get(), 0).code(), Code::kUnsupported);
  EXPECT_EQ(forward(*world.plan, world.table.get(), 3).code(), Code::kOutOfRange);
  EXPECT_EQ(forward(*world.plan, world.table.get(), -2).code(), Code::kOutOfRange);
  const auto narrow = compiled(world.tiny.graph(), world.engines, world.base, 7);
  EXPECT_EQ(forward(*narrow, world.table.get(), 0).code(), Code::kInvalidArgument);

  test::ReferenceEngine::Options options;
  options.lacks = Op::kAdapterIn;
  const auto lacking = std::make_shared<test::ReferenceEngine>(options);
  CompileOptions wanted;
  wanted.max_seq_len = kContext;
  wanted.adapter_rank = 4;
  const Status status = compile(world.tiny.graph(), lacking, wanted).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(std::string(status.message()), "engine reference has no adapters");
}

}  // namespace
}  // namespace gen::graph
