// SPDX-License-Identifier: Apache-2.0
// Saving and loading of kv_cache.h. Caches of tensors and of models have different states. Either
// is loaded into a cache without content and decides its form.
#include <generate/kv_cache.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/cache/kv_cache_handle.h"
#include "api/boundary/state_call.h"
#include "cache/sequence/restored_cache.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::not_null;
using gen::api::one_sequence;
using gen::api::OneSequence;
using gen::api::own;
using gen::api::with_cache;
using gen::cache::SavedOutline;
using gen::cache::StateContents;
using gen::cache::StateKind;
using gen::cache::StateReader;

/// Calls `write` with the kind and contents of a cache's state.
template <typename F>
Status save(const kv_cache& cache, F&& write) {
  GEN_ASSIGN(const OneSequence* const body, one_sequence(cache, "kv_cache_save"));
  if (body->state() != nullptr) {
    return {
        Code::kUnsupported,
        "the model keeps a state beside the cache, which only a session saves (gen_session_save)"};
  }
  GEN_ASSIGN(const auto saved, body->form().saved());
  return write(saved.kind, saved.contents);
}

Status load_tensors(OneSequence& body, StateReader& reader) {
  GEN_TRY(body.form().takes_tensors());
  if (body.shaped()) return body.form().tensors()->restore(reader);
  GEN_ASSIGN(auto store, body.make_store(body.allocator()));
  auto form = std::make_unique<gen::api::TensorForm>(std::move(store));
  GEN_TRY(form->tensors()->restore(reader));
  body.take(std::move(form));
  return {};
}

/// No cache is made for more than its own chunks, whatever a state says.
Status check_chunk(const OneSequence& body, const SavedOutline& outline) {
  if (outline.chunk <= body.chunk()) return {};
  if (body.chunk() == 0) {
    return {Code::kInvalidArgument, "the state is of a compressed cache, and this is none"};
  }
  return gen::error(Code::kInvalidArgument, "the state has chunks of %d, the cache of %d",
                    outline.chunk, body.chunk());
}

Status load_model_cache(OneSequence& body, StateReader& reader) {
  gen::api::CacheForm& form = body.form();
  GEN_TRY(form.takes_model_cache());
  if (form.grows()) {
    gen::cache::KvCache& held = *form.model_cache();
    GEN_ASSIGN(const SavedOutline outline, gen::cache::saved_outline(reader));
    if (outline.capacity <= held.capacity()) return held.restore(reader);
    GEN_TRY(check_chunk(body, outline));
    GEN_ASSIGN(auto larger, body.make_own_model_cache(held.layers(), outline.capacity));
    GEN_TRY(larger->restore(reader));
    form.replace(std::move(larger));
    return {};
  }
  if (body.shaped()) return form.model_cache()->restore(reader);
  const auto& label = body.label();
  // Without a limit there is none to reserve memory for, until a model comes with its own.
  const bool grows = label.max_seq_len == INT32_MAX;
  const auto make = [&](const SavedOutline& outline) -> gen::Result<OneSequence::ModelCache> {
    GEN_TRY(check_chunk(body, outline));
    return body.make_own_model_cache(outline.layers, grows ? outline.capacity : label.max_seq_len);
  };
  GEN_ASSIGN(auto made, gen::cache::restored_cache(reader, label.num_layers, make));
  if (made == nullptr) return {};  // the state has no positions, so the cache stays without form
  body.take(std::make_unique<gen::api::OwnedForm>(std::move(made), grows));
  return {};
}

Status load(kv_cache& cache, std::span<const std::byte> state) {
  GEN_TRY(own(cache));
  GEN_ASSIGN(OneSequence* const body, one_sequence(cache, "kv_cache_load"));
  if (body->form().holds_positions()) {
    return {Code::kState, "the cache holds positions; a state goes into an empty one"};
  }
  GEN_ASSIGN(StateReader reader, StateReader::open(state));
  switch (reader.kind()) {
    case StateKind::kTensors:
      GEN_TRY(load_tensors(*body, reader));
      break;
    case StateKind::kModelCache:
      GEN_TRY(load_model_cache(*body, reader));
      break;
    case StateKind::kSession:
      return {Code::kInvalidArgument, "the state is a session's, see gen_session_load"};
  }
  body->take_state(nullptr, nullptr);  // of positions that it had once
  return {};
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
