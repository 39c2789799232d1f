// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** Sizes of arrays, which the other side believes. */
final class Shapes {
  private Shapes() {}

  static long product(int... shape) {
    long product = 1;
    for (int size : shape) product = Math.multiplyExact(product, Math.max(size, 0));
    return product;
  }

  /** Throws if an array is shorter than its shape. Null and negative sizes are for the library to refuse. */
  static void check(float[] data, String what, int... shape) {
    if (data != null && data.length < product(shape)) {
      throw new GenerateException(Status.INVALID_ARGUMENT,
          "the " + what + " are " + data.length + " floats, their shape wants " + product(shape));
    }
  }

  static float[] array(int[] shape) {
    return new float[Math.toIntExact(product(shape))];
  }

  static KvCache.Tensor tensor(float[] data, int[] shape) {
    return new KvCache.Tensor(data, shape[0], shape[1], shape[2]);
  }

  static int length(int[] array) {
    return array != null ? array.length : 0;
  }
}
