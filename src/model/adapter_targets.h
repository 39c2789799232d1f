// SPDX-License-Identifier: Apache-2.0
// What the file of an adapter may name of a model: its tensors, and which products read which of
// their rows. Collected while the model's own file is open, because names are gone later.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "model/gguf/gguf_file.h"

namespace gen::model {

/// The rows of a tensor that are one product's, as in engine::WeightSource.
struct AdapterRows {
  int32_t site = -1;
  int64_t rows = 0;  // of each matrix
  int64_t pieces = 1;
  int64_t piece_rows = 0;
  int64_t first_row = 0;
  float scale = 1.0F;  // of the product's sums, which an adapter's part must not be multiplied by
};

struct AdapterTarget {
  int64_t in = 0;
  int64_t out = 0;
  int64_t matrices = 1;    // E of a stack of experts
  bool embedding = false;  // of tokens, whose rows are looked up
  std::vector<AdapterRows> products;
  const char* refusal = nullptr;  // why adapters of it are refused; products are empty then
};

struct AdapterTargets {
  std::string architecture;
  int32_t vocab_size = 0;
  std::map<std::string, AdapterTarget, std::less<>> tensors;  // by name
};

/// The products of a graph whose weights are of this file. The head of a model with a tied
/// embedding has the name output.weight here: token_embd.weight is the embedding.
AdapterTargets adapter_targets(const graph::Graph& graph, const gguf::GgufFile& file,
                               std::string_view architecture, int32_t vocab_size);

/// The matrices of a file into which adapters can be merged, of any architecture and without
/// products. kFormat without an architecture.
Result<AdapterTargets> merge_targets(const gguf::GgufFile& file);

}  // namespace gen::model
