// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.Arrays;
import java.util.List;

/** Functions that may change or go in any version. */
public final class Experimental {
  private Experimental() {}

  /**
   * One forward pass over rows of several sequences.
   *
   * @param tokens one for each row
   * @param sequences index into caches for each row, ascending; null when there is one cache
   * @param wantsLogits for each row; null for all
   * @param profile what each instruction took is added to it; null for none
   * @return the logits of the wanted rows, in row order
   */
  public static float[][] forward(Model model, int[] tokens, int[] sequences, boolean[] wantsLogits,
      List<KvCache> caches, Profile profile) {
    if (sequences != null && sequences.length != tokens.length
        || wantsLogits != null && wantsLogits.length != tokens.length) {
      throw new GenerateException(Status.INVALID_ARGUMENT, "each of the " + tokens.length + " rows has one entry");
    }
    int rows = tokens.length;
    byte[] wants = null;
    if (wantsLogits != null) {
      wants = new byte[rows];
      rows = 0;
      for (int i = 0; i < wants.length; ++i) {
        if (!wantsLogits[i]) continue;
        wants[i] = 1;
        ++rows;
      }
    }
    int vocab = model.vocabSize();
    float[] logits = new float[Math.multiplyExact(rows, vocab)];
    Pass pass = new Pass(tokens, sequences, wants, logits, new long[caches.size()]);
    Handle.with(profile, p -> model.ask(m -> pass.run(m, p, List.copyOf(caches), 0)));
    float[][] out = new float[rows][];
    for (int i = 0; i < rows; ++i) out[i] = Arrays.copyOfRange(logits, i * vocab, (i + 1) * vocab);
    return out;
  }

  /** The layer of {@link #forwardHidden} for the states after the final norm. */
  public static final int HIDDEN_NORMED = -1;

  /**
   * Evaluates tokens of one sequence, which follow what the cache holds.
   *
   * @param layers i for the states before layer i, which are those after the layer before it; the number of layers for
   *     those after the last; or {@link #HIDDEN_NORMED}
   * @return for each layer the hidden states of all tokens, one token after another
   */
  public static float[][] forwardHidden(Model model, int[] tokens, KvCache cache, int... layers) {
    int width = Math.multiplyExact(tokens.length, model.hidden());
    float[] all = new float[Math.multiplyExact(layers.length, width)];
    model.ask(m -> cache.number(c -> Native.gen_model_forward_hidden(m, tokens, tokens.length, c, layers, layers.length,
        all, all.length)));
    float[][] out = new float[layers.length][];
    for (int i = 0; i < layers.length; ++i) out[i] = Arrays.copyOfRange(all, i * width, (i + 1) * width);
    return out;
  }

  private record Pass(int[] tokens, int[] sequences, byte[] wants, float[] logits, long[] addresses) {
    int run(long model, long profile, List<KvCache> caches, int i) {
      if (i < addresses.length) {
        return caches.get(i).number(c -> {
          addresses[i] = c;
          return run(model, profile, caches, i + 1);
        });
      }
      return profile == 0
          ? Native.gen_model_forward_batch(model, tokens, sequences, wants, tokens.length, addresses, addresses.length,
              logits, logits.length)
          : Native.gen_model_forward_profiled(model, tokens, sequences, wants, tokens.length, addresses,
              addresses.length, logits, logits.length, profile);
    }
  }

  /** What this machine can do: "read_bandwidth", "fma_f32", "dot_i8" or "dot_bf16"; 0 threads for one per usable CPU. */
  public static double measurePeak(int threads, String what) {
    double[] value = new double[1];
    Native.gen_measure_peaks(threads, Text.name(what), value);
    return value[0];
  }

  /** Time, bytes and operations of each instruction of a model's forward passes. One thread at a time. */
  public static final class Profile extends Handle {
    /** Makes an empty profile. */
    public Profile() {
      super("profile", make(Native::gen_profile_new), Native::gen_profile_free);
    }

    /** Number of instructions seen. */
    public long count() {
      return ask(Native::gen_profile_count);
    }

    /** Name of an instruction. */
    public String name(long index) {
      return ask(p -> Text.of(Native.gen_profile_name(p, index)));
    }

    /** A sum over all runs of an instruction: "seconds", "calls", "rows", "bytes" or "operations". */
    public double get(long index, String key) {
      byte[] name = Text.name(key);
      return ask(p -> {
        double[] value = new double[1];
        Native.gen_profile_get(p, index, name, value);
        return value[0];
      });
    }

    /** When instructions ran, in the format of chrome://tracing and ui.perfetto.dev. */
    public String chromeTrace() {
      return ask(p -> Text.ask((buf, capacity, n) -> Native.gen_profile_chrome_trace(p, buf, capacity, n)));
    }
  }
}
