// SPDX-License-Identifier: Apache-2.0
// See merge.h.
#include "model/merge.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/quantize.h"
#include "model/weights.h"

namespace gen::model {

Result<std::unique_ptr<const MergedWeights>> MergedWeights::create(const gguf::GgufFile& model,
                                                                   AdapterFile adapter,
                                                                   float scale) {
  if (!adapter.invocation_tokens.empty()) {
    return error(Code::kUnsupported,
                 "the adapter is for rows behind its invocation tokens only, so it cannot be "
                 "merged");
  }
  std::unique_ptr<MergedWeights> made(new MergedWeights);
  made->adapter_ = std::move(adapter);
  for (const AdapterPair& pair : made->adapter_.pairs) {
    GEN_ASSIGN(const float beside, scale_beside(model, pair.tensor));
    const double factor = double{scale} * pair.factor / double{beside};
    if (factor != 0.0) made->deltas_[pair.tensor] = {&pair, factor};
  }
  return std::unique_ptr<const MergedWeights>(std::move(made));
}

void MergedWeights::apply(const gguf::TensorInfo& tensor, int64_t first,
                          std::span<float> weights) const noexcept {
  const Delta& delta = deltas_.find(tensor.name)->second;
  const int64_t in = tensor.shape[0];
  while (!weights.empty()) {
    const int64_t column = first % in;
    const size_t n = std::min(weights.size(), static_cast<size_t>(in - column));
    add_row(delta, in, first / in, column, weights.first(n));
    weights = weights.subspan(n);
    first += static_cast<int64_t>(n);
  }
}

void MergedWeights::add_row(const Delta& delta, int64_t in, int64_t row, int64_t first,
                            std::span<float> weights) noexcept {
  constexpr size_t kColumns = 512;  // whose sums stay in the first cache
  const int32_t rank = delta.pair->rank;
  const float* const b = delta.pair->b.data() + row * rank;
  const float* a = delta.pair->a.data() + first;
  while (!weights.empty()) {
    std::array<double, kColumns> sums;
    const size_t n = std::min(kColumns, weights.size());
    std::fill_n(sums.begin(), n, 0.0);
    for (int32_t r = 0; r < rank; ++r) {
      // A product of two floats is exact, so fused and separate additions give the same sum.
      const double factor = double{b[r]};
      const float* const from = a + r * in;
      for (size_t i = 0; i < n; ++i) sums[i] += factor * double{from[i]};
    }
    for (size_t i = 0; i < n; ++i) {
      weights[i] = static_cast<float>(double{weights[i]} + delta.factor * sums[i]);
    }
    weights = weights.subspan(n);
    a += n;
  }
}

Status merge(const gguf::GgufFile& model, AdapterFile adapter, float scale,
             const QuantRecipe* recipe, ThreadPool& pool,
             const std::function<bool(double)>& progress, NewFile& out) {
  GEN_ASSIGN(const auto merged, MergedWeights::create(model, std::move(adapter), scale));
  return write_changed(model, recipe, *merged, pool, progress, out);
}

}  // namespace gen::model
