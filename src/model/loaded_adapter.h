// SPDX-License-Identifier: Apache-2.0
// An adapter of a model, as read from a file: see Model::make_adapter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/adapter_table.h"

namespace gen::model {

/// Immutable; holds copies, so it does not need the file.
struct LoadedAdapter {
  std::shared_ptr<const graph::Adapter> matrices;  // the file's factor is part of them
  /// Rows before the last occurrence of these tokens run without the adapter; empty: none do.
  std::vector<int32_t> invocation_tokens;
  /// A hash of names, shapes, values and factor: equal for equal adapters of one model.
  uint64_t content = 0;
  size_t bytes = 0;  // of engine memory
};

}  // namespace gen::model
