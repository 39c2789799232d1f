/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_tokenizer: text to token ids and back, from a GGUF file's own vocabulary or a SentencePiece
 * model file; and gen_chat: a conversation laid out in the model's own form. A tokenizer is immutable and shareable.
 */
#ifndef GENERATE_TOKENIZER_H
#define GENERATE_TOKENIZER_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of gen_tokenizer_encode. */
enum {
  GEN_ENCODE_ADD_BOS = 1,       /**< put the begin-of-sequence token first, if the vocabulary wants one */
  GEN_ENCODE_PARSE_SPECIAL = 2, /**< turn texts of special tokens into those tokens */
  GEN_ENCODE_CONTINUE = 4       /**< the text goes on from text encoded before, not from a special token */
};

/** Kinds of gen_tokenizer_special. */
enum {
  GEN_SPECIAL_BOS = 0,
  GEN_SPECIAL_EOS = 1,
  GEN_SPECIAL_UNK = 2,
  GEN_SPECIAL_PAD = 3,
  GEN_SPECIAL_SEP = 4,
  GEN_SPECIAL_EOT = 5 /**< end of turn */
};

/**
 * Loads the tokenizer of a GGUF file (weights are not touched) or a SentencePiece `.model` file.
 *
 * @param path  file name, NUL-terminated.
 * @param out   receives the tokenizer; free it with gen_tokenizer_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_IO if the file cannot be read;
 *         GEN_ERROR_FORMAT if it is damaged; GEN_ERROR_UNSUPPORTED for a kind of vocabulary that is not known;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tokenizer_load(const char *path, gen_tokenizer **out, gen_error *error);

/**
 * Text to token ids.
 *
 * Some vocabularies put a space before a text and after special tokens in it, which decoding takes away, or remove
 * spaces there. GEN_ENCODE_CONTINUE is for text that follows text: its beginning stays as it is, so that the ids of
 * several texts, all but the first encoded so, decode to these texts together. It has no effect where
 * begin-of-sequence is put first.
 *
 * @param text      [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param flags     GEN_ENCODE_… bits.
 * @param ids       [capacity] receives the ids, or NULL to ask their number.
 * @param n         receives the number of ids; also when the buffer is too small.
 * @return GEN_OK;
 *         GEN_ERROR_INVALID_ARGUMENT for NULL tokenizer, text (with a length) or n, or unknown flags;
 *         GEN_ERROR_TOKENIZER if the text is not UTF-8, naming the byte;
 *         GEN_ERROR_OUT_OF_RANGE if the buffer is too small; nothing is written to it.
 * Threads: any.
 * Cost:    linear in the text.
 * Since:   0.1
 */
GEN_API gen_status gen_tokenizer_encode(const gen_tokenizer *tokenizer, const char *text,
                                        size_t len, uint32_t flags, int32_t *ids, size_t capacity,
                                        size_t *n, gen_error *error);

/**
 * Token ids to text. Control tokens give no text.
 *
 * @param ids       [count] token ids.
 * @param buf       [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n         receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE for an id outside the
 *         vocabulary or a buffer that is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tokenizer_decode(const gen_tokenizer *tokenizer, const int32_t *ids,
                                        size_t count, char *buf, size_t capacity, size_t *n,
                                        gen_error *error);

/**
 * The bytes that one token stands for, which need not be whole characters; control tokens give their name.
 *
 * @param id   token id.
 * @param buf  as in gen_tokenizer_decode.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE as in gen_tokenizer_decode.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tokenizer_piece(const gen_tokenizer *tokenizer, int32_t id, char *buf,
                                       size_t capacity, size_t *n, gen_error *error);

/**
 * Number of tokens; ids are [0, size). 0 for NULL.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_tokenizer_vocab_size(const gen_tokenizer *tokenizer);

/**
 * Id of a special token, or -1 if the vocabulary has none or `kind` is not a GEN_SPECIAL_… number.
 *
 * Threads: any.
 * Since:   0.1
 */
GEN_API int32_t gen_tokenizer_special(const gen_tokenizer *tokenizer, int32_t kind);

/**
 * Frees a tokenizer from gen_tokenizer_load; NULL is fine. One borrowed from a model is not to be freed.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_tokenizer_free(gen_tokenizer *tokenizer);

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
 * @param role  "system", "user", "assistant" or whatever the model's form knows; NUL-terminated, copied.
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, an empty role, or text that is not UTF-8;
 *         GEN_ERROR_OUT_OF_MEMORY. On failure the conversation is as before.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_add(gen_chat *chat, const char *role, const char *text, size_t len,
                                gen_error *error);

/**
 * Lays the conversation out as text in the model's form: that of the chat template in its file (Jinja, as the
 * Transformers library evaluates it), or where the file has none, a common form that is recognised by the special tokens
 * of the vocabulary, with a warning in the log. Encode it with GEN_ENCODE_PARSE_SPECIAL, and the first part of
 * a conversation with GEN_ENCODE_ADD_BOS, too.
 *
 * A session that holds a conversation needs only what is new at each turn. Keep as `held` what has been laid out so far,
 * empty at first. For each turn:
 *   1. add the user's message, and format with add_generation_prompt;
 *   2. encode what comes after the first strlen(held) bytes, and gen_session_append_tokens the ids;
 *   3. generate with an empty prompt;
 *   4. if the answer ended with GEN_FINISH_STOP_TOKEN, gen_session_truncate the stop token away: the form ends a turn
 *      itself, which is right for answers that a limit or a cancel has cut, too;
 *   5. `held` is now the text of step 1 with the answer behind it; add the answer as the assistant's message.
 * Some templates lay earlier turns out anew (they drop what the model thought, or trim answers): then the text of step 1
 * does not begin with `held`. Encode it as a whole, compare with gen_session_tokens, truncate the session to what both
 * have in common, and append the rest.
 *
 * A message may not hold the texts of special tokens, since they would be read as structure.
 *
 * @param model                  whose form to use.
 * @param add_generation_prompt  non-zero: end with the opening of an assistant's turn.
 * @param buf                    as in gen_tokenizer_decode.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, for a message that holds the text of a special token, or for a
 *         conversation that the template does not take, with its reason;
 *         GEN_ERROR_UNSUPPORTED if the model has no chat template or one that cannot be used, with line and reason;
 *         GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per conversation; the model is shared.
 * Since:   0.1
 */
GEN_API gen_status gen_chat_format(const gen_model *model, const gen_chat *chat,
                                   int32_t add_generation_prompt, char *buf, size_t capacity,
                                   size_t *n, gen_error *error);

/**
 * Frees a conversation; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_chat_free(gen_chat *chat);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_TOKENIZER_H */
