// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import java.util.function.LongToIntFunction;

/**
 * What holds a native object. Closing is idempotent and safe from several threads, also while another one is inside a
 * call, which then ends normally; afterwards every method throws a {@link GenerateException} with {@link Status#STATE}.
 * Objects may be closed in any order: what one needs of another lives on. One that is never closed is freed some time
 * after the collector has found it.
 */
public abstract class Handle implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  interface Maker {
    void make(long[] out);
  }

  final State state;
  private final long address;
  private final Cleaner.Cleanable cleanable;
  private final Handle owner;

  Handle(String what, long address, LongConsumer free) {
    this.state = new State(what, address, free);
    this.address = address;
    this.owner = null;
    this.cleanable = CLEANER.register(this, state);
  }

  /** For what is borrowed of another object and ends with that. */
  Handle(Handle owner, long address) {
    this.state = owner.state;
    this.address = address;
    this.owner = owner;
    this.cleanable = null;
  }

  static long make(Maker maker) {
    long[] out = new long[1];
    maker.make(out);
    return out[0];
  }

  final void run(LongConsumer body) {
    state.enter();
    try {
      body.accept(address);
    } finally {
      state.exit();
    }
  }

  final <T> T ask(LongFunction<T> body) {
    state.enter();
    try {
      return body.apply(address);
    } finally {
      state.exit();
    }
  }

  final int number(LongToIntFunction body) {
    state.enter();
    try {
      return body.applyAsInt(address);
    } finally {
      state.exit();
    }
  }

  /** With the address of an object, or 0 for null. */
  static <T> T with(Handle handle, LongFunction<T> body) {
    return handle != null ? handle.ask(body) : body.apply(0);
  }

  static long makeWith(Handle handle, MakerWith maker) {
    return with(handle, address -> make(out -> maker.make(address, out)));
  }

  interface MakerWith {
    void make(long address, long[] out);
  }

  /** Whether {@link #close} has been called, here or of the object that this one belongs to. */
  public final boolean isClosed() {
    return state.isClosed();
  }

  /** Releases the native object. Of one that belongs to another object nothing happens: it ends with that. */
  @Override
  public void close() {
    if (owner == null) cleanable.clean();
  }
}
