// SPDX-License-Identifier: Apache-2.0
// gen_ssm_state_new: a state of the host's own numbers.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "api/cache/ssm_state_body.h"
#include "base/in_use.h"
#include "cache/state/ssm_state.h"

namespace gen::api {
namespace {

class HostState final : public SsmStateBody {
 public:
  explicit HostState(std::unique_ptr<cache::SsmState> state) noexcept : state_(std::move(state)) {}

  [[nodiscard]] int32_t num_layers() const noexcept override { return state_->num_layers(); }
  [[nodiscard]] int32_t position() const noexcept override { return 0; }
  [[nodiscard]] const char* kind(int32_t /*layer*/) const noexcept override { return "host"; }
  [[nodiscard]] int32_t model_layer(int32_t layer) const noexcept override { return layer; }
  [[nodiscard]] int64_t bytes() const noexcept override {
    return static_cast<int64_t>(state_->bytes());
  }

  Status get_layer(int32_t layer, float* h, size_t capacity, int32_t shape[3]) override {
    const InUseGuard use(&in_use_);
    GEN_TRY(use.entered("the state"));
    GEN_ASSIGN(const std::span<float> own, state_->layer(layer));
    shape[0] = state_->batch();
    shape[1] = state_->d_inner();
    shape[2] = state_->d_state();
    if (h == nullptr) return {};
    if (own.size() > capacity) {
      return error(Code::kOutOfRange, "%zu floats do not fit a buffer of %zu", own.size(),
                   capacity);
    }
    std::copy(own.begin(), own.end(), h);
    return {};
  }

  Status set_layer(int32_t layer, const float* h, const int32_t shape[3]) override {
    const InUseGuard use(&in_use_);
    GEN_TRY(use.entered("the state"));
    GEN_ASSIGN(const std::span<float> own, state_->layer(layer));
    GEN_TRY(not_null(h, "h"));
    if (shape[0] != state_->batch() || shape[1] != state_->d_inner() ||
        shape[2] != state_->d_state()) {
      return error(Code::kInvalidArgument, "shape [%d, %d, %d] for a state of [%d, %d, %d]",
                   shape[0], shape[1], shape[2], state_->batch(), state_->d_inner(),
                   state_->d_state());
    }
    std::copy_n(h, own.size(), own.begin());
    return {};
  }

  Result<int64_t> snapshot() override {
    const InUseGuard use(&in_use_);
    GEN_TRY(use.entered("the state"));
    return state_->snapshot();
  }

  Status restore(int64_t snapshot) override {
    const InUseGuard use(&in_use_);
    GEN_TRY(use.entered("the state"));
    return state_->restore(snapshot);
  }

  Status reset() override {
    const InUseGuard use(&in_use_);
    GEN_TRY(use.entered("the state"));
    state_->reset();
    return {};
  }

 private:
  std::unique_ptr<cache::SsmState> state_;
  InUseFlag in_use_;
};

}  // namespace
}  // namespace gen::api

gen_status gen_ssm_state_new(int32_t layers, int32_t d_inner, int32_t d_state, gen_ssm_state** out,
                             gen_error* error) {
  return gen_ssm_state_new_batch(layers, 1, d_inner, d_state, out, error);
}

gen_status gen_ssm_state_new_batch(int32_t layers, int32_t batch, int32_t d_inner, int32_t d_state,
                                   gen_ssm_state** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return gen::api::guard(error, [&]() -> gen::Status {
    GEN_TRY(gen::api::not_null(out, "out"));
    GEN_ASSIGN(auto state, gen::cache::SsmState::create(layers, batch, d_inner, d_state,
                                                        gen::system_allocator()));
    auto made = std::make_unique<gen_ssm_state>();
    made->body = std::make_shared<gen::api::HostState>(std::move(state));
    *out = made.release();
    return {};
  });
}
