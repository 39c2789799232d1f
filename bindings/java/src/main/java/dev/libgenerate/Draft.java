// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.Arrays;

/**
 * Guessing and judging as steps of their own, for a loop of one's own around them. One call at a time, a second one is
 * {@link Status#BUSY}.
 */
public final class Draft extends Handle {
  private static final int MOST = 63;

  /**
   * Guesses.
   *
   * @param tokens what the draft model says
   * @param logprobs the log-probability of each
   */
  public record Guesses(int[] tokens, float[] logprobs) {}

  /**
   * What the target says of guesses.
   *
   * @param accepted how many of them are its own
   * @param correction the token after these; -1 where its context is full
   */
  public record Verdict(int accepted, int correction) {}

  /**
   * What came of a proposal.
   *
   * @param tokens that are said
   * @param rate the share of the proposal that was kept
   */
  public record Accepted(int[] tokens, double rate) {}

  private Draft(long address) {
    super("draft", address, Native::gen_draft_free);
  }

  /**
   * Makes a drafter of a model that guesses, and one that judges. Both may be closed afterwards.
   *
   * @param target null for none
   * @param options null for the defaults
   */
  public static Draft of(Model draft, Model target, GeneratorOptions options) {
    return new Draft(Settings.use(options, o -> draft.ask(
        d -> makeWith(target, (t, out) -> Native.gen_draft_new(d, t, o, out)))));
  }

  /** Makes a drafter of the model's own first layers; 0 stands for half of them. */
  public static Draft ofLayers(Model model, int layers, GeneratorOptions options) {
    return new Draft(Settings.use(options,
        o -> makeWith(model, (m, out) -> Native.gen_draft_new_self(m, layers, o, out))));
  }

  /** Layers that guess. */
  public int depth() {
    return number(Native::gen_draft_depth);
  }

  /** Guesses how tokens go on. */
  public Guesses generate(int[] tokens, int length) {
    return ask(d -> {
      int[] ids = new int[MOST];
      float[] logprobs = new float[MOST];
      long[] n = new long[1];
      Native.gen_draft_generate(d, tokens, tokens.length, length, ids, logprobs, MOST, n);
      return new Guesses(Arrays.copyOf(ids, (int) n[0]), Arrays.copyOf(logprobs, (int) n[0]));
    });
  }

  /** Judges guesses at what follows tokens. */
  public Verdict verify(int[] tokens, int[] guesses) {
    return ask(d -> {
      int[] accepted = new int[1];
      int[] correction = new int[1];
      Native.gen_draft_verify(d, tokens, tokens.length, guesses, guesses.length, accepted, correction);
      return new Verdict(accepted[0], correction[0]);
    });
  }

  /** Guesses once, 4 tokens for a length of 0: the share of these that the target says, too. */
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
