// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/**
 * A cache whose layers are float32 or float16 buffers [max length, heads, head dim] on a device, one of keys and one of values.
 * {@link #update} takes batch 1 and dim heads * head dim.
 */
public final class GpuKvCache extends KvCache {
  /** Addresses on the device, 0 where there is nothing, and the cache's length. */
  public record Pointers(long k, long v, int length) {}

  private final int heads;
  private final int headDim;

  private GpuKvCache(long address, int heads, int headDim) {
    super(address);
    this.heads = heads;
    this.headDim = headDim;
  }

  /** Makes an empty cache of float32 with all of its memory. */
  public static GpuKvCache of(GpuAllocator allocator, int layers, int maxSequenceLength, int heads, int headDim) {
    return of(allocator, layers, maxSequenceLength, heads, headDim, "fp32");
  }

  /** Makes an empty cache with all of its memory; "fp32" or "fp16", to which it rounds what is appended. */
  public static GpuKvCache of(
      GpuAllocator allocator, int layers, int maxSequenceLength, int heads, int headDim, String dtype) {
    byte[] type = Text.name(dtype);
    return new GpuKvCache(
        allocator.ask(
            a -> make(out -> Native.kv_cache_gpu_new_typed(a, layers, maxSequenceLength, heads, headDim, type, out))),
        heads, headDim);
  }

  /** Appends one position to one layer: keys and values are [heads, head dim]. The length moves when all layers have it. */
  public void append(int layer, float[] k, float[] v, int position) {
    Shapes.check(k, "keys", heads, headDim);
    Shapes.check(v, "values", heads, headDim);
    run(c -> Native.kv_cache_gpu_append(c, layer, k, v, position));
  }

  /** The same of the next position, from addresses of float32 on the device. */
  public void appendOnDevice(int layer, long k, long v) {
    run(c -> Native.gen_binding_gpu_append_device(c, layer, k, v));
  }

  /**
   * The same, enqueued on a CUDA stream: a cudaStream_t of the allocator's device, 0 in host memory that acts as one. Streams
   * that are captured take it into their graph, whose replays move only the counter: {@link #syncLength} takes the length then.
   * Make the stream wait before other methods look at the cache.
   */
  public void appendOnStream(int layer, long k, long v, long stream) {
    run(c -> Native.gen_binding_gpu_append_stream(c, layer, k, v, stream));
  }

  /** Where a layer lies on the device. */
  public Pointers pointers(int layer) {
    return ask(c -> {
      long[] fields = new long[3];
      Native.gen_binding_gpu_pointers(c, layer, fields);
      return new Pointers(fields[0], fields[1], (int) fields[2]);
    });
  }

  /** Where arrays of all layers' addresses lie on the device. */
  public Pointers pointerArrays() {
    return ask(c -> {
      long[] fields = new long[2];
      Native.gen_binding_gpu_pointer_arrays(c, fields);
      return new Pointers(fields[0], fields[1], Native.kv_cache_seq_len(c));
    });
  }

  /** The address on the device of the position that is written next. */
  public long counter() {
    return ask(Native::kv_cache_gpu_counter_ptr);
  }

  /** Takes the length from the device. Throws once if appends on a stream were dropped because the cache was full. */
  public void syncLength() {
    run(Native::kv_cache_gpu_sync_counter);
  }
}
