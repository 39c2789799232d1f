// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;
import java.util.function.LongConsumer;
import java.util.function.Predicate;

/** A run of an agent or supervisor, with its own flag and its events. */
final class AgentCall {
  interface Work {
    void run(long callback, long user, long[] result);
  }

  private AgentCall() {}

  /**
   * @param setCancel gives the agent the flag
   * @param events hears of the run on another thread; false ends it. Null for nobody
   * @return null if there is no result
   */
  static Result run(LongConsumer setCancel, Predicate<AgentEvent> events, Work body, Cancel... cancels) {
    try (Call.Flagged call = new Call.Flagged(cancels)) {
      setCancel.accept(call.address());
      if (events == null) return run(call, 0, 0, body);
      Teller teller = new Teller(events);
      try {
        Result result = run(call, Native.gen_binding_desk_event_function(), teller.desk, body);
        teller.end();
        return result;
      } catch (GenerateException e) {
        teller.end();
        throw e;
      } finally {
        teller.close();
      }
    }
  }

  private static Result run(Call.Flagged call, long callback, long user, Work body) {
    long[] out = new long[1];
    call.enter();
    try {
      body.run(callback, user, out);
    } catch (GenerateException e) {
      if (out[0] != 0) e.with(List.of(Result.take(out[0])));
      throw e;
    } finally {
      call.leave();
    }
    return out[0] != 0 ? Result.take(out[0]) : null;
  }

  /** Tells events on a thread of its own. */
  private static final class Teller {
    final long desk = Desk.open();
    private final Predicate<AgentEvent> events;
    private final Thread thread;
    private volatile Throwable thrown;

    Teller(Predicate<AgentEvent> events) {
      this.events = events;
      try {
        thread = Desk.thread(this::tell);
      } catch (Throwable e) {
        Desk.close(desk);
        throw e;
      }
    }

    private void tell() {
      AgentEvent.Kind[] kinds = AgentEvent.Kind.values();
      for (Desk.Matter m = Desk.next(desk); m != null; m = Desk.next(desk)) {
        boolean on = false;
        try {
          on = thrown == null && events.test(
              new AgentEvent(kinds[m.kind()], m.step(), m.call(), m.name(), m.id(), m.text(), m.isError()));
        } catch (Throwable e) {
          thrown = e;
        } finally {
          m.answer("", !on);
        }
      }
    }

    void close() {
      Desk.close(desk);
      boolean interrupted = false;
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) Thread.currentThread().interrupt();
    }

    /** Closes, and throws what the consumer threw. */
    void end() {
      close();
      if (thrown instanceof RuntimeException e) throw e;
      if (thrown instanceof Error e) throw e;
    }
  }
}
