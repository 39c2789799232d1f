// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** A prompt and how to continue it, for {@link Generator#generate(List)}: immutable, each method gives a new one. */
public final class Request {
  private final byte[] prompt;
  private final int[] tokens;
  private final Sampling sampling;
  private final int priority;
  private final long deadline;

  private Request(byte[] prompt, int[] tokens, Sampling sampling, int priority, long deadline) {
    this.prompt = prompt;
    this.tokens = tokens;
    this.sampling = sampling;
    this.priority = priority;
    this.deadline = deadline;
  }

  /** Continues a text. */
  public static Request of(String prompt) {
    return new Request(Text.bytes(prompt), null, null, 0, 0);
  }

  /** Continues a text. */
  public static Request of(String prompt, Sampling sampling) {
    return of(prompt).sampling(sampling);
  }

  /** Continues tokens, taken as they are. */
  public static Request ofTokens(int... tokens) {
    return new Request(null, tokens.clone(), null, 0, 0);
  }

  /** How tokens are chosen; null for the defaults. */
  public Request sampling(Sampling value) {
    return new Request(prompt, tokens, value, priority, deadline);
  }

  /** Where not all requests fit into a step those of higher priority go first; 0 is what other calls have. */
  public Request priority(int value) {
    return new Request(prompt, tokens, sampling, value, deadline);
  }

  /** Cancels the request that long after the call began; zero for no deadline. */
  public Request deadline(Duration value) {
    long milliseconds = value.toMillis();
    return new Request(prompt, tokens, sampling, priority, milliseconds == 0 && !value.isZero() ? 1 : milliseconds);
  }

  Sampling sampling() {
    return Sampling.orDefaults(sampling);
  }

  byte[] prompt() {
    return prompt != null ? prompt : new byte[0];
  }

  int[] tokens() {
    return tokens;
  }

  long deadline() {
    return deadline;
  }

  private void fill(long request, long cancel) {
    if (tokens != null) {
      Native.gen_request_set_prompt_tokens(request, tokens, tokens.length);
    } else {
      Native.gen_request_set_prompt(request, prompt, prompt.length);
    }
    Native.gen_request_set_priority(request, priority);
    Native.gen_request_set_deadline_ms(request, deadline);
    sampling().use(settings -> {
      Native.gen_sampling_set_cancel(settings, cancel);
      return Native.gen_request_set_sampling(request, settings);
    });
  }

  static List<Result> run(long generator, List<Request> requests, Cancel cancel) {
    int n = requests.size();
    long[] handles = new long[n];
    long[] out = new long[n];
    try (Call.Flagged call = new Call.Flagged(cancel)) {
      try {
        for (int i = 0; i < n; ++i) {
          handles[i] = Handle.make(Native::gen_request_new);
          requests.get(i).fill(handles[i], call.address());
        }
        call.enter();
        try {
          Native.gen_batch_generate(generator, handles, n, out);
        } finally {
          call.leave();
        }
      } finally {
        for (long handle : handles) Native.gen_request_free(handle);
      }
      return take(out, n, call);
    }
  }

  /** Results of a call that several texts come from, of which it takes n. */
  static List<Result> take(long[] out, int n, Call.Flagged call) {
    List<Result> results = new ArrayList<>(n);
    boolean cancelled = false;
    for (int i = 0; i < n; ++i) {
      results.add(Result.take(out[i]));
      cancelled |= results.get(i).finishReason() == FinishReason.CANCELLED;
    }
    if (cancelled && call.fired()) {
      throw new GenerateCancelledException("the batch was cancelled").with(List.copyOf(results));
    }
    return List.copyOf(results);
  }
}
