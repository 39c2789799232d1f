// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

/** A call failed: {@link #status} tells how, the message names the value and the limit. */
public class GenerateException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int code;
  private transient List<Result> results = List.of();

  GenerateException(int code, String message) {
    super(message);
    this.code = code;
  }

  GenerateException(Status status, String message) {
    this(status.code(), message);
  }

  /** What the native layer throws. */
  static GenerateException of(int code, byte[] message) {
    String text = new String(message, StandardCharsets.UTF_8);
    return code == Status.CANCELLED.code() ? new GenerateCancelledException(text) : new GenerateException(code, text);
  }

  GenerateException with(List<Result> partial) {
    results = partial;
    return this;
  }

  /** What kind of failure it is. */
  public Status status() {
    return Status.of(code);
  }

  /** The status as a number of the C API. */
  public int code() {
    return code;
  }

  /** What there was when a generation failed or was cancelled, if it had begun. */
  public Optional<Result> result() {
    return results().stream().findFirst();
  }

  /** The same of a batch: a result for each request, or none if the batch had not begun. */
  public List<Result> results() {
    return results != null ? results : List.of();
  }
}
