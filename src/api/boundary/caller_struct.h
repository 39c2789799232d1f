// SPDX-License-Identifier: Apache-2.0
// Structs that a caller passes: they begin with `uint32_t struct_size` and only grow at the end.
// The caller may have been built with older or newer headers than the library: members that its
// struct lacks count as zero; members beyond ours are neither read nor written. A struct smaller
// than in version 0.1 is an error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/status.h"
#include <generate/custom_model.h>
#include <generate/eagle.h>
#include <generate/gpu.h>
#include <generate/kv_cache.h>
#include <generate/metrics.h>

namespace gen::api {

/// Name of a struct, and its size in version 0.1: up to the end of its last member then. Each such
/// struct has a specialisation; the sizes never change.
template <typename T>
struct CallerStruct;

template <>
struct CallerStruct<gen_allocator> {
  static constexpr const char* kName = "gen_allocator";
  static constexpr size_t kFirstSize =
      offsetof(gen_allocator, release) + sizeof(gen_allocator::release);
};

template <>
struct CallerStruct<gen_gpu_allocator> {
  static constexpr const char* kName = "gen_gpu_allocator";
  static constexpr size_t kFirstSize =
      offsetof(gen_gpu_allocator, release_pinned) + sizeof(gen_gpu_allocator::release_pinned);
};

template <>
struct CallerStruct<gen_eagle_tensors> {
  static constexpr const char* kName = "gen_eagle_tensors";
  static constexpr size_t kFirstSize =
      offsetof(gen_eagle_tensors, lm_head) + sizeof(gen_eagle_tensors::lm_head);
};

template <>
struct CallerStruct<gen_forward> {
  static constexpr const char* kName = "gen_forward";
  static constexpr size_t kFirstSize =
      offsetof(gen_forward, release) + sizeof(gen_forward::release);
};

template <>
struct CallerStruct<gen_metrics_sink> {
  static constexpr const char* kName = "gen_metrics_sink";
  static constexpr size_t kFirstSize =
      offsetof(gen_metrics_sink, histogram_observe) + sizeof(gen_metrics_sink::histogram_observe);
};

template <>
struct CallerStruct<kv_cache_span> {
  static constexpr const char* kName = "kv_cache_span";
  static constexpr size_t kFirstSize =
      offsetof(kv_cache_span, v_seq_stride) + sizeof(kv_cache_span::v_seq_stride);
};

/// kInvalidArgument for a struct smaller than in version 0.1.
template <typename T>
Status check_struct(const T& given) {
  static_assert(offsetof(T, struct_size) == 0);
  if (given.struct_size >= CallerStruct<T>::kFirstSize) return {};
  return error(Code::kInvalidArgument, "struct_size of %s is %u, below %zu", CallerStruct<T>::kName,
               given.struct_size, CallerStruct<T>::kFirstSize);
}

/// Copies the caller's struct into the library's form.
template <typename T>
Result<T> read_struct(const T& given) {
  GEN_TRY(check_struct(given));
  T ours{};
  std::memcpy(&ours, &given, std::min<size_t>(given.struct_size, sizeof ours));
  ours.struct_size = sizeof ours;
  return ours;
}

/// Fills a struct that check_struct() has accepted. Its struct_size stays the caller's.
template <typename T>
void write_struct(T ours, T* out) {
  ours.struct_size = out->struct_size;
  std::memcpy(out, &ours, std::min<size_t>(ours.struct_size, sizeof ours));
}

}  // namespace gen::api
