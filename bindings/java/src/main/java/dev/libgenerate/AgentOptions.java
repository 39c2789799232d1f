// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;
import java.util.function.LongConsumer;

/** How an {@link Agent} works: immutable, as {@link Sampling}. {@link #set} has all options of docs/options.md. */
public final class AgentOptions extends Settings<AgentOptions> {
  private static final AgentOptions DEFAULTS = new AgentOptions(List.of());

  private AgentOptions(List<Setter> setters) {
    super(setters);
  }

  /** The defaults of the library. */
  public static AgentOptions defaults() {
    return DEFAULTS;
  }

  /** The system message. */
  public AgentOptions system(String text) {
    return set("system", text);
  }

  /** How answers are generated. */
  public AgentOptions sampling(Sampling sampling) {
    return add(address -> Settings.use(sampling, settings -> {
      Native.gen_agent_options_set_sampling(address, settings);
      return null;
    }));
  }

  @Override
  AgentOptions with(List<Setter> all) {
    return new AgentOptions(all);
  }

  @Override
  void make(long[] out) {
    Native.gen_agent_options_new(out);
  }

  @Override
  LongConsumer free() {
    return Native::gen_agent_options_free;
  }

  @Override
  void describe(long address, byte[] buf, long capacity, long[] n) {
    Native.gen_agent_options_describe(address, buf, capacity, n);
  }

  @Override
  void set(long address, byte[] key, byte[] value) {
    Native.gen_agent_options_set(address, key, value);
  }
}
