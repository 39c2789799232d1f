/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_chat: a conversation, laid out as a model was trained to see it, by the chat template of its file (Jinja, as the
 * Transformers library evaluates it) or, where the file has none, by a common form that the special tokens of its
 * vocabulary show. Only what the template writes becomes special tokens: a message that holds "<|im_end|>" cannot end its
 * turn. gen_chat_session: a conversation with a session, which takes a message and answers.
 *
 * A gen_chat is used by one thread at a time; a call while another uses it is GEN_ERROR_BUSY. After a call that fails it
 * is as before.
 */
#ifndef GENERATE_CHAT_H
#define GENERATE_CHAT_H

#include "base.h"
#include "generator.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes an empty conversation.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_new(gen_chat **out, gen_error *error);

/**
 * Adds a message.
 *
 * @param role  "system", "user", "assistant", "tool" or whatever the template knows; NUL-terminated, copied.
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an empty role, or text that is not UTF-8; GEN_ERROR_BUSY;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_add(gen_chat *chat, const char *role, const char *text, size_t len,
                                gen_error *error);

/**
 * Sets who wrote the last message, its member `name` in templates.
 *
 * @param name  UTF-8, NUL-terminated, copied; empty for none.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is not UTF-8; GEN_ERROR_STATE if there is no message;
 *         GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_name(gen_chat *chat, const char *name, gen_error *error);

/**
 * Sets what the assistant thought before it gave the last message: `reasoning_content` in templates, or `thinking` or
 * `reasoning` where a template reads that. Most templates leave it out of earlier turns.
 *
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED.
 * @return as gen_chat_set_name.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_reasoning(gen_chat *chat, const char *text, size_t len,
                                          gen_error *error);

/**
 * Adds a tool call of the assistant: to the last message if that is the assistant's, else as a new message of the
 * assistant without text. The library does not read calls out of what a model wrote: take such an answer back with
 * gen_chat_truncate first, or the call is there twice. Templates get the call in the form that they show.
 *
 * @param id         of the call, NUL-terminated, copied; NULL or empty if there is none. Some templates ask for one.
 * @param name       of the function, NUL-terminated, copied.
 * @param arguments  [len] a JSON object, copied; len may be GEN_NUL_TERMINATED.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an empty name, what is not UTF-8, and arguments that are no JSON
 *         object; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_add_tool_call(gen_chat *chat, const char *id, const char *name,
                                          const char *arguments, size_t len, gen_error *error);

/**
 * Adds what a tool returned, as a message of the role "tool".
 *
 * @param id    of the call that it answers, NUL-terminated, copied; NULL or empty if there is none.
 * @param name  of the function, NUL-terminated, copied; NULL or empty if the template does not ask for it.
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is not UTF-8; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_add_tool_result(gen_chat *chat, const char *id, const char *name,
                                            const char *text, size_t len, gen_error *error);

/**
 * Adds a tool that the model may call.
 *
 * @param description  [len] a JSON object, copied, in the form of OpenAI's API that templates expect: {"type": "function",
 *                     "function": {"name": …, "description": …, "parameters": a JSON Schema}}; len may be
 *                     GEN_NUL_TERMINATED. Templates see its members in this order.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is no JSON object; GEN_ERROR_BUSY;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_add_tool(gen_chat *chat, const char *description, size_t len,
                                     gen_error *error);

/**
 * Sets a variable of the template, such as enable_thinking, reasoning_effort or documents. A later value replaces an
 * earlier one.
 *
 * @param name   a name as Jinja has them, NUL-terminated, copied.
 * @param value  [len] JSON, copied; len may be GEN_NUL_TERMINATED. A string is written with quotes: "\"high\"".
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, for what is no name or no JSON, and for the names that the library
 *         sets: messages, tools, add_generation_prompt, bos_token and eos_token; GEN_ERROR_BUSY;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_variable(gen_chat *chat, const char *name, const char *value,
                                         size_t len, gen_error *error);

/**
 * Uses another template than the model's.
 *
 * @param text  [len] a template, or the name of a built-in form: "chatml", "llama3", "gemma", "phi3", "mistral"; copied;
 *              len may be GEN_NUL_TERMINATED. Empty for the model's own.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, for what is not UTF-8, and for one word that is no form's name;
 *         GEN_ERROR_FORMAT, with the line, for what is no template; GEN_ERROR_UNSUPPORTED, with line and name, for a
 *         statement, filter or test that is not known; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Cost:    about 1 ms for 10 KB.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_template(gen_chat *chat, const char *text, size_t len,
                                         gen_error *error);

/**
 * Takes messages back, to edit or regenerate them, or to replace an answer that is a call of a tool by
 * gen_chat_add_tool_call. A session that held more is cut with the next turn.
 *
 * @param n  messages to keep; if negative, takes the last -n back.
 * @return GEN_OK; GEN_ERROR_OUT_OF_RANGE if there are fewer messages; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_BUSY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_truncate(gen_chat *chat, int32_t n, gen_error *error);

/**
 * What the conversation holds, as a JSON object: `messages` with the members that templates see (`role`, `content`,
 * `reasoning_content`, `name`, `tool_calls`, `tool_call_id`), `tools` and `variables`; a request for gen_template_render,
 * too. To show, keep or copy it: what it says can be added to another conversation.
 *
 * @param buf  as in gen_tokenizer_decode.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small; GEN_ERROR_BUSY;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_describe(const gen_chat *chat, char *buf, size_t capacity, size_t *n,
                                     gen_error *error);

/**
 * Sets the time that templates write as today's date; without it the machine's clock tells it, and the same conversation
 * may be other text tomorrow.
 *
 * @param time  ISO 8601, such as "2026-11-23T09:30:00", NUL-terminated; empty for the machine's clock.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is no time; GEN_ERROR_BUSY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_time(gen_chat *chat, const char *time, gen_error *error);

/**
 * Lays the conversation out as one text, to show it. A text does not tell what the template wrote from what a message
 * says, so a message that holds the text of a special token is refused here; gen_chat_encode and gen_session_append_chat
 * take any.
 *
 * @param model                  whose template to use.
 * @param add_generation_prompt  non-zero: end with the opening of an assistant's turn.
 * @param buf                    as in gen_tokenizer_decode.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, for a message that holds the text of a special token, or for a
 *         conversation that the template does not take, with its reason;
 *         GEN_ERROR_UNSUPPORTED if the model has no chat template or one that cannot be used, with line and reason, or
 *         that does not show the tools or tool calls of the conversation;
 *         GEN_ERROR_OUT_OF_RANGE if the buffer is too small; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per conversation; the model is shared.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_format(const gen_model *model, const gen_chat *chat,
                                   int32_t add_generation_prompt, char *buf, size_t capacity,
                                   size_t *n, gen_error *error);

/**
 * Lays the conversation out as token ids. Begin-of-sequence comes first where the vocabulary or the template wants it, and
 * once. Only what the template wrote becomes special tokens.
 *
 * @param ids  [capacity] receives the ids, or NULL to ask their number.
 * @param n    receives their number; also when the buffer is too small.
 * @return as gen_chat_format, but a message may hold any text; GEN_ERROR_TOKENIZER if the vocabulary has no token for a part
 *         of it.
 * Threads: one at a time per conversation; the model is shared.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_encode(const gen_model *model, const gen_chat *chat,
                                   int32_t add_generation_prompt, int32_t *ids, size_t capacity,
                                   size_t *n, gen_error *error);

/**
 * Makes a session hold a conversation, so that a generating call with an empty prompt answers it. What the session has of
 * it stays, and only the rest is run: with a session that holds the turns so far this is the new turn, and the end of the
 * last answer, whether the model wrote that or was cut. Where a template lays earlier turns out anew (it may drop what the
 * model thought), what differs is run again.
 *
 * @return as gen_chat_encode, without GEN_ERROR_OUT_OF_RANGE; GEN_ERROR_CONTEXT_FULL if the conversation does not fit, also
 *         with the context policy "shift", which would cut turns in two; GEN_ERROR_CANCELLED; GEN_ERROR_MODEL,
 *         GEN_ERROR_POOL_EXHAUSTED, GEN_ERROR_IO and GEN_ERROR_FORMAT as gen_generate. After a cancel the session holds
 *         what was run so far; after any other failure it holds the same tokens as before, though some of them may have
 *         to be run again.
 * Threads: one at a time per session and conversation.
 * Cost:    runs the model over the tokens that are new before returning.
 * Since:   0.1
 */
