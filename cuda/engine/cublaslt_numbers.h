// SPDX-License-Identifier: Apache-2.0
// Constants and structures of cuBLASLt that MatrixLibrary uses, so that its headers are not needed.
// They are the same from version 11 to 13; a test compares them with the toolkit's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::cuda::cublaslt {

inline constexpr int kNoTranspose = 0;
inline constexpr int kTranspose = 1;
inline constexpr int kComputeF32 = 68;
inline constexpr int kTypeF32 = 0;
inline constexpr int kTypeF16 = 2;
inline constexpr int kTypeBF16 = 14;
inline constexpr int kDescTransposeA = 3;
inline constexpr int kDescTransposeB = 4;
inline constexpr int kPreferenceWorkspace = 1;
inline constexpr int kPreferenceReductions = 3;
inline constexpr uint32_t kNoReduction = 0;

struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

}  // namespace gen::cuda::cublaslt
