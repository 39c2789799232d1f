// SPDX-License-Identifier: Apache-2.0
// See totals.h.
#include "model/gguf/totals.h"

#include <charconv>

#include "tensor/dtype.h"

namespace gen::gguf {

namespace {

/// Of "blk.12.attn_q.weight" 12; -1 for a tensor of no block.
int64_t block_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  int64_t block = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), block);
  return block;
}

}  // namespace

Totals totals(const GgufFile& file, int64_t blocks, int64_t used, int64_t experts) {
  Totals all;
  double bytes = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    const auto size = static_cast<double>(tensor.data.size());
    all.shares[dtype_name(tensor.type)] += size;
    bytes += size;
    const int64_t elements = tensor.elements();
    const bool stack = experts > 0 && tensor.name.find("_exps.") != std::string::npos;
    all.parameters += elements;
    if (block_of(tensor.name) >= blocks) continue;
    all.active += stack ? elements / experts * used : elements;
  }
  for (auto& [name, share] : all.shares) share = bytes > 0 ? share / bytes : 0;
  return all;
}

}  // namespace gen::gguf
