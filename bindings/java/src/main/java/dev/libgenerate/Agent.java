// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.function.Predicate;

/**
 * A conversation in which a model calls tools until it has an answer. One call at a time, a second one is
 * {@link Status#BUSY}. An interrupt of the thread inside a call cancels it, and so does {@link #close} from another thread.
 */
public final class Agent extends Handle {
  private final Chat chat;
  private final Cancel running = new Cancel();

  private Agent(long address) {
    super("agent", address, Native::gen_agent_free);
    chat = new Chat(this, Native.gen_agent_chat(address));
  }

  /**
   * An agent whose answers the generator writes.
   *
   * @param options null for the defaults
   */
  public static Agent of(Generator generator, Tools tools, AgentOptions options) {
    return new Agent(Settings.use(options, o -> with(generator, g -> tools.ask(
        t -> make(out -> Native.gen_agent_new(g, t, o, out))))));
  }

  /** An agent for steps with the outputs of a model of one's own. */
  public static Agent of(Tools tools, AgentOptions options) {
    return of(null, tools, options);
  }

  /** The conversation, with calls and their results. It ends with the agent, and is busy while that runs. */
  public Chat chat() {
    return chat;
  }

  /** Gives the agent a task. */
  public Result run(String task) {
    return run(task, null, null);
  }

  /**
   * Gives the agent a task.
   *
   * @param task null to go on with the conversation as it is
   * @param events hears of what happens, on another thread; false ends the run. Null for nobody
   * @param cancel stops the call; null for none
   */
  public Result run(String task, Predicate<AgentEvent> events, Cancel cancel) {
    byte[] text = task != null ? Text.bytes(task) : null;
    int length = text != null ? text.length : 0;
    return call(events, cancel, (a, callback, user, out) -> Native.gen_agent_run(a, text, length, callback, user, out));
  }

  /** Runs one step with a generated answer: whether it was the last. */
  public boolean step() {
    return step(null);
  }

  /** Runs one step with the output of a model of one's own; null generates it. */
  public boolean step(String output) {
    byte[] text = output != null ? Text.bytes(output) : null;
    int length = text != null ? text.length : 0;
    int[] finished = new int[1];
    call(null, null, (a, callback, user, out) -> Native.gen_agent_step(a, text, length, callback, user, finished));
    return finished[0] != 0;
  }

  private interface Work {
    void run(long agent, long callback, long user, long[] out);
  }

  private Result call(Predicate<AgentEvent> events, Cancel cancel, Work work) {
    return ask(a -> AgentCall.run(flag -> Native.gen_agent_set_cancel(a, flag), events,
        (callback, user, out) -> work.run(a, callback, user, out), running, cancel));
  }

  /** The last run as JSON; see gen_agent_describe. */
  public String describe() {
    return ask(a -> Text.ask((buf, capacity, n) -> Native.gen_agent_describe(a, buf, capacity, n)));
  }

  /** Stops the call that runs, if one does. From any thread. */
  public void cancel() {
    running.fireRunning();
  }

  /** Empties the conversation and forgets the last run. */
  public void reset() {
    run(Native::gen_agent_reset);
  }

  /** Ends the agent, and soon what runs on it. */
  @Override
  public void close() {
    super.close();
    running.fire();
  }
}
