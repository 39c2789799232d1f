// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.BitSet;

/**
 * Reads a text token by token and returns which tokens may come next, for programs that draw them themselves. One thread at a
 * time. Of a call that throws nothing has changed.
 */
public final class GrammarMatcher extends Handle {
  private final int vocabSize;

  GrammarMatcher(int vocabSize, long address) {
    super("grammar matcher", address, Native::gen_grammar_matcher_free);
    this.vocabSize = vocabSize;
  }

  /** Advances by a token, or by one that ends texts where the text may end; {@link Status#GRAMMAR} if it is not allowed. */
  public void acceptToken(int token) {
    run(m -> Native.gen_grammar_matcher_accept_token(m, token));
  }

  /** Advances by bytes, which need not be whole characters or tokens. */
  public void acceptBytes(byte[] bytes) {
    run(m -> Native.gen_grammar_matcher_accept_bytes(m, bytes, bytes.length));
  }

  /** Advances by text. */
  public void acceptText(String text) {
    acceptBytes(Text.bytes(text));
  }

  /** Which tokens may come next: those that {@link #acceptToken} would take. */
  public BitSet mask() {
    int[] bits = new int[(vocabSize + 31) / 32];
    run(m -> Native.gen_grammar_matcher_mask(m, bits, bits.length));
    return Grammar.set(bits);
  }

  /** Which bytes may come next. */
  public BitSet validBytes() {
    int[] bits = new int[8];
    run(m -> Native.gen_grammar_matcher_valid_bytes(m, bits));
    return Grammar.set(bits);
  }

  /** Undoes the last {@code n} accepting calls. */
  public void rollback(int n) {
    if (n < 0) throw new GenerateException(Status.INVALID_ARGUMENT, n + " calls cannot be taken back");
    run(m -> Native.gen_grammar_matcher_rollback(m, n));
  }

  /** Another matcher in the same place. */
  public GrammarMatcher fork() {
    return ask(m -> new GrammarMatcher(vocabSize, make(out -> Native.gen_grammar_matcher_fork(m, out))));
  }

  /** Back to the empty text. */
  public void reset() {
    run(Native::gen_grammar_matcher_reset);
  }

  /** Whether the text is a member. */
  public boolean isComplete() {
    return number(Native::gen_grammar_matcher_complete) > 0;
  }

  /** Whether the text is a member that nothing can follow. */
  public boolean isFinished() {
    return number(Native::gen_grammar_matcher_complete) > 1;
  }

  /**
   * Tokens from here on, at most 1024, for which no model needs to be asked: each is the only one that may come, which is seldom
   * so with vocabularies of SentencePiece. With the option "forced_tokens" "tokenizer" of the grammar they are those that the
   * tokenizer makes of the bytes that must come.
   */
  public int[] forced() {
    return ask(m -> {
      long[] n = new long[1];
      Native.gen_grammar_matcher_forced(m, null, 0, n);
      int[] ids = new int[Math.toIntExact(n[0])];
      if (ids.length > 0) Native.gen_grammar_matcher_forced(m, ids, ids.length, n);
      return ids;
    });
  }

  /**
   * Fewest tokens until the text may end, not counting one that ends it, or, where that would take long to find out, those
   * of the shortest text that ends it; -1 if no tokens are known to.
   */
  public long minTokens() {
    return ask(m -> {
      long[] n = new long[1];
      Native.gen_grammar_matcher_min_tokens(m, n);
      return n[0];
    });
  }
}
