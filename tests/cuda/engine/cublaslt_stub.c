/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the functions of cuBLASLt that MatrixLibrary uses, for the emulator. It keeps what it is told, refuses
 * what the real one would, and has the program that loaded it multiply. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cublaslt_stub.h"

enum { kOk = 0, kInvalid = 7, kUnsupported = 15 };

struct desc {
  int compute, scale, transpose[2];
};
struct layout {
  int type;
  uint64_t rows, cols;
  int64_t stride;
};
struct preference {
  uint64_t workspace;
  uint32_t reductions;
};
struct result {
  uint64_t algorithm[8];
  uint64_t workspace;
  int status;
  float waves;
  int reserved[4];
};

static void* made(size_t bytes, const void* from) {
  void* at = malloc(bytes);
  if (at != NULL) memcpy(at, from, bytes);
  return at;
}

int cublasLtCreate(void** handle) {
  const int nothing = 0;
  *handle = made(sizeof nothing, &nothing);
  return *handle != NULL ? kOk : kInvalid;
}
int cublasLtDestroy(void* handle) {
  free(handle);
  return kOk;
}
int cublasLtMatmulDescCreate(void** desc, int compute, int scale) {
  const struct desc of = {compute, scale, {0, 0}};
  *desc = made(sizeof of, &of);
  return kOk;
}
int cublasLtMatmulDescSetAttribute(void* desc, int attribute, const void* from, size_t bytes) {
  if ((attribute != 3 && attribute != 4) || bytes != sizeof(int)) return kInvalid;
  memcpy(&((struct desc*)desc)->transpose[attribute - 3], from, bytes);
  return kOk;
}
int cublasLtMatmulDescDestroy(void* desc) {
  free(desc);
  return kOk;
}
int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t cols, int64_t stride) {
  const struct layout of = {type, rows, cols, stride};
  if (stride < (int64_t)rows) return kInvalid;
  *layout = made(sizeof of, &of);
  return kOk;
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  free(layout);
  return kOk;
}
int cublasLtMatmulPreferenceCreate(void** preference) {
  const struct preference of = {0, 7};
  *preference = made(sizeof of, &of);
  return kOk;
}
int cublasLtMatmulPreferenceSetAttribute(void* preference, int attribute, const void* from, size_t bytes) {
  struct preference* of = preference;
  if (attribute != 1 && attribute != 3) return kInvalid;
  if (bytes != (attribute == 1 ? sizeof of->workspace : sizeof of->reductions)) return kInvalid;
  memcpy(attribute == 1 ? (void*)&of->workspace : (void*)&of->reductions, from, bytes);
  return kOk;
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  free(preference);
  return kOk;
}

int cublasLtMatmulAlgoGetHeuristic(void* handle, void* desc, const struct layout* a, const struct layout* b,
                                   const struct layout* c, const struct layout* d, const struct preference* preference,
                                   int wanted, struct result* results, int* found) {
  const struct desc* of = desc;
  *found = 0;
  if (handle == NULL || of->compute != 68 || of->scale != 0 || of->transpose[0] != 1 || of->transpose[1] != 0) return kInvalid;
  if (a->type != b->type || (a->type != 2 && a->type != 14) || c->type != 0 || d->type != 0) return kInvalid;
  if (a->rows != b->rows || d->rows != a->cols || d->cols != b->cols || wanted < 1) return kInvalid;
  if (a->stride % 8 != 0 || b->stride % 8 != 0) return kUnsupported;  /* the fast ways want 16 bytes */
  if (preference->workspace < (UINT64_C(1) << 20)) return kUnsupported;
  const stub_ways ways = (stub_ways)dlsym(RTLD_DEFAULT, "gen_test_ways");
  *found = ways != NULL ? ways() : 1;
  if (*found > wanted) *found = wanted;
  memset(results, 0, (size_t)*found * sizeof *results);
  for (int i = 0; i < *found; ++i) {
    results[i].algorithm[0] = 4711;
    results[i].algorithm[1] = (uint64_t)i;
    results[i].algorithm[2] = preference->reductions == 0;
    results[i].workspace = UINT64_C(1) << 20;
  }
  return kOk;
}

int cublasLtMatmul(void* handle, void* desc, const float* alpha, const void* a, const struct layout* a_layout, const void* b,
                   const struct layout* b_layout, const float* beta, const void* c, const struct layout* c_layout, void* d,
                   const struct layout* d_layout, const uint64_t* algorithm, void* workspace, size_t workspace_bytes,
                   void* stream) {
  if (handle == NULL || desc == NULL || *alpha != 1.0F || (*beta != 0.0F && *beta != 1.0F) || c_layout != d_layout) return kInvalid;
  if (*beta == 0.0F && c != d) return kInvalid;
  if (*algorithm != 4711 || workspace == NULL || (uintptr_t)workspace % 256 != 0 || workspace_bytes < (size_t)1 << 20) return kInvalid;
  const stub_multiply multiply = (stub_multiply)dlsym(RTLD_DEFAULT, "gen_test_multiply");
  if (multiply == NULL) return kUnsupported;
  const struct stub_product product = {a, b, d, a_layout->type == 14, *beta == 1.0F ? c : NULL, (int64_t)a_layout->rows, (int64_t)a_layout->cols,
                                       (int64_t)b_layout->cols, a_layout->stride, b_layout->stride, d_layout->stride, (int)algorithm[1], (int)algorithm[2]};
  return multiply(&product, stream);
}
