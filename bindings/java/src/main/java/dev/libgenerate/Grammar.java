// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/** Which texts are allowed, for {@link Sampling#grammar}. Any number of threads may use one. */
public final class Grammar extends Handle {
  interface From {
    void make(long options, long[] out);
  }

  private Grammar(GrammarOptions options, From from) {
    super("grammar", Settings.use(options, o -> make(out -> from.make(o, out))), Native::gen_grammar_free);
  }

  /**
   * From GBNF, the notation of llama.cpp: rules like {@code root ::= "yes" | "no"}, of which root is the whole text. What is
   * wrong is {@link Status#GRAMMAR} and names line and column.
   */
  public static Grammar gbnf(String text) {
    return gbnf(text, null);
  }

  /** From GBNF; {@code options} may be null for the defaults. */
  public static Grammar gbnf(String text, GrammarOptions options) {
    byte[] bytes = Text.bytes(text);
    return new Grammar(options, (o, out) -> Native.gen_grammar_from_gbnf(bytes, bytes.length, o, out));
  }

  /**
   * From a Lark file in llguidance's dialect, of which the rule start is the whole text; gen_grammar_from_lark of grammar.h
   * describes it.
   */
  public static Grammar lark(String text) {
    return lark(text, null);
  }

  /** From a Lark file; {@code options} may be null for the defaults. */
  public static Grammar lark(String text, GrammarOptions options) {
    byte[] bytes = Text.bytes(text);
    return new Grammar(options, (o, out) -> Native.gen_grammar_from_lark(bytes, bytes.length, o, out));
  }

  /**
   * From a regular expression in JavaScript's syntax, without slashes and flags. It is not one of java.util.regex: a class
   * like \w is that of JavaScript.
   */
  public static Grammar regex(String pattern) {
    return regex(pattern, null);
  }

  /** From a regular expression; {@code options} may be null for the defaults. */
  public static Grammar regex(String pattern, GrammarOptions options) {
    byte[] bytes = Text.bytes(pattern);
    return new Grammar(options, (o, out) -> Native.gen_grammar_from_regex(bytes, bytes.length, o, out));
  }

  /**
   * Free text with constrained parts, as tool calls are, from a JSON object like
   * {@code {"tags": [{"begin": "<add>", "regex": "[0-9]+", "end": "</add>"}]}}; gen_grammar_from_tags of grammar.h tells
   * all there can be.
   */
  public static Grammar tags(String text) {
    return tags(text, null);
  }

  /** From tags; {@code options} may be null for the defaults. */
  public static Grammar tags(String text, GrammarOptions options) {
    byte[] bytes = Text.bytes(text);
    return new Grammar(options, (o, out) -> Native.gen_grammar_from_tags(bytes, bytes.length, o, out));
  }

  /**
   * The JSON texts that are valid under a JSON Schema, of draft 4 to 2020-12. What cannot be kept exactly is refused
   * with the keyword's JSON pointer.
   */
  public static Grammar jsonSchema(String schema) {
    return jsonSchema(schema, null);
  }

  /** From a JSON Schema; {@code options} may be null for the defaults. */
  public static Grammar jsonSchema(String schema, GrammarOptions options) {
    byte[] bytes = Text.bytes(schema);
    return new Grammar(options, (o, out) -> Native.gen_grammar_from_json_schema(bytes, bytes.length, o, out));
  }

  /** Any JSON value. */
  public static Grammar anyJson() {
    return anyJson(null);
  }

  /** Any JSON value; {@code options} may be null for the defaults. */
  public static Grammar anyJson(GrammarOptions options) {
    return new Grammar(options, Native::gen_grammar_any_json);
  }

  /** The grammar as JSON: its kind, the states of its automata, their memory. */
  public String describe() {
    return ask(g -> Text.ask((buf, capacity, n) -> Native.gen_grammar_describe(g, buf, capacity, n)));
  }

  /** Begins an empty text over the tokens of a tokenizer. The matcher needs neither of them any longer. */
  public GrammarMatcher matcher(Tokenizer tokenizer) {
    return new GrammarMatcher(tokenizer.vocabSize(), tokenizer.ask(t -> makeWith(this, (g, out) ->
        Native.gen_grammar_matcher_new(g, t, out))));
  }

  /**
   * Which strings, such as a vocabulary of the caller's, may follow a text, by their index. Meant for a few positions: a matcher
   * is far faster over many.
   */
  public BitSet tokenMask(String text, List<String> strings) {
    List<byte[]> bytes = new ArrayList<>();
    for (String string : strings) bytes.add(Text.bytes(string));
    return tokenMask(Text.bytes(text), bytes);
  }

  /** The same of bytes, which need not be whole characters. */
  public BitSet tokenMask(byte[] text, List<byte[]> strings) {
    long[] lengths = new long[strings.size()];
    long total = 0;
    for (int i = 0; i < lengths.length; ++i) total += lengths[i] = strings.get(i).length;
    byte[] all = new byte[Math.toIntExact(total)];
    int end = 0;
    for (byte[] string : strings) {
      System.arraycopy(string, 0, all, end, string.length);
      end += string.length;
    }
    int[] bits = new int[(lengths.length + 31) / 32];
    run(g -> Native.gen_binding_token_mask(g, text, text.length, all, lengths, lengths.length, bits, bits.length));
    return set(bits);
  }

  static BitSet set(int[] bits) {
    long[] words = new long[(bits.length + 1) / 2];
    for (int i = 0; i < bits.length; ++i) words[i / 2] |= (bits[i] & 0xFFFFFFFFL) << (i % 2 * 32);
    return BitSet.valueOf(words);
  }
}
