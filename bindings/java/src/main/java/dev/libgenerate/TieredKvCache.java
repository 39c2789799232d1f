// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** A cache that moves whole layers between memory, a compact form in memory, and files. */
public final class TieredKvCache extends KvCache {
  /** Where a layer is. */
  public enum Tier {
    HOT, WARM, COLD
  }

  private TieredKvCache(long address) {
    super(address);
  }

  /** Makes an empty cache: all layers hot. */
  public static TieredKvCache of(TieredOptions options) {
    return new TieredKvCache(options.use(o -> make(out -> Native.kv_cache_tiered_new(o, out))));
  }

  /** Opens the cache that another left in the configured folder. */
  public static TieredKvCache open(TieredOptions options) {
    return new TieredKvCache(options.use(o -> make(out -> Native.kv_cache_tiered_open(o, out))));
  }

  /** The tier of a layer. */
  public Tier tier(int layer) {
    return Tier.values()[number(c -> Native.kv_cache_tiered_tier(c, layer))];
  }

  /** How often a layer was used since the last {@link #manage}. */
  public long accessCount(int layer) {
    return ask(c -> Native.kv_cache_tiered_access_count(c, layer));
  }

  /** Whether the content of the layer has been through a lossy warm form. */
  public boolean isLossy(int layer) {
    return number(c -> Native.kv_cache_tiered_is_lossy(c, layer)) != 0;
  }

  /** Moves a layer one tier up. */
  public void promote(int layer) {
    run(c -> Native.kv_cache_tiered_promote(c, layer));
  }

  /** Moves a layer one tier down. */
  public void demote(int layer) {
    run(c -> Native.kv_cache_tiered_demote(c, layer));
  }

  /** Moves each layer by how often it was used. */
  public void manage() {
    run(Native::kv_cache_tiered_manage);
  }

  /** Has copies of layers that are not hot made in the background. */
  public void prefetch(int... layers) {
    run(c -> Native.kv_cache_tiered_prefetch_async(c, layers, layers.length));
  }

  /** Takes the copy of a layer, of shape 0, 0, 0 if there is none yet. */
  public Layer prefetched(int layer) {
    return ask(c -> {
      int[] shape = new int[3];
      Native.kv_cache_tiered_get_prefetched(c, layer, null, 0, null, 0, shape);
      float[] k = Shapes.array(shape);
      float[] v = Shapes.array(shape);
      if (k.length > 0) Native.kv_cache_tiered_get_prefetched(c, layer, k, k.length, v, v.length, shape);
      return new Layer(Shapes.tensor(k, shape), Shapes.tensor(v, shape));
    });
  }

  /** Ends the files' use and tells what could not be written, which {@link #close} keeps to itself. */
  public void flush() {
    run(Native::kv_cache_tiered_close);
  }
}
