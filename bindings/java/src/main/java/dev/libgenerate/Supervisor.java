// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.function.Predicate;

/** Several agents on one task: the first one gets it, and the others are tools to it. One call at a time. */
public final class Supervisor extends Handle {
  private final Cancel running = new Cancel();

  /** Makes one without agents. */
  public Supervisor() {
    super("supervisor", make(Native::gen_supervisor_new), Native::gen_supervisor_free);
  }

  /** Adds an agent. */
  public Supervisor add(String name, String description, Agent agent) {
    byte[] key = Text.name(name);
    byte[] about = Text.name(description);
    run(s -> agent.run(a -> Native.gen_supervisor_add_agent(s, key, about, a)));
    return this;
  }

  /** Limits the tokens of all agents in a run; 0: no limit. */
  public Supervisor budget(long tokens) {
    run(s -> Native.gen_supervisor_set_budget(s, tokens));
    return this;
  }

  /** Gives the first agent a task, as {@link Agent#run}. */
  public Result run(String task, Predicate<AgentEvent> events, Cancel cancel) {
    byte[] text = Text.bytes(task);
    return ask(s -> AgentCall.run(flag -> Native.gen_supervisor_set_cancel(s, flag), events,
        (callback, user, out) -> Native.gen_supervisor_run(s, text, text.length, callback, user, out), running, cancel));
  }

  /** The last run as JSON; see gen_supervisor_describe. */
  public String describe() {
    return ask(s -> Text.ask((buf, capacity, n) -> Native.gen_supervisor_describe(s, buf, capacity, n)));
  }

  /** Stops the call that runs, if one does. From any thread. */
  public void cancel() {
    running.fireRunning();
  }

  /** Ends the supervisor, and soon what runs on it. */
  @Override
  public void close() {
    super.close();
    running.fire();
  }
}
