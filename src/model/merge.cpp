// SPDX-License-Identifier: Apache-2.0
// See merge.h.
#include "model/merge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "model/quantize.h"
#include "model/weights.h"
#include "quant/format.h"

namespace gen::model {
namespace {

/// What the products of each matrix of a tensor are multiplied by, [matrices].
Result<std::vector<float>> scales_of(const gguf::GgufFile& file, const AdapterPair& pair) {
  GEN_ASSIGN(const float beside, scale_beside(file, pair.tensor));
  std::vector<float> scales(static_cast<size_t>(pair.matrices), beside);
  if (pair.matrices == 1) return scales;
  // Gates and ups in one tensor have the scales of the ups.
  constexpr std::string_view kBoth = "ffn_gate_up_exps.weight";
  std::string stem = pair.tensor.substr(0, pair.tensor.rfind('.'));
  if (pair.tensor.ends_with(kBoth)) {
    stem = pair.tensor.substr(0, pair.tensor.size() - kBoth.size()) + "ffn_up_exps";
  }
  const gguf::TensorInfo* const tensor = file.find_tensor(stem + ".scale");
  if (tensor == nullptr) return scales;
  const quant::Format* const format = quant::find_format(tensor->type);
  if (format == nullptr || tensor->elements() != pair.matrices) {
    return error(Code::kUnsupported, "tensor %s is not one number for each of %lld experts",
                 tensor->name.c_str(), static_cast<long long>(pair.matrices));
  }
  format->decode(tensor->data.data(), scales.data(), pair.matrices);
  for (const float scale : scales) {
    if (std::isnormal(scale)) continue;
    return error(Code::kFormat, "tensor %s: %g scales nothing", tensor->name.c_str(),
                 static_cast<double>(scale));
  }
  return scales;
}

}  // namespace

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
  for (const AdapterPair& pair : made->adapter_.pairs) GEN_TRY(made->add(model, pair, scale));
  return std::unique_ptr<const MergedWeights>(std::move(made));
}

Status MergedWeights::add(const gguf::GgufFile& model, const AdapterPair& pair, float scale) {
  GEN_ASSIGN(const std::vector<float> scales, scales_of(model, pair));
  const double factor = double{scale} * pair.factor;
  if (factor == 0.0) return {};
  Delta delta;
  delta.rank = pair.rank;
  for (const float beside : scales) delta.factors.push_back(factor / double{beside});
  if (!pair.embedding) {
    delta.coefficients = pair.b.data();
    delta.basis = pair.a.data();
    delta.rows = std::ssize(pair.b) / pair.rank / pair.matrices;
  } else {
    std::vector<float>& turned = turned_.emplace_back();
    turned.reserve(pair.b.size());
    for (size_t r = 0; r < static_cast<size_t>(pair.rank); ++r) {
      for (size_t at = r; at < pair.b.size(); at += static_cast<size_t>(pair.rank)) {
        turned.push_back(pair.b[at]);
      }
    }
    delta.coefficients = pair.a.data();
    delta.basis = turned.data();
    delta.rows = std::ssize(pair.a) / pair.rank;
  }
  deltas_[pair.tensor] = std::move(delta);
  return {};
}

void MergedWeights::apply(const gguf::TensorInfo& tensor, int64_t first,
                          std::span<float> weights) const noexcept {
  const Delta& delta = deltas_.find(tensor.name)->second;
  const int64_t columns = tensor.shape[0];
  while (!weights.empty()) {
    const int64_t column = first % columns;
    const size_t n = std::min(weights.size(), static_cast<size_t>(columns - column));
    add_row(delta, columns, first / columns, column, weights.first(n));
    weights = weights.subspan(n);
    first += static_cast<int64_t>(n);
  }
}

void MergedWeights::add_row(const Delta& delta, int64_t columns, int64_t row, int64_t first,
                            std::span<float> weights) noexcept {
  constexpr size_t kColumns = 512;  // whose sums stay in the first cache
  const int64_t matrix = row / delta.rows;
  const double scale = delta.factors[static_cast<size_t>(matrix)];
  const float* const coefficients = delta.coefficients + row * delta.rank;
  const float* basis = delta.basis + matrix * delta.rank * columns + first;
  while (!weights.empty()) {
    std::array<double, kColumns> sums;
    const size_t n = std::min(kColumns, weights.size());
    std::fill_n(sums.begin(), n, 0.0);
    for (int64_t r = 0; r < delta.rank; ++r) {
      // A product of two floats is exact, so fused and separate additions give the same sum.
      const double factor = double{coefficients[r]};
      const float* const from = basis + r * columns;
      for (size_t i = 0; i < n; ++i) sums[i] += factor * double{from[i]};
    }
    for (size_t i = 0; i < n; ++i) {
      weights[i] = static_cast<float>(double{weights[i]} + scale * sums[i]);
    }
    weights = weights.subspan(n);
    basis += n;
  }
}

Status merge(const gguf::GgufFile& model, AdapterFile adapter, float scale,
             const QuantRecipe* recipe, ThreadPool& pool,
             const std::function<bool(double)>& progress, NewFile& out) {
  GEN_ASSIGN(const auto merged, MergedWeights::create(model, std::move(adapter), scale));
  return write_changed(model, recipe, *merged, pool, progress, out);
}

}  // namespace gen::model
