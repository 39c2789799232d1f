/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_tokenizer: text to token ids and back, from a GGUF file's own vocabulary or a SentencePiece
 * model file. A tokenizer is immutable and shareable. Conversations are in chat.h.
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
  GEN_ENCODE_CONTINUE = 4       /**< the text continues text encoded before, not a special token */
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
 * Loads a tokenizer as gen_tokenizer_load does, with a model's options, of which "pre_tokenizer"
 * counts here: how texts are split into words, whatever the file says.
 *
 * @param options  borrowed for the call; NULL: gen_tokenizer_load.
 * @return as gen_tokenizer_load; GEN_ERROR_INVALID_ARGUMENT also for a pre-tokenizer where the vocabulary's kind
 *         has none; GEN_ERROR_UNSUPPORTED for one that is not known.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tokenizer_load_with(const char *path, const gen_model_options *options,
                                           gen_tokenizer **out, gen_error *error);

/**
 * Encodes text as token ids.
 *
 * Some vocabularies insert a space before a text and after special tokens in it, which decoding
 * removes, or strip spaces there. GEN_ENCODE_CONTINUE is for text that continues other text: its
 * beginning stays as it is. If all of several texts except the first are encoded with it, their ids
 * together decode to the texts together. It has no effect where begin-of-sequence is put first.
 * Where the tokenizer of a model family normalises text to Unicode NFC (Qwen 2 and later, StableLM
 * 2, Command R, OLMo, MPT), this one does, too, and decoding returns NFC.
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
 * Encodes a fill-in-the-middle prompt, for code models: prefix mark, prefix, suffix mark, suffix,
 * middle mark. The marks are those that the file names, or the special tokens of a known family.
 * Pass the ids to gen_session_append_tokens or gen_request_set_prompt_tokens; the model generates
 * the middle.
 *
 * @param prefix    [prefix_len] UTF-8; prefix_len may be GEN_NUL_TERMINATED. It may be empty, and so may the suffix.
 *                  Names of special tokens are plain text in both.
 * @param suffix    [suffix_len] UTF-8; suffix_len may be GEN_NUL_TERMINATED.
 * @param flags     GEN_ENCODE_ADD_BOS or 0.
 * @param ids       [capacity] receives the ids, or NULL to ask their number.
 * @param n         receives the number of ids; also when the buffer is too small.
 * @return as gen_tokenizer_encode; GEN_ERROR_UNSUPPORTED for a vocabulary without such tokens.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_tokenizer_encode_fim(const gen_tokenizer *tokenizer, const char *prefix,
                                            size_t prefix_len, const char *suffix,
                                            size_t suffix_len, uint32_t flags, int32_t *ids,
                                            size_t capacity, size_t *n, gen_error *error);

/**
 * Decodes token ids to text. Control tokens give no text.
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
 * Returns the bytes of one token, which need not be whole characters; for control tokens their
 * name.
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
 * Frees a tokenizer from gen_tokenizer_load; NULL is fine. Do not free one borrowed from a model.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_tokenizer_free(gen_tokenizer *tokenizer);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_TOKENIZER_H */
