// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.charset.StandardCharsets;
import java.util.function.Function;

/**
 * Tools and events without calls from C: a thread takes what the C library lays on the desk, and answers. Desks have numbers,
 * so that what comes after the end of one fails.
 */
final class Desk {
  private static final int NUMBER = 0;
  private static final int KIND = 1;
  private static final int NAME = 2;
  private static final int ID = 4;
  private static final int TEXT = 6;
  private static final int STEP = 8;
  private static final int CALL = 9;
  private static final int IS_ERROR = 10;
  private static final int FIELDS = 11;

  /** What lies on a desk, with copies of its texts; of kind -1 for a tool. */
  record Matter(long number, int kind, String name, String id, String text, int step, int call, boolean isError) {
    boolean stopped() {
      return Native.gen_binding_desk_stopped(number) != 0;
    }

    void answer(String output, boolean failed) {
      byte[] bytes;
      try {
        bytes = Text.bytes(output);
      } catch (GenerateException e) {
        bytes = Text.bytes(e.getMessage());
        failed = true;
      }
      Native.gen_binding_desk_answer(number, bytes, bytes.length, failed ? 1 : 0);
    }
  }

  private Desk() {}

  static long open() {
    long desk = Native.gen_binding_desk_new();
    if (desk == 0) throw new GenerateException(Status.OUT_OF_MEMORY, "out of memory");
    return desk;
  }

  static void close(long desk) {
    Native.gen_binding_desk_close(desk);
  }

  /** Waits; null once the desk is closed. */
  static Matter next(long desk) {
    long[] fields = new long[FIELDS];
    Native.gen_binding_desk_next(desk, fields);
    if (fields[NUMBER] == 0) return null;
    Function<Integer, String> text = at -> {
      byte[] bytes = new byte[Math.toIntExact(fields[at + 1])];
      if (bytes.length > 0) Native.gen_binding_copy(fields[at], bytes.length, bytes);
      return new String(bytes, StandardCharsets.UTF_8);
    };
    return new Matter(fields[NUMBER], (int) fields[KIND], text.apply(NAME), text.apply(ID), text.apply(TEXT),
        (int) fields[STEP], (int) fields[CALL], fields[IS_ERROR] != 0);
  }

  /** A thread of the library's own. */
  static Thread thread(Runnable body) {
    Thread thread = new Thread(null, body, "libgenerate tools", 0, false);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }
}
