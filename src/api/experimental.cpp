// SPDX-License-Identifier: Apache-2.0
// experimental.h of the C API.
#include <generate/experimental.h>

#include <cstring>

#include "api/boundary.h"
#include "api/forward_call.h"
#include "base/cpu.h"
#include "engine/cpu/peaks.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;

}  // namespace

gen_status gen_model_forward_batch(const gen_model* model, const int32_t* tokens,
                                   const int32_t* sequences, const uint8_t* wants_logits,
                                   size_t n_rows, kv_cache* const* caches, size_t n_caches,
                                   float* logits, size_t capacity, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(tokens, "tokens"));
    GEN_TRY(not_null(caches, "caches"));
    return gen::api::forward_rows(*model, {tokens, n_rows}, sequences, wants_logits,
                                  {caches, n_caches}, logits, capacity);
  });
}

gen_status gen_measure_peaks(int32_t threads, const char* what, double* value, gen_error* error) {
  if (value != nullptr) *value = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(what, "what"));
    GEN_TRY(not_null(value, "value"));
    GEN_ASSIGN(const auto level, gen::chosen_cpu_level());
    GEN_ASSIGN(const auto pool, gen::ThreadPool::create(threads));
    namespace cpu = gen::engine::cpu;
    if (std::strcmp(what, "read_bandwidth") == 0) {
      GEN_ASSIGN(*value, cpu::measure_read_bandwidth(*pool, gen::system_allocator()));
    } else if (std::strcmp(what, "fma_f32") == 0) {
      *value = cpu::measure_fma_f32(*pool, level);
    } else if (std::strcmp(what, "dot_i8") == 0) {
      *value = cpu::measure_dot_i8(*pool, level);
    } else {
      return gen::error(Code::kInvalidArgument, "unknown peak %.60s", what);
    }
    return {};
  });
}
