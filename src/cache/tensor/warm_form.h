// SPDX-License-Identifier: Apache-2.0
// The compact forms that a layer of a tiered store may take when it is not hot: one stretch of
// bytes with nothing spare, the same in memory (warm) and in a file (cold).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "cache/tensor/quant_store.h"
#include "cache/tensor/tensor_provider.h"

namespace gen::cache {

/// How a lane, seq rows of dim elements, is kept. Each lane of keys, then of values, begins at a
/// multiple of 64 bytes and is encoded on its own.
struct WarmForm {
  enum class Code : uint32_t { kF32 = 0, kF16 = 1, kFp8 = 2, kQ4 = 3, kQ3 = 4, kMean = 5 };

  const char* name;
  Code code;  // as in files
  bool lossy;
  bool finite_only;           // NaN and infinity have no code
  const GroupFormat* groups;  // of fp8, q4 and q3

  /// Bytes of a lane and of a whole layer, keys and values; false on overflow. `chunk` is positions
  /// of a mean.
  [[nodiscard]] bool lane_bytes(const TensorShape& shape, int32_t chunk,
                                size_t* bytes) const noexcept;
  [[nodiscard]] bool layer_bytes(const TensorShape& shape, int32_t chunk,
                                 size_t* bytes) const noexcept;
  void encode(const TensorShape& shape, int32_t chunk, const float* lane,
              std::byte* to) const noexcept;
  /// seq * dim elements. Each position of a chunk reads as its mean.
  void decode(const TensorShape& shape, int32_t chunk, const std::byte* from,
              float* lane) const noexcept;
};

/// The lossless one first.
std::span<const WarmForm> warm_forms() noexcept;
/// kInvalidArgument naming the known ones.
Result<const WarmForm*> find_warm_form(std::string_view name);
/// nullptr for an unknown number.
const WarmForm* find_warm_form(uint32_t code) noexcept;

}  // namespace gen::cache
