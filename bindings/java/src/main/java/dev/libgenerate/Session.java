// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.LongConsumer;

/**
 * One growing sequence with its cache: calls go on from what it holds. One call at a time, a second one is
 * {@link Status#BUSY}; sessions run side by side. An interrupt of the thread inside a call stops it soon, also in the
 * middle of a long prompt, and so does {@link #cancel} or {@link #close} from another thread.
 */
public final class Session extends Handle {
  /** What runs on this session; fired for good when it is closed. */
  private final Cancel running = new Cancel();

  Session(long address) {
    super("session", address, Native::gen_session_free);
  }

  /** Adds a prompt and generates with the default sampling. */
  public Result generate(String prompt) {
    return generate(prompt, null, null);
  }

  /** Adds a prompt and generates. */
  public Result generate(String prompt, Sampling sampling) {
    return generate(prompt, sampling, null);
  }

  /**
   * Adds a prompt and generates.
   *
   * @param prompt may be empty when the session is not
   * @param sampling null for the defaults
   * @param cancel stops the call; null for none
   * @throws GenerateException with the partial result if generation had begun. After a cancel the session keeps what was
   *     generated; after any other failure it holds what it held before.
   */
  public Result generate(String prompt, Sampling sampling, Cancel cancel) {
    byte[] text = Text.bytes(prompt);
    return ask(s -> Call.generate(sampling,
        (settings, out) -> Native.gen_session_generate(s, text, text.length, settings, out), running, cancel));
  }

  /** The same on an executor. Cancelling the future stops the generation. */
  public CompletableFuture<Result> generateAsync(String prompt, Sampling sampling, Executor executor) {
    return Call.async(executor, cancel -> generate(prompt, sampling, cancel));
  }

  /** Adds a prompt and generates piece by piece with the default sampling. */
  public TokenStream stream(String prompt) {
    return stream(prompt, null, null);
  }

  /** Adds a prompt and generates piece by piece. While the stream is open other calls are {@link Status#BUSY}. */
  public TokenStream stream(String prompt, Sampling sampling) {
    return stream(prompt, sampling, null);
  }

  /** The same, with what stops it. */
  public TokenStream stream(String prompt, Sampling sampling, Cancel cancel) {
    byte[] text = Text.bytes(prompt);
    return ask(s -> TokenStream.open(s, text, sampling, running, cancel));
  }

  /** Adds text without generating. */
  public void append(String text) {
    append(text, null);
  }

  /** The same, with what stops it: the tokens run so far stay. */
  public void append(String text, Cancel cancel) {
    byte[] bytes = Text.bytes(text);
    evaluate(cancel, s -> Native.gen_session_append(s, bytes, bytes.length));
  }

  /** Adds tokens as they are, without begin-of-sequence. */
  public void appendTokens(int... tokens) {
    appendTokens(tokens, null);
  }

  /** The same, with what stops it: the tokens run so far stay. */
  public void appendTokens(int[] tokens, Cancel cancel) {
    evaluate(cancel, s -> Native.gen_session_append_tokens(s, tokens, tokens.length));
  }

  /**
   * Makes the session hold a conversation, so that generating with an empty prompt answers it. What the session has of it
   * stays, and only the rest is run.
   *
   * @param addGenerationPrompt end with the opening of an assistant's turn
   */
  public void appendChat(Chat chat, boolean addGenerationPrompt) {
    appendChat(chat, addGenerationPrompt, null);
  }

  /** The same, with what stops it: what was run so far stays. */
  public void appendChat(Chat chat, boolean addGenerationPrompt, Cancel cancel) {
    evaluate(cancel, s -> chat.run(c -> Native.gen_session_append_chat(s, c, addGenerationPrompt ? 1 : 0)));
  }

  /** Log-probabilities of a text's tokens, as a continuation of what the session holds, which is unchanged. */
  public float[] score(String text) {
    return score(text, null);
  }

  /** The same, with what stops it. */
  public float[] score(String text, Cancel cancel) {
    byte[] bytes = Text.bytes(text);
    float[][] scores = new float[1][];
    evaluate(cancel, s -> {
      long[] n = new long[1];
      Native.gen_session_score(s, bytes, bytes.length, null, 0, n);
      scores[0] = new float[Math.toIntExact(n[0])];
      Native.gen_session_score(s, bytes, bytes.length, scores[0], n[0], n);
    });
    return scores[0];
  }

  /** Each of these calls sets a flag of its own, so that none has to take it back. */
  private void evaluate(Cancel cancel, LongConsumer body) {
    run(s -> {
      try (Call.Flagged call = new Call.Flagged(running, cancel)) {
        Native.gen_session_set_cancel(s, call.address());
        call.enter();
        try {
          body.accept(s);
        } finally {
          call.leave();
        }
      }
    });
  }

  /** The tokens that the session holds. */
  public int[] tokens() {
    return ask(s -> {
      long[] n = new long[1];
      Native.gen_session_tokens(s, null, 0, n);
      int[] ids = new int[Math.toIntExact(n[0])];
      if (ids.length > 0) Native.gen_session_tokens(s, ids, ids.length, n);
      return ids;
    });
  }

  /** Number of tokens the session holds. Also while a call runs. */
  public int length() {
    return number(Native::gen_session_length);
  }

  /** Keeps the first {@code n} tokens. */
  public void truncate(int n) {
    run(s -> Native.gen_session_truncate(s, n));
  }

  /** Empties the session; memory is kept for reuse. */
  public void reset() {
    run(Native::gen_session_reset);
  }

  /** An independent session that continues from the same tokens. */
  public Session fork() {
    return ask(s -> new Session(make(out -> Native.gen_session_fork(s, out))));
  }

  /** Saves tokens and cache to a file, which appears whole or not at all. */
  public void save(Path path) {
    run(s -> Native.gen_session_save(s, Text.name(path)));
  }

  /** Saves tokens and cache to memory. */
  public byte[] save() {
    return ask(s -> Text.askBytes((buf, capacity, n) -> Native.gen_session_save_buffer(s, buf, capacity, n)));
  }

  /** Continues a saved session; this one must be empty. */
  public void load(Path path) {
    run(s -> Native.gen_session_load(s, Text.name(path)));
  }

  /** The same from memory. */
  public void load(byte[] state) {
    run(s -> Native.gen_session_load_buffer(s, state, state.length));
  }

  /** Stops the call or stream that runs on this session, if one does. From any thread. */
  public void cancel() {
    running.fireRunning();
  }

  /** Share of the current prompt that has been run, 0 to 1. Also while a call runs. */
  public double progress() {
    return ask(Native::gen_session_progress);
  }

  /** The session's cache, for reading; it ends with the session. */
  public KvCache cache() {
    return ask(s -> new KvCache(this, Native.gen_session_cache(s)));
  }

  /**
   * What the session's model keeps beside keys and values, for reading and for going back; null for a model without such a
   * state. It ends with the session.
   */
  public SsmState state() {
    return ask(s -> {
      long state = Native.gen_session_ssm_state(s);
      return state != 0 ? new SsmState(this, state) : null;
    });
  }

  /** Ends the session, and soon what runs on it. */
  @Override
  public void close() {
    super.close();
    running.fire();
  }
}
