// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;
import java.util.function.LongConsumer;

/** How to make a {@link Grammar}: immutable, as {@link Sampling}. */
public final class GrammarOptions extends Settings<GrammarOptions> {
  private static final GrammarOptions DEFAULTS = new GrammarOptions(List.of());

  private GrammarOptions(List<Setter> setters) {
    super(setters);
  }

  /** The defaults of the library. */
  public static GrammarOptions defaults() {
    return DEFAULTS;
  }

  /** Texts that hold a match of a regular expression are members; else all of a text must match. */
  public GrammarOptions regexSearch(boolean search) {
    return set("regex_match", search ? "search" : "whole");
  }

  /** A document to which "$ref" of JSON Schemas may point, by its URI; nothing is fetched. */
  public GrammarOptions schemaDocument(String uri, String schema) {
    byte[] name = Text.name(uri);
    byte[] text = Text.bytes(schema);
    return add(address -> Native.gen_grammar_options_add_schema(address, name, text, text.length));
  }

  @Override
  GrammarOptions with(List<Setter> all) {
    return new GrammarOptions(all);
  }

  @Override
  void make(long[] out) {
    Native.gen_grammar_options_new(out);
  }

  @Override
  LongConsumer free() {
    return Native::gen_grammar_options_free;
  }

  @Override
  void describe(long address, byte[] buf, long capacity, long[] n) {
    Native.gen_grammar_options_describe(address, buf, capacity, n);
  }

  @Override
  void set(long address, byte[] key, byte[] value) {
    Native.gen_grammar_options_set(address, key, value);
  }
}
