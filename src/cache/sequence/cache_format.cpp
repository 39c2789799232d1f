// SPDX-License-Identifier: Apache-2.0
// See cache_format.h.
#include "cache/sequence/cache_format.h"

#include <array>
#include <string>

#include "engine/kv/codec.h"

namespace gen::cache {
namespace {

constexpr CacheKind kKinds[] = {
    {"fp32", 32.0, false, engine::KvFormat::kF32}, {"fp16", 16.0, true, engine::KvFormat::kF16},
    {"fp8", 8.5, true, engine::KvFormat::kFp8},    {"q4", 4.5, true, engine::KvFormat::kQ4},
    {"q3", 3.5, true, engine::KvFormat::kQ3},
};
constexpr auto kCount = static_cast<int32_t>(std::size(kKinds));
static_assert(kCount == engine::kKvFormats);
constexpr const char* kChoices[kKeyChoices] = {"best", "rotated", "hadamard"};

/// The table row of a format, in any order.
constexpr int32_t row_of(engine::KvFormat format) {
  int32_t row = 0;
  while (kKinds[row].format != format) ++row;
  return row;
}

/// The names are static, because they must outlive the caches that return them.
struct Name {
  char text[24] = {};
  int32_t size = 0;
  constexpr void add(const char* more) {
    for (; *more != '\0'; ++more) text[size++] = *more;
  }
};

constexpr int32_t index_of(int32_t keys, int32_t values, int32_t choice) {
  return (keys * kCount + values) * kKeyChoices + choice;
}

constexpr auto kFormatNames = [] {
  std::array<Name, static_cast<size_t>(kCount * kCount * kKeyChoices)> names;
  for (int32_t k = 0; k < kCount; ++k) {
    for (int32_t v = 0; v < kCount; ++v) {
      for (int32_t c = 0; c < kKeyChoices; ++c) {
        Name& name = names[static_cast<size_t>(index_of(k, v, c))];
        name.add(kKinds[k].name);
        if (v != k) {
          name.add("/");
          name.add(kKinds[v].name);
        }
        if (c != 0) {
          name.add(":");
          name.add(kChoices[c]);
        }
      }
    }
  }
  return names;
}();

Result<const CacheKind*> kind_named(std::string_view name) {
  if (const CacheKind* kind = find_cache_kind(name); kind != nullptr) return kind;
  std::string known;
  for (const CacheKind& kind : kKinds) {
    known.append(known.empty() ? "" : ", ").append(kind.name);
  }
  return error(Code::kInvalidArgument, "unknown cache kind \"%.40s\", known are %s",
               std::string(name).c_str(), known.c_str());
}

bool few_bits(engine::KvFormat format) {
  return format == engine::KvFormat::kQ4 || format == engine::KvFormat::kQ3;
}

}  // namespace

std::span<const CacheKind> cache_kinds() noexcept { return kKinds; }

const CacheKind* find_cache_kind(std::string_view name) noexcept {
  for (const CacheKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

const char* key_choice_name(KeyChoice choice) noexcept {
  return kChoices[static_cast<int32_t>(choice)];
}

Result<KeyChoice> find_key_choice(std::string_view name) {
  for (int32_t c = 0; c < kKeyChoices; ++c) {
    if (name == kChoices[c]) return static_cast<KeyChoice>(c);
  }
  return error(Code::kInvalidArgument,
               "unknown key form \"%.40s\", known are best, rotated, hadamard",
               std::string(name).c_str());
}

const char* CacheFormat::name() const noexcept {
  const int32_t index = index_of(row_of(keys), row_of(values), static_cast<int32_t>(key_choice));
  return kFormatNames[static_cast<size_t>(index)].text;
}

bool CacheFormat::lossy() const noexcept {
  return kKinds[row_of(keys)].lossy || kKinds[row_of(values)].lossy ||
         key_choice == KeyChoice::kHadamard;
}

engine::KeyForm CacheFormat::key_form(int32_t k_dim) const noexcept {
  const bool turned =
      key_choice == KeyChoice::kHadamard || (key_choice == KeyChoice::kBest && few_bits(keys));
  return turned && engine::kv_hadamard_fits(k_dim) ? engine::KeyForm::kHadamard
                                                   : engine::KeyForm::kRotated;
}

Result<CacheFormat> parse_cache_format(std::string_view text) {
  CacheFormat format;
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    GEN_ASSIGN(format.key_choice, find_key_choice(text.substr(colon + 1)));
    text = text.substr(0, colon);
  }
  const size_t slash = text.find('/');
  GEN_ASSIGN(const CacheKind* keys, kind_named(text.substr(0, slash)));
  const CacheKind* values = keys;
  if (slash != std::string_view::npos) {
    GEN_ASSIGN(values, kind_named(text.substr(slash + 1)));
  }
  format.keys = keys->format;
  format.values = values->format;
  return format;
}

Status check_layers(const CacheFormat& format, std::span<const LayerShape> layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerShape& shape = layers[i];
    if (shape.kv_heads < 1 || shape.k_dim < 1 || shape.v_dim < 1 || shape.window < 0 ||
        shape.chunk < 0) {
      return error(
          Code::kInvalidArgument,
          "layer %zu: %d kv heads of %d and %d elements, window %d, chunk %d: counts must be at "
          "least 1, window and chunk at least 0",
          i, shape.kv_heads, shape.k_dim, shape.v_dim, shape.window, shape.chunk);
    }
    if (format.key_choice == KeyChoice::kHadamard && !engine::kv_hadamard_fits(shape.k_dim)) {
      return error(Code::kInvalidArgument,
                   "layer %zu: keys of %d elements cannot be turned, multiples of 16 can", i,
                   shape.k_dim);
    }
  }
  return {};
}

}  // namespace gen::cache
