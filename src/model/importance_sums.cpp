// SPDX-License-Identifier: Apache-2.0
// See importance_sums.h.
#include "model/importance_sums.h"

#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_writer.h"
#include "model/importance_form.h"

namespace gen::model {
namespace {

constexpr size_t kMaxSumsName = 63;  // of a tensor in the file: llama.cpp reads no longer ones

void add_squares(const float* row, size_t cols, double* sums) noexcept {
  for (size_t c = 0; c < cols; ++c) {
    const double value = row[c];
    sums[c] += value * value;  // the product is exact
  }
}

/// A matrix of float32 with these columns, without data.
gguf::TensorInfo float_matrix(std::string name, size_t cols, size_t rows) {
  gguf::TensorInfo info;
  info.name = std::move(name);
  info.shape = {static_cast<int64_t>(cols), static_cast<int64_t>(rows), 1, 1};
  info.n_dims = rows > 1 ? 2 : 1;
  return info;
}

}  // namespace

Status ImportanceSums::observe(const graph::ProductInput& input) {
  const auto cols = static_cast<size_t>(input.cols);
  const auto [found, is_new] = products_.try_emplace(input.product);
  Sums& sums = found->second;
  if (is_new) {
    for (const std::string& tensor : input.tensors) {
      if (tensor.size() + kSquaresSuffix.size() <= kMaxSumsName) continue;
      return error(
          Code::kUnsupported,
          "tensor %s: a name of %zu bytes is too long for an importance matrix, at most %zu",
          tensor.c_str(), tensor.size(), kMaxSumsName - kSquaresSuffix.size());
    }
    sums.tensors.assign(input.tensors.begin(), input.tensors.end());
    sums.cols = cols;
    sums.squares.resize(static_cast<size_t>(input.matrices) * cols);
    sums.rows.resize(static_cast<size_t>(input.matrices));
  }
  if (input.routes == nullptr) {
    for (int64_t row = 0; row < input.rows; ++row) {
      add_squares(input.data + row * input.stride, cols, sums.squares.data());
    }
    sums.rows[0] += input.rows;
    return {};
  }
  const bool own_rows = input.rows != input.routed;  // each expert of a row reads its own
  for (int64_t t = 0; t < input.routed; ++t) {
    for (int32_t s = 0; s < input.n_used; ++s) {
      const auto expert = static_cast<size_t>(input.routes[t * input.route_stride + s]);
      const int64_t row = own_rows ? t * input.n_used + s : t;
      add_squares(input.data + row * input.stride, cols, sums.squares.data() + expert * cols);
      ++sums.rows[expert];
    }
  }
  return {};
}

Status ImportanceSums::write(const ImportanceText& text, NewFile& out) const {
  // More than one product if several layers use a tensor.
  std::map<std::string_view, std::vector<const Sums*>> tensors;
  for (const auto& [product, sums] : products_) {
    for (const std::string& name : sums.tensors) tensors[name].push_back(&sums);
  }
  gguf::HeaderWriter header(gguf::kDefaultAlignment);
  header.set_string("general.type", kImportanceType);
  std::vector<std::string> datasets;
  if (!text.dataset.empty()) datasets.push_back(text.dataset);
  header.set_strings(kDatasetsKey, datasets);
  header.set_u32("imatrix.chunk_count", text.windows);
  header.set_u32("imatrix.chunk_size", text.window_tokens);
  for (const auto& [name, all] : tensors) {
    const Sums& first = *all.front();
    const size_t matrices = first.rows.size();
    for (const Sums* one : all) {
      if (one->cols == first.cols && one->rows.size() == matrices) continue;
      return error(Code::kUnsupported, "tensor %s is multiplied with inputs of %zu and %zu columns",
                   first.tensors.front().c_str(), first.cols, one->cols);
    }
    const std::string stem(name);
    if (!header.add_tensor(float_matrix(stem + std::string(kSquaresSuffix), first.cols, matrices),
                           DType::kF32) ||
        !header.add_tensor(float_matrix(stem + std::string(kCountsSuffix), 1, matrices),
                           DType::kF32)) {
      return error(Code::kUnsupported, "tensor %s is too large", stem.c_str());
    }
  }
  const std::string before_data = header.finish();
  GEN_TRY(out.write(std::as_bytes(std::span(before_data))));
  std::vector<float> values;
  const auto append = [&]() -> Status {
    const auto bytes = std::as_bytes(std::span(values));
    GEN_TRY(out.write(bytes));
    return out.write(std::vector<std::byte>(static_cast<size_t>(header.padding(bytes.size()))));
  };
  for (const auto& [name, all] : tensors) {
    values.clear();
    for (size_t i = 0; i < all.front()->squares.size(); ++i) {
      double sum = 0;
      for (const Sums* one : all) sum += one->squares[i];
      values.push_back(static_cast<float>(sum));
      if (std::isfinite(values.back())) continue;
      return error(Code::kModel, "tensor %s: the squares of its inputs in column %zu sum to %g",
                   std::string(name).c_str(), i % all.front()->cols, sum);
    }
    GEN_TRY(append());
    values.clear();
    for (size_t i = 0; i < all.front()->rows.size(); ++i) {
      int64_t rows = 0;
      for (const Sums* one : all) rows += one->rows[i];
      values.push_back(static_cast<float>(rows));
    }
    GEN_TRY(append());
  }
  return {};
}

}  // namespace gen::model
