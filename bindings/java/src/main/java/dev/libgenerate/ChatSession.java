// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * A conversation with a session that holds it, so that only what is new since the last turn is run. One call at a time, a
 * second one is {@link Status#BUSY}. An interrupt of the thread inside a call stops it soon, and so does {@link #cancel} or
 * {@link #close} from another thread.
 *
 * <p>With the context policy "shift" a conversation that outgrows the context goes on without its oldest turns; with "stop"
 * sending fails then.
 */
public final class ChatSession extends Handle {
  /** What runs on this session; fired for good when it is closed. */
  private final Cancel running = new Cancel();

  ChatSession(long address) {
    super("chat session", address, Native::gen_chat_session_free);
  }

  /** Sends with the default sampling. */
  public Result send(String text) {
    return send(text, null, null);
  }

  /** Sends a message. */
  public Result send(String text, Sampling sampling) {
    return send(text, sampling, null);
  }

  /**
   * Adds a message of the user to the conversation, generates the answer, and adds that as the assistant's message. An answer
   * that a limit or a cancel ended is added as far as it came.
   *
   * @param sampling null for the defaults
   * @param cancel stops the call; null for none
   * @throws GenerateException with the partial result if generation had begun. Where no token came, and after any failure
   *     but a cancel, the conversation is as before.
   */
  public Result send(String text, Sampling sampling, Cancel cancel) {
    return generate(Text.bytes(text), sampling, cancel);
  }

  /** The same on an executor. Cancelling the future stops the generation. */
  public CompletableFuture<Result> sendAsync(String text, Sampling sampling, Executor executor) {
    return Call.async(executor, cancel -> send(text, sampling, cancel));
  }

  /**
   * Sends no message: answers what the conversation ends with, such as the result of a tool, or goes on with the last answer if
   * that was cut.
   */
  public Result answer(Sampling sampling) {
    return generate(null, sampling, null);
  }

  /** The same, with what stops it. */
  public Result answer(Sampling sampling, Cancel cancel) {
    return generate(null, sampling, cancel);
  }

  /** Sends piece by piece with the default sampling. */
  public TokenStream stream(String text) {
    return stream(text, null, null);
  }

  /** Sends piece by piece. */
  public TokenStream stream(String text, Sampling sampling) {
    return stream(text, sampling, null);
  }

  /**
   * Sends piece by piece. While the stream is open other calls on this and the conversation are {@link Status#BUSY}. At its end
   * the message and the answer are in the conversation; closing it before that cuts the answer.
   *
   * @param text null for no message, as in {@link #answer}
   */
  public TokenStream stream(String text, Sampling sampling, Cancel cancel) {
    byte[] message = text != null ? Text.bytes(text) : null;
    int length = message != null ? message.length : 0;
    return ask(s -> TokenStream.open(
        (settings, out) -> Native.gen_chat_session_open_stream(s, message, length, settings, out), sampling, running, cancel));
  }

  private Result generate(byte[] text, Sampling sampling, Cancel cancel) {
    int length = text != null ? text.length : 0;
    return ask(s -> Call.generate(sampling,
        (settings, out) -> Native.gen_chat_session_send(s, text, length, settings, out), running, cancel));
  }

  /** Number of tokens that the session holds. Also while a call runs. */
  public int length() {
    return number(s -> Native.gen_session_length(Native.gen_chat_session_session(s)));
  }

  /** Share of the current prompt that has been run, 0 to 1. Also while a call runs. */
  public double progress() {
    return ask(s -> Native.gen_session_progress(Native.gen_chat_session_session(s)));
  }

  /** Stops the call that runs, if one does. From any thread. */
  public void cancel() {
    running.fireRunning();
  }

  /**
   * Makes the model end its reasoning and answer, from any thread while a call runs. The option "reasoning_control" of the
   * conversation must be on.
   */
  public void endReasoning() {
    run(Native::gen_chat_session_end_reasoning);
  }

  /** Ends the chat session, and soon what runs on it. */
  @Override
  public void close() {
    super.close();
    running.fire();
  }
}