GEN_API gen_status gen_session_append_chat(gen_session *session, const gen_chat *chat,
                                           int32_t add_generation_prompt, gen_error *error);

/**
 * Frees a conversation; NULL is fine. A chat session that uses it goes on.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_chat_free(gen_chat *chat);

/**
 * Makes a chat session: a conversation and a session that holds it.
 *
 * With the context policy "shift" a conversation that outgrows the context goes on without its oldest turns: the system
 * message and the tools stay, and so does `chat` itself, whose messages are all kept. With "stop" sending fails then.
 *
 * @param generator  used and kept alive by the chat session.
 * @param chat       the conversation so far, or NULL for an empty one. It is shared, not copied: add to it what is not the
 *                   user's, such as the system message, tools and their results, before and between turns, and find
 *                   the answers in it. It may be freed at any time.
 * @param out        receives the chat session; free it with gen_chat_session_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_UNSUPPORTED if the model has no tokenizer;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_session_new(gen_generator *generator, gen_chat *chat,
                                        gen_chat_session **out, gen_error *error);

/**
 * Adds a message of the user to the conversation, generates the answer, and adds that as the assistant's message. Only
 * what is new since the last turn is run. After a failure the session may hold some of the turn; the next one mends that.
 *
 * An answer that a limit, a cancel or a callback ended is added as far as it came; its turn is closed with the next
 * message. Where no token came, and after any other failure, the conversation is as before the call. What counts is the
 * conversation: whatever was sent without an answer, taken back and put there again, or done to the session in between, the
 * turn is what a new chat session with these messages gives, and a cut answer goes on where it was cut.
 *
 * @param text      [len] UTF-8; len may be GEN_NUL_TERMINATED. NULL adds no message: to answer what the conversation
 *                  ends with, such as the result of a tool; or to go on with the last answer, if it is this session's
 *                  last one and a limit, a cancel or a callback cut it: what comes is added to its message. Where its
 *                  stop string or grammar was complete, nothing has cut it.
 * @param sampling  how to choose tokens, or NULL for defaults.
 * @param result    receives the result, its text the answer; may be NULL. It is also set if the call fails or is
 *                  cancelled after the first token.
 * @return as gen_session_append_chat and gen_session_generate, without GEN_ERROR_TOKENIZER; GEN_ERROR_STATE for NULL where
 *         the conversation ends with an answer that was not cut.
 * Threads: one at a time per chat session and conversation.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_session_send(gen_chat_session *chat_session, const char *text,
                                         size_t len, const gen_sampling *sampling,
                                         gen_result **result, gen_error *error);

/**
 * The same, with each piece of the answer given to `callback` as it comes; see gen_generate_stream.
 *
 * @return as gen_chat_session_send.
 * Threads: one at a time per chat session and conversation; the callback runs on this thread.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_session_send_stream(gen_chat_session *chat_session, const char *text,
                                                size_t len, const gen_sampling *sampling,
                                                gen_token_callback callback, void *user,
                                                gen_result **result, gen_error *error);

/**
 * The same pulled piece by piece, see stream.h. While the stream is open other calls on the chat session and the conversation
 * are GEN_ERROR_BUSY, but cancel and progress of its session work. At its end the message and the answer are in the
 * conversation; closing it before that cuts the answer.
 *
 * @param out  receives the stream; end it with gen_stream_close.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT, GEN_ERROR_UNSUPPORTED, GEN_ERROR_STATE, GEN_ERROR_BUSY,
 *         GEN_ERROR_CONTEXT_FULL, GEN_ERROR_OUT_OF_RANGE, GEN_ERROR_GRAMMAR and GEN_ERROR_OUT_OF_MEMORY as
 *         gen_chat_session_send. What fails later comes from gen_stream_next.
 * Threads: one at a time per chat session and conversation.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_session_open_stream(gen_chat_session *chat_session, const char *text,
                                                size_t len, const gen_sampling *sampling,
                                                gen_stream **out, gen_error *error);

/**
 * The session of a chat session, to cancel it, to see its progress or length, to save it or to load one. A saved session
 * has no messages: to go on with one, add the messages that there were to a new conversation, make a chat session of it, and
 * load its session. What the conversation does not begin with is dropped with the next turn.
 *
 * @return borrowed until the chat session is freed; gen_session_free does nothing to it. NULL for NULL.
 * Threads: any; what is done with it as session.h says.
 * Since:   0.1
 */
GEN_API gen_session *gen_chat_session_session(gen_chat_session *chat_session);

/**
 * Frees the chat session; a call still running on it ends first in its own time. Returns without waiting, and in a
 * callback takes effect after it. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_chat_session_free(gen_chat_session *chat_session);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_CHAT_H */
