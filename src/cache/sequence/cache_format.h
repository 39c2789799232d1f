// SPDX-License-Identifier: Apache-2.0
// How an engine cache encodes: a format for keys, one for values, and the form in which keys are
// stored. Written as "fp16", as "fp8/q4" where keys and values differ, with ":rotated" or
// ":hadamard" behind where the form is not the best one for the format.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "cache/layer_shape.h"
#include "engine/kv_layer.h"

namespace gen::cache {

/// A format by name. A new one is a codec (engine/kv/codec.h) and one row in cache_format.cpp.
struct CacheKind {
  const char* name;       // "fp32"
  double bits_per_value;  // stored, scales included, for four heads of 64
  bool lossy;             // stored values differ from those written
  engine::KvFormat format;
};

/// All kinds, the default one first.
std::span<const CacheKind> cache_kinds() noexcept;
/// nullptr for an unknown name.
const CacheKind* find_cache_kind(std::string_view name) noexcept;

/// What is asked of keys before they are encoded.
enum class KeyChoice : int32_t {
  kBest = 0,      // Hadamard-turned for formats of few bits where head sizes allow
  kRotated = 1,   // as rotary embedding leaves them
  kHadamard = 2,  // turned, whatever the format
};
constexpr int32_t kKeyChoices = 3;
/// "best", "rotated", "hadamard".
const char* key_choice_name(KeyChoice choice) noexcept;
/// kInvalidArgument naming the three.
Result<KeyChoice> find_key_choice(std::string_view name);

struct CacheFormat {
  engine::KvFormat keys = engine::KvFormat::kF32;
  engine::KvFormat values = engine::KvFormat::kF32;
  KeyChoice key_choice = KeyChoice::kBest;

  /// As parse_cache_format reads it, in its shortest form; static text.
  [[nodiscard]] const char* name() const noexcept;
  /// Stored values differ from those written.
  [[nodiscard]] bool lossy() const noexcept;
  /// The form for heads of `k_dim` elements.
  [[nodiscard]] engine::KeyForm key_form(int32_t k_dim) const noexcept;
};

/// kInvalidArgument naming what is unknown and what is known.
Result<CacheFormat> parse_cache_format(std::string_view text);

/// kInvalidArgument for a shape without heads or elements, or one whose keys cannot be turned
/// though the format asks for it, naming the layer.
Status check_layers(const CacheFormat& format, std::span<const LayerShape> layers);

}  // namespace gen::cache
