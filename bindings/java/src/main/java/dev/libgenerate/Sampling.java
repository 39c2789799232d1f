// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;
import java.util.function.LongConsumer;

/**
 * How tokens are chosen: immutable, each method gives new settings, as in
 * {@code Sampling.defaults().temperature(0.8).topP(0.95).seed(7)}. The defaults: temperature 1, nothing cut, no penalty,
 * seed 0, 256 tokens. The same settings and seed give the same text on every machine.
 */
public final class Sampling extends Settings<Sampling> {
  private static final Sampling DEFAULTS = new Sampling(List.of());

  private Sampling(List<Setter> setters) {
    super(setters);
  }

  /** The defaults of the library. */
  public static Sampling defaults() {
    return DEFAULTS;
  }

  /** The most probable token at each step. */
  public static Sampling greedy() {
    return DEFAULTS.temperature(0);
  }

  static Sampling orDefaults(Sampling sampling) {
    return sampling != null ? sampling : DEFAULTS;
  }

  /** Divides logits by this; 0 takes the most probable token. */
  public Sampling temperature(double temperature) {
    return add(s -> Native.gen_sampling_set_temperature(s, temperature));
  }

  /** Keeps the {@code k} largest logits; 0 keeps all. */
  public Sampling topK(int k) {
    return add(s -> Native.gen_sampling_set_top_k(s, k));
  }

  /** Keeps the fewest most probable tokens whose probabilities reach {@code p}; 1 keeps all. */
  public Sampling topP(double p) {
    return add(s -> Native.gen_sampling_set_top_p(s, p));
  }

  /** Keeps tokens at least {@code p} times as probable as the most probable one; 0 keeps all. */
  public Sampling minP(double p) {
    return add(s -> Native.gen_sampling_set_min_p(s, p));
  }

  /** Keeps the tokens whose surprise is nearest to the expected one; 1 keeps all. */
  public Sampling typicalP(double p) {
    return add(s -> Native.gen_sampling_set_typical_p(s, p));
  }

  /** Divides positive and multiplies negative logits of tokens generated before; 1 is off. */
  public Sampling repetitionPenalty(double penalty) {
    return add(s -> Native.gen_sampling_set_repetition_penalty(s, penalty));
  }

  /** The repetition penalty acts once for each occurrence of a token. */
  public Sampling compoundPenalty(boolean compound) {
    return add(s -> Native.gen_sampling_set_compound_penalty(s, compound ? 1 : 0));
  }

  /** Subtracted from the logit of a token for each time it was generated before; 0 is off. */
  public Sampling frequencyPenalty(double penalty) {
    return add(s -> Native.gen_sampling_set_frequency_penalty(s, penalty));
  }

  /** Subtracted once from the logit of each token that was generated before; 0 is off. */
  public Sampling presencePenalty(double penalty) {
    return add(s -> Native.gen_sampling_set_presence_penalty(s, penalty));
  }

  /** All tokens of the session count for the penalties, the prompt included. */
  public Sampling penalizePrompt(boolean penalize) {
    return add(s -> Native.gen_sampling_set_penalize_prompt(s, penalize ? 1 : 0));
  }

  /** Only the last {@code tokens} count for the penalties; 0 means all. */
  public Sampling penaltyWindow(int tokens) {
    return add(s -> Native.gen_sampling_set_penalty_window(s, tokens));
  }

  /** Ends a generation after that many tokens. */
  public Sampling maxNewTokens(int tokens) {
    return add(s -> Native.gen_sampling_set_max_new_tokens(s, tokens));
  }

  /** The seed, of which all 64 bits count. */
  public Sampling seed(long seed) {
    return add(s -> Native.gen_sampling_set_seed(s, seed));
  }

  /** Records log-probabilities of the tokens drawn and of the {@code count} most probable ones; -1 records none. */
  public Sampling logprobs(int count) {
    return add(s -> Native.gen_sampling_set_logprobs(s, count));
  }

  /** Added to the logit of a token before everything else; negative infinity forbids it. */
  public Sampling logitBias(int token, float bias) {
    return add(s -> Native.gen_sampling_set_logit_bias(s, token, bias));
  }

  /**
   * Draws by Gumbel-max: with noise of each token, so that calls of one seed whose logits differ a little draw the same
   * tokens mostly.
   */
  public Sampling gumbel(boolean gumbel) {
    return add(s -> Native.gen_sampling_set_gumbel(s, gumbel ? 1 : 0));
  }

