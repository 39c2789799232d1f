// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.function.LongSupplier;

/** A load or quantisation that an interrupt stops: its progress callback, in C, looks at a flag. */
final class Progress extends Call {
  private final State flag = new State("flag", Native.gen_binding_progress_new(), Native::gen_binding_progress_free);

  @Override
  void fire() {
    if (!flag.tryEnter()) return;
    Native.gen_binding_progress_stop(flag.address());
    flag.exit();
  }

  @Override
  public void close() {
    super.close();
    flag.close();
  }

  /** @param options whose progress is to be watched, or 0 if they have a callback of their own. */
  static long run(long options, LongSupplier body) {
    if (options == 0) return body.getAsLong();
    try (Progress progress = new Progress()) {
      Native.gen_model_options_set_progress(options, Native.gen_binding_progress_function(), progress.flag.address());
      progress.enter();
      try {
        return body.getAsLong();
      } finally {
        progress.leave();
      }
    }
  }

  static void quantize(byte[] in, byte[] out, byte[] type) {
    try (Progress progress = new Progress()) {
      progress.enter();
      try {
        Native.gen_model_quantize(in, out, type, Native.gen_binding_progress_function(), progress.flag.address());
      } finally {
        progress.leave();
      }
    }
  }
}
