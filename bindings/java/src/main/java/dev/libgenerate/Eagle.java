// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * A model with a head that was trained for it and drafts: the same text as the model's own, in less time. Calls from many threads
 * run side by side. Sessions and batches with a head come from a {@link Generator} with {@link GeneratorOptions#eagle}.
 */
public final class Eagle extends Handle {
  /**
   * A head of two products in memory: it guesses the hidden state of the next row from that of a row x, as silu(norm(x) fc1) fc2,
   * where the norm has a mean, a variance, and an epsilon of 1e-5.
   *
   * @param normWeight one number for each of the model's hidden state
   * @param normBias the same
   * @param fc1Weight hidden times hidden numbers, inputs by outputs: y = x W
   * @param fc2Weight the same
   * @param lmHead a row of hidden numbers for each token; null for the model's output layer, which custom models lack
   */
  public record Tensors(float[] normWeight, float[] normBias, float[] fc1Weight, float[] fc2Weight, float[] lmHead) {
    /** Arrays that do not fit each other are an IllegalArgumentException. */
    public Tensors {
      int hidden = normWeight.length;
      long square = (long) hidden * hidden;
      if (hidden == 0 || normBias.length != hidden || fc1Weight.length != square || fc2Weight.length != square
          || lmHead != null && lmHead.length % hidden != 0) {
        throw new IllegalArgumentException("tensors of " + hidden + ", " + normBias.length + ", " + fc1Weight.length + " and "
            + fc2Weight.length + " numbers are no head");
      }
    }
  }

  private Eagle(long address) {
    super("EAGLE generator", address, Native::gen_eagle_free);
  }

  /** Combines target with the head of a file with the default options. */
  public static Eagle of(Model target, Path path) {
    return of(target, path, 0, null);
  }

  /**
   * Combines target with the head of a file. The model may be closed afterwards.
   *
   * @param path null for the head in the model's own file
   * @param length maximum tokens of a draft; 0 means 4
   * @param options null for the defaults
   */
  public static Eagle of(Model target, Path path, int length, GeneratorOptions options) {
    byte[] file = path == null ? null : Text.name(path);
    return new Eagle(Settings.use(options,
        o -> makeWith(target, (t, out) -> Native.gen_eagle_new(t, file, length, o, out))));
  }

  /** The same with a head in memory, which is copied. */
  public static Eagle of(Model target, Tensors tensors, int length, GeneratorOptions options) {
    int hidden = tensors.normWeight().length;
    int vocabulary = tensors.lmHead() == null ? 0 : tensors.lmHead().length / hidden;
    return new Eagle(Settings.use(options,
        o -> makeWith(target, (t, out) -> Native.gen_binding_eagle_new_tensors(t, hidden, vocabulary, tensors.normWeight(),
            tensors.normBias(), tensors.fc1Weight(), tensors.fc2Weight(), tensors.lmHead(), length, o, out))));
  }

  /** Continues a prompt, as {@link Generator#generate(String, Sampling)} does with the model alone. */
  public Result generate(String prompt, Sampling sampling) {
    return generate(prompt, sampling, null);
  }

  /** The same, with what stops it. */
  public Result generate(String prompt, Sampling sampling, Cancel cancel) {
    byte[] text = Text.bytes(prompt);
    return ask(e -> Call.generate(sampling,
        (settings, out) -> Native.gen_eagle_generate(e, text, text.length, settings, out), cancel));
  }

  /** The same on an executor. Cancelling the future stops the generation. */
  public CompletableFuture<Result> generateAsync(String prompt, Sampling sampling, Executor executor) {
    return Call.async(executor, cancel -> generate(prompt, sampling, cancel));
  }

  /** Whether the draft length adapts to the acceptance rate, as it does by default. */
  public void setAdaptive(boolean adaptive) {
    run(e -> Native.gen_eagle_set_adaptive(e, adaptive ? 1 : 0));
  }

  /** Statistics of drafts so far, by key: see gen_generator_draft_stats of speculative.h. */
  public double stats(String key) {
    return ask(e -> {
      double[] value = new double[1];
      Native.gen_eagle_stats(e, Text.name(key), value);
      return value[0];
    });
  }
}
