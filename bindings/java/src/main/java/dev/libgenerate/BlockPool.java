// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** Blocks for paged caches, shared by any number of threads. Caches keep what they use of it alive. */
public final class BlockPool extends Handle {
  private final int bytes;
  private volatile boolean onDevice;

  private BlockPool(long address, int bytes) {
    super("block pool", address, Native::kv_cache_pool_free);
    this.bytes = bytes;
  }

  /**
   * Makes a pool.
   *
   * @param layers layers that a block covers
   * @param blockSize positions in a block
   * @param rowDim elements of a key, or of a value, at one position of one layer
   * @param maxMemoryMb budget in MiB
   * @param dtype "fp32" or "fp16"
   */
  public static BlockPool of(int layers, int blockSize, int rowDim, int maxMemoryMb, String dtype) {
    byte[] type = Text.name(dtype);
    long address = make(out -> Native.kv_cache_pool_new(layers, blockSize, rowDim, maxMemoryMb, type, out));
    long bytes = Shapes.product(layers, blockSize, rowDim) * (dtype.equals("fp16") ? 2 : 4);
    return new BlockPool(address, (int) Math.min(bytes, Integer.MAX_VALUE));
  }

  int bytes() {
    return onDevice ? 0 : bytes;
  }

  /** A gen_allocator in C for the blocks, before one has been taken. */
  public void setAllocator(NativeSymbol table) {
    run(p -> Native.kv_cache_pool_set_allocator(p, table.address()));
    onDevice = false;
  }

  /** Keeps the blocks in a device's memory, before one has been taken. Their bytes are not shown then. */
  public void setGpuAllocator(GpuAllocator allocator) {
    run(p -> allocator.run(table -> Native.kv_cache_pool_set_gpu_allocator(p, table)));
    onDevice = true;
  }

  /** Takes a block, whose content is undefined. */
  public Block allocate() {
    return ask(p -> new Block(this, make(out -> Native.kv_cache_pool_alloc(p, out))));
  }

  /** Blocks in all. */
  public long capacity() {
    return ask(Native::kv_cache_pool_cap);
  }

  /** Blocks that are free now. */
  public long available() {
    return ask(Native::kv_cache_pool_available);
  }

  /** Positions in a block. */
  public int blockSize() {
    return number(Native::kv_cache_pool_block_size);
  }

  /** Positions of taken blocks that are not written, as a share of all of theirs. */
  public double fragmentation() {
    return ask(Native::kv_cache_pool_fragmentation);
  }

  /** Bytes taken from the allocator. */
  public long residentBytes() {
    return ask(Native::kv_cache_pool_resident_bytes);
  }
}
