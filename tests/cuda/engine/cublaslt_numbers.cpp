// SPDX-License-Identifier: Apache-2.0
// Compiled where the toolkit is: the numbers and structures by which MatrixLibrary knows cuBLASLt
// are those of its header.
#include <cublasLt.h>

#include "cuda/engine/cublaslt_numbers.h"

namespace gen::cuda::cublaslt {

static_assert(kNoTranspose == CUBLAS_OP_N && kTranspose == CUBLAS_OP_T);
static_assert(kComputeF32 == CUBLAS_COMPUTE_32F);
static_assert(kTypeF32 == CUDA_R_32F && kTypeF16 == CUDA_R_16F && kTypeBF16 == CUDA_R_16BF);
static_assert(kDescTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(kDescTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kPreferenceWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kPreferenceReductions == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(kNoReduction == CUBLASLT_REDUCTION_SCHEME_NONE);
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(HeuristicResult, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(HeuristicResult, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

}  // namespace gen::cuda::cublaslt
