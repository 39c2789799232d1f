// SPDX-License-Identifier: Apache-2.0
// See tensor_kinds.h.
#include "cache/tensor/tensor_kinds.h"

#include <utility>

#include "cache/tensor/quant_store.h"
#include "cache/tensor/tensor_store.h"

namespace gen::cache {
namespace {

using Made = Result<std::unique_ptr<TensorProvider>>;

template <DType kType>
Made create_plain(int32_t num_layers, int32_t max_seq_len, Allocator& allocator) {
  GEN_ASSIGN(auto store, TensorStore::create(kType, num_layers, max_seq_len, allocator));
  return std::unique_ptr<TensorProvider>(std::move(store));
}

template <const GroupFormat& kFormat>
Made create_grouped(int32_t num_layers, int32_t max_seq_len, Allocator& allocator) {
  GEN_ASSIGN(auto store, QuantStore::create(kFormat, num_layers, max_seq_len, allocator));
  return std::unique_ptr<TensorProvider>(std::move(store));
}

constexpr TensorKind kTensorKinds[] = {
    {kFp32Traits, create_plain<DType::kF32>},  {kFp16Traits, create_plain<DType::kF16>},
    {kFp8Traits, create_grouped<kFp8Tensors>}, {kQ4Traits, create_grouped<kQ4Tensors>},
    {kQ3Traits, create_grouped<kQ3Tensors>},
};

}  // namespace

std::span<const TensorKind> tensor_kinds() noexcept { return kTensorKinds; }

const TensorKind* find_tensor_kind(std::string_view name) noexcept {
  for (const TensorKind& kind : kTensorKinds) {
    if (name == kind.traits.kind) return &kind;
  }
  return nullptr;
}

}  // namespace gen::cache
