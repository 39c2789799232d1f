// SPDX-License-Identifier: Apache-2.0
// Adapters in engine memory: what they add to a model's products, and which adapters each row uses.
// A site is a product as the architecture named it (site_id()); a mix is the set of adapters that
// one row uses. This code does not know where adapters come from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "graph/engines.h"

namespace gen::graph {

/// A product that adapters may add to, or the embedding.
struct SiteShape {
  int32_t site = -1;
  int64_t in = 0;  // of the embedding: tokens
  int64_t out = 0;
  int64_t matrices = 1;  // E of a stack of experts
  int32_t engine = 0;    // of the plan, which runs it
};

/// What one adapter adds at one site: B (A x), with matrices of each expert in a stack; B times row
/// `token` of A for the embedding.
struct AdapterSite {
  int32_t site = -1;
  int32_t rank = 0;
  std::span<const float> a;  // [rank, in], [E, rank, in], or [in, rank] for the embedding
  std::span<const float> b;  // [out, rank] or [E, out, rank]
};

/// Immutable. Threads: any.
class Adapter {
 public:
  /// Copies the matrices to the engines that run their sites, one A of several parts once to each.
  /// `engines` and `sites` are those of the model's plan.
  /// kInvalidArgument for a site that is not among them or is given twice, a rank below 1 and
  /// matrices of another size; kOutOfMemory.
  static Result<std::shared_ptr<const Adapter>> create(const Engines& engines,
                                                       std::span<const SiteShape> sites,
                                                       std::span<const AdapterSite> parts);
  /// Of engine memory.
  [[nodiscard]] size_t bytes() const noexcept;

 private:
  friend class AdapterTable;
  Adapter() = default;

  struct Part {
    int32_t site;
    engine::LowRankPart matrices;
  };
  std::vector<Part> parts_;
  std::vector<engine::EngineBuffer> memories_;  // by engine
};

/// One adapter of a mix.
struct AdapterUse {
  std::shared_ptr<const Adapter> adapter;
  float scale = 1.0F;
};

/// The mixes that rows of a step may use, by number. Immutable. Threads: any.
class AdapterTable {
 public:
  /// kInvalidArgument for a mix of more than engine::kMaxMixed; kOutOfMemory.
  static Result<std::shared_ptr<const AdapterTable>> create(
      const Engines& engines, std::span<const SiteShape> sites,
      std::span<const std::vector<AdapterUse>> mixes);

  [[nodiscard]] int32_t mixes() const noexcept { return static_cast<int32_t>(mixes_.size()); }
  /// The largest total rank of a mix at one site.
  [[nodiscard]] int32_t rank() const noexcept { return rank_; }
  /// A copy in the memory of an engine, which reads the rows of its own sites.
  [[nodiscard]] engine::EnginePtr<const engine::LowRankMix> data(int32_t engine) const noexcept {
    return memories_[static_cast<size_t>(engine)].data().as<const engine::LowRankMix>();
  }
  /// The number of sites per mix in the table.
  [[nodiscard]] int64_t stride() const noexcept { return stride_; }

 private:
  AdapterTable() = default;
  /// [mixes][stride]
  [[nodiscard]] std::vector<engine::LowRankMix> rows() const;

  std::vector<std::vector<AdapterUse>> mixes_;
  int32_t rank_ = 0;
  int64_t stride_ = 0;
  std::vector<engine::EngineBuffer> memories_;  // by engine
};

/// The largest site number plus one.
int64_t site_numbers(std::span<const SiteShape> sites) noexcept;

}  // namespace gen::graph
