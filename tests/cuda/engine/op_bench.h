// SPDX-License-Identifier: Apache-2.0
// One operation on any engine: arguments are laid out in the engine's memory, results are read
// back. The same case runs on the CPU engine and on the CUDA engine, and the bits are compared.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "cuda/engine/tested_engine.h"
#include "engine/access.h"
#include "engine/engine.h"
#include "support/cpu_engine.h"

namespace gen::test {

class OpBench {
 public:
  explicit OpBench(std::shared_ptr<engine::Engine> engine)
      : engine_(std::move(engine)), stream_(std::move(engine_->new_stream()).value()) {}

  [[nodiscard]] engine::Engine& engine() { return *engine_; }
  template <typename T>
  engine::EnginePtr<T> put(const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    auto made = engine_->memory().allocate(bytes + 1);
    EXPECT_TRUE(made.ok()) << made.status().message();
    buffers_.push_back(std::move(made).value());
    const auto at = buffers_.back().data();
    EXPECT_TRUE(engine_->upload(*stream_, at, values.data(), bytes).ok());
    return at.as<T>();
  }
  void write(engine::EnginePtr<std::byte> at, const std::vector<std::byte>& bytes) {
    EXPECT_TRUE(engine_->upload(*stream_, at, bytes.data(), bytes.size()).ok());
    EXPECT_TRUE(engine_->finish(*stream_).ok());
  }
  /// A buffer filled with a pattern, for results.
  engine::EnginePtr<float> room(int64_t n) {
    return put(std::vector<float>(static_cast<size_t>(n), 7.25F));
  }
  void run(const engine::OpArgs& args) {
    const Status status = try_run(args);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Status try_run(const engine::OpArgs& args) {
    GEN_TRY(engine_->run(*stream_, args));
    return engine_->finish(*stream_);
  }
  Status run_all(const std::vector<engine::OpArgs>& list) {
    GEN_TRY(engine_->run_all(*stream_, list));
    return engine_->finish(*stream_);
  }
  template <typename T>
  std::vector<std::remove_const_t<T>> get(engine::EnginePtr<T> at, int64_t n) {
    std::vector<std::remove_const_t<T>> values(static_cast<size_t>(n));
    EXPECT_TRUE(engine_
                    ->download(*stream_, values.data(),
                               engine::EnginePtr<const T>(at).template as<const std::byte>(),
                               values.size() * sizeof(T))
                    .ok());
    EXPECT_TRUE(engine_->finish(*stream_).ok());
    return values;
  }

 private:
  std::shared_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Stream> stream_;
  std::deque<engine::EngineBuffer> buffers_;
};

inline std::vector<float> random_row(size_t n, uint32_t seed, float scale = 1.0F) {
  std::mt19937 bits(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    value = (static_cast<float>(bits() >> 8) * 0x1p-23F - 1.0F) * scale;
  }
  return values;
}

/// Equal bits, or both NaN.
inline ::testing::AssertionResult same_bits(const std::vector<float>& a,
                                            const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " vs " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(a[i] != a[i] && b[i] != b[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " vs " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

/// Checks that a case gives the same bits on the CPU engine and on the CUDA engine.
inline void expect_same(const std::function<std::vector<float>(OpBench&)>& scenario) {
  OpBench cpu(cpu_engine());
  OpBench cuda(cuda_engine());
  const std::vector<float> want = scenario(cpu);
  const std::vector<float> got = scenario(cuda);
  ASSERT_FALSE(want.empty());
  EXPECT_TRUE(same_bits(got, want));
}

}  // namespace gen::test
