// SPDX-License-Identifier: Apache-2.0
// See totals.h.
#include "model/gguf/totals.h"

#include "model/gguf/tensor_role.h"
#include "tensor/dtype.h"

namespace gen::gguf {

Totals totals(const GgufFile& file, int64_t blocks, int64_t used, int64_t experts) {
  Totals all;
  double bytes = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    if (is_media_tensor(tensor.name)) continue;
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
