// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/**
 * What happens in a run of an {@link Agent}.
 *
 * @param step from 1
 * @param call number of the call in its step, from 0; -1 where the event is not about one
 * @param name of the tool; else empty
 * @param id of the call, of events about its running; else empty
 * @param text of an answer, arguments or output
 * @param isError of TOOL_ENDED: the call failed
 */
public record AgentEvent(Kind kind, int step, int call, String name, String id, String text, boolean isError) {
  /** In the order of the C API. */
  public enum Kind {
    /** Text of the answer. */
    TEXT,
    /** Text of the model's reasoning. */
    REASONING,
    /** A call begins. */
    CALL_NAME,
    /** More of its JSON. */
    ARGUMENTS,
    /** The call is complete. */
    CALL_END,
    /** It is none after all: what was written of it follows as text. */
    CALL_BROKEN,
    /** A step begins. */
    STEP_BEGAN,
    /** A tool begins. */
    TOOL_BEGAN,
    /** It has ended; the text is its output. */
    TOOL_ENDED,
    /** The step has ended; the text is the model's output. */
    STEP_ENDED
  }
}
