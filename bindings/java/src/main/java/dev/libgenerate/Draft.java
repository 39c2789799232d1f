// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.Arrays;

/**
 * Drafting and verification as separate steps, for programs with their own loop. One call at a time, a second one is
 * {@link Status#BUSY}.
 */
public final class Draft extends Handle {
  private static final int MOST = 63;

  /**
   * A draft.
   *
   * @param tokens the draft
   * @param logprobs the log-probability of each
   */
  public record Guesses(int[] tokens, float[] logprobs) {}

  /**
   * The target's verdict on a draft.
   *
   * @param accepted how many of them are its own
   * @param correction the token after these; -1 where its context is full
   */
  public record Verdict(int accepted, int correction) {}

  /**
   * The outcome of speculative sampling.
   *
   * @param tokens the output tokens
   * @param rate the share of the proposal that was kept
   */
  public record Accepted(int[] tokens, double rate) {}

  private Draft(long address) {
    super("draft", address, Native::gen_draft_free);
  }

  /**
   * Makes a drafter from a model that drafts, and one that verifies. Both may be closed afterwards.
   *
   * @param target null for none
   * @param options null for the defaults
   */
  public static Draft of(Model draft, Model target, GeneratorOptions options) {
    return new Draft(Settings.use(options, o -> draft.ask(
        d -> makeWith(target, (t, out) -> Native.gen_draft_new(d, t, o, out)))));
  }

  /** Makes a drafter from the model's own first layers; 0 means half of them. */
  public static Draft ofLayers(Model model, int layers, GeneratorOptions options) {
    return new Draft(Settings.use(options,
        o -> makeWith(model, (m, out) -> Native.gen_draft_new_self(m, layers, o, out))));
  }

  /** Layers that draft. */
  public int depth() {
    return number(Native::gen_draft_depth);
  }

  /** Drafts the next tokens. */
  public Guesses generate(int[] tokens, int length) {
    return ask(d -> {
      int[] ids = new int[MOST];
      float[] logprobs = new float[MOST];
      long[] n = new long[1];
      Native.gen_draft_generate(d, tokens, tokens.length, length, ids, logprobs, MOST, n);
      return new Guesses(Arrays.copyOf(ids, (int) n[0]), Arrays.copyOf(logprobs, (int) n[0]));
    });
  }

  /** Verifies a draft of what follows tokens. */
  public Verdict verify(int[] tokens, int[] guesses) {
    return ask(d -> {
      int[] accepted = new int[1];
      int[] correction = new int[1];
      Native.gen_draft_verify(d, tokens, tokens.length, guesses, guesses.length, accepted, correction);
      return new Verdict(accepted[0], correction[0]);
    });
  }

  /** Drafts once, 4 tokens for a length of 0: the acceptance rate. */
  public double acceptanceRate(int[] tokens, int length) {
    return ask(d -> {
      double[] rate = new double[1];
      Native.gen_draft_acceptance_rate(d, tokens, tokens.length, length, rate);
      return rate[0];
    });
  }

  /**
   * Speculative sampling: of tokens drawn from a draft's probabilities keeps those that leave the distribution of the target's,
   * and draws one more.
   *
   * @param draftProbs K rows of vocab; null for no draws: a token is kept while it is the target's most probable one
   * @param targetProbs K + 1 rows
   * @param step the draws are those of seed and step + i
   */
  public static Accepted accept(int[] tokens, float[] draftProbs, float[] targetProbs, int vocab, long seed, long step) {
    if (vocab < 1 || targetProbs.length < (tokens.length + 1L) * vocab
        || (draftProbs != null && draftProbs.length < (long) tokens.length * vocab)) {
      throw new IllegalArgumentException("fewer probabilities than " + tokens.length + " tokens of " + vocab + " have");
    }
    int[] ids = new int[tokens.length + 1];
    long[] n = new long[1];
    double[] rate = new double[1];
    Native.gen_draft_accept_tokens(tokens, tokens.length, draftProbs, targetProbs, vocab, draftProbs == null ? 1 : 0, seed, step,
        ids, ids.length, n, rate);
    return new Accepted(Arrays.copyOf(ids, (int) n[0]), rate[0]);
  }
}
