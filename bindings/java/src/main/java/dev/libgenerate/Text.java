// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Text across the border: UTF-8 bytes with a length. */
final class Text {
  private Text() {}

  interface Getter {
    void get(byte[] buf, long capacity, long[] n);
  }

  static byte[] bytes(String text) {
    for (int i = 0; i < text.length(); ++i) {
      if (!Character.isSurrogate(text.charAt(i))) continue;
      if (i + 1 == text.length() || !Character.isSurrogatePair(text.charAt(i), text.charAt(i + 1))) {
        throw new GenerateException(Status.INVALID_ARGUMENT, "the text has half a character at index " + i);
      }
      ++i;
    }
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Of a key, name or path, which ends at a NUL on the other side; null for null. */
  static byte[] name(String name) {
    if (name == null) return null;
    if (name.indexOf(0) >= 0) throw new GenerateException(Status.INVALID_ARGUMENT, "a name must not hold a NUL");
    return bytes(name);
  }

  static byte[] name(Path path) {
    return path != null ? name(path.toString()) : null;
  }

  static String of(byte[] bytes) {
    return bytes != null ? new String(bytes, StandardCharsets.UTF_8) : null;
  }

  /** Text of a getter that tells its size first; what grows meanwhile is asked for again. */
  static String ask(Getter getter) {
    long[] n = new long[1];
    getter.get(null, 0, n);
    for (;;) {
      byte[] buf = new byte[Math.toIntExact(n[0] + 1)];
      try {
        getter.get(buf, buf.length, n);
        return new String(buf, 0, (int) n[0], StandardCharsets.UTF_8);
      } catch (GenerateException e) {
        if (e.status() != Status.OUT_OF_RANGE || n[0] < buf.length) throw e;
      }
    }
  }

  /** The same of bytes. */
  static byte[] askBytes(Getter getter) {
    long[] n = new long[1];
    getter.get(null, 0, n);
    if (n[0] > Integer.MAX_VALUE - 8) {
      throw new GenerateException(Status.UNSUPPORTED, n[0] + " bytes are more than an array holds: use a file");
    }
    byte[] buf = new byte[(int) n[0]];
    getter.get(buf, buf.length, n);
    return buf;
  }
}
