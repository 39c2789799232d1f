// SPDX-License-Identifier: Apache-2.0
// The table of tensor stores that need only a number of layers and a length. A new one is a file
// that implements TensorProvider and a row in tensor_kinds.cpp. Stores with more parameters, such
// as paged ones with their pool, are made by their own create().
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/allocator.h"
#include "base/status.h"
#include "cache/tensor/tensor_provider.h"

namespace gen::cache {

struct TensorKind {
  TensorTraits traits;
  /// Checks num_layers and max_seq_len; `allocator` must outlive the store.
  Result<std::unique_ptr<TensorProvider>> (*create)(int32_t num_layers, int32_t max_seq_len,
                                                    Allocator& allocator);
};

std::span<const TensorKind> tensor_kinds() noexcept;
/// By traits.kind; nullptr for an unknown name.
const TensorKind* find_tensor_kind(std::string_view name) noexcept;

}  // namespace gen::cache
