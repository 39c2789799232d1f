// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** The outcome of a generation, also of one that was stopped or failed halfway. Immutable, and nothing to close. */
public final class Result {
  /** A token and how probable it was. */
  public record Candidate(int id, float logprob) {}

  private final String text;
  private final int[] tokens;
  private final float[] logprobs;
  private final List<List<Candidate>> top;
  private final FinishReason finishReason;
  private final GenerateException error;
  private final long[] usage;
  private final double[] timings;
  private final String drafts;
  private final String answer;

  /** Copies a native result, and frees it. */
  static Result take(long address) {
    try {
      return new Result(address);
    } finally {
      Native.gen_result_free(address);
    }
  }

  static List<Candidate> candidates(long ids, long logprobs, long count) {
    int[] id = ints(ids, count);
    float[] value = floats(logprobs, count);
    List<Candidate> candidates = new ArrayList<>(id.length);
    for (int i = 0; i < id.length; ++i) candidates.add(new Candidate(id[i], value[i]));
    return List.copyOf(candidates);
  }

  private Result(long address) {
    long[] n = new long[1];
    text = new String(copy(Native.gen_result_text(address, n), n[0]), StandardCharsets.UTF_8);
    tokens = ints(Native.gen_result_tokens(address, n), n[0]);
    logprobs = floats(Native.gen_result_logprobs(address, n), n[0]);
    top = new ArrayList<>();
    for (int step = 0; step < logprobs.length; ++step) {
      long[] ids = new long[1];
      long[] values = new long[1];
      long count = Native.gen_result_top_logprobs(address, step, ids, values);
      if (count == 0) break;
      top.add(candidates(ids[0], values[0], count));
    }
    finishReason = FinishReason.of(Native.gen_result_finish_reason(address));
    int code = Native.gen_binding_result_code(address);
    error = code == 0 ? null
        : GenerateException.of(code, Native.gen_binding_result_message(address)).with(List.of(this));
    usage = new long[] {usage(address, "prompt"), usage(address, "prompt_cached"), usage(address, "completion"),
        usage(address, "dropped"), usage(address, "drafted"), usage(address, "accepted"),
        usage(address, "grammar_complete"), usage(address, "prompt_evaluated")};
    timings = new double[] {seconds(address, "prefill"), seconds(address, "first_token"), seconds(address, "decode"),
        seconds(address, "total")};
    answer = Text.ask((buf, capacity, size) -> Native.gen_result_answer(address, buf, capacity, size));
    drafts = usage[4] == 0 ? "[]" : drafts(address);
  }

  private static String drafts(long address) {
    try {
      return Text.ask((buf, capacity, n) -> Native.gen_result_drafts(address, buf, capacity, n));
    } catch (GenerateException e) {
      return "[]"; // a pass had no memory for its own
    }
  }

  private static long usage(long address, String key) {
    long[] value = new long[1];
    Native.gen_result_usage(address, Text.name(key), value);
    return value[0];
  }

  private static double seconds(long address, String key) {
    double[] value = new double[1];
    Native.gen_result_timings(address, Text.name(key), value);
    return value[0];
  }

  private static byte[] copy(long address, long n) {
    byte[] bytes = new byte[Math.toIntExact(n)];
    Native.gen_binding_copy(address, n, bytes);
    return bytes;
  }

  private static int[] ints(long address, long n) {
    int[] values = new int[Math.toIntExact(n)];
    ByteBuffer.wrap(copy(address, n * Integer.BYTES)).order(ByteOrder.nativeOrder()).asIntBuffer().get(values);
    return values;
  }

  private static float[] floats(long address, long n) {
    float[] values = new float[Math.toIntExact(n)];
    ByteBuffer.wrap(copy(address, n * Float.BYTES)).order(ByteOrder.nativeOrder()).asFloatBuffer().get(values);
    return values;
  }

  /** The generated text, without prompt, stop token and stop string. */
  public String text() {
    return text;
  }

  /** The tokens drawn, without a stop token. */
  public int[] tokens() {
    return tokens.clone();
  }

  /** Log-probabilities of the tokens drawn; empty unless {@link Sampling#logprobs} asked for them. */
  public float[] logprobs() {
    return logprobs.clone();
  }

  /** The most probable tokens at each step, most probable first; empty unless {@link Sampling#logprobs} asked for some. */
  public List<List<Candidate>> topLogprobs() {
    return List.copyOf(top);
  }

  /** Why the generation ended. */
  public FinishReason finishReason() {
    return finishReason;
  }

  /** What ended it, if it was a failure or a cancel; of requests in a batch, which throw nothing. */
  public Optional<GenerateException> error() {
    return Optional.ofNullable(error);
  }

  /** Tokens of the prompt, begin-of-sequence included. */
  public long promptTokens() {
    return usage[0];
  }

  /** Of these, tokens that were not computed anew. */
  public long cachedPromptTokens() {
    return usage[1];
  }

  /** Tokens that ran before the first one was drawn, earlier ones that ran again included. */
  public long evaluatedPromptTokens() {
    return usage[7];
  }

  /** Tokens generated. */
  public long completionTokens() {
    return usage[2];
  }

  /** Oldest tokens of the session that made room, see {@link GeneratorOptions#contextPolicy}. */
  public long droppedTokens() {
    return usage[3];
  }

  /** Draft tokens that were verified. */
  public long draftedTokens() {
    return usage[4];
  }

  /** Of these, accepted ones. */
  public long acceptedTokens() {
    return usage[5];
  }

  /**
   * What was drafted for each pass, and what of it the model confirmed, as JSON: objects with "index" (of the first
   * drafted token among {@link #tokens}), "drafter", "tokens", "parents", "grades" and "accepted" (places in "tokens").
   */
  public String drafts() {
    return drafts;
  }

  /**
   * What a chat session read in the answer, as JSON: "text", "reasoning", "calls" with "name" and "arguments", and "faults".
   * Of other results all of the text is "text".
   */
  public String answer() {
    return answer;
  }

  /** Whether what was drawn is a member of the call's grammar; empty without one. */
  public Optional<Boolean> grammarComplete() {
    return usage[6] < 0 ? Optional.empty() : Optional.of(usage[6] > 0);
  }

  /** Time for the prompt. */
  public Duration prefillTime() {
    return duration(timings[0]);
  }

  /** Time from the call to the first token. */
  public Duration firstTokenTime() {
    return duration(timings[1]);
  }

  /** Time for the tokens after the first. */
  public Duration decodeTime() {
    return duration(timings[2]);
  }

  /** Time of the whole call. */
  public Duration totalTime() {
    return duration(timings[3]);
  }

  private static Duration duration(double seconds) {
    return Duration.ofNanos(Math.round(seconds * 1e9));
  }

  @Override
  public String toString() {
    return text;
  }
}
