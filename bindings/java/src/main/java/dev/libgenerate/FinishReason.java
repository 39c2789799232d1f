// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** Why a generation ended. */
public enum FinishReason {
  /** It has not ended. */
  NONE,
  STOP_TOKEN,
  STOP_STRING,
  LENGTH,
  CONTEXT_FULL,
  GRAMMAR_COMPLETE,
  GRAMMAR_DEAD_END,
  CANCELLED,
  CALLBACK,
  ERROR;

  private static final FinishReason[] ALL = values();

  static FinishReason of(long number) {
    return number >= 0 && number < ALL.length ? ALL[(int) number] : ERROR;
  }
}
