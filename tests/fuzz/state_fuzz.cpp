// SPDX-License-Identifier: Apache-2.0
// Fuzzes saved caches: bytes under a frame whose size and checksum are put right, so that what is
// behind it is reached. Whatever a cache takes must be readable in full and save again; whatever it
// refuses must leave it empty. Seeds: state_seeds.py, which writes the format a second time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "cache/sequence/staged_entries.h"
#include "cache/sequence/cache_state.h"
#include "cache/sequence/compressed_cache.h"
#include "cache/tensor/compressed_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/tensor/paged_store.h"
#include "cache/sequence/registry.h"
#include "cache/tensor/tensor_kinds.h"
#include "engine/memory/host_memory.h"

namespace {

using namespace gen::cache;
using Bytes = std::vector<std::byte>;

constexpr int32_t kLayers = 2;
constexpr int32_t kMost = 24;

void require(bool condition) {
  if (!condition) std::abort();
}

void try_tensors(TensorProvider& store, std::span<const std::byte> state) {
  auto reader = StateReader::open(state);
  if (!reader.ok()) return;
  const gen::Status status = store.restore(*reader);
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    const TensorShape shape = store.shape(layer);
    require(status.ok() || shape.seq == 0);
    const size_t count = static_cast<size_t>(shape.batch) * static_cast<size_t>(shape.seq) *
                         static_cast<size_t>(shape.dim);
    std::vector<float> x(2 * count);
    require(store.get(layer, x.data(), x.data() + count).ok());
  }
  if (!status.ok()) {
    require(status.message()[0] != '\0');
    return;
  }
  const auto contents = [&store](StateWriter& to) { return store.save(to); };
  auto size = state_size(contents);
  require(size.ok());
  Bytes again(*size);
  require(save_state(StateKind::kTensors, contents, again).ok());
  require(store.truncate(kMost / 2).ok());
}

void try_cache(KvCache& cache, std::span<const std::byte> state) {
  auto reader = StateReader::open(state);
  if (!reader.ok()) return;
  const gen::Status status = cache.restore(*reader);
  if (!status.ok()) {
    require(status.message()[0] != '\0' && cache.length() == 0);
    return;
  }
  auto plan = cache.plan(0);
  require(plan.ok());
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    const gen::cache::LayerShape& shape = cache.layers()[static_cast<size_t>(layer)];
    const size_t rows = static_cast<size_t>(plan->start) * static_cast<size_t>(shape.kv_heads);
    std::vector<float> all(rows * static_cast<size_t>(std::max(shape.k_dim, shape.v_dim)));
    for (const auto order : {gen::engine::KvOrder::kKeys, gen::engine::KvOrder::kValues}) {
      require(gen::cache::decode_entries(cache, layer, *plan, order, all.data()).ok());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes state(std::max<size_t>(size, 32));
  if (size > 0) std::memcpy(state.data(), data, size);
  const uint64_t whole = state.size();
  std::memcpy(state.data() + 16, &whole, sizeof(whole));
  const uint64_t sum = gen::checksum(std::span(state).first(state.size() - 8));
  std::memcpy(state.data() + state.size() - 8, &sum, sizeof(sum));

  gen::Allocator& allocator = gen::system_allocator();
  gen::engine::EngineMemory& memory = gen::engine::system_memory();
  for (const TensorKind& kind : tensor_kinds()) {
    try_tensors(*kind.create(kLayers, kMost, allocator).value(), state);
  }
  try_tensors(*CompressedStore::create(kLayers, 4, allocator).value(), state);
  auto pool = TensorPool::create({kLayers, 5, 12, gen::DType::kF32}, 1, allocator);
  try_tensors(*PagedStore::create(*pool, kLayers).value(), state);

  const std::vector<LayerShape> shapes(kLayers, {2, 16, 8, 0, gen::engine::RopeKind::kHalves, 16});
  const std::vector<LayerShape> unturned(kLayers, {2, 16, 8, 0, gen::engine::RopeKind::kNone, 0});
  try_cache(*make_compressed_cache(unturned, kMost, 4, memory).value(), state);
  for (const char* kind : {"fp32", "q4", "q3"}) {
    try_cache(*make_cache(kind, shapes, kMost, memory).value(), state);
    auto blocks = CachePool::create(kind, shapes, 5, 1, memory);
    try_cache(*make_paged_cache(*blocks, kMost).value(), state);
  }
  return 0;
}
