// SPDX-License-Identifier: Apache-2.0
// An adapter of chosen rank and drawn values for all sites of a plan, alone and as a table of one
// mix.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "graph/adapter_table.h"
#include "graph/execution_plan.h"
#include "model/plan_model.h"
#include "support/loaded_tiny.h"

namespace gen::test {

inline const graph::ExecutionPlan& plan_of(const LoadedTiny& loaded) {
  return dynamic_cast<const model::PlanModel&>(loaded.model()).plan();
}

inline std::shared_ptr<const graph::Adapter> drawn_adapter(const graph::ExecutionPlan& plan,
                                                           int32_t rank, uint64_t of = 0) {
  struct Matrices {
    std::vector<float> a;
    std::vector<float> b;
  };
  std::vector<Matrices> matrices;
  for (const graph::SiteShape& shape : plan.site_shapes()) {
    Matrices& made = matrices.emplace_back();
    const auto seed = static_cast<uint64_t>(shape.site) + 1000 * of;
    for (int64_t i = 0; i < shape.matrices * shape.in * rank; ++i) {
      made.a.push_back(static_cast<float>(uniform_double(seed, 1, static_cast<uint64_t>(i)) - 0.5));
    }
    for (int64_t i = 0; i < shape.matrices * shape.out * rank; ++i) {
      made.b.push_back(static_cast<float>(uniform_double(seed, 2, static_cast<uint64_t>(i)) - 0.5));
    }
  }
  std::vector<graph::AdapterSite> parts;
  for (size_t i = 0; i < matrices.size(); ++i) {
    parts.push_back({plan.site_shapes()[i].site, rank, matrices[i].a, matrices[i].b});
  }
  return graph::Adapter::create(plan.engines(), plan.site_shapes(), parts).value();
}

inline std::shared_ptr<const graph::AdapterTable> adapter_table(const graph::ExecutionPlan& plan,
                                                                int32_t rank) {
  const auto adapter = drawn_adapter(plan, rank);
  const std::vector<graph::AdapterUse> mixes[] = {{{adapter, 0.5F}}};
  return graph::AdapterTable::create(plan.engines(), plan.site_shapes(), mixes).value();
}

}  // namespace gen::test
