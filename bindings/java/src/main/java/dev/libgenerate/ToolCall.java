// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.function.BooleanSupplier;

/** A call that a model makes. */
public final class ToolCall {
  private final String id;
  private final String name;
  private final String arguments;
  private final BooleanSupplier stopped;

  ToolCall(Desk.Matter matter) {
    this.id = matter.id();
    this.name = matter.name();
    this.arguments = matter.text();
    this.stopped = matter::stopped;
  }

  /** Unique in its conversation. */
  public String id() {
    return id;
  }

  /** Of the tool. */
  public String name() {
    return name;
  }

  /** A JSON object that fits the tool's schema. */
  public String arguments() {
    return arguments;
  }

  /** Whether nobody waits for the output any more. Only while the function runs. */
  public boolean stopped() {
    return stopped.getAsBoolean();
  }
}
