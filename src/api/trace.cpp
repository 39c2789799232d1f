// SPDX-License-Identifier: Apache-2.0
// trace.h of the C API.
#include <generate/trace.h>

#include <memory>
#include <string>

#include "api/boundary.h"
#include "api/handles.h"
#include "api/kv_cache_handle.h"
#include "base/new_file.h"
#include "cache/tensor/tracing_store.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::with_cache;

}  // namespace

gen_status gen_tracer_new(gen_tracer** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_tracer{std::make_shared<gen::engine::TraceLog>(), {}};
    return {};
  });
}

size_t gen_tracer_op_count(const gen_tracer* tracer) {
  return gen::api::usable(tracer) ? tracer->log->ops().size() : 0;
}

gen_status gen_tracer_op(const gen_tracer* tracer, size_t index, char* buf, size_t capacity,
                         size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tracer, "tracer"));
    GEN_TRY(not_null(n, "n"));
    const size_t count = tracer->log->ops().size();
    if (index >= count) {
      return gen::error(Code::kOutOfRange, "operation %zu of %zu", index, count);
    }
    return gen::api::text_out(tracer->log->op_json(index), buf, capacity, n);
  });
}

gen_status gen_tracer_write_dot(const gen_tracer* tracer, const char* path, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tracer, "tracer"));
    GEN_TRY(not_null(path, "path"));
    return gen::write_file(path, tracer->log->dot());
  });
}

gen_status gen_tracer_write_json(const gen_tracer* tracer, const char* path, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tracer, "tracer"));
    GEN_TRY(not_null(path, "path"));
    return gen::write_file(path, tracer->log->json());
  });
}

void gen_tracer_free(gen_tracer* tracer) { gen::api::end_handle(tracer); }

gen_status gen_options_set_tracer(gen_options* options, const gen_tracer* tracer,
                                  gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    if (tracer != nullptr) GEN_TRY(not_null(tracer, "tracer"));
    options->trace = tracer != nullptr ? tracer->log : nullptr;
    options->trace_home.reset();
    if (tracer != nullptr) options->trace_home = tracer->home;
    return {};
  });
}

gen_status kv_cache_tracing_new(kv_cache* inner, const gen_tracer* tracer, kv_cache** out,
                                gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return with_cache(inner, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(tracer, "tracer"));
    GEN_TRY(not_null(out, "out"));
    GEN_TRY(gen::api::own(c));
    GEN_TRY(gen::api::one_sequence(c, "kv_cache_tracing_new"));
    if (c.owned != nullptr) {
      return {Code::kState, "the cache was filled by gen_model_forward"};
    }
    std::shared_ptr<gen::cache::TensorProvider> store = c.store;
    if (store == nullptr) {
      GEN_ASSIGN(store, gen::api::make_store(c));
    }
    auto made = gen::api::handle_of(std::make_unique<gen::cache::TracingStore>(store, tracer->log),
                                    c.max_seq_len);
    made->allocator = c.allocator;  // lives as long as what came from it
    made->own_flag = c.own_flag;    // one store, one user at a time
    made->in_use = c.in_use;
    made->underlying.push_back(gen::api::part_of(*made));
    made->underlying.back()->traits = c.traits;
    made->underlying.back()->num_layers = c.num_layers;
    made->underlying.back()->max_seq_len = c.max_seq_len;
    made->underlying.back()->seen_store = store.get();
    made->underlying.back()->store = store;
    made->callbacks = c.callbacks;
    if (c.store == nullptr) {
      c.store = std::move(store);
      c.seen_store.store(c.store.get(), std::memory_order_release);
    }
    *out = made.release();
    return {};
  });
}
