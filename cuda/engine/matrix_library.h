// SPDX-License-Identifier: Apache-2.0
// MatrixLibrary: products of 16-bit matrices by cuBLASLt, where that library is on the machine. It
// is opened when the first product wants it and known by its functions alone, so that neither its
// headers nor the library itself are needed to build or to start; without it our own kernels do the
// same work, only slower. It gets its workspace from the caller, and chooses how it works by the
// number of rows, so that a row's bits depend on the rows beside it. Where they must not, it is
// asked for several ways that do not split the columns, and the fastest of those that trials have
// shown to have our own kernel's bits is kept (matrix_products.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/ops/matrix_products.h"

namespace gen::cuda {

/// Threads: whoever has a turn on the queue whose device it is for.
class MatrixLibrary final : public MatrixProducts {
 public:
  /// `path` of the library; empty: where the system finds it, and nowhere in the emulator. The
  /// value of GEN_CUBLASLT where that is set; "off" stands for none.
  explicit MatrixLibrary(std::string path = chosen_path());
  ~MatrixLibrary() override;
  MatrixLibrary(const MatrixLibrary&) = delete;
  MatrixLibrary& operator=(const MatrixLibrary&) = delete;

  [[nodiscard]] size_t workspace_bytes(int32_t compute) override;
  bool multiply(const MatrixProduct& product, device::Stream stream) override;
  [[nodiscard]] Ways ways(const MatrixProduct& product) override;
  void judge(const MatrixProduct& product, Verdict verdict, float ms) override;
  void settle(const MatrixProduct& product, float own_ms) override;
  /// Why there is none; empty where there is one or nobody has asked yet.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }

  static std::string chosen_path();

 private:
  struct Functions;
  struct Plan;
  /// Logs why there is none, once.
  bool open();
  bool find();
  /// How the library does a product of this shape; null if it does not.
  Plan* plan_of(const MatrixProduct& product);
  /// Asks for up to `wanted` ways; how many there are is plan.ways.
  void plan_ways(Plan& plan, int wanted);
  /// Takes the way behind the one at hand, or ends the trial if there is none.
  static void next_way(Plan& plan);
  /// From here on by one of the ways that have passed.
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
