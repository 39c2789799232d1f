// SPDX-License-Identifier: Apache-2.0
// See adapter_table.h.
#include "graph/adapter_table.h"

#include <algorithm>
#include <utility>

namespace gen::graph {
namespace {

constexpr size_t kFloats = 16;  // of 64 bytes

size_t aligned(size_t floats) { return (floats + kFloats - 1) / kFloats * kFloats; }

/// Null if there is none.
const SiteShape* shape_of(const AdapterSite& part, std::span<const SiteShape> sites) {
  const auto found = std::find_if(sites.begin(), sites.end(),
                                  [&](const SiteShape& shape) { return shape.site == part.site; });
  return found != sites.end() ? &*found : nullptr;
}

Status check(const AdapterSite& part, const SiteShape* found) {
  if (found == nullptr) {
    return error(Code::kInvalidArgument, "an adapter for site %d, which the model has not",
                 part.site);
  }
  const auto ranks = static_cast<size_t>(std::max(part.rank, 0) * found->matrices);
  if (part.rank < 1 || part.a.size() != ranks * static_cast<size_t>(found->in) ||
      part.b.size() != ranks * static_cast<size_t>(found->out)) {
    return error(
        Code::kInvalidArgument,
        "an adapter of rank %d for site %d of %lld inputs and %lld outputs has matrices of "
        "%zu and %zu values",
        part.rank, part.site, static_cast<long long>(found->in), static_cast<long long>(found->out),
        part.a.size(), part.b.size());
  }
  return {};
}

/// Transposes matrices [out, rank] to [rank, out].
std::vector<float> turned(std::span<const float> b, size_t rank, size_t out) {
  std::vector<float> made(b.size());
  for (size_t first = 0; first < b.size(); first += rank * out) {
    for (size_t n = 0; n < out; ++n) {
      for (size_t r = 0; r < rank; ++r) made[first + r * out + n] = b[first + n * rank + r];
    }
  }
  return made;
}

/// The first part on the same engine with the same A as part i, which may be i itself.
size_t first_with_a(std::span<const AdapterSite> parts, std::span<const SiteShape> sites,
                    size_t i) {
  const int32_t engine = shape_of(parts[i], sites)->engine;
  const auto same = [&](const AdapterSite& part) {
    return part.a.data() == parts[i].a.data() && part.a.size() == parts[i].a.size() &&
           shape_of(part, sites)->engine == engine;
  };
  size_t first = 0;
  while (!same(parts[first])) ++first;
  return first;
}

}  // namespace

int64_t site_numbers(std::span<const SiteShape> sites) noexcept {
  int64_t numbers = 0;
  for (const SiteShape& shape : sites) numbers = std::max<int64_t>(numbers, shape.site + 1);
  return numbers;
}

Result<std::shared_ptr<const Adapter>> Adapter::create(const Engines& engines,
                                                       std::span<const SiteShape> sites,
                                                       std::span<const AdapterSite> parts) {
  std::vector<size_t> floats(engines.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const SiteShape* const shape = shape_of(parts[i], sites);
    GEN_TRY(check(parts[i], shape));
    for (size_t j = 0; j < i; ++j) {
      if (parts[j].site != parts[i].site) continue;
      return error(Code::kInvalidArgument, "an adapter names site %d twice", parts[i].site);
    }
    size_t& of = floats[static_cast<size_t>(shape->engine)];
    if (first_with_a(parts, sites, i) == i) of += aligned(parts[i].a.size());
    of += aligned(parts[i].b.size());
  }
  const std::shared_ptr<Adapter> made(new Adapter());
  made->memories_.resize(engines.size());
  std::vector<engine::EnginePtr<float>> next(engines.size());
  for (size_t e = 0; e < engines.size(); ++e) {
    if (floats[e] == 0) continue;
    GEN_ASSIGN(made->memories_[e], engines[e]->memory().allocate(floats[e] * sizeof(float)));
    next[e] = made->memories_[e].data().as<float>();
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const AdapterSite& part = parts[i];
    const SiteShape& shape = *shape_of(part, sites);
    const auto e = static_cast<size_t>(shape.engine);
    const auto put = [&](std::span<const float> values, engine::EnginePtr<const float>* at) {
      *at = next[e];
      next[e] = next[e] + static_cast<std::ptrdiff_t>(aligned(values.size()));
      return engines[e]->memory().write(at->as<std::byte>(), values.data(), values.size_bytes());
    };
    engine::LowRankPart matrices;
    if (const size_t first = first_with_a(parts, sites, i); first < i) {
      matrices.a = made->parts_[first].matrices.a;
    } else {
      GEN_TRY(put(part.a, &matrices.a));
    }
    const std::vector<float> b =
        turned(part.b, static_cast<size_t>(part.rank), static_cast<size_t>(shape.out));
    GEN_TRY(put(b, &matrices.b));
    matrices.rank = part.rank;
    made->parts_.push_back({part.site, matrices});
  }
  return std::shared_ptr<const Adapter>(made);
}

size_t Adapter::bytes() const noexcept {
  size_t bytes = 0;
  for (const engine::EngineBuffer& memory : memories_) bytes += memory.size();
  return bytes;
}

Result<std::shared_ptr<const AdapterTable>> AdapterTable::create(
    const Engines& engines, std::span<const SiteShape> sites,
    std::span<const std::vector<AdapterUse>> mixes) {
  const std::shared_ptr<AdapterTable> made(new AdapterTable());
  made->mixes_.assign(mixes.begin(), mixes.end());
  made->stride_ = site_numbers(sites);
  for (const std::vector<AdapterUse>& mix : mixes) {
    if (mix.size() <= static_cast<size_t>(engine::kMaxMixed)) continue;
    return error(Code::kInvalidArgument, "a mix of %zu adapters, of at most %d", mix.size(),
                 engine::kMaxMixed);
  }
  const std::vector<engine::LowRankMix> rows = made->rows();
  for (const engine::LowRankMix& row : rows) {
    int32_t rank = 0;
    for (int32_t i = 0; i < row.n; ++i) rank += row.parts[i].rank;
    made->rank_ = std::max(made->rank_, rank);
  }
  const std::span<const engine::LowRankMix> all(rows);
  for (const auto& engine : engines) {
    engine::EngineMemory& memory = engine->memory();
    GEN_ASSIGN(made->memories_.emplace_back(), memory.allocate(all.size_bytes()));
    GEN_TRY(memory.write(made->memories_.back().data(), rows.data(), all.size_bytes()));
  }
  return std::shared_ptr<const AdapterTable>(made);
}

std::vector<engine::LowRankMix> AdapterTable::rows() const {
  const auto stride = static_cast<size_t>(stride_);
  std::vector<engine::LowRankMix> rows(stride * mixes_.size());
  for (size_t m = 0; m < mixes_.size(); ++m) {
    for (const AdapterUse& use : mixes_[m]) {
      for (const Adapter::Part& part : use.adapter->parts_) {
        engine::LowRankMix& at = rows[m * stride + static_cast<size_t>(part.site)];
        at.parts[at.n] = part.matrices;
        at.parts[at.n].scale = use.scale;
        ++at.n;
      }
    }
  }
  return rows;
}

}  // namespace gen::graph
