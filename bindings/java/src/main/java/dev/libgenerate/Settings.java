// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;

/**
 * Settings as values: immutable, each method gives new ones and throws at once if it is given what the library refuses.
 * The native object is made for each call that uses them.
 */
abstract class Settings<S extends Settings<S>> {
  interface Setter {
    void set(long address);
  }

  private final List<Setter> setters;

  Settings(List<Setter> setters) {
    this.setters = setters;
  }

  final List<Setter> setters() {
    return setters;
  }

  abstract S with(List<Setter> all);

  abstract void make(long[] out);

  abstract LongConsumer free();

  abstract void describe(long address, byte[] buf, long capacity, long[] n);

  abstract void set(long address, byte[] key, byte[] value);

  final S add(Setter setter) {
    with(List.of(setter)).use(address -> null);
    List<Setter> all = new ArrayList<>(setters);
    all.add(setter);
    return with(List.copyOf(all));
  }

  final <T> T use(LongFunction<T> body) {
    long address = Handle.make(this::make);
    try {
      for (Setter setter : setters) setter.set(address);
      return body.apply(address);
    } finally {
      free().accept(address);
    }
  }

  /** With a native object, or 0 for null, which means the defaults. */
  static <T> T use(Settings<?> settings, LongFunction<T> body) {
    return settings != null ? settings.use(body) : body.apply(0);
  }

  /** One setting by its name in the C API; {@link #describe} lists them. */
  public final S set(String key, String value) {
    byte[] name = Text.name(key);
    byte[] text = Text.name(value);
    return add(address -> set(address, name, text));
  }

  /** All settings as JSON: an array of {"key","type","range","default","value"}. */
  public final String describe() {
    return use(address -> Text.ask((buf, capacity, n) -> describe(address, buf, capacity, n)));
  }
}
