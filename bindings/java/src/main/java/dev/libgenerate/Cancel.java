// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Stops the calls it was given to, from any thread: they throw {@link GenerateCancelledException} with what there was by
 * then. Once fired it stays so. Interrupting a thread that is inside a call does the same for that call.
 */
public final class Cancel {
  private final Set<Call> calls = new HashSet<>();
  private boolean fired;

  /** Makes one that has not been fired. */
  public Cancel() {}

  /** Stops the calls that run and all later ones. */
  public void fire() {
    List<Call> running;
    synchronized (this) {
      fired = true;
      running = List.copyOf(calls);
    }
    running.forEach(Call::fire);
  }

  /** Whether {@link #fire} has been called. */
  public synchronized boolean isFired() {
    return fired;
  }

  /** Stops the calls that run, not those to come. */
  void fireRunning() {
    List<Call> running;
    synchronized (this) {
      running = List.copyOf(calls);
    }
    running.forEach(Call::fire);
  }

  void attach(Call call) {
    synchronized (this) {
      calls.add(call);
      if (!fired) return;
    }
    call.fire();
  }

  synchronized void detach(Call call) {
    calls.remove(call);
  }
}
