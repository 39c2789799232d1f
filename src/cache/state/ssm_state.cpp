// SPDX-License-Identifier: Apache-2.0
// See ssm_state.h.
#include "cache/state/ssm_state.h"

#include <cstring>

#include "base/checked.h"
#include "cache/limits.h"

namespace gen::cache {

Result<std::unique_ptr<SsmState>> SsmState::create(int32_t num_layers, int32_t batch,
                                                   int32_t d_inner, int32_t d_state,
                                                   Allocator& allocator) {
  if (num_layers < 0 || num_layers > kMaxLayers) {
    return error(Code::kInvalidArgument, "%d layers are outside [0, %d]", num_layers, kMaxLayers);
  }
  if (batch < 1 || d_inner < 1 || d_state < 1) {
    return error(Code::kInvalidArgument,
                 "a state of batch %d, d_inner %d and d_state %d: each must be at least 1", batch,
                 d_inner, d_state);
  }
  size_t bytes = sizeof(float);
  for (int32_t factor : {num_layers, batch, d_inner, d_state}) {
    if (!checked_mul(bytes, static_cast<size_t>(factor), &bytes)) {
      return error(Code::kOutOfMemory, "%d layers of [%d, %d, %d] overflow a size", num_layers,
                   batch, d_inner, d_state);
    }
  }
  std::unique_ptr<SsmState> made(new SsmState(num_layers, batch, d_inner, d_state, allocator));
  if (bytes > 0) {
    GEN_ASSIGN(made->state_, Buffer::allocate(allocator, bytes));
    made->reset();
  }
  return made;
}

Result<std::span<float>> SsmState::layer(int32_t layer) noexcept {
  if (layer < 0 || layer >= num_layers_) {
    return error(Code::kOutOfRange, "layer %d outside a state of %d layers", layer, num_layers_);
  }
  const size_t count = state_.size() / sizeof(float) / static_cast<size_t>(num_layers_);
  return std::span(state_.as<float>() + static_cast<size_t>(layer) * count, count);
}

void SsmState::reset() noexcept {
  if (state_.size() > 0) std::memset(state_.data(), 0, state_.size());
}

Result<int64_t> SsmState::snapshot() {
  Buffer& copy = snapshots_[place(newest_ + 1)];
  if (state_.size() > 0) {
    if (copy.data() == nullptr) {
      GEN_ASSIGN(copy, Buffer::allocate(allocator_, state_.size()));
    }
    std::memcpy(copy.data(), state_.data(), state_.size());
  }
  return ++newest_;
}

Status SsmState::check_snapshot(int64_t snapshot, int64_t newest) noexcept {
  if (snapshot >= 1 && snapshot <= newest && snapshot > newest - kSnapshots) return {};
  return error(Code::kOutOfRange, "snapshot %lld is not one of the last %lld, of %lld in all",
               static_cast<long long>(snapshot), static_cast<long long>(kSnapshots),
               static_cast<long long>(newest));
}

Status SsmState::restore(int64_t snapshot) noexcept {
  GEN_TRY(check_snapshot(snapshot, newest_));
  if (state_.size() > 0) {
    std::memcpy(state_.data(), snapshots_[place(snapshot)].data(), state_.size());
  }
  return {};
}

}  // namespace gen::cache
