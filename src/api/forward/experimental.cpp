// SPDX-License-Identifier: Apache-2.0
// experimental.h of the C API.
#include <generate/experimental.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/forward/forward_call.h"
#include "api/model/model_handle.h"
#include "base/c_locale.h"
#include "base/in_use.h"
#include "base/json_text.h"
#include "engine/trace/peaks.h"
#include "graph/profile.h"

struct gen_profile {
  std::shared_ptr<const gen::api::ModelParts> model;  // the model of the first pass
  gen::graph::Profile impl;
  gen::HomeProcess home;
  gen::InUseFlag in_use;
};

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using HeldProfile = gen::api::HeldHandle<gen_profile>;

Status readable(const gen_profile& profile) {
  if (profile.in_use.held()) return {Code::kBusy, "the profile is in use by another call"};
  if (profile.impl.incomplete()) {
    return {Code::kOutOfMemory, "a pass had no memory for the profile, which is incomplete"};
  }
  return {};
}

/// Trace events of one process with one thread; times are microseconds with three decimals.
std::string chrome_trace(const gen::graph::Profile& profile) {
  std::vector<std::string> names;
  for (const gen::graph::ProfileEntry& entry : profile.entries()) {
    names.push_back(gen::json_quote(entry.name));
  }
  const gen::CLocale numbers;
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const char* between = "";
  for (const gen::graph::ProfileSpan& span : profile.spans()) {
    char times[160];
    std::snprintf(times, sizeof times,
                  ",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,"
                  "\"args\":{\"rows\":%lld}}",
                  span.begin * 1e6, span.seconds * 1e6, static_cast<long long>(span.rows));
    text.append(between).append("{\"name\":");
    text.append(names[static_cast<size_t>(span.entry)]).append(times);
    between = ",\n";
  }
  return text.append("]}");
}

}  // namespace

gen_status gen_model_forward_batch(const gen_model* model, const int32_t* tokens,
                                   const int32_t* sequences, const uint8_t* wants_logits,
                                   size_t n_rows, kv_cache* const* caches, size_t n_caches,
                                   float* logits, size_t capacity, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(tokens, "tokens"));
    GEN_TRY(not_null(caches, "caches"));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    return gen::api::forward_rows({used.shared(), model->shared.callbacks()}, {tokens, n_rows},
                                  sequences, wants_logits, {caches, n_caches}, logits, capacity);
  });
}

gen_status gen_model_forward_hidden(const gen_model* model, const int32_t* tokens, size_t n,
                                    kv_cache* cache, const int32_t* layers, size_t n_layers,
                                    float* hidden, size_t capacity, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(tokens, "tokens"));
    GEN_TRY(not_null(cache, "cache"));
    GEN_TRY(not_null(layers, "layers"));
    GEN_TRY(not_null(hidden, "hidden"));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    return gen::api::forward_hidden({used.shared(), model->shared.callbacks()}, {tokens, n}, *cache,
                                    {layers, n_layers}, hidden, capacity);
  });
}

gen_status gen_profile_new(gen_profile** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_profile();
    return {};
  });
}

void gen_profile_free(gen_profile* profile) {
  if (gen::api::usable(profile) && profile->in_use.retire()) delete profile;
}

gen_status gen_model_forward_profiled(const gen_model* model, const int32_t* tokens,
                                      const int32_t* sequences, const uint8_t* wants_logits,
                                      size_t n_rows, kv_cache* const* caches, size_t n_caches,
                                      float* logits, size_t capacity, gen_profile* profile,
                                      gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(tokens, "tokens"));
    GEN_TRY(not_null(caches, "caches"));
    GEN_TRY(not_null(profile, "profile"));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    const HeldProfile held(profile, &profile->in_use, gen_profile_free);
    GEN_TRY(held.entered("the profile"));
    if (profile->model != nullptr && profile->model != used.shared()) {
      return {Code::kInvalidArgument, "the profile belongs to another model"};
    }
    const Status ran = gen::api::forward_rows({used.shared(), model->shared.callbacks()},
                                              {tokens, n_rows}, sequences, wants_logits,
                                              {caches, n_caches}, logits, capacity, &profile->impl);
    // A call that measured nothing leaves the profile to any model.
    if (ran.ok() || !profile->impl.entries().empty()) profile->model = used.shared();
    return ran;
  });
}

size_t gen_profile_count(const gen_profile* profile) {
  return gen::api::usable(profile) ? profile->impl.entries().size() : 0;
}

const char* gen_profile_name(const gen_profile* profile, size_t index) {
  if (index >= gen_profile_count(profile)) return nullptr;
  return profile->impl.entries()[index].name.c_str();
}

gen_status gen_profile_get(const gen_profile* profile, size_t index, const char* key, double* value,
                           gen_error* error) {
  if (value != nullptr) *value = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(profile, "profile"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    GEN_TRY(readable(*profile));
    const auto entries = profile->impl.entries();
    if (index >= entries.size()) {
      return gen::error(Code::kOutOfRange, "instruction %zu: there are %zu", index, entries.size());
    }
    const gen::graph::ProfileEntry& entry = entries[index];
    const std::pair<const char*, double> figures[] = {{"seconds", entry.seconds},
                                                      {"calls", static_cast<double>(entry.calls)},
                                                      {"rows", static_cast<double>(entry.rows)},
                                                      {"bytes", entry.bytes},
                                                      {"operations", 2 * entry.products}};
    for (const auto& [name, figure] : figures) {
      if (std::strcmp(name, key) != 0) continue;
      *value = figure;
      return {};
    }
    return gen::error(Code::kInvalidArgument, "unknown figure \"%.60s\"", key);
  });
}

gen_status gen_profile_chrome_trace(const gen_profile* profile, char* buf, size_t capacity,
                                    size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(profile, "profile"));
    GEN_TRY(readable(*profile));
    return gen::api::text_out(chrome_trace(profile->impl), buf, capacity, n);
  });
}

gen_status gen_measure_peaks(int32_t threads, const char* what, double* value, gen_error* error) {
  if (value != nullptr) *value = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(what, "what"));
    GEN_TRY(not_null(value, "value"));
    GEN_ASSIGN(const auto pool, gen::ThreadPool::create(threads));
    GEN_ASSIGN(*value, gen::engine::measure_peak(what, *pool));
    return {};
  });
}
