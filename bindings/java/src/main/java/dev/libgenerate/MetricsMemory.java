// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** A collector of metrics in memory, for any number of generators. */
public final class MetricsMemory extends Handle {
  /** Makes an empty collector. */
  public MetricsMemory() {
    super("metrics memory", make(Native::gen_metrics_memory_new), Native::gen_metrics_memory_free);
  }

  /** One moment of all metrics as JSON. */
  public String snapshot() {
    return ask(m -> Text.ask((buf, capacity, n) -> Native.gen_metrics_memory_snapshot(m, buf, capacity, n)));
  }

  /** A counter's or gauge's value, or a histogram's with ".count" or ".sum" behind its name; 0 for what was never told. */
  public double value(String name) {
    byte[] text = Text.name(name);
    return ask(m -> Native.gen_metrics_memory_value(m, text));
  }

  /** All metrics there are, as JSON. */
  public static String describe() {
    return Text.ask(Native::gen_metrics_describe);
  }
}
