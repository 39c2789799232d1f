// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelectableChannel;
import java.nio.channels.spi.AbstractSelector;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Function;

/**
 * A call that can be stopped while it runs: by the Cancels it is attached to, and by an interrupt of the thread inside it.
 * The latter comes from the hook that the platform has for selectors, so there is no thread that watches.
 */
abstract class Call implements AutoCloseable {
  private final Interrupt interrupt = new Interrupt();
  private final Cancel[] cancels;

  /** @param cancels those that stop it, null for none. */
  Call(Cancel... cancels) {
    this.cancels = cancels;
  }

  final void attach() {
    for (Cancel cancel : cancels) {
      if (cancel != null) cancel.attach(this);
    }
  }

  /** Stops the call. From any thread, at any time. */
  abstract void fire();

  /** Before the native call; an interrupt until leave() fires. */
  final void enter() {
    interrupt.enter();
  }

  final void leave() {
    interrupt.leave();
  }

  @Override
  public void close() {
    for (Cancel cancel : cancels) {
      if (cancel != null) cancel.detach(this);
    }
  }

  /** A call whose gen_sampling has a flag of its own. */
  static final class Flagged extends Call {
    private final State flag = new State("cancel", Handle.make(Native::gen_cancel_new), Native::gen_cancel_free);
    private final long address = flag.address();
    private volatile boolean fired;

    Flagged(Cancel... cancels) {
      super(cancels);
      attach();
    }

    long address() {
      return address;
    }

    boolean fired() {
      return fired;
    }

    @Override
    void fire() {
      if (!flag.tryEnter()) return;
      fired = true;
      Native.gen_cancel_fire(address);
      flag.exit();
    }

    @Override
    public void close() {
      super.close();
      flag.close();
    }
  }

  interface Generation {
    void run(long sampling, long[] result);
  }

  /** Runs one generation with its own flag; what there was goes with the exception. */
  static Result generate(Sampling sampling, Generation body, Cancel... cancels) {
    try (Flagged call = new Flagged(cancels)) {
      return Sampling.orDefaults(sampling).use(settings -> {
        Native.gen_sampling_set_cancel(settings, call.address());
        long[] out = new long[1];
        call.enter();
        try {
          body.run(settings, out);
        } catch (GenerateException e) {
          if (out[0] != 0) e.with(List.of(Result.take(out[0])));
          throw e;
        } finally {
          call.leave();
        }
        return Result.take(out[0]);
      });
    }
  }

  /** Runs `body` on the executor. Whatever completes the future first, a cancel or a timeout, stops the work. */
  static <T> CompletableFuture<T> async(Executor executor, Function<Cancel, T> body) {
    Cancel cancel = new Cancel();
    CompletableFuture<T> future = new CompletableFuture<>();
    future.whenComplete((value, failure) -> cancel.fire());
    executor.execute(() -> {
      if (future.isDone()) return;
      try {
        future.complete(body.apply(cancel));
      } catch (Throwable e) {
        future.completeExceptionally(e);
      }
    });
    return future;
  }

  /** A selector that selects nothing: its begin and end have wakeup called when the thread between them is interrupted. */
  private final class Interrupt extends AbstractSelector {
    Interrupt() {
      super(null);
    }

    void enter() {
      begin();
    }

    void leave() {
      end();
    }

    @Override
    public Selector wakeup() {
      fire();
      return this;
    }

    @Override
    protected void implCloseSelector() {}

    @Override
    protected SelectionKey register(AbstractSelectableChannel channel, int operations, Object attachment) {
      throw new UnsupportedOperationException();
    }

    @Override
    public Set<SelectionKey> keys() {
      return Set.of();
    }

    @Override
    public Set<SelectionKey> selectedKeys() {
      return Set.of();
    }

    @Override
    public int selectNow() {
      return 0;
    }

    @Override
    public int select(long timeout) {
      return 0;
    }

    @Override
    public int select() {
      return 0;
    }
  }
}
