// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** Outcome of a call. Every failure is a {@link GenerateException} with one of these; numbers are frozen. */
public enum Status {
  OK(0),
  /** An argument is invalid in itself. */
  INVALID_ARGUMENT(-1),
  OUT_OF_MEMORY(-2),
  IO(-3),
  /** A bad or hostile file. */
  FORMAT(-4),
  UNSUPPORTED(-5),
  CACHE_FULL(-6),
  POOL_EXHAUSTED(-7),
  /** An id, index or capacity outside its limit. */
  OUT_OF_RANGE(-8),
  /** An append at the wrong position. */
  SEQUENCE(-9),
  /** The object is in use by another call. */
  BUSY(-10),
  CANCELLED(-11),
  GRAMMAR(-12),
  DEVICE(-13),
  /** The prompt does not fit the context. */
  CONTEXT_FULL(-14),
  /** Wrong order of calls, or an object that has been closed. */
  STATE(-15),
  /** The forward pass failed or gave NaN. */
  MODEL(-16),
  TOKENIZER(-17),
  INTERNAL(-18),
  /** A number that this version does not know; see {@link GenerateException#code}. */
  UNKNOWN(Integer.MIN_VALUE);

  private static final Status[] ALL = values();
  private final int code;

  Status(int code) {
    this.code = code;
  }

  /** The number of the C API. */
  public int code() {
    return code;
  }

  /** The status with a number of the C API, {@link #UNKNOWN} if there is none. */
  public static Status of(int code) {
    return code <= 0 && code > 1 - ALL.length ? ALL[-code] : UNKNOWN;
  }
}
