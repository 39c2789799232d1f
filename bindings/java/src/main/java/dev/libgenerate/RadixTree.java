// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.Arrays;

/**
 * An index from token sequences to block ids, for programs that keep blocks themselves. Any number of threads may use one.
 */
public final class RadixTree extends Handle {
  /** The beginning that was found: its tokens' number, and the ids of its blocks. */
  public record Match(int tokens, int[] ids) {}

  /** Counts since the index was made. */
  public record Stats(long hits, long misses, long evictions) {}

  private interface Finder {
    void find(long[] matched, int[] ids, long capacity, long[] n);
  }

  private final int blockSize;

  /** Makes an empty index of blocks of {@code blockSize} tokens. */
  public RadixTree(int blockSize, int maxBlocks) {
    super("radix tree", make(out -> Native.kv_cache_radix_new(blockSize, maxBlocks, out)), Native::kv_cache_radix_free);
    this.blockSize = blockSize;
  }

  /** Adds the blocks of a sequence that are not there yet. Gives the ids of those that are there then. */
  public int[] insert(int... tokens) {
    return ask(r -> find(tokens, (matched, ids, capacity, n) ->
        Native.kv_cache_radix_insert(r, tokens, tokens.length, ids, capacity, n))).ids();
  }

  /** Finds the longest cached prefix of a sequence. */
  public Match match(int... tokens) {
    return ask(r -> find(tokens, (matched, ids, capacity, n) ->
        Native.kv_cache_radix_match(r, tokens, tokens.length, matched, ids, capacity, n)));
  }

  /** The same, and what is found stays until {@link #unpin} has been called as often. */
  public Match pin(int... tokens) {
    return ask(r -> find(tokens, (matched, ids, capacity, n) ->
        Native.kv_cache_radix_pin(r, tokens, tokens.length, matched, ids, capacity, n)));
  }

  private Match find(int[] tokens, Finder finder) {
    int[] ids = new int[tokens.length / blockSize + 1];
    long[] n = new long[1];
    long[] matched = new long[1];
    finder.find(matched, ids, ids.length, n);
    return new Match((int) matched[0], Arrays.copyOf(ids, (int) n[0]));
  }

  /** Takes one {@link #pin} of the tokens that were found back. */
  public void unpin(int... tokens) {
    run(r -> Native.kv_cache_radix_unpin(r, tokens, tokens.length));
  }

  /** Removes the least recently used leaf and gives its id, -1 if there is none. */
  public int evict() {
    return number(r -> {
      int[] id = new int[1];
      Native.kv_cache_radix_evict(r, id);
      return id[0];
    });
  }

  /** Removes all sequences that begin with these tokens. Gives the number of blocks removed. */
  public long remove(int... tokens) {
    return ask(r -> {
      long[] removed = new long[1];
      Native.kv_cache_radix_remove(r, tokens, tokens.length, removed);
      return removed[0];
    });
  }

  /** Blocks that are there. */
  public int size() {
    return number(Native::kv_cache_radix_size);
  }

  /** Hits, misses and evictions at one moment. */
  public Stats stats() {
    return ask(r -> {
      long[] hits = new long[1];
      long[] misses = new long[1];
      long[] evictions = new long[1];
      Native.kv_cache_radix_stats(r, hits, misses, evictions);
      return new Stats(hits[0], misses[0], evictions[0]);
    });
  }

  /** A kv_cache_radix_evict_callback in C that is told of each id that is free again, or {@link NativeSymbol#NONE}. */
  public void setEvictCallback(NativeSymbol callback, long user) {
    run(r -> Native.kv_cache_radix_set_evict_callback(r, callback.address(), user));
  }
}
