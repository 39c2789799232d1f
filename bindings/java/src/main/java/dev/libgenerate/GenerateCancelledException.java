// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/** The call was cancelled, by {@link Cancel}, an interrupt (the thread stays interrupted), a deadline or a close. */
public final class GenerateCancelledException extends GenerateException {
  private static final long serialVersionUID = 1L;

  GenerateCancelledException(String message) {
    super(Status.CANCELLED, message);
  }
}
