// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * A model with a smaller draft model: the same text as the model's own, in less time. Calls from many threads run side by side.
 * Sessions and batches with a draft model come from a {@link Generator} with {@link GeneratorOptions#speculativeDraft}.
 */
public final class Speculative extends Handle {
  private Speculative(long address) {
    super("speculative generator", address, Native::gen_speculative_free);
  }

  /** Combines target with a draft model with the default options. */
  public static Speculative of(Model draft, Model target) {
    return of(draft, target, 0, null);
  }

  /**
   * Combines target with a draft model. Both may be closed afterwards.
   *
   * @param length maximum tokens of a draft; 0 means 4
   * @param options null for the defaults
   */
  public static Speculative of(Model draft, Model target, int length, GeneratorOptions options) {
    return new Speculative(Settings.use(options, o -> draft.ask(
        d -> makeWith(target, (t, out) -> Native.gen_speculative_new(d, t, length, o, out)))));
  }

  /** Continues a prompt, as {@link Generator#generate(String, Sampling)} does with the model alone. */
  public Result generate(String prompt, Sampling sampling) {
    return generate(prompt, sampling, null);
  }

  /** The same, with what stops it. */
  public Result generate(String prompt, Sampling sampling, Cancel cancel) {
    byte[] text = Text.bytes(prompt);
    return ask(s -> Call.generate(sampling,
        (settings, out) -> Native.gen_speculative_generate(s, text, text.length, settings, out), cancel));
  }

  /** The same on an executor. Cancelling the future stops the generation. */
  public CompletableFuture<Result> generateAsync(String prompt, Sampling sampling, Executor executor) {
    return Call.async(executor, cancel -> generate(prompt, sampling, cancel));
  }

  /** Whether the draft length adapts to the acceptance rate, as it does by default. */
  public void setAdaptive(boolean adaptive) {
    run(s -> Native.gen_speculative_set_adaptive(s, adaptive ? 1 : 0));
  }

  /** Statistics of drafts so far, by key: see gen_generator_draft_stats of speculative.h. */
  public double stats(String key) {
    return ask(s -> {
      double[] value = new double[1];
      Native.gen_speculative_stats(s, Text.name(key), value);
      return value[0];
    });
  }
}
