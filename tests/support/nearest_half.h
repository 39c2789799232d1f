/* SPDX-License-Identifier: Apache-2.0 */
/* What binary16 a float32 is nearest to, from the format's definition: the numbers of binary16 as doubles, in which their
 * sums and twice a float32 are exact, and a search among them. For C and C++. */
#ifndef GEN_TESTS_NEAREST_HALF_H_
#define GEN_TESTS_NEAREST_HALF_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Of a number that is no NaN, by its bits without the sign. What would follow the largest stands for infinity. */
static inline double half_magnitude(uint32_t bits) {
  const int exponent = (int)(bits >> 10);
  const double fraction = (double)(bits & 0x3FFU);
  return exponent == 0 ? ldexp(fraction, -24) : ldexp(1024.0 + fraction, exponent - 25);
}

static inline uint16_t nearest_half(float value) {
  uint32_t whole = 0;
  memcpy(&whole, &value, sizeof whole);
  const uint32_t sign = whole >> 31 << 15;
  if (isnan(value)) return (uint16_t)(sign | 0x7E00U);
  const double size = fabs((double)value);
  uint32_t below = 0; /* the last one that is not above */
  for (uint32_t step = 0x4000; step > 0; step /= 2) {
    if (below + step <= 0x7C00 && half_magnitude(below + step) <= size) below += step;
  }
  if (below == 0x7C00) return (uint16_t)(sign | below);
  const double both = half_magnitude(below) + half_magnitude(below + 1);
  const int up = 2 * size > both || (2 * size == both && below % 2 == 1);
  return (uint16_t)(sign | (below + (up ? 1U : 0U)));
}

/* The float32 that a finite or infinite binary16 stands for. */
static inline float half_number(uint16_t bits) {
  const uint32_t size = bits & 0x7FFFU;
  const float of = size == 0x7C00 ? INFINITY : (float)half_magnitude(size);
  return bits >> 15 ? -of : of;
}

/* Ties, borders, what is beyond them, and what has no nearest number. */
static const uint32_t hard_for_half[] = {
    0x00000000, /* 0 */
    0x80000000, /* -0 */
    0x00000001, /* the smallest float32 */
    0x33000000, /* 2^-25: a tie, to 0 */
    0x33000001, /* above it, to 2^-24 */
    0xB3000001, /* and below 0 */
    0x32FFFFFF, /* below the tie */
    0x33800000, /* 2^-24, the smallest */
    0x33C00000, /* 1.5 * 2^-24: a tie, up to 2 */
    0x34200000, /* 2.5 * 2^-24: a tie, down to 2 */
    0x387FC000, /* the largest below the normal numbers */
    0x387FE000, /* a tie between it and the smallest normal number */
    0x387FDFFF, /* below the tie */
    0x38800000, /* 2^-14 */
    0x3F800000, /* 1 */
    0x3F801000, /* 1 + 2^-11: a tie, to 1 */
    0x3F801001, /* above it */
    0x3F803000, /* 1 + 3 * 2^-11: a tie, to 1 + 2^-9 */
    0x3F802FFF, /* below it */
    0xBFFFF000, /* a tie that takes another exponent */
    0x477FE000, /* 65504, the largest */
    0x477FEFFF, /* below 65520 */
    0x477FF000, /* 65520, a tie, to infinity */
    0xC77FF000, /* and below 0 */
    0x47800000, /* 65536 */
    0x7F7FFFFF, /* the largest float32 */
    0x7F800000, /* infinity */
    0xFF800000, /* and below 0 */
    0x7FC00000, /* NaN */
    0xFFC00000, /* with a sign */
    0x7F800001, /* one that signals, with a payload that binary16 has no room for */
    0xFFABCDEF, /* with a sign and a payload */
};
enum { HARD_FOR_HALF = sizeof hard_for_half / sizeof hard_for_half[0] };

/* Kept whole: a NaN that signals goes through no register that might quiet it. */
static inline void hard_row(float *to, size_t n, size_t first) {
  for (size_t i = 0; i < n; ++i) memcpy(to + i, &hard_for_half[(first + i) % HARD_FOR_HALF], sizeof *to);
}

#endif
