// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** Threads shared by models. A model keeps what it uses alive. */
public final class ThreadPool extends Handle {
  /** @param threads the calling one included; 0 for one per usable CPU. */
  public ThreadPool(int threads) {
    this(threads, new int[0]);
  }

  /** With CPU numbers to pin the threads to, in turn. */
  public ThreadPool(int threads, int[] cpus) {
    super("thread pool",
        make(out -> Native.gen_thread_pool_new(threads, cpus.length > 0 ? cpus : null, cpus.length, out)),
        Native::gen_thread_pool_free);
  }
}
