// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;

/**
 * Who may use a native object, and when it is freed: one word counts the calls that are inside and says whether it was
 * closed. After that nobody gets in, and the last one out frees it, be it the closer or the end of a call.
 */
final class State implements Runnable {
  private static final int CLOSED = Integer.MIN_VALUE;
  private static final AtomicInteger OPEN = new AtomicInteger();

  private final AtomicInteger word = new AtomicInteger();
  private final String what;
  private final LongConsumer free;
  private volatile long address;

  State(String what, long address, LongConsumer free) {
    this.what = what;
    this.address = address;
    this.free = free;
    OPEN.incrementAndGet();
  }

  /** Native objects that have been made and not yet freed. */
  static int open() {
    return OPEN.get();
  }

  boolean tryEnter() {
    for (;;) {
      int users = word.get();
      if (users < 0) return false;
      if (word.compareAndSet(users, users + 1)) return true;
    }
  }

  void enter() {
    if (!tryEnter()) throw new GenerateException(Status.STATE, "the " + what + " is closed");
  }

  void exit() {
    if (word.decrementAndGet() == CLOSED) release();
  }

  boolean isClosed() {
    return word.get() < 0;
  }

  void close() {
    if (word.getAndUpdate(users -> users | CLOSED) == 0) release();
  }

  /** Closes without freeing: the object has passed to another owner. To be called from inside. */
  void handOver() {
    address = 0;
    close();
  }

  long address() {
    return address;
  }

  private void release() {
    long last = address;
    address = 0;
    OPEN.decrementAndGet();
    if (last != 0) free.accept(last);
  }

  /** Of the Cleaner, when the object's owner is gone. */
  @Override
  public void run() {
    close();
  }
}
