/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_stream: a generation pulled piece by piece, for hosts that prefer not to be called back.
 * While a stream is open its session is in use: other calls on it return GEN_ERROR_BUSY, except
 * cancel and progress.
 */
#ifndef GENERATE_STREAM_H
#define GENERATE_STREAM_H

#include "base.h"
#include "generator.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens a generation on a session. Nothing runs before the first gen_stream_next.
 *
 * @param session   kept alive by the stream.
 * @param prompt    as in gen_session_generate.
 * @param sampling  copied; NULL for defaults.
 * @param out       receives the stream; end it with gen_stream_close.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT, GEN_ERROR_TOKENIZER, GEN_ERROR_CONTEXT_FULL, GEN_ERROR_OUT_OF_RANGE,
 *         GEN_ERROR_GRAMMAR and GEN_ERROR_BUSY as gen_session_generate; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per session.
 * Since:   0.1
 */
GEN_API gen_status gen_stream_open(gen_session *session, const char *prompt, size_t len,
                                   const gen_sampling *sampling, gen_stream **out,
                                   gen_error *error);

/**
 * Runs the model until the next piece is ready. After the last piece comes the done event (finish
 * reason set, text may be empty); from then on the call returns GEN_OK with NULL. If a running
 * generation fails or is cancelled, the done event comes, too, and the calls after it return the
 * failure.
 *
 * @param token  receives a piece borrowed until the stream's next call, or NULL.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_BUSY; GEN_ERROR_CANCELLED, GEN_ERROR_POOL_EXHAUSTED,
 *         GEN_ERROR_IO, GEN_ERROR_FORMAT, GEN_ERROR_MODEL, GEN_ERROR_GRAMMAR and GEN_ERROR_OUT_OF_MEMORY as
 *         gen_session_generate; the stream is then at its end, and gen_stream_result has the partial result.
 * Threads: one at a time per stream.
 * Cost:    the first call runs the prompt.
 * Since:   0.1
 */
GEN_API gen_status gen_stream_next(gen_stream *stream, const gen_token **token, gen_error *error);

/** State of a stream, for gen_stream_poll. */
enum {
  GEN_STREAM_PENDING = 0, /**< not ready: poll again */
  GEN_STREAM_TOKEN = 1,   /**< a piece */
  GEN_STREAM_END = 2      /**< all pieces have been returned */
};

/**
 * As gen_stream_next, but never waits for another thread: for one thread that drives many streams.
 * The first call marks the stream as waiting for its next piece; a later call runs one step for all
 * marked streams of the generator, so one round over many streams costs one step. It runs no step
 * while another thread runs one. Where the generator drafts tokens, it also runs none just after
 * another polled stream returned one of several pieces of a step: once that stream has returned the
 * others, it joins the step.
 *
 * @param token  receives a piece borrowed until the stream's next call, or NULL.
 * @param state  receives GEN_STREAM_…; GEN_STREAM_END also after a failure.
 * @return as gen_stream_next; GEN_OK while pending.
 * Threads: one at a time per stream.
 * Since:   0.1
 */
GEN_API gen_status gen_stream_poll(gen_stream *stream, const gen_token **token, int32_t *state,
                                   gen_error *error);

/**
 * The most probable tokens at the position of the last piece's token, best first, if
 * gen_sampling_set_logprobs asked for them with a count.
 *
 * @param ids       receives borrowed token ids, valid until the stream's next call.
 * @param logprobs  receives their borrowed log-probabilities.
 * @return their number; 0 and NULL if there are none: for NULL, before the first piece, on the done event, and while
 *         another call uses the stream.
 * Threads: one at a time per stream.
 * Since:   0.1
 */
GEN_API size_t gen_stream_alternatives(gen_stream *stream, const int32_t **ids, const float **logprobs);

/**
 * Returns the result of a stream that is at its end.
 *
 * @param result  receives it; free it with gen_result_free. Each call returns a new one.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_STATE before the end; GEN_ERROR_BUSY;
 *         GEN_ERROR_OUT_OF_MEMORY, after which the stream still has the result and the call can be repeated.
 * Threads: one at a time per stream.
 * Since:   0.1
 */
GEN_API gen_status gen_stream_result(gen_stream *stream, gen_result **result, gen_error *error);

/**
 * Closes a stream, also before its end: the session keeps the tokens committed so far. During a
 * call on the stream, from one of its callbacks or another thread, the close takes effect when that
 * call returns; inside other callbacks it takes effect after them. NULL is fine.
 *
 * Threads: one; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_stream_close(gen_stream *stream);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_STREAM_H */
