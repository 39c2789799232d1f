// SPDX-License-Identifier: Apache-2.0
// GEN_VNNI_BEGIN … GEN_VNNI_END, outside of any namespace, mark functions that are compiled for
// AVX-512 with VNNI, independent of the rest of the build. Available if GEN_VNNI is 1.
// GEN_BF16_BEGIN … GEN_BF16_END do the same for bfloat16 dot products, if GEN_BF16 is 1.
#pragma once

#if defined(__x86_64__) && !defined(GEN_WITHOUT_AVX512)
#define GEN_VNNI 1
#define GEN_BF16 1

#if !defined(__clang__)
// gcc 12 warns about the "undefined" operands inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#define GEN_VNNI_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define GEN_VNNI_BEGIN                                                                        \
  GEN_VNNI_PRAGMA(clang attribute push(                                                       \
      __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), \
      apply_to = function))
#define GEN_VNNI_END GEN_VNNI_PRAGMA(clang attribute pop)
#define GEN_BF16_BEGIN                                                                        \
  GEN_VNNI_PRAGMA(clang attribute push(                                                       \
      __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"))), \
      apply_to = function))
#define GEN_BF16_END GEN_VNNI_END
#define GEN_VNNI_UNROLL _Pragma("unroll")
#else
#define GEN_VNNI_BEGIN              \
  GEN_VNNI_PRAGMA(GCC push_options) \
  GEN_VNNI_PRAGMA(GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))
#define GEN_VNNI_END GEN_VNNI_PRAGMA(GCC pop_options)
#define GEN_BF16_BEGIN              \
  GEN_VNNI_PRAGMA(GCC push_options) \
  GEN_VNNI_PRAGMA(GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"))
#define GEN_BF16_END GEN_VNNI_END
#define GEN_VNNI_UNROLL _Pragma("GCC unroll 16")
#endif

#else
#define GEN_VNNI 0
#define GEN_BF16 0
#endif
