// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;

/**
 * Keys and values of many sequences in one store, written and read a batch of tokens at a time: make one, {@link #init} it,
 * then for each pass {@link #startForward}, and for each layer {@link #setLayer}, {@link #put} and {@link #get}. Data is
 * float32 with the fastest dimension first. One thread at a time.
 */
public final class BatchKvCache extends Handle {
  /** As the end of a range: all from its begin on. */
  public static final int TO_THE_END = Integer.MAX_VALUE;

  /**
   * What the tokens of a pass may see.
   *
   * @param keys [kDim, kHeads, length] by its shape
   * @param values [vDim, vHeads, length], or permuted
   * @param mask [length, n] floats or binary16 in the machine's byte order; of length 0 if nothing is hidden
   */
  public record Masked(float[] keys, int[] keyShape, float[] values, int[] valueShape, byte[] mask, int[] maskShape) {}

  private int maskBytes = Float.BYTES;

  private BatchKvCache(BatchKvCache owner, long address) {
    super(owner, address);
  }

  private BatchKvCache(long address) {
    super("cache", address, Native::kv_cache_free);
  }

  /** Tokens see all earlier positions of their sequence. */
  public static BatchKvCache causal() {
    return new BatchKvCache(make(Native::kv_cache_causal_new));
  }

  /** Tokens see {@code window} earlier positions and themselves. */
  public static BatchKvCache slidingWindow(int window) {
    return new BatchKvCache(make(out -> Native.kv_cache_swa_new(window, out)));
  }

  /** The same, with positions up to {@code memory} back kept. */
  public static BatchKvCache slidingWindow(int window, int memory) {
    return new BatchKvCache(make(out -> Native.kv_cache_swa_mem_new(window, memory, out)));
  }

  /** Tokens see earlier positions of the same chunk only. */
  public static BatchKvCache chunked(int chunk) {
    return new BatchKvCache(make(out -> Native.kv_cache_chunked_new(chunk, out)));
  }

  /** For the output of an encoder, for cross attention. */
  public static BatchKvCache encoder() {
    return new BatchKvCache(make(Native::kv_cache_encoder_new));
  }

  /** One cache of several, one for each type of layer. They pass into it and are good for nothing else then. */
  public static BatchKvCache wrapper(List<BatchKvCache> caches) {
    return wrapper(List.copyOf(caches), 0, new long[caches.size()]);
  }

  private static BatchKvCache wrapper(List<BatchKvCache> caches, int i, long[] addresses) {
    if (i == addresses.length) {
      return new BatchKvCache(make(out -> Native.kv_cache_wrapper_new(addresses, addresses.length, out)));
    }
    return caches.get(i).ask(c -> {
      addresses[i] = c;
      return wrapper(caches, i + 1, addresses);
    });
  }

  /** The form of the output of {@link #get}, before {@link #init}: "fp32" or "fp16" masks. */
  public void setConfig(int padding, boolean permutedValues, String maskDtype) {
    byte[] type = Text.name(maskDtype);
    run(c -> Native.kv_cache_set_config(c, padding, permutedValues ? 1 : 0, type));
    maskBytes = "fp16".equals(maskDtype) ? Short.BYTES : Float.BYTES;
  }

  /** A kv_cache_shift_fn in C that turns keys of shifted positions. */
  public void setShift(NativeSymbol function, long user) {
    run(c -> Native.kv_cache_set_shift(c, function.address(), user));
  }

  /** A gen_allocator in C for the memory, before the first write. */
  public void setAllocator(NativeSymbol table) {
    run(c -> Native.kv_cache_set_allocator(c, table.address()));
  }

  /** Maximum entries of one sequence; 0 for no quota. */
  public void setQuota(int entries) {
    run(c -> Native.kv_cache_set_quota(c, entries));
  }

  /** Sets the size, once: rows as "fp16", "fp32", "q8_0" or "q4_0". */
  public void init(String dtype, int maxSequences, int capacity, int maxBatch) {
    byte[] type = Text.name(dtype);
    run(c -> Native.kv_cache_init(c, type, maxSequences, capacity, maxBatch));
  }

  /** The layer that {@link #put} and {@link #get} are about. */
  public void setLayer(int layer) {
    run(c -> Native.kv_cache_set_layer(c, layer));
  }

  /** The cache of a {@link #wrapper} that they are about. */
  public void setLayerType(int type) {
    run(c -> Native.kv_cache_set_layer_type(c, type));
  }

