// SPDX-License-Identifier: Apache-2.0
// The state of recurrent layers: of constant size, however long the sequence. It cannot be cut like
// a cache, so speculation keeps snapshots of it and restores one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/allocator.h"
#include "base/status.h"

namespace gen::cache {

/// Storage: one buffer [layer][batch][d_inner][d_state] float32; each snapshot is another, made
/// when first used and then used again in turn. Threads: not synchronised.
class SsmState {
 public:
  /// Snapshots that are kept; the next takes the place of the oldest.
  static constexpr int64_t kSnapshots = 16;
  /// Of snapshots 1, 2, 3, … up to `newest`: kOutOfRange for one that never was or is gone.
  static Status check_snapshot(int64_t snapshot, int64_t newest) noexcept;
  /// Where a snapshot lies among as many places.
  static constexpr size_t place(int64_t snapshot) noexcept {
    return static_cast<size_t>((snapshot - 1) % kSnapshots);
  }

  /// All zeros. kInvalidArgument for layers outside [0, kMaxLayers] or another number below 1;
  /// kOutOfMemory. `allocator` must outlive the state.
  static Result<std::unique_ptr<SsmState>> create(int32_t num_layers, int32_t batch,
                                                  int32_t d_inner, int32_t d_state,
                                                  Allocator& allocator);

  [[nodiscard]] int32_t num_layers() const noexcept { return num_layers_; }
  [[nodiscard]] int32_t batch() const noexcept { return batch_; }
  [[nodiscard]] int32_t d_inner() const noexcept { return d_inner_; }
  [[nodiscard]] int32_t d_state() const noexcept { return d_state_; }

  /// [batch, d_inner, d_state] of a layer, in place and always at the same address; kOutOfRange.
  Result<std::span<float>> layer(int32_t layer) noexcept;
  /// Back to zeros, in the same memory.
  void reset() noexcept;

  /// Copies the state and returns the copy's number: 1, 2, 3, … kOutOfMemory.
  Result<int64_t> snapshot();
  /// Makes the state that of a snapshot, which stays. kOutOfRange for one that never was or is
  /// gone.
  Status restore(int64_t snapshot) noexcept;

  /// Bytes of the state; each snapshot takes as many.
  [[nodiscard]] size_t bytes() const noexcept { return state_.size(); }

 private:
  SsmState(int32_t num_layers, int32_t batch, int32_t d_inner, int32_t d_state,
           Allocator& allocator)
      : num_layers_(num_layers),
        batch_(batch),
        d_inner_(d_inner),
        d_state_(d_state),
        allocator_(allocator) {}

  int32_t num_layers_;
  int32_t batch_;
  int32_t d_inner_;
  int32_t d_state_;
  Allocator& allocator_;
  Buffer state_;
  int64_t newest_ = 0;
  Buffer snapshots_[kSnapshots];  // see place()
};

}  // namespace gen::cache
