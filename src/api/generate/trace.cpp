// SPDX-License-Identifier: Apache-2.0
// trace.h of the C API.
#include <generate/trace.h>

#include <memory>
#include <string>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"
#include "base/new_file.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;

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
      return gen::error(Code::kOutOfRange, "operation %zu: there are %zu", index, count);
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
