// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** The source of device memory for caches and models; they keep what they use of it alive. */
public final class GpuAllocator extends Handle {
  /** What is taken from an allocator of the library. */
  public record Counters(long allocations, long bytes, long peakBytes) {}

  private GpuAllocator(long address) {
    super("GPU allocator", address, Native::gen_gpu_allocator_release);
  }

  /** One over host memory that acts as a device. */
  public static GpuAllocator host() {
    return new GpuAllocator(make(Native::gen_gpu_allocator_host));
  }

  /** One over the memory of a device of the backend "cuda". */
  public static GpuAllocator cuda(int device) {
    return new GpuAllocator(make(out -> Native.gen_gpu_allocator_cuda(device, out)));
  }

  /** A gen_gpu_allocator in C, which must work until the caches that use it are closed. */
  public static GpuAllocator of(NativeSymbol table) {
    return new GpuAllocator(table.address());
  }

  /** What is taken; INVALID_ARGUMENT of one in C. */
  public Counters counters() {
    return ask(a -> {
      long[] allocations = new long[1];
      long[] bytes = new long[1];
      long[] peak = new long[1];
      Native.gen_gpu_allocator_counters(a, allocations, bytes, peak);
      return new Counters(allocations[0], bytes[0], peak[0]);
    });
  }
}
