// SPDX-License-Identifier: Apache-2.0
package dev.libgenerate;

/**
 * One streamed piece: the text that became certain with a token, in whole characters; it may be empty while a character or
 * a stop string is incomplete. The last piece of a text can come without a token, with id -1.
 *
 * @param id the token drawn
 * @param text its text
 * @param logprob log-probability of the token if asked for, else 0
 * @param index number of tokens drawn before this one
 */
public record Token(int id, String text, float logprob, int index) {}
