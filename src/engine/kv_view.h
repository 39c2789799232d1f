// SPDX-License-Identifier: Apache-2.0
// What a cache shows of itself to kernels: for one layer, where each entry's keys and values lie
// and how they are encoded. Attention reads this in place; rope_append writes through it. A new
// cache format is a new KvFormat, its kernels, and one row in the engine's kernel table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::engine {

enum class KvFormat : int32_t {
  kF32 = 0,
  kF16 = 1,
};

/// In which form keys are stored; rope_append and attention both follow it.
enum class KeyForm : int32_t {
  kRotated = 0,    // rotary embedding applied before storing
  kUnrotated = 1,  // stored as projected, rotated when read
  kHadamard = 2,   // rotated and Hadamard-turned; attention turns q instead
};

/// Keys or values of one layer. Entry e, head g, element d lies at
///   address(e) + g * head_stride + offset_of(d)
/// where address(e) = base + e * entry_stride without a block table, and
/// blocks[e / block_size] + (e % block_size) * entry_stride with one.
struct KvSide {
  KvFormat format = KvFormat::kF32;
  std::byte* base = nullptr;
  std::byte* const* blocks = nullptr;  // [ceil(entries / block_size)] or null
  int32_t block_size = 0;              // entries in a block
  size_t entry_stride = 0;             // bytes from one entry to the next
  size_t head_stride = 0;              // bytes from one kv head to the next
  int32_t head_dim = 0;                // elements of a head

  [[nodiscard]] std::byte* entry(int64_t e) const noexcept {
    const auto index = static_cast<size_t>(e);
    if (blocks == nullptr) return base + index * entry_stride;
    const auto size = static_cast<size_t>(block_size);
    return blocks[index / size] + (index % size) * entry_stride;
  }
};

/// One layer of one sequence. Valid until the cache is next planned, truncated or freed.
struct KvView {
  KvSide k;
  KvSide v;
  int32_t kv_heads = 0;
  int32_t entries = 0;         // committed entries plus those of the plan this view was made for
  int32_t first_position = 0;  // position of entry 0 where positions are implied
  int32_t window = 0;          // visible entries, the row itself included; 0 means all
  KeyForm key_form = KeyForm::kRotated;
  const int32_t* positions = nullptr;       // [entries], or null: first_position + entry
  const float* log_weights = nullptr;       // [entries] added to scores, or null
  const int32_t* device_entries = nullptr;  // device counter holding `entries`, or null
};

}  // namespace gen::engine
