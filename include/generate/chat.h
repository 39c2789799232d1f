/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_chat: a conversation, rendered in the format that the model was trained on, by the chat
 * template of its file (Jinja, evaluated as the Transformers library does) or, if the file has
 * none, by a common format that the special tokens of its vocabulary indicate. Only what the
 * template itself writes becomes special tokens: a message that contains "<|im_end|>" cannot end
 * its turn. gen_chat_session: a conversation with a session, which takes a message and generates
 * the answer.
 *
 * One thread at a time may use a gen_chat; a concurrent call returns GEN_ERROR_BUSY. A call that
 * fails leaves it as it was.
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
 * Sets the author of the last message, its member `name` in templates.
 *
 * @param name  UTF-8, NUL-terminated, copied; empty for none.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is not UTF-8; GEN_ERROR_STATE if there is no message;
 *         GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_name(gen_chat *chat, const char *name, gen_error *error);

/**
 * Sets the assistant's reasoning before the last message: `reasoning_content` in templates, or
 * `thinking` or `reasoning` where a template reads that. Most templates omit it from earlier turns.
 *
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED.
 * @return as gen_chat_set_name.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_reasoning(gen_chat *chat, const char *text, size_t len,
                                          gen_error *error);

/**
 * Adds a tool call of the assistant: to the last message if that is the assistant's, else as a new
 * message of the assistant without text. A chat session does this by itself with the calls of its
 * answers (gen_chat_set). Templates receive the call in the form that they expect.
 *
 * @param id         of the call, NUL-terminated, copied; NULL or empty if there is none. Some templates require one.
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
 * Adds the result of a tool call, as a message of the role "tool".
 *
 * @param id    of the call that it answers, NUL-terminated, copied; NULL or empty if there is none.
 * @param name  of the function, NUL-terminated, copied; NULL or empty if the template does not need it.
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
 * @param name   a valid Jinja name, NUL-terminated, copied.
 * @param value  [len] JSON, copied; len may be GEN_NUL_TERMINATED. A string is written with quotes: "\"high\"".
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an invalid name or invalid JSON, and for the names that the library
 *         sets: messages, tools, add_generation_prompt, bos_token and eos_token; GEN_ERROR_BUSY;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_variable(gen_chat *chat, const char *name, const char *value,
                                         size_t len, gen_error *error);

/**
 * Uses a template other than the model's.
 *
 * @param text  [len] a template, or the name of a built-in form: "chatml", "llama3", "gemma", "gemma4",
 *              "phi3", "mistral", "granite", "command-r"; copied; len may be GEN_NUL_TERMINATED. Empty for the model's own.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, for text that is not UTF-8, and for a single word that is not the
 *         name of a form; GEN_ERROR_FORMAT, with the line, for text that is not a template; GEN_ERROR_UNSUPPORTED, with
 *         line and name, for an unknown statement, filter or test; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Cost:    about 1 ms for 10 KB.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_template(gen_chat *chat, const char *text, size_t len,
                                         gen_error *error);

/**
 * Sets how a chat session deals with answers, by name: "tool_choice" "required", "reasoning_budget" "200" … A chat session
 * reads answers in the format of the model's template (docs/chat.md): it divides them into text, reasoning and tool calls,
 * streams these as gen_piece, and adds them to the conversation as such. With tools, the calls that a model begins are
 * constrained to valid calls of these tools, unless the call's settings have a grammar of their own.
 *
 * @param key    as listed by gen_chat_describe_options.
 * @param value  the value as text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an unknown key or a value outside its range; GEN_ERROR_BUSY;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set(gen_chat *chat, const char *key, const char *value, gen_error *error);

/**
 * All options of gen_chat_set as JSON, as gen_options_describe.
 *
 * @param buf  as in gen_tokenizer_decode.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small; GEN_ERROR_BUSY;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_describe_options(const gen_chat *chat, char *buf, size_t capacity, size_t *n,
                                             gen_error *error);

/**
 * Removes messages from the end, to edit or regenerate them, or to replace an answer that is a tool
 * call by gen_chat_add_tool_call. A session that held them is truncated at the next turn.
 *
 * @param n  number of messages to keep; if negative, removes the last -n.
 * @return GEN_OK; GEN_ERROR_OUT_OF_RANGE if there are fewer messages; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_BUSY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_truncate(gen_chat *chat, int32_t n, gen_error *error);

/**
 * Describes the conversation as a JSON object: `messages` with the members that templates see
 * (`role`, `content`, `reasoning_content`, `name`, `tool_calls`, `tool_call_id`), `tools` and
 * `variables`. The object is also a valid request for gen_template_render. It contains all that is
 * needed to show the conversation, keep it, or add it to another one.
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
 * Sets the time that templates write as today's date. Without it they use the machine's clock, and
 * the same conversation may be rendered differently tomorrow.
 *
 * @param time  ISO 8601, such as "2026-11-23T09:30:00", NUL-terminated; empty for the machine's clock.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL and for what is no time; GEN_ERROR_BUSY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_set_time(gen_chat *chat, const char *time, gen_error *error);

/**
 * Renders the conversation as one text, for display. In a text, what the template wrote cannot be
 * told from the content of messages; a message that contains the name of a special token is
 * therefore refused here. gen_chat_encode and gen_session_append_chat accept any message.
 *
 * @param model                  whose template to use.
 * @param add_generation_prompt  non-zero: end with the opening of an assistant's turn.
 * @param buf                    as in gen_tokenizer_decode.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, for a message that contains the name of a special token, or for a
 *         conversation that the template rejects, with its reason;
 *         GEN_ERROR_UNSUPPORTED if the model has no chat template, or one that cannot be used, with line and reason, or
 *         one that does not render the tools or tool calls of the conversation;
 *         GEN_ERROR_OUT_OF_RANGE if the buffer is too small; GEN_ERROR_BUSY; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per conversation; the model is shared.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_format(const gen_model *model, const gen_chat *chat,
                                   int32_t add_generation_prompt, char *buf, size_t capacity,
                                   size_t *n, gen_error *error);

/**
 * Renders the conversation as token ids. Begin-of-sequence comes first, exactly once, where the
 * vocabulary or the template wants it. Only what the template itself writes becomes special tokens.
 *
 * @param ids  [capacity] receives the ids, or NULL to ask their number.
 * @param n    receives their number; also when the buffer is too small.
 * @return as gen_chat_format, but a message may contain any text; GEN_ERROR_TOKENIZER if the vocabulary cannot encode a
 *         part of it.
 * Threads: one at a time per conversation; the model is shared.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_encode(const gen_model *model, const gen_chat *chat,
                                   int32_t add_generation_prompt, int32_t *ids, size_t capacity,
                                   size_t *n, gen_error *error);

/**
 * Makes a session hold a conversation, so that a generating call with an empty prompt answers it.
 * Tokens that the session already holds stay, and only the rest is evaluated: usually the new turn,
 * preceded by the end of the last answer, whether the model wrote that end or the answer was cut.
 * Where a template renders earlier turns differently (it may omit the model's reasoning),
 * evaluation restarts at the first difference.
 *
 * @return as gen_chat_encode, without GEN_ERROR_OUT_OF_RANGE; GEN_ERROR_CONTEXT_FULL if the conversation does not fit, also
 *         with the context policy "shift", which would split turns; GEN_ERROR_CANCELLED; GEN_ERROR_MODEL,
 *         GEN_ERROR_POOL_EXHAUSTED, GEN_ERROR_IO and GEN_ERROR_FORMAT as gen_generate. After a cancel the session holds
 *         what was evaluated so far; after any other failure it holds the same tokens as before, though some of them may
 *         have to be evaluated again.
 * Threads: one at a time per session and conversation.
 * Cost:    runs the model over the new tokens before returning.
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
 * With the context policy "shift", a conversation that outgrows the context continues without its
 * oldest turns: the system message and the tools stay, and `chat` itself keeps all messages. With
 * "stop", sending fails then.
 *
 * @param generator  used and kept alive by the chat session.
 * @param chat       the conversation so far, or NULL for an empty one. It is shared, not copied: add messages that are not
 *                   the user's, such as the system message, tools and their results, before and between turns, and find
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
 * Adds a message of the user to the conversation, generates the answer, and adds it as the
 * assistant's message. Only what is new since the last turn is evaluated. After a failure the
 * session may hold part of the turn; the next turn corrects that.
 *
 * An answer ended by a limit, a cancel or a callback is added as far as it was generated; its turn
 * is closed with the next message. If no token was generated, and after any other failure, the
 * conversation is as it was before the call. Only the messages determine a turn: whatever was sent
 * without an answer, removed and added again, or done to the session in between, the result is that
 * of a new chat session with the same messages. One thing differs: where an answer's text could be
 * split into tokens in several ways, the session keeps those that were drawn, as long as the
 * message is unchanged, while a new chat session encodes the text. A cut answer continues where it
 * was cut.
 *
 * To fork a chat, add its messages to another conversation, make a chat session from that, and load
 * into its session what gen_session_save_buffer wrote of this one's. With
 * gen_options_set_prefix_cache the second step may be left out.
 *
 * @param text      [len] UTF-8; len may be GEN_NUL_TERMINATED. NULL adds no message: it answers what the conversation ends
 *                  with, such as the result of a tool, or continues the last answer, provided that this session generated
 *                  it and a limit, a cancel or a callback cut it; new text is appended to its message. An answer that
 *                  completed its stop string or grammar was not cut.
 * @param sampling  how to choose tokens, or NULL for defaults.
 * @param result    receives the result, whose text is the answer; may be NULL. It is also set if the call fails or is
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
 * As gen_chat_session_send, but passes each piece of the answer to `callback` as it is generated;
 * see gen_generate_stream.
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
 * As gen_chat_session_send, but pulled piece by piece, see stream.h. While the stream is open,
 * other calls on the chat session and the conversation return GEN_ERROR_BUSY, except cancel and
 * progress of its session. At its end the message and the answer are in the conversation; closing
 * it earlier cuts the answer.
 *
 * @param out  receives the stream; end it with gen_stream_close.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT, GEN_ERROR_UNSUPPORTED, GEN_ERROR_STATE, GEN_ERROR_BUSY,
 *         GEN_ERROR_CONTEXT_FULL, GEN_ERROR_OUT_OF_RANGE, GEN_ERROR_GRAMMAR and GEN_ERROR_OUT_OF_MEMORY as
 *         gen_chat_session_send. Later failures are returned by gen_stream_next.
 * Threads: one at a time per chat session and conversation.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_session_open_stream(gen_chat_session *chat_session, const char *text,
                                                size_t len, const gen_sampling *sampling,
                                                gen_stream **out, gen_error *error);

/**
 * Ends the reasoning of the answer that is being generated: the model writes the option "reasoning_end" and the mark that
 * ends reasoning, and goes on with its answer. It has no effect if the model is not reasoning.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_STATE unless the option "reasoning_control" is on.
 * Threads: any, also while another thread runs the answer.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_session_end_reasoning(gen_chat_session *chat_session, gen_error *error);

/**
 * The session of a chat session: to cancel it, to see its progress or length, to read its state or
 * go back to a snapshot of it (ssm_state.h), to save it or to load a saved one. A saved session
 * contains no messages: to resume, add the earlier messages to a new conversation, make a chat
 * session from it, and load its session. Tokens that do not match the conversation are dropped at
 * the next turn.
 *
 * @return borrowed until the chat session is freed; gen_session_free does nothing to it. NULL for NULL.
 * Threads: any; what is done with it as session.h says.
 * Since:   0.1
 */
GEN_API gen_session *gen_chat_session_session(gen_chat_session *chat_session);

/**
 * Frees the chat session. Returns without waiting: a call that still runs on it finishes first, and
 * inside a callback the free takes effect after the callback's call. NULL is fine.
 *
 * Threads: any; the handle must not be used afterwards.
 * Since:   0.1
 */
GEN_API void gen_chat_session_free(gen_chat_session *chat_session);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_CHAT_H */
