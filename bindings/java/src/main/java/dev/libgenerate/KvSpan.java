// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/**
 * A layer in place: element d of position p of lane b lies at b * batchStride + p * seqStride bytes, plus d elements, after
 * its address. All 0 where nothing is stored. For native code: the cache must stay open as long as the addresses are used.
 *
 * @param half elements are binary16 instead of float
 * @param k address of the keys
 * @param v address of the values
 * @param batch lanes
 * @param seq positions
 * @param kDim elements of a key row
 * @param vDim elements of a value row
 * @param kBatchStride bytes from lane to lane
 * @param kSeqStride bytes from position to position
 * @param vBatchStride as kBatchStride
 * @param vSeqStride as kSeqStride
 */
public record KvSpan(boolean half, long k, long v, int batch, int seq, int kDim, int vDim, long kBatchStride,
    long kSeqStride, long vBatchStride, long vSeqStride) {
  interface Getter {
    void get(long[] fields);
  }

  static KvSpan of(Getter getter) {
    long[] f = new long[11];
    getter.get(f);
    return new KvSpan(f[0] == 1, f[1], f[2], (int) f[3], (int) f[4], (int) f[5], (int) f[6], f[7], f[8], f[9], f[10]);
  }
}
