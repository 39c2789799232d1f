// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.function.DoubleConsumer;

/**
 * A load or quantisation that an interrupt stops, and that tells how far it is: its progress callback, in C, keeps a share
 * and looks at a flag.
 */
final class Progress extends Call {
  private static final int TELL_MS = 20;  // between two looks, but less at first: work may be short

  private final State numbers = new State("progress", Native.gen_binding_progress_new(), Native::gen_binding_progress_free);

  /** A call that takes a gen_progress_callback and its user. */
  interface Work {
    void run(long callback, long user);
  }

  @Override
  void fire() {
    if (!numbers.tryEnter()) return;
    Native.gen_binding_progress_stop(numbers.address());
    numbers.exit();
  }

  @Override
  public void close() {
    super.close();
    numbers.close();
  }

  /** @param told hears of the work, on this thread; null for nobody. What it throws ends the work and comes out of here. */
  static void run(DoubleConsumer told, Work work) {
    try (Progress progress = new Progress()) {
      Runnable body = () -> work.run(Native.gen_binding_progress_function(), progress.numbers.address());
      if (told != null) {
        progress.tell(told, body);
      } else {
        progress.here(body);
      }
    }
  }

  private void here(Runnable body) {
    enter();
    try {
      body.run();
    } finally {
      leave();
    }
  }

  /**
   * The work has a thread of its own and `told` the caller's: whatever locks and thread-local values that has are at hand,
   * and nobody waits for a consumer that waits for the caller.
   */
  private void tell(DoubleConsumer told, Runnable body) {
    Worker worker = new Worker(body);
    boolean interrupted = Thread.interrupted();
    if (interrupted) fire();
    try {
      worker.start();
      double last = 0;
      for (int pause = 1; worker.isAlive() && !interrupted; pause = Math.min(2 * pause, TELL_MS)) {
        try {
          worker.join(pause);
        } catch (InterruptedException e) {
          interrupted = true;
        }
        double share = Native.gen_binding_progress_share(numbers.address());
        if (interrupted || share <= last || share >= 1) continue;  // 1 is for what has ended well
        last = share;
        told.accept(share);
      }
    } finally {
      fire();
      while (worker.isAlive()) {
        try {
          worker.join();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) Thread.currentThread().interrupt();
    }
    worker.rethrow();
    told.accept(1);
  }

  private static final class Worker extends Thread {
    private final Runnable body;
    private Throwable failure;

    Worker(Runnable body) {
      super(null, null, "libgenerate", 0, false);
      this.body = body;
      setDaemon(true);
    }

    @Override
    public void run() {
      try {
        body.run();
      } catch (RuntimeException | Error e) {
        failure = e;
      }
    }

    /** Throws what the work threw, as if it had been done here. After the end. */
    void rethrow() {
      if (failure instanceof RuntimeException e) {
        e.fillInStackTrace();
        throw e;
      }
      if (failure instanceof Error e) throw e;
    }
  }
}
