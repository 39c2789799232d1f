// SPDX-License-Identifier: Apache-2.0
// ssm_state.h of the C API.
#include <generate/ssm_state.h>

#include <algorithm>
#include <memory>
#include <span>

#include "api/boundary/boundary.h"
#include "base/in_use.h"
#include "cache/state/ssm_state.h"

struct gen_ssm_state {
  std::unique_ptr<gen::cache::SsmState> impl;
  mutable gen::InUseFlag in_use;
};

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;

/// The checks of every call on a state; `body` runs while the state is held.
template <typename F>
gen_status with(const gen_ssm_state* state, gen_error* error, F&& body) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(state, "state"));
    const gen::InUseGuard use(&state->in_use);
    GEN_TRY(use.entered("the state"));
    return body(*state->impl);
  });
}

}  // namespace

gen_status gen_ssm_state_new(int32_t layers, int32_t d_inner, int32_t d_state, gen_ssm_state** out,
                             gen_error* error) {
  return gen_ssm_state_new_batch(layers, 1, d_inner, d_state, out, error);
}

gen_status gen_ssm_state_new_batch(int32_t layers, int32_t batch, int32_t d_inner, int32_t d_state,
                                   gen_ssm_state** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    auto made = std::make_unique<gen_ssm_state>();
    GEN_ASSIGN(made->impl, gen::cache::SsmState::create(layers, batch, d_inner, d_state,
                                                        gen::system_allocator()));
    *out = made.release();
    return {};
  });
}

int32_t gen_ssm_state_num_layers(const gen_ssm_state* state) {
  return state != nullptr ? state->impl->num_layers() : 0;
}

gen_status gen_ssm_state_get_layer(const gen_ssm_state* state, int32_t layer, float* h,
                                   size_t capacity, int32_t shape[3], gen_error* error) {
  if (shape != nullptr) std::fill_n(shape, 3, 0);
  return with(state, error, [&](gen::cache::SsmState& s) -> Status {
    GEN_ASSIGN(const std::span<float> own, s.layer(layer));
    if (shape != nullptr) {
      shape[0] = s.batch();
      shape[1] = s.d_inner();
      shape[2] = s.d_state();
    }
    if (h == nullptr) return {};
    if (own.size() > capacity) {
      return gen::error(Code::kOutOfRange, "%zu floats do not fit a buffer of %zu", own.size(),
                        capacity);
    }
    std::copy(own.begin(), own.end(), h);
    return {};
  });
}

gen_status gen_ssm_state_set_layer(gen_ssm_state* state, int32_t layer, const float* h,
                                   int32_t batch, int32_t d_inner, int32_t d_state,
                                   gen_error* error) {
  return with(state, error, [&](gen::cache::SsmState& s) -> Status {
    GEN_ASSIGN(const std::span<float> own, s.layer(layer));
    GEN_TRY(not_null(h, "h"));
    if (batch != s.batch() || d_inner != s.d_inner() || d_state != s.d_state()) {
      return gen::error(Code::kInvalidArgument, "shape [%d, %d, %d] for a state of [%d, %d, %d]",
                        batch, d_inner, d_state, s.batch(), s.d_inner(), s.d_state());
    }
    std::copy_n(h, own.size(), own.begin());
    return {};
  });
}

gen_status gen_ssm_state_snapshot(gen_ssm_state* state, int64_t* snapshot, gen_error* error) {
  if (snapshot != nullptr) *snapshot = 0;
  return with(state, error, [&](gen::cache::SsmState& s) -> Status {
    GEN_TRY(not_null(snapshot, "snapshot"));
    GEN_ASSIGN(*snapshot, s.snapshot());
    return {};
  });
}

gen_status gen_ssm_state_restore(gen_ssm_state* state, int64_t snapshot, gen_error* error) {
  return with(state, error, [&](gen::cache::SsmState& s) { return s.restore(snapshot); });
}

gen_status gen_ssm_state_reset(gen_ssm_state* state, gen_error* error) {
  return with(state, error, [](gen::cache::SsmState& s) -> Status {
    s.reset();
    return {};
  });
}

int64_t gen_ssm_state_memory_bytes(const gen_ssm_state* state) {
  return state != nullptr ? static_cast<int64_t>(state->impl->bytes()) : 0;
}

void gen_ssm_state_free(gen_ssm_state* state) { delete state; }
