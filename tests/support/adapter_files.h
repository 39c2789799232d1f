// SPDX-License-Identifier: Apache-2.0
// What tests of adapter files share: tensors of drawn values, and models with what was read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "quant/format.h"
#include "support/adapter_values.h"

namespace gen::test {

inline std::vector<std::byte> bytes_of(const std::vector<float>& values, DType type = DType::kF32) {
  const DTypeInfo* info = dtype_info(type);
  std::vector<std::byte> data(values.size() / info->block_elements * info->block_bytes);
  quant::find_format(type)->encode(values.data(), data.data(), static_cast<int64_t>(values.size()));
  return data;
}

inline std::vector<float> drawn(std::string_view name, int64_t count) {
  uint64_t seed = 7;
  for (const char c : name) seed = seed * 131 + static_cast<unsigned char>(c);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(uniform_double(seed, 3, static_cast<uint64_t>(i)) - 0.5) /
                     4);
  }
  return values;
}

/// Of five tokens, with the table's first mix.
inline std::vector<float> logits(const LoadedTiny& loaded, const graph::AdapterTable* table) {
  const std::vector<int32_t> tokens = {3, 14, 15, 9, 26};
  const auto cache = loaded.cache();
  const auto state = loaded.state();
  OwnedBatch batch;
  EXPECT_TRUE(batch.add(*cache, tokens, true, state.get()).ok());
  if (table != nullptr) batch.sequences.back().adapter = 0;
  batch.finish(loaded.vocab());
  batch.batch.adapters = table;
  const Status status = loaded.model().forward(batch.batch);
  EXPECT_TRUE(status.ok()) << status.message();
  return batch.results(loaded.vocab());
}

/// The largest difference, as a share of the largest value of `y`.
inline double difference(const std::vector<float>& x, const std::vector<float>& y) {
  double largest = 0.0;
  double off = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::abs(double{y[i]}));
    off = std::max(off, std::abs(double{x[i]} - double{y[i]}));
  }
  return off / largest;
}

inline Result<std::shared_ptr<const model::LoadedAdapter>> make(
    const LoadedTiny& loaded, const std::vector<std::byte>& bytes) {
  GEN_ASSIGN(const auto file, gguf::GgufFile::parse(bytes));
  return loaded.model().make_adapter(*file);
}

}  // namespace gen::test
