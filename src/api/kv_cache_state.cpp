// SPDX-License-Identifier: Apache-2.0
// Saving and loading of kv_cache.h. A cache in the form of tensors and one that a model wrote have
// states of their own; either goes into a cache that holds nothing yet, and gives it its form.
#include <generate/kv_cache.h>

#include <utility>

#include "api/boundary.h"
#include "api/kv_cache_handle.h"
#include "api/state_call.h"
#include "cache/sequence/restored_cache.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::not_null;
using gen::api::one_sequence;
using gen::api::own;
using gen::api::with_cache;
using gen::cache::KvCache;
using gen::cache::StateContents;
using gen::cache::StateKind;
using gen::cache::StateReader;
using gen::cache::StateWriter;

/// Calls `write` with the kind and the contents of a cache's state.
template <typename F>
Status save(const kv_cache& cache, F&& write) {
  GEN_TRY(one_sequence(cache, "kv_cache_save"));
  if (cache.step != nullptr) return {Code::kState, "a cache within a step cannot be saved"};
  if (cache.store != nullptr) {
    const auto& store = *cache.store;
    return write(StateKind::kTensors, [&store](StateWriter& to) { return store.save(to); });
  }
  KvCache* engine = cache.engine();
  if (engine == nullptr) return {Code::kState, "the cache has not been written to"};
  return write(StateKind::kModelCache, [engine](StateWriter& to) { return engine->save(to); });
}

bool holds_something(const kv_cache& cache) {
  if (cache.store == nullptr) return cache.owned != nullptr && cache.owned->length() > 0;
  for (int32_t layer = 0; layer < cache.num_layers; ++layer) {
    if (cache.store->layer_seq_len(layer) > 0) return true;
  }
  return false;
}

Status load_tensors(kv_cache& cache, StateReader& reader) {
  if (cache.owned != nullptr) {
    return {Code::kState, "the state is of kv_cache_update, and a model shaped the cache"};
  }
  if (cache.store != nullptr) return cache.store->restore(reader);
  GEN_ASSIGN(auto store, gen::api::make_store(cache));
  GEN_TRY(store->restore(reader));
  cache.store = std::move(store);
  cache.seen_store.store(cache.store.get(), std::memory_order_release);
  return {};
}

Status load_model_cache(kv_cache& cache, StateReader& reader) {
  if (cache.store != nullptr) {
    return {Code::kState, "the state is a model's, and the cache is one for kv_cache_update"};
  }
  if (cache.owned != nullptr) return cache.owned->restore(reader);
  const auto make = [&cache](std::span<const gen::cache::LayerShape> layers) {
    return gen::api::make_engine(cache, layers, cache.max_seq_len);
  };
  GEN_ASSIGN(auto made, gen::cache::restored_cache(reader, cache.num_layers, make));
  cache.owned = std::move(made);
  cache.seen_owned.store(cache.owned.get(), std::memory_order_release);
  return {};
}

Status load(kv_cache& cache, std::span<const std::byte> state) {
  GEN_TRY(own(cache));
  GEN_TRY(one_sequence(cache, "kv_cache_load"));
  if (holds_something(cache)) {
    return {Code::kState, "the cache holds positions; a state goes into an empty one"};
  }
  GEN_ASSIGN(StateReader reader, StateReader::open(state));
  switch (reader.kind()) {
    case StateKind::kTensors:
      return load_tensors(cache, reader);
    case StateKind::kModelCache:
      return load_model_cache(cache, reader);
    case StateKind::kSession:
      break;
  }
  return {Code::kInvalidArgument, "the state is a session's, see gen_session_load"};
}

}  // namespace

gen_status kv_cache_save(const kv_cache* cache, const char* path, gen_error* error) {
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(not_null(path, "path"));
    return save(c, [path](StateKind kind, const StateContents& contents) {
      return gen::api::state_to_file(kind, contents, path);
    });
  });
}

gen_status kv_cache_save_buffer(const kv_cache* cache, void* buf, size_t capacity, size_t* n,
                                gen_error* error) {
  if (n != nullptr) *n = 0;
  return with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(not_null(n, "n"));
    return save(c, [=](StateKind kind, const StateContents& contents) {
      return gen::api::state_to_buffer(kind, contents, buf, capacity, n);
    });
  });
}

gen_status kv_cache_load(kv_cache* cache, const char* path, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(path, "path"));
    return gen::api::state_from_file(
        path, [&c](std::span<const std::byte> state) { return load(c, state); });
  });
}

gen_status kv_cache_load_buffer(kv_cache* cache, const void* data, size_t size, gen_error* error) {
  return with_cache(cache, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(data, "data"));
    return load(c, {static_cast<const std::byte*>(data), size});
  });
}
