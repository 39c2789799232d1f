// SPDX-License-Identifier: Apache-2.0
// See tensor_kinds.h.
#include "cache/tensor_kinds.h"

#include <utility>

#include "cache/tensor_store.h"

namespace gen::cache {
namespace {

using Made = Result<std::unique_ptr<TensorProvider>>;

template <DType kType>
Made create_plain(int32_t num_layers, int32_t max_seq_len, Allocator& allocator) {
  GEN_ASSIGN(auto store, TensorStore::create(kType, num_layers, max_seq_len, allocator));
  return std::unique_ptr<TensorProvider>(std::move(store));
}

constexpr TensorKind kKinds[] = {
    {kFloatTensors, create_plain<DType::kF32>},
    {kHalfTensors, create_plain<DType::kF16>},
};

}  // namespace

std::span<const TensorKind> tensor_kinds() noexcept { return kKinds; }

const TensorKind* find_tensor_kind(std::string_view name) noexcept {
  for (const TensorKind& kind : kKinds) {
    if (name == kind.traits.kind) return &kind;
  }
  return nullptr;
}

}  // namespace gen::cache
