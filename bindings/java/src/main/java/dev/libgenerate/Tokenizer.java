// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;
import java.util.Arrays;

/** Text to token ids and back. Any number of threads may use one. */
public final class Tokenizer extends Handle {
  /** Special tokens of a vocabulary. */
  public enum Special {
    BOS, EOS, UNK, PAD, SEP,
    /** End of turn. */
    EOT
  }

  private static final int ADD_BOS = 1;
  private static final int PARSE_SPECIAL = 2;
  private static final int CONTINUE = 4;

  private Tokenizer(long address) {
    super("tokenizer", address, Native::gen_tokenizer_free);
  }

  Tokenizer(Model model, long address) {
    super(model, address);
  }

  /** Loads the tokenizer of a GGUF file or a SentencePiece {@code .model} file. */
  public static Tokenizer load(Path path) {
    return new Tokenizer(make(out -> Native.gen_tokenizer_load(Text.name(path), out)));
  }

  /** The same with a model's options, of which "pre_tokenizer" counts; null for the defaults. */
  public static Tokenizer load(Path path, ModelOptions options) {
    byte[] name = Text.name(path);
    return new Tokenizer(Settings.use(options, o -> make(out -> Native.gen_tokenizer_load_with(name, o, out))));
  }

  /** Text to ids, with begin-of-sequence if the vocabulary wants one; texts of special tokens are plain text. */
  public int[] encode(String text) {
    return encode(text, true, false);
  }

  /** Text to ids. */
  public int[] encode(String text, boolean addBos, boolean parseSpecial) {
    return encode(text, (addBos ? ADD_BOS : 0) | (parseSpecial ? PARSE_SPECIAL : 0));
  }

  /** The ids of text that continues text encoded before, not a special token. */
  public int[] encodeMore(String text, boolean parseSpecial) {
    return encode(text, CONTINUE | (parseSpecial ? PARSE_SPECIAL : 0));
  }

  /**
   * The prompt that asks a model of code for what stands between two texts; give it to {@link Session#appendTokens}.
   * {@link Status#UNSUPPORTED} where the vocabulary has no tokens for it.
   */
  public int[] encodeFillInMiddle(String prefix, String suffix) {
    byte[] before = Text.bytes(prefix);
    byte[] after = Text.bytes(suffix);
    return ask(t -> {
      long[] n = new long[1];
      Native.gen_tokenizer_encode_fim(t, before, before.length, after, after.length, ADD_BOS, null, 0, n);
      int[] ids = new int[Math.toIntExact(n[0])];
      Native.gen_tokenizer_encode_fim(t, before, before.length, after, after.length, ADD_BOS, ids, ids.length, n);
      return ids;
    });
  }

  /** The chat template of the vocabulary; {@link Status#UNSUPPORTED} if there is none. */
  public Template template() {
    return ask(t -> new Template(make(out -> Native.gen_template_from_tokenizer(t, out))));
  }

  private int[] encode(String text, int flags) {
    byte[] bytes = Text.bytes(text);
    return ask(t -> {
      long[] n = new long[1];
      Native.gen_tokenizer_encode(t, bytes, bytes.length, flags, null, 0, n);
      int[] ids = new int[Math.toIntExact(n[0])];
      if (ids.length > 0) Native.gen_tokenizer_encode(t, bytes, bytes.length, flags, ids, ids.length, n);
      return ids;
    });
  }

  /** Ids to text. Control tokens give none; bytes that are no character become U+FFFD. */
  public String decode(int... ids) {
    return ask(t -> Text.ask((buf, capacity, n) ->
        Native.gen_tokenizer_decode(t, ids, ids.length, buf, capacity, n)));
  }

  /** The bytes of one token, which need not be whole characters. */
  public byte[] piece(int id) {
    return ask(t -> {
      long[] n = new long[1];
      Native.gen_tokenizer_piece(t, id, null, 0, n);
      byte[] buf = new byte[Math.toIntExact(n[0]) + 1];
      Native.gen_tokenizer_piece(t, id, buf, buf.length, n);
      return Arrays.copyOf(buf, (int) n[0]);
    });
  }

  /** Number of tokens. */
  public int vocabSize() {
    return number(Native::gen_tokenizer_vocab_size);
  }

  /** Id of a special token, or -1 if the vocabulary has none. */
  public int special(Special kind) {
    return number(t -> Native.gen_tokenizer_special(t, kind.ordinal()));
  }
}
