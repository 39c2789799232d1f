// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.ArrayList;
import java.util.List;

/** A cache of one sequence whose keys and values lie in blocks of a {@link BlockPool}. A copy shares all blocks. */
public final class PagedKvCache extends KvCache {
  private final BlockPool pool;

  private PagedKvCache(BlockPool pool, long address) {
    super(address);
    this.pool = pool;
  }

  /** Makes an empty cache over a pool, for at most the pool's layers. */
  public static PagedKvCache of(BlockPool pool, int layers) {
    return new PagedKvCache(pool, makeWith(pool, (p, out) -> Native.kv_cache_paged_new(p, layers, out)));
  }

  /**
   * The cache's blocks, each with a reference of its own that is to be closed; block i holds the positions from
   * {@code i * blockSize} on.
   */
  public List<Block> blockTable() {
    return ask(c -> {
      long[] n = new long[1];
      Native.kv_cache_block_table(c, null, 0, n);
      long[] table = new long[Math.toIntExact(n[0])];
      if (table.length > 0) Native.kv_cache_block_table(c, table, table.length, n);
      List<Block> blocks = new ArrayList<>(table.length);
      for (int i = 0; i < n[0]; ++i) {
        long block = table[i];
        pool.run(p -> Native.kv_cache_pool_retain_block(p, block));
        blocks.add(new Block(pool, block));
      }
      return blocks;
    });
  }

  /**
   * Fills the cache, which must be empty, with blocks that are already written, and makes every layer {@code positions}
   * long. The references pass to the cache: the blocks are closed for the caller. After a failure they are still his.
   */
  public void inject(List<Block> blocks, int positions, int batch, int dim) {
    Block.entered(List.copyOf(blocks), addresses -> {
      run(c -> Native.kv_cache_inject_blocks(c, addresses, addresses.length, positions, batch, dim));
      blocks.forEach(block -> block.state.handOver());
      return null;
    });
  }

  @Override
  public PagedKvCache copy() {
    return ask(c -> new PagedKvCache(pool, make(out -> Native.kv_cache_clone(c, out))));
  }
}
