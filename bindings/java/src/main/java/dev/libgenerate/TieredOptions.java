// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;
import java.util.List;
import java.util.function.LongConsumer;

/** What tiered caches are made from, and tiered sessions: immutable, each method gives new options. */
public final class TieredOptions extends Settings<TieredOptions> {
  private TieredOptions(List<Setter> setters) {
    super(setters);
  }

  /** A temporary folder, a warm form that loses nothing, 1024 MiB of memory for a session. */
  public static TieredOptions defaults() {
    return new TieredOptions(List.of());
  }

  /** Number of layers; 0 means the model's where there is one. */
  public TieredOptions numLayers(int layers) {
    return add(c -> Native.kv_cache_tier_config_set_num_layers(c, layers));
  }

  /** Maximum positions of a layer; 0 means the model's context where there is one. */
  public TieredOptions maxSequenceLength(int positions) {
    return add(c -> Native.kv_cache_tier_config_set_max_seq_len(c, positions));
  }

  /** Positions that the warm form "mean" makes one of. */
  public TieredOptions chunkSize(int positions) {
    return add(c -> Native.kv_cache_tier_config_set_chunk_size(c, positions));
  }

  /** How often a layer must have been used to escape demotion by {@link TieredKvCache#manage}. */
  public TieredOptions demoteThreshold(int uses) {
    return add(c -> Native.kv_cache_tier_config_set_demote_threshold(c, uses));
  }

  /** How often a layer must have been used to be promoted by {@link TieredKvCache#manage}. */
  public TieredOptions promoteThreshold(int uses) {
    return add(c -> Native.kv_cache_tier_config_set_promote_threshold(c, uses));
  }

  /** The folder for files; null for a temporary one that goes with the cache. */
  public TieredOptions coldDirectory(Path folder) {
    byte[] path = Text.name(folder);
    return add(c -> Native.kv_cache_tier_config_set_cold_dir(c, path));
  }

  /** The name of the cache among those in the folder. */
  public TieredOptions storeId(String id) {
    byte[] text = Text.name(id);
    return add(c -> Native.kv_cache_tier_config_set_store_id(c, text));
  }

  /** The warm form: "fp32", "fp16", "fp8", "q4", "q3" or "mean". */
  public TieredOptions warmForm(String form) {
    byte[] text = Text.name(form);
    return add(c -> Native.kv_cache_tier_config_set_warm_form(c, text));
  }

  /** Memory of a generating session, in MiB. */
  public TieredOptions hotMemory(int mebibytes) {
    return add(c -> Native.kv_cache_tier_config_set_hot_memory(c, mebibytes));
  }

  /** How many blocks of newest positions a generating session keeps in memory; 0 goes by the memory. */
  public TieredOptions hotBlocks(int blocks) {
    return add(c -> Native.kv_cache_tier_config_set_hot_blocks(c, blocks));
  }

  /** Positions that a generating session moves at once. */
  public TieredOptions blockSize(int positions) {
    return add(c -> Native.kv_cache_tier_config_set_block_size(c, positions));
  }

  /** How many layers are read ahead; -1 to let the library choose. */
  public TieredOptions prefetchLayers(int layers) {
    return add(c -> Native.kv_cache_tier_config_set_prefetch_layers(c, layers));
  }

  /** A gen_allocator in C for the memory of caches. */
  public TieredOptions allocator(NativeSymbol table) {
    return add(c -> Native.kv_cache_tier_config_set_allocator(c, table.address()));
  }

  /** Keeps hot layers of caches in a device's memory. */
  public TieredOptions hotLayersOnGpu(GpuAllocator allocator) {
    return add(c -> allocator.run(table -> Native.kv_cache_tier_config_set_gpu_allocator(c, table)));
  }

  @Override
  TieredOptions with(List<Setter> all) {
    return new TieredOptions(all);
  }

  @Override
  void make(long[] out) {
    Native.kv_cache_tier_config_new(out);
  }

  @Override
  LongConsumer free() {
    return Native::kv_cache_tier_config_free;
  }

  @Override
  void describe(long address, byte[] buf, long capacity, long[] n) {
    Native.kv_cache_tier_config_describe(address, buf, capacity, n);
  }

  @Override
  void set(long address, byte[] key, byte[] value) {
    Native.kv_cache_tier_config_set(address, key, value);
  }
}
