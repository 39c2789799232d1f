// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The library itself: version, build, backends, log. */
public final class LibGenerate {
  /** Levels of the log, from silent to chatty. */
  public enum LogLevel {
    OFF, ERROR, WARNING, INFO, DEBUG
  }

  private LibGenerate() {}

  /** The library's version, "MAJOR.MINOR.PATCH". */
  public static String version() {
    return Text.of(Native.gen_version());
  }

  /** The version of its binary interface. */
  public static int abiVersion() {
    return Native.gen_abi_version();
  }

  /** What this build is, as JSON. */
  public static String buildInfo() {
    return Text.ask(Native::gen_build_info);
  }

  /** The cache kinds of this build as JSON. */
  public static String kvKinds() {
    return Text.ask(Native::gen_kv_kind_describe);
  }

  /** Native objects that this class loader's objects hold, closed ones in use included: for tests that look for leaks. */
  public static int openObjects() {
    return State.open();
  }

  /** Names of the backends that this build knows. */
  public static List<String> backends() {
    List<String> names = new ArrayList<>();
    for (int i = 0; i < Native.gen_backend_count(); ++i) names.add(Text.of(Native.gen_backend_name(i)));
    return List.copyOf(names);
  }

  /** Throws with the reason if a backend cannot be used on this machine. */
  public static void requireBackend(String name) {
    Native.gen_backend_available(Text.name(name));
  }

  /** Number of devices of a backend; 0 if it cannot be used. */
  public static int deviceCount(String backend) {
    return Native.gen_device_count(Text.name(backend));
  }

  /** A device as JSON. */
  public static String describeDevice(String backend, int device) {
    byte[] name = Text.name(backend);
    return Text.ask((buf, capacity, n) -> Native.gen_device_describe(name, device, buf, capacity, n));
  }

  /** Where log lines go: a gen_log_callback in C, or {@link NativeSymbol#NONE}. The process has one log. */
  public static void setLog(NativeSymbol callback, long user) {
    Native.gen_log_set_callback(callback.address(), user);
  }

  /** The highest level that is logged; {@link LogLevel#OFF} at start. */
  public static void setLogLevel(LogLevel level) {
    Native.gen_log_set_level(level.ordinal());
  }

  /** Sequences as rows of a rectangle, each at the right end of its row with {@code pad} before it. */
  public static int[][] padLeft(int[][] sequences, int pad) {
    int total = 0;
    long[] lengths = new long[sequences.length];
    for (int i = 0; i < lengths.length; ++i) total += (int) (lengths[i] = sequences[i].length);
    int[] tokens = new int[total];
    int at = 0;
    for (int[] sequence : sequences) {
      System.arraycopy(sequence, 0, tokens, at, sequence.length);
      at += sequence.length;
    }
    long[] width = new long[1];
    Native.gen_pad_left(tokens, lengths, lengths.length, pad, null, 0, width);
    int[] out = new int[Math.toIntExact(width[0] * lengths.length)];
    Native.gen_pad_left(tokens, lengths, lengths.length, pad, out, out.length, width);
    int[][] rows = new int[lengths.length][];
    for (int i = 0; i < rows.length; ++i) {
      rows[i] = Arrays.copyOfRange(out, i * (int) width[0], (i + 1) * (int) width[0]);
    }
    return rows;
  }
}
