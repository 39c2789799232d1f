// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;

/**
 * Keys and values of one sequence, layer by layer. A new cache has no shape: its first write decides, {@link #update} or
 * {@link Model#forward}. One thread at a time, a second one is {@link Status#BUSY}.
 */
public class KvCache extends Handle {
  /** What a cache can do. */
  public enum Capability {
    TRUNCATE, COPY,
    /** {@link #view} shows what {@link #update} wrote. */
    VIEW,
    /** Results do not depend on how many tokens came at once. */
    ONE_ROW_ONE_RESULT,
    /** {@link #fullBuffer} works. */
    FULL_BUFFER
  }

  /** Dense float32 [batch, seq, dim]. */
  public record Tensor(float[] data, int batch, int seq, int dim) {}

  /** A layer's keys and values; of shape 0, 0, 0 if it is empty. */
  public record Layer(Tensor keys, Tensor values) {}

  /** Bytes: allocated, taken by keys and values, taken by scales and bookkeeping. */
  public record Memory(long resident, long payload, long metadata) {}

  /** Positions of an entry of a compressed cache. */
  public record Entry(int first, int positions) {}

  KvCache(long address) {
    super("cache", address, Native::kv_cache_free);
  }

  KvCache(Handle owner, long address) {
    super(owner, address);
  }

  /** Keeps float32. */
  public static KvCache fp32(int layers, int maxSequenceLength) {
    return new KvCache(make(out -> Native.kv_cache_new(layers, maxSequenceLength, out)));
  }

  /** Keeps binary16. */
  public static KvCache fp16(int layers, int maxSequenceLength) {
    return new KvCache(make(out -> Native.kv_cache_fp16_new(layers, maxSequenceLength, out)));
  }

  /** Keeps a byte an element, E4M3. */
  public static KvCache fp8(int layers, int maxSequenceLength) {
    return new KvCache(make(out -> Native.kv_cache_fp8_new(layers, maxSequenceLength, out)));
  }

  /** Keeps 4 bits an element. */
  public static KvCache q4(int layers, int maxSequenceLength) {
    return new KvCache(make(out -> Native.kv_cache_q4_new(layers, maxSequenceLength, out)));
  }

  /** Keeps 3 bits an element. */
  public static KvCache q3(int layers, int maxSequenceLength) {
    return new KvCache(make(out -> Native.kv_cache_q3_new(layers, maxSequenceLength, out)));
  }

  /** Each full chunk of positions becomes one entry, their mean; 0 heads and dim if unknown. */
  public static KvCache compressed(int layers, int heads, int dim, int chunkSize) {
    return new KvCache(make(out -> Native.kv_cache_compressed_new(layers, heads, dim, chunkSize, out)));
  }

  /** Each layer is one buffer of a fixed shape, "fp32" or "fp16"; the model may be null. */
  public static KvCache tensor(Model model, int layers, int maxSequenceLength, String dtype) {
    byte[] type = Text.name(dtype);
    return new KvCache(makeWith(model, (m, out) -> Native.kv_cache_tensor_new(m, layers, maxSequenceLength, type, out)));
  }

  /** Passes everything on to another cache and records it. Both show the same content and count as one for threads. */
  public static KvCache tracing(KvCache inner, Tracer tracer) {
    return new KvCache(inner.ask(i -> makeWith(tracer, (t, out) -> Native.kv_cache_tracing_new(i, t, out))));
  }

  /** A gen_allocator in C for the memory, before the first write. */
  public void setAllocator(NativeSymbol table) {
    run(c -> Native.kv_cache_set_allocator(c, table.address()));
  }

  /** Moves an empty cache of {@link #tensor} to a device. */
  public void setGpuAllocator(GpuAllocator allocator) {
    allocator.ask(a -> {
      run(c -> Native.kv_cache_tensor_set_gpu_allocator(c, a));
      return null;
    });
  }

  /** Appends positions to one layer: keys and values are [batch, seq, dim], row-major. */
  public void update(int layer, float[] k, float[] v, int batch, int seq, int dim) {
    Shapes.check(k, "keys", batch, seq, dim);
    Shapes.check(v, "values", batch, seq, dim);
    run(c -> Native.kv_cache_update(c, layer, k, v, batch, seq, dim));
  }

  /** What a layer holds. */
  public Layer get(int layer) {
    return ask(c -> {
      int[] ks = new int[3];
      int[] vs = new int[3];
      Native.kv_cache_get(c, layer, null, 0, null, 0, ks, vs);
      float[] k = Shapes.array(ks);
      float[] v = Shapes.array(vs);
      if (k.length + v.length > 0) Native.kv_cache_get(c, layer, k, k.length, v, v.length, ks, vs);
      return new Layer(Shapes.tensor(k, ks), Shapes.tensor(v, vs));
    });
  }

