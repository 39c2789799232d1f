/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_template: a chat template by itself, to see how it renders a conversation. Programs that talk
 * to a model should use gen_chat, which uses the model's own template. A template is immutable and
 * shareable.
 */
#ifndef GENERATE_TEMPLATE_H
#define GENERATE_TEMPLATE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Compiles a template: Jinja, as the Transformers library evaluates it for chats.
 *
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED.
 * @return GEN_OK; GEN_ERROR_FORMAT, with the line, for text that is not a template; GEN_ERROR_UNSUPPORTED, with the line
 *         and the name, for an unknown statement, filter or test; GEN_ERROR_INVALID_ARGUMENT for NULL;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Cost:    about 1 ms for 10 KB.
 * Since:   0.1
 */
GEN_API gen_status gen_template_new(const char *text, size_t len, gen_template **out,
                                    gen_error *error);

/**
 * Compiles the template of a tokenizer's file or, if it has none, the common format that its
 * special tokens indicate. bos_token and eos_token default to the tokenizer's names for these
 * tokens, unless a request sets them.
 *
 * @return GEN_OK; GEN_ERROR_UNSUPPORTED if there is no template or it cannot be used, with the reason;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_template_from_tokenizer(const gen_tokenizer *tokenizer, gen_template **out,
                                               gen_error *error);

/**
 * Renders a conversation.
 *
 * @param request   [len] a JSON object with `messages`, an array of objects with whatever members the template reads
 *                  (`role`, `content`, `tool_calls` and so on), and optionally `tools` (an array),
 *                  `add_generation_prompt` (true or false), `bos_token`, `eos_token`, `variables` (an object whose members
 *                  the template sees as variables) and `now` (ISO 8601, the time of strftime_now; by default the
 *                  machine's). len may be GEN_NUL_TERMINATED.
 * @param buf       [capacity] receives a JSON object, {"text": "…", "segments": [{"text": "…", "special": true}, …]}. The
 *                  segments are consecutive parts of the text; `special` is true where the template itself wrote the
 *                  part, which may then become special tokens. NULL asks for the size.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, for a request of another form, and for a conversation that the
 *         template rejects, with line and reason; GEN_ERROR_OUT_OF_RANGE if the buffer is too small (*n is then the
 *         required size), or for a rendering beyond the limits on steps, depth and memory; GEN_ERROR_UNSUPPORTED for an
 *         unknown filter or test; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_template_render(const gen_template *of, const char *request, size_t len,
                                       char *buf, size_t capacity, size_t *n, gen_error *error);

/**
 * Frees a template; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_template_free(gen_template *of);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_TEMPLATE_H */
