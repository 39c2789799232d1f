// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.ArrayList;
import java.util.List;

/** Blocks of a pool that prompts with the same beginning share. Any number of threads may use one. */
public final class PrefixCache extends Handle {
  /** The beginning that was found: its tokens' number, and its blocks with a reference to each. */
  public record Match(int tokens, List<Block> blocks) implements AutoCloseable {
    /** Gives the blocks back, unless a cache has taken them. */
    @Override
    public void close() {
      blocks.forEach(Block::close);
    }
  }

  private final BlockPool pool;

  private PrefixCache(BlockPool pool, long address) {
    super("prefix cache", address, Native::kv_cache_prefix_free);
    this.pool = pool;
  }

  /** Makes an empty prefix cache of at most {@code capacity} blocks of the pool. */
  public static PrefixCache of(BlockPool pool, int capacity) {
    return new PrefixCache(pool, makeWith(pool, (p, out) -> Native.kv_cache_prefix_new(capacity, p, out)));
  }

  /** Keeps the blocks that hold a sequence; the caller's references stay his. */
  public void insert(long domain, int[] tokens, List<Block> blocks) {
    Block.entered(List.copyOf(blocks), addresses -> {
      run(c -> Native.kv_cache_prefix_insert(c, domain, tokens, tokens.length, addresses, addresses.length));
      return null;
    });
  }

  /** Finds the longest cached prefix of a sequence, and lends its blocks. */
  public Match match(long domain, int[] tokens) {
    return ask(c -> {
      int capacity = tokens.length / pool.blockSize() + 1;
      long[] found = new long[capacity];
      long[] n = new long[1];
      long[] matched = new long[1];
      Native.kv_cache_prefix_match(c, domain, tokens, tokens.length, found, capacity, n, matched);
      List<Block> blocks = new ArrayList<>();
      for (int i = 0; i < n[0]; ++i) blocks.add(new Block(pool, found[i]));
      return new Match((int) matched[0], List.copyOf(blocks));
    });
  }

  /** Blocks that are kept. */
  public int size() {
    return number(Native::kv_cache_prefix_size);
  }
}