  /**
   * A gen_logits_callback in C that edits the logits of each step before all else, or {@link NativeSymbol#NONE}. It and
   * {@code user} must live as long as the calls.
   */
  public Sampling logitsCallback(NativeSymbol callback, long user) {
    return add(s -> Native.gen_sampling_set_logits_callback(s, callback.address(), user));
  }

  /** The model's own end tokens no longer end a generation. */
  public Sampling ignoreEos(boolean ignore) {
    return add(s -> Native.gen_sampling_set_ignore_eos(s, ignore ? 1 : 0));
  }

  /** Under a grammar, only tokens with which the text can still end within {@link #maxNewTokens}; the default. */
  public Sampling fitGrammar(boolean fit) {
    return add(s -> Native.gen_sampling_set_fit_grammar(s, fit ? 1 : 0));
  }

  /**
   * Makes tokens less likely with which a sequence of at least {@code allowedLength} tokens would come again: by
   * multiplier * base^(length - allowedLength), over the last {@code window} tokens (0: all); a multiplier of 0 is off.
   */
  public Sampling dry(double multiplier, double base, int allowedLength, int window) {
    return add(s -> Native.gen_sampling_set_dry(s, multiplier, base, allowedLength, window));
  }

  /** A text that ends a sequence for {@link #dry}. */
  public Sampling dryBreaker(String text) {
    byte[] bytes = Text.bytes(text);
    return add(s -> Native.gen_sampling_add_dry_breaker(s, bytes, bytes.length));
  }

  /** Leaves out, with this probability, all tokens above the threshold but the least probable of them. */
  public Sampling xtc(double probability, double threshold) {
    return add(s -> Native.gen_sampling_set_xtc(s, probability, threshold));
  }

  /** Keeps tokens whose logits are within {@code n} standard deviations of the largest; 0 keeps all. */
  public Sampling topNSigma(double n) {
    return add(s -> Native.gen_sampling_set_top_n_sigma(s, n));
  }

  /** Keeps the surprise of tokens near {@code tau} (mirostat 2), learning at the rate {@code eta}; a tau of 0 is off. */
  public Sampling mirostat(double tau, double eta) {
    return add(s -> Native.gen_sampling_set_mirostat(s, tau, eta));
  }

  /** Draws no token that ends a text before that many tokens, if any other is possible. */
  public Sampling minNewTokens(int tokens) {
    return add(s -> Native.gen_sampling_set_min_new_tokens(s, tokens));
  }

  /** Ends a generation when the token is drawn; it is not part of the text. */
  public Sampling stopToken(int token) {
    return add(s -> Native.gen_sampling_add_stop_token(s, token));
  }

  /** Ends a generation when the text holds this; no character of it is returned or streamed. */
  public Sampling stopString(String text) {
    byte[] bytes = Text.bytes(text);
    return add(s -> Native.gen_sampling_add_stop_string(s, bytes, bytes.length));
  }

  /** Uses the model's adapter of that name, with scale 1, and no other; null for none. */
  public Sampling adapter(String name) {
    byte[] bytes = Text.name(name != null ? name : "");
    return add(s -> Native.gen_sampling_set_adapter(s, bytes));
  }

  /** Adds an adapter to those that calls use. */
  public Sampling addAdapter(String name, float scale) {
    byte[] bytes = Text.name(name);
    return add(s -> Native.gen_sampling_add_adapter(s, bytes, scale));
  }

  /**
   * The text is a member of the grammar; null for any text. The model can end it only where it is one. What else ends it,
   * {@link #maxNewTokens} first of all, can leave a text that is none yet. The grammar must be open when a call begins, not
   * longer.
   */
  public Sampling grammar(Grammar grammar) {
    return add(s -> Handle.with(grammar, g -> {
      Native.gen_sampling_set_grammar(s, g);
      return null;
    }));
  }

  /**
   * The same for a text that goes on where the matcher stands when a call begins, which leaves it there. It must be over the
   * model's tokenizer.
   */
  public Sampling grammarMatcher(GrammarMatcher matcher) {
    return add(s -> Handle.with(matcher, m -> {
      Native.gen_sampling_set_grammar_matcher(s, m);
      return null;
    }));
  }

  @Override
  Sampling with(List<Setter> all) {
    return new Sampling(all);
  }

  @Override
  void make(long[] out) {
    Native.gen_sampling_new(out);
  }

  @Override
  LongConsumer free() {
    return Native::gen_sampling_free;
  }

  @Override
  void describe(long address, byte[] buf, long capacity, long[] n) {
    Native.gen_sampling_describe(address, buf, capacity, n);
  }

  @Override
  void set(long address, byte[] key, byte[] value) {
    Native.gen_sampling_set(address, key, value);
  }
}