  /** Begins a pass over tokens at positions of sequences. */
  public void startForward(int[] positions, int[] sequences) {
    startForward(positions, sequences, false, new int[0]);
  }

  /**
   * Begins a pass.
   *
   * @param reserve for the largest history there can be; nothing is stored
   * @param multimodal indices of tokens that stand for items of an encoder
   */
  public void startForward(int[] positions, int[] sequences, boolean reserve, int[] multimodal) {
    if (positions.length != sequences.length) {
      throw new GenerateException(Status.INVALID_ARGUMENT, "there are as many positions as sequences");
    }
    run(c -> Native.kv_cache_start_forward(c, positions, sequences, positions.length, reserve ? 1 : 0, multimodal,
        multimodal.length));
  }

  /** Stores this pass's keys [kDim, kHeads, n] and values [vDim, vHeads, n] in the chosen layer. */
  public void put(float[] k, int kHeads, int kDim, float[] v, int vHeads, int vDim, int n) {
    Shapes.check(k, "keys", kHeads, kDim, n);
    Shapes.check(v, "values", vHeads, vDim, n);
    run(c -> Native.kv_cache_put(c, k, kHeads, kDim, v, vHeads, vDim, n));
  }

  /** What the tokens of this pass may see in the chosen layer. */
  public Masked get() {
    return ask(c -> {
      int[] ks = new int[3];
      int[] vs = new int[3];
      int[] ms = new int[2];
      Native.kv_cache_get_masked(c, null, 0, null, 0, null, 0, ks, vs, ms);
      float[] k = Shapes.array(ks);
      float[] v = Shapes.array(vs);
      long cells = Shapes.product(ms);
      byte[] mask = new byte[Math.toIntExact(cells * maskBytes)];
      Native.kv_cache_get_masked(c, k, k.length, v, v.length, mask, cells, ks, vs, ms);
      return new Masked(k, ks, v, vs, mask, ms);
    });
  }

  /** Lets tokens of this pass see later positions too. */
  public void setCausalExcept(int... tokens) {
    run(c -> Native.kv_cache_set_causal(c, tokens, tokens.length));
  }

  /** Replaces a sequence by a prefix of another, without a copy. */
  public void copyPrefix(int from, int to, int length) {
    run(c -> Native.kv_cache_copy_prefix(c, from, to, length));
  }

  /** Whether a sequence may continue with a token at a position. */
  public boolean canResume(int sequence, int position) {
    int[] can = new int[1];
    run(c -> Native.kv_cache_can_resume(c, sequence, position, can));
    return can[0] != 0;
  }

  /** Takes positions from begin up to end out of a sequence; those after them move down. */
  public void remove(int sequence, int begin, int end) {
    run(c -> Native.kv_cache_remove(c, sequence, begin, end));
  }

  /** Moves entries into the first free cells. Gives how many were moved. */
  public int compact(int budget) {
    int[] moved = new int[1];
    run(c -> Native.kv_cache_compact(c, budget, moved));
    return moved[0];
  }

  /** Whether a sequence has items in an encoder cache. */
  public boolean encoderCached(int sequence) {
    int[] cached = new int[1];
    run(c -> Native.kv_cache_encoder_cached(c, sequence, cached));
    return cached[0] != 0;
  }

  /** Gives the memory back; everything else but {@link #close} fails then. */
  public void release() {
    run(Native::kv_cache_close);
  }

  /** Bytes of the cache. */
  public KvCache.Memory memory() {
    return ask(KvCache::memory);
  }

  /** What rows are kept as; null before {@link #init}. */
  public String dtype() {
    return ask(c -> Text.of(Native.kv_cache_dtype(c)));
  }

  /** The cache of a wrapper that {@link #setLayerType} chose, for its getters, which ends with this one; null for others. */
  public BatchKvCache underlying() {
    return ask(c -> {
      long address = Native.kv_cache_underlying(c);
      return address != 0 ? new BatchKvCache(this, address) : null;
    });
  }

  /** Kind and size as JSON. */
  public String describe() {
    return ask(c -> Text.ask((buf, capacity, n) -> Native.kv_cache_describe(c, buf, capacity, n)));
  }

  /** The kind's name. */
  public String kind() {
    return ask(c -> Text.of(Native.kv_cache_kind(c)));
  }

  /** Whether stored values may differ from those written. */
  public boolean isLossy() {
    return number(Native::kv_cache_is_lossy) != 0;
  }
}
