// SPDX-License-Identifier: Apache-2.0
// ssm_state.h of the C API: calls on a state of either kind. See ssm_state_body.h.
#include <generate/ssm_state.h>

#include <algorithm>
#include <memory>

#include "api/boundary/boundary.h"
#include "api/cache/ssm_state_body.h"

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::SsmStateBody;

/// The checks of every call on a state. `call` has the body, which stays alive meanwhile.
template <typename F>
gen_status with(const gen_ssm_state* state, gen_error* error, F&& call) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(state, "state"));
    if (state->home.has_value()) GEN_TRY(state->home->check("the state"));
    const gen::api::Entry entry(state->callbacks);
    GEN_TRY(entry.entered("the state"));
    const std::shared_ptr<SsmStateBody> body = state->body;
    return call(*body);
  });
}

bool has_layer(const gen_ssm_state* state, int32_t layer) {
  return state != nullptr && layer >= 0 && layer < state->body->num_layers();
}

}  // namespace

int32_t gen_ssm_state_num_layers(const gen_ssm_state* state) {
  return state != nullptr ? state->body->num_layers() : 0;
}

int32_t gen_ssm_state_position(const gen_ssm_state* state) {
  return state != nullptr ? state->body->position() : 0;
}

const char* gen_ssm_state_layer_kind(const gen_ssm_state* state, int32_t layer) {
  return has_layer(state, layer) ? state->body->kind(layer) : nullptr;
}

int32_t gen_ssm_state_layer_index(const gen_ssm_state* state, int32_t layer) {
  return has_layer(state, layer) ? state->body->model_layer(layer) : -1;
}

gen_status gen_ssm_state_get_layer(const gen_ssm_state* state, int32_t layer, float* h,
                                   size_t capacity, int32_t shape[3], gen_error* error) {
  if (shape != nullptr) std::fill_n(shape, 3, 0);
  return with(state, error, [&](SsmStateBody& body) {
    int32_t own[3] = {0, 0, 0};
    Status status = body.get_layer(layer, h, capacity, own);
    if (shape != nullptr) std::copy_n(own, 3, shape);
    return status;
  });
}

gen_status gen_ssm_state_set_layer(gen_ssm_state* state, int32_t layer, const float* h,
                                   int32_t batch, int32_t d_inner, int32_t d_state,
                                   gen_error* error) {
  return with(state, error, [&](SsmStateBody& body) {
    const int32_t shape[3] = {batch, d_inner, d_state};
    return body.set_layer(layer, h, shape);
  });
}

gen_status gen_ssm_state_snapshot(gen_ssm_state* state, int64_t* snapshot, gen_error* error) {
  if (snapshot != nullptr) *snapshot = 0;
  return with(state, error, [&](SsmStateBody& body) -> Status {
    GEN_TRY(not_null(snapshot, "snapshot"));
    GEN_ASSIGN(*snapshot, body.snapshot());
    return {};
  });
}

gen_status gen_ssm_state_restore(gen_ssm_state* state, int64_t snapshot, gen_error* error) {
  return with(state, error, [&](SsmStateBody& body) { return body.restore(snapshot); });
}

gen_status gen_ssm_state_reset(gen_ssm_state* state, gen_error* error) {
  return with(state, error, [](SsmStateBody& body) { return body.reset(); });
}

int64_t gen_ssm_state_memory_bytes(const gen_ssm_state* state) {
  return state != nullptr ? state->body->bytes() : 0;
}

void gen_ssm_state_free(gen_ssm_state* state) {
  if (state == nullptr || state->lent) return;
  delete state;
}
