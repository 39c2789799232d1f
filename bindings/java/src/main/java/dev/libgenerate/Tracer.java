// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.nio.file.Path;

/** A record of operations between tensors, written by caches of {@link KvCache#tracing} and traced generators. */
public final class Tracer extends Handle {
  /** Makes an empty record. */
  public Tracer() {
    super("tracer", make(Native::gen_tracer_new), Native::gen_tracer_free);
  }

  /** Operations recorded so far. */
  public long operationCount() {
    return ask(Native::gen_tracer_op_count);
  }

  /** One operation as JSON. */
  public String operation(long index) {
    return ask(t -> Text.ask((buf, capacity, n) -> Native.gen_tracer_op(t, index, buf, capacity, n)));
  }

  /** Writes the record as a Graphviz graph. */
  public void writeDot(Path path) {
    run(t -> Native.gen_tracer_write_dot(t, Text.name(path)));
  }

  /** Writes the record as JSON. */
  public void writeJson(Path path) {
    run(t -> Native.gen_tracer_write_json(t, Text.name(path)));
  }
}
