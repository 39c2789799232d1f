// SPDX-License-Identifier: Apache-2.0
// MatrixLibrary: products of 16-bit matrices by cuBLASLt, if it is installed. The library is opened
// by the first product and used through its exported functions, so neither its headers nor the
// library are needed to build or to start. Without it our own kernels do the same work more slowly.
// The caller provides the workspace. cuBLASLt chooses its algorithm by the number of rows, so a
// row's bits depend on the other rows. If they must not, several algorithms that do not split the
// columns are requested, and the fastest of those that trials have shown to have our own kernel's
// bits is kept (matrix_products.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/ops/matrix_products.h"

namespace gen::cuda {

/// Threads: one with a turn on the queue of its device.
class MatrixLibrary final : public MatrixProducts {
 public:
  /// `path` of the library. Empty: the system's search path, or none in the emulator. GEN_CUBLASLT
  /// overrides it; "off" means none.
  explicit MatrixLibrary(std::string path = chosen_path());
  ~MatrixLibrary() override;
  MatrixLibrary(const MatrixLibrary&) = delete;
  MatrixLibrary& operator=(const MatrixLibrary&) = delete;

  [[nodiscard]] size_t workspace_bytes(int32_t compute) override;
  bool multiply(const MatrixProduct& product, device::Stream stream) override;
  [[nodiscard]] Ways ways(const MatrixProduct& product) override;
  void judge(const MatrixProduct& product, Verdict verdict, float ms) override;
  void settle(const MatrixProduct& product, float own_ms) override;
  /// Why the library is missing; empty if it is loaded or has not been needed yet.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }

  static std::string chosen_path();

 private:
  struct Functions;
  struct Plan;
  /// Logs once why the library is missing.
  bool open();
  bool find();
  /// The plan of a product of this shape; null if the library does not support it.
  Plan* plan_of(const MatrixProduct& product);
  /// Requests up to `wanted` algorithms; sets plan.ways to their number.
  void plan_ways(Plan& plan, int wanted);
  /// Moves on to the next way, or ends the trials after the last.
  static void next_way(Plan& plan);
  /// Fixes the plan on one of the ways that have passed.
  static void take_passed(Plan& plan) noexcept;

  std::string path_;
  std::string why_not_;
  bool tried_ = false;
  void* library_ = nullptr;
  std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<std::unique_ptr<Plan>> tried_plans_;  // of products with own_bits
};

}  // namespace gen::cuda
