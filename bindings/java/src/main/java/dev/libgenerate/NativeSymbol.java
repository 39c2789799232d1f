// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;

/**
 * A function or table of C in some library, to be passed on: a gen_forward, gen_allocator, gen_metrics_sink or callback.
 *
 * @param address where it is
 */
public record NativeSymbol(long address) {
  /** Nothing, where a function may be left out. */
  public static final NativeSymbol NONE = new NativeSymbol(0);

  /** Finds a symbol. The library stays open. */
  public static NativeSymbol of(Path library, String name) {
    long[] address = new long[1];
    Native.gen_binding_symbol(Text.name(library), Text.name(name), address);
    return new NativeSymbol(address[0]);
  }
}
