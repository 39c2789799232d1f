// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

import java.util.List;

/**
 * One streamed piece: the text that became certain with a token, in whole characters; it may be empty while a character or
 * a stop string is incomplete. The last piece of a text can come without a token, with id -1.
 *
 * @param id the token drawn
 * @param text its text
 * @param logprob log-probability of the token if asked for, else 0
 * @param index number of tokens drawn before this one
 * @param pieces of a chat session: what is text, reasoning or part of a call
 */
public record Token(int id, String text, float logprob, int index, List<Piece> pieces) {
  /** One without pieces. */
  public Token(int id, String text, float logprob, int index) {
    this(id, text, logprob, index, List.of());
  }

  /** What a piece is. */
  public enum PieceKind {
    /** Text of the answer. */
    TEXT,
    /** Text of the model's reasoning. */
    REASONING,
    /** A call begins; the text is the function's name. */
    CALL_NAME,
    /** More of the JSON of the call's arguments. */
    ARGUMENTS,
    /** The call is complete. */
    CALL_END,
    /** The call is none; what was written of it follows as text or reasoning. */
    CALL_BROKEN
  }

  /**
   * A part of an answer.
   *
   * @param kind what it is
   * @param call number of the call in the answer, from 0
   * @param text its text
   */
  public record Piece(PieceKind kind, int call, String text) {}
}
