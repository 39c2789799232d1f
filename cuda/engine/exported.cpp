// SPDX-License-Identifier: Apache-2.0
// The one function that libgenerate-cuda.so exports; engine/backend/backend_library.cpp looks for it.
#include "cuda/engine/cuda_engine.h"

extern "C" __attribute__((visibility("default"))) const gen_backend_v1* gen_backend_v1_get() {
  return &gen::cuda::cuda_backend();
}