  /** Where a layer lies, for native code. */
  public KvSpan view(int layer) {
    return ask(c -> KvSpan.of(fields -> Native.gen_binding_view(c, layer, fields)));
  }

  /** All the memory of a layer of {@link #tensor}, for native code. */
  public KvSpan fullBuffer(int layer) {
    return ask(c -> KvSpan.of(fields -> Native.gen_binding_full_buffer(c, layer, fields)));
  }

  /** The address on a device of the number of positions that attention reads; 0 without a device. */
  public long lengthOnDevice() {
    return ask(Native::kv_cache_seq_len_device_ptr);
  }

  /** The address on a device of the position that is written next; 0 without a device. */
  public long counterOnDevice() {
    return ask(Native::kv_cache_counter_device_ptr);
  }

  /** Takes the length of every layer from the device. */
  public void syncCounter() {
    run(Native::kv_cache_sync_counter);
  }

  /** The positions of an entry of a {@link #compressed} cache. */
  public Entry compressedEntry(int layer, int entry) {
    return ask(c -> {
      int[] first = new int[1];
      int[] positions = new int[1];
      Native.kv_cache_compressed_entry(c, layer, entry, first, positions);
      return new Entry(first[0], positions[0]);
    });
  }

  /** The length on which all layers last agreed. */
  public int length() {
    return number(Native::kv_cache_seq_len);
  }

  /** Positions of one layer. */
  public int length(int layer) {
    return number(c -> Native.kv_cache_layer_seq_len(c, layer));
  }

  /** Entries of one layer that attention reads. */
  public int entries(int layer) {
    return number(c -> Native.kv_cache_kv_len(c, layer));
  }

  /** Number of layers. */
  public int numLayers() {
    return number(Native::kv_cache_num_layers);
  }

  /** Maximum positions of a layer. */
  public int maxSequenceLength() {
    return number(Native::kv_cache_max_seq_len);
  }

  /** Keeps the first n positions of every layer. */
  public void truncate(int n) {
    run(c -> Native.kv_cache_truncate(c, n));
  }

  /** Forgets everything; memory stays. */
  public void reset() {
    run(Native::kv_cache_reset);
  }

  /** Bytes of the cache. */
  public Memory memory() {
    return ask(KvCache::memory);
  }

  static Memory memory(long cache) {
    long[] resident = new long[1];
    long[] payload = new long[1];
    long[] metadata = new long[1];
    Native.kv_cache_memory_bytes(cache, resident, payload, metadata);
    return new Memory(resident[0], payload[0], metadata[0]);
  }

  /** Kind, size and which layers keep only a window, as JSON. */
  public String describe() {
    return ask(c -> Text.ask((buf, capacity, n) -> Native.kv_cache_describe(c, buf, capacity, n)));
  }

  /** The kind's name, as "fp32" or "q4". */
  public String kind() {
    return ask(c -> Text.of(Native.kv_cache_kind(c)));
  }

  /** What elements are kept as, "fp32" or "fp8/q4" for example. */
  public String dtype() {
    return ask(c -> Text.of(Native.kv_cache_dtype(c)));
  }

  /** The cache that a tracing one wraps, for reading, which ends with this one; null for any other. */
  public KvCache underlying() {
    return ask(c -> {
      long address = Native.kv_cache_underlying(c);
      return address != 0 ? new KvCache(this, address) : null;
    });
  }

  /** Whether the cache can do something. */
  public boolean can(Capability what) {
    return (number(Native::kv_cache_capabilities) & 1 << what.ordinal()) != 0;
  }

  /** Whether stored values may differ from those written. */
  public boolean isLossy() {
    return number(Native::kv_cache_is_lossy) != 0;
  }

  /** Saves the content of the cache to a file. */
  public void save(Path path) {
    run(c -> Native.kv_cache_save(c, Text.name(path)));
  }

  /** The same to memory. */
  public byte[] save() {
    return ask(c -> Text.askBytes((buf, capacity, n) -> Native.kv_cache_save_buffer(c, buf, capacity, n)));
  }

  /** Loads what {@link #save(Path)} wrote; this cache must be empty. */
  public void load(Path path) {
    run(c -> Native.kv_cache_load(c, Text.name(path)));
  }

  /** The same from memory. */
  public void load(byte[] state) {
    run(c -> Native.kv_cache_load_buffer(c, state, state.length));
  }

  /** An independent copy with the same content; of a session's cache too. */
  public KvCache copy() {
    return ask(c -> new KvCache(make(out -> Native.kv_cache_clone(c, out))));
  }
}
