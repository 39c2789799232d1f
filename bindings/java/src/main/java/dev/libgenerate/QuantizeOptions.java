// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;
import java.util.List;
import java.util.function.LongConsumer;

/** How to quantise a model: immutable, as {@link Sampling}. */
public final class QuantizeOptions extends Settings<QuantizeOptions> {
  private static final QuantizeOptions DEFAULTS = new QuantizeOptions(List.of());

  private QuantizeOptions(List<Setter> setters) {
    super(setters);
  }

  /** The defaults of the library. */
  public static QuantizeOptions defaults() {
    return DEFAULTS;
  }

  /** The file of an importance matrix, by which the errors of columns count. */
  public QuantizeOptions importance(Path file) {
    return set("importance", file.toString());
  }

  /** Types of matrices by name, "blk.*.attn_v.weight=Q6_K,output.weight=Q8_0": the first pattern that matches. */
  public QuantizeOptions types(String patterns) {
    return set("types", patterns);
  }

  @Override
  QuantizeOptions with(List<Setter> all) {
    return new QuantizeOptions(all);
  }

  @Override
  void make(long[] out) {
    Native.gen_quantize_options_new(out);
  }

  @Override
  LongConsumer free() {
    return Native::gen_quantize_options_free;
  }

  @Override
  void describe(long address, byte[] buf, long capacity, long[] n) {
    Native.gen_quantize_options_describe(address, buf, capacity, n);
  }

  @Override
  void set(long address, byte[] key, byte[] value) {
    Native.gen_quantize_options_set(address, key, value);
  }
}
