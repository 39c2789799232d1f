// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;
import java.util.function.Function;

/** A reference to one block of a {@link BlockPool}; closing gives it back. Ends with the pool. */
public final class Block extends Handle {
  private final BlockPool pool;

  Block(BlockPool pool, long address) {
    super("block", address, block -> free(pool, block));
    this.pool = pool;
  }

  private static void free(BlockPool pool, long block) {
    if (!pool.state.tryEnter()) return;  // the block is gone with its pool
    try {
      Native.kv_cache_pool_free_block(pool.state.address(), block);
    } finally {
      pool.state.exit();
    }
  }

  /** Runs with the addresses of several blocks, none of which can be closed meanwhile. */
  static <T> T entered(List<Block> blocks, Function<long[], T> body) {
    long[] addresses = new long[blocks.size()];
    int entered = 0;
    try {
      for (Block block : blocks) {
        block.state.enter();
        addresses[entered++] = block.state.address();
      }
      return body.apply(addresses);
    } finally {
      for (int i = 0; i < entered; ++i) blocks.get(i).state.exit();
    }
  }

  /** Bytes of the keys, or of the values: [layers, blockSize, rowDim] of the pool's type. */
  public int bytes() {
    return pool.bytes();
  }

  /** The keys. */
  public byte[] keys() {
    return ask(b -> read(Native.kv_cache_block_k(b)));
  }

  /** The values. */
  public byte[] values() {
    return ask(b -> read(Native.kv_cache_block_v(b)));
  }

  private byte[] read(long address) {
    return pool.ask(p -> {
      byte[] data = new byte[pool.bytes()];
      Native.gen_binding_copy(address, data.length, data);
      return data;
    });
  }

  /** Writes keys and values; the only holder of the block may. */
  public void write(byte[] keys, byte[] values) {
    if (keys.length != pool.bytes() || values.length != pool.bytes()) {
      throw new GenerateException(Status.INVALID_ARGUMENT, "a block has " + pool.bytes() + " bytes of keys and of values");
    }
    run(b -> pool.run(p -> {
      Native.gen_java_store(Native.kv_cache_block_k(b), keys, keys.length);
      Native.gen_java_store(Native.kv_cache_block_v(b), values, values.length);
    }));
  }

  /** Positions that caches have written. */
  public int used() {
    return number(b -> pool.number(p -> Native.kv_cache_block_used(b)));
  }

  /** Another reference to the same block. */
  public Block share() {
    return ask(b -> {
      pool.run(p -> Native.kv_cache_pool_retain_block(p, b));
      return new Block(pool, b);
    });
  }
}
