/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_grammar: the language of allowed texts. A generating call with a grammar
 * (gen_sampling_set_grammar) draws only tokens with which its text can still become a member of the
 * language, and lets the model end the text only where it is a member. A grammar constrains the
 * text of the call, not the prompt. gen_grammar_matcher does the same for programs that draw tokens
 * themselves: it reads a text token by token and returns which tokens may come next.
 *
 * A token is matched by the bytes that it adds to a text. A control token has no bytes, and is
 * allowed only where a grammar asks for it by name or id. Tokens that end texts are allowed where
 * the text may end.
 */
#ifndef GENERATE_GRAMMAR_H
#define GENERATE_GRAMMAR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes grammar options with their defaults.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if out is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_options_new(gen_grammar_options **out, gen_error *error);

/**
 * Sets one option by name: "regex_match" "search", "max_states" "100000" …
 *
 * @param key    as listed by gen_grammar_options_describe.
 * @param value  the value as text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for an unknown key or a value outside its range.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_options_set(gen_grammar_options *options, const char *key, const char *value,
                                           gen_error *error);

/**
 * Adds a document, by its URI, to which references of JSON Schemas ("$ref":
 * "http://…/address.json#/$defs/street") may point. It may be of another draft, as its "$schema"
 * says, and may refer to other documents. It replaces an earlier document of the same URI. A
 * reference to any other document is refused: nothing is fetched.
 *
 * @param uri   absolute; a fragment (#…) is ignored.
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED. It is read when a grammar that refers to it is made;
 *              that call fails if the document is wrong.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an empty URI; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_options_add_schema(gen_grammar_options *options, const char *uri, const char *text,
                                                  size_t len, gen_error *error);

/**
 * Lets `cancel` stop the compilation of grammars with these options, which then fails as cancelled;
 * NULL for none. A grammar keeps the flag: calls that prepare it for a tokenizer, such as the first
 * gen_grammar_matcher_new for the two, check it, too, and do nothing while it is raised. Existing
 * grammars and matchers are not affected.
 *
 * @param cancel  shared, may be freed before the options, the grammars and the calls.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if options is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_options_set_cancel(gen_grammar_options *options, gen_cancel *cancel, gen_error *error);

/**
 * All options as JSON: an array of {"key","type","range","default","value","help"}.
 *
 * @param buf  [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n    receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_options_describe(const gen_grammar_options *options, char *buf, size_t capacity,
                                                size_t *n, gen_error *error);

/**
 * Frees the options; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_grammar_options_free(gen_grammar_options *options);

/**
 * Makes a grammar from GBNF, the notation of llama.cpp: rules `name ::= alternatives`, of which
 * "root" is the whole text; "texts", [character classes], `.`, groups, ? * + {m} {m,} {m,n}, tokens
 * as <[id]> or <name>, any other token as !<name>, and comments from # to the end of the line.
 * Rules may be recursive in any position, including the first (left recursion). If several rules
 * have the same name, the last one counts.
 *
 * @param text     [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR, naming line and column, if it is invalid, or
 *         naming the limit, if it is too large; GEN_ERROR_CANCELLED, see gen_grammar_options_set_cancel;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_from_gbnf(const char *text, size_t len, const gen_grammar_options *options,
                                         gen_grammar **out, gen_error *error);

/**
 * Makes a grammar from a JavaScript (ECMA-262) regular expression, with the flag u unless that
 * would make the pattern invalid. A text is a member if the whole text matches or, with the option
 * "regex_match" "search", if it contains a match. Lookahead, lookbehind, \b and \p{…} are exact.
 * Backreferences are refused.
 *
 * @param pattern  [len] UTF-8 without slashes and flags; len may be GEN_NUL_TERMINATED.
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return as gen_grammar_from_gbnf.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_from_regex(const char *pattern, size_t len, const gen_grammar_options *options,
                                          gen_grammar **out, gen_error *error);

/**
 * Makes a grammar from a Lark file in llguidance's dialect: lower-case rules, of which "start" is
 * the whole text, and upper-case terminals; "texts", /regular expressions/ in Rust's syntax,
 * "a".."z", groups, [x] x? x* x+ x{m,n} x~m..n, %ignore, %import common.NAME, %json {schema},
 * %regex, %lark, tokens as <name>, <[1,5-7]>, <[^1]> and <[*]>; in terminals & and ~, and rules
 * with [lazy], [suffix=…] or [stop=…].
 *
 * There is no lexer: a terminal may end wherever it matches, and every division of the text into
 * terminals counts. Priorities and aliases have no effect. Text matched by %ignore may follow each
 * terminal, but not occur inside one. Refused by name are templates, parameters, %declare,
 * %override, %extend, imports other than those of common, max_tokens and temperature, and in
 * patterns lookaround, ^ $ \b, lazy quantifiers, backreferences and nested classes.
 *
 * @param text     [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param options  read during the call; NULL means defaults. Those of JSON Schemas apply to %json.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return as gen_grammar_from_gbnf.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_from_lark(const char *text, size_t len, const gen_grammar_options *options,
                                         gen_grammar **out, gen_error *error);

/**
 * Makes the grammar of any JSON value, formatted as programs usually write it or, with the option
 * "json_style" "any", in any form that RFC 8259 allows. "json_space" and "json_digits" control
 * white space and numbers. These options apply to JSON Schemas, too, including those in tags and in
 * Lark's %json.
 *
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR if the limits of the options are too low for it;
 *         GEN_ERROR_CANCELLED; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_any_json(const gen_grammar_options *options, gen_grammar **out, gen_error *error);

/**
 * Makes the grammar of free text with constrained sections, such as tool calls, from a JSON object:
 * {"tags": [{"begin": "<add>", "regex": "[0-9]+", "end": "</add>"}, …]}.
 *
 * A tag has a begin: "begin" (a text) or "begin_token". It has a content: "gbnf", "lark", "regex" (of the whole content),
 * "json_schema" (the schema itself, not a string that holds it) or "any_json": true. It has an end: "end" (a text),
 * followed by "end_token"; either or both may be missing. Tokens are ids as numbers or names as strings, as in GBNF. A
 * "begin_token" should be a control token, because other tokens can also occur in free text. Free text is any text that
 * contains no begin of a tag; what begins like a tag must continue as one. Further members:
 *   "triggers"          [texts] after which only tags that begin with them may follow; by default the begins are triggers,
 *   "at_least_one"      true: the text cannot end before a tag,
 *   "stop_after_first"  true: the text ends after the first tag,
 *   "free_text"         false: the text consists of tags only.
 *
 * @param text     [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return as gen_grammar_from_gbnf; GEN_ERROR_GRAMMAR also for a trigger that contains another one.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_from_tags(const char *text, size_t len, const gen_grammar_options *options,
                                         gen_grammar **out, gen_error *error);

/**
 * Makes the grammar of the JSON texts (RFC 8259, without duplicate names) whose values are valid
 * under a JSON Schema of draft 4 to 2020-12, as "$schema" says (2020-12 without it). Of the valid
 * texts it accepts those that programs write and usual decoders accept: members in the schema's
 * order, at most one blank in one place, numbers and dates of bounded length. With the option
 * "json_style" "any", members may come in any order, characters may be escaped, and numbers are
 * compared by value: 1.0 is an integer from draft 6 on. A number with an exponent that a keyword
 * limits has at most 4 digits before its decimal point and 17 after it. docs/grammars.md has the
 * details and lists what is not exact.
 *
 * Schemas that cannot be enforced exactly are refused, naming the keyword's JSON pointer:
 * references to documents that gen_grammar_options_add_schema did not add, uniqueItems together
 * with contains, the formats idn-hostname and regex, and whatever exceeds the limits. Formats that
 * no vocabulary defines have no effect; gen_grammar_describe lists them.
 *
 * @param schema   [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR if the text is not JSON, with line and column,
 *         or if the schema is invalid, is refused, or has no valid value, with a JSON pointer;
 *         GEN_ERROR_CANCELLED; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_from_json_schema(const char *schema, size_t len, const gen_grammar_options *options,
                                                gen_grammar **out, gen_error *error);

/**
 * Describes a grammar as JSON: {"kind":"gbnf","states":…,"bytes":…}; kind is "gbnf", "lark",
 * "regex", "any_json", "tags" or "json_schema", states is the number of states of its automata, and
 * bytes their memory. For a schema also unknown_formats, an array of names, and relaxed, an array
 * of what options have removed from it, such as ["/properties/a/oneOf: as anyOf",
 * "/properties/b/pattern: ignored"].
 *
 * @param buf  [capacity] receives the text with its NUL, or NULL to ask the size.
 * @param n    receives the length without the NUL; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_describe(const gen_grammar *grammar, char *buf, size_t capacity, size_t *n,
                                        gen_error *error);

/**
 * Frees the grammar; NULL is fine. Settings, calls and matchers that use it keep what they need.
 *
 * Threads: any, once.
 * Since:   0.1
 */
GEN_API void gen_grammar_free(gen_grammar *grammar);

/**
 * Makes a matcher, at the empty text, for the tokens of a tokenizer. Matchers and calls with the
 * same grammar and tokenizer share the masks that they have computed.
 *
 * @param out  receives the matcher; free it with gen_grammar_matcher_free. It keeps the other two alive.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR if the grammar names a token that the
 *         tokenizer lacks, or its start state exceeds a limit; GEN_ERROR_CANCELLED if the grammar's flag
 *         (gen_grammar_options_set_cancel) is raised and it has not been prepared for this tokenizer yet;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_new(const gen_grammar *grammar, const gen_tokenizer *tokenizer,
                                           gen_grammar_matcher **out, gen_error *error);

/**
 * Advances by a token, or by one that ends texts where the text may end. After such an end only
 * tokens that end texts may come; they add nothing. If the grammar asks for an end token by its
 * name or id, it is part of the text, even where the text may end. gen_grammar_matcher_complete is
 * 2 after a token that has ended the text.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE for an id outside the vocabulary;
 *         GEN_ERROR_GRAMMAR if the token is not allowed here; GEN_ERROR_UNSUPPORTED, naming the limit, if the check
 *         exceeds one (max_items, max_work). On failure nothing has changed, here and below.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_accept_token(gen_grammar_matcher *matcher, int32_t token, gen_error *error);

/**
 * Advances by bytes, which need not be whole characters or tokens.
 *
 * @param bytes  [len]; len may be GEN_NUL_TERMINATED.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR if the bytes are not allowed here;
 *         GEN_ERROR_UNSUPPORTED, naming the limit, if the check exceeds one.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_accept_bytes(gen_grammar_matcher *matcher, const char *bytes, size_t len,
                                                    gen_error *error);

/**
 * Computes which tokens may come next: bit t % 32 of bits[t / 32] is set if and only if
 * gen_grammar_matcher_accept_token would accept token t. An allowed token does not imply that the
 * vocabulary has tokens to complete the text.
 *
 * @param bits   [words] receives the mask; bits beyond the vocabulary are 0.
 * @param words  at least (V + 31) / 32 for a vocabulary of V tokens.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE for too few words;
 *         GEN_ERROR_GRAMMAR if the computation exceeds a limit.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_mask(gen_grammar_matcher *matcher, uint32_t *bits, size_t words,
                                            gen_error *error);

/**
 * Computes which bytes may come next: bit b % 32 of bits[b / 32] is set for byte b.
 *
 * @param bits  [8].
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_valid_bytes(const gen_grammar_matcher *matcher, uint32_t *bits,
                                                   gen_error *error);

/**
 * Undoes the last `n` accepting calls.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if there were fewer.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_rollback(gen_grammar_matcher *matcher, size_t n, gen_error *error);

/**
 * Makes a second matcher in the same place, which can also undo the calls of the first one. The two
 * share what they have read so far until one of them advances.
 *
 * @param out  receives the matcher; free it with gen_grammar_matcher_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_fork(const gen_grammar_matcher *matcher, gen_grammar_matcher **out,
                                            gen_error *error);

/**
 * Returns to the empty text.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_reset(gen_grammar_matcher *matcher, gen_error *error);

/**
 * Whether the text is a member: 0 if not yet, 1 if it is, 2 if it is and nothing can follow it. 0
 * for NULL, and while another thread uses the matcher.
 *
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API int32_t gen_grammar_matcher_complete(const gen_grammar_matcher *matcher);

/**
 * The next tokens, at most 1024, that can be taken without asking a model: each is the only one
 * allowed at its position. There are none where the vocabulary can spell the next byte in two ways,
 * such as "." and "<0x2E>"; SentencePiece vocabularies can for every byte. With the grammar option
 * "forced_tokens" "tokenizer" they are the tokens into which the tokenizer splits the forced bytes,
 * without the last ones if later text could merge with them.
 *
 * @param ids       [capacity] receives them, or NULL to ask their number.
 * @param n         receives their number; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small;
 *         GEN_ERROR_GRAMMAR if the computation exceeds a limit.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_forced(gen_grammar_matcher *matcher, int32_t *ids, size_t capacity, size_t *n,
                                              gen_error *error);

/**
 * Minimum number of tokens until the text may end, not counting the one that ends it. The number is
 * exact, unless that would take long to compute; then it is that of the shortest text that
 * completes it, if that has at most 128 KiB and takes no more work than a mask may.
 *
 * @param n  receives the number; -1 if no tokens of the vocabulary are known to complete the text.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_min_tokens(gen_grammar_matcher *matcher, int64_t *n, gen_error *error);

/**
 * Frees the matcher; NULL is fine.
 *
 * Threads: one.
 * Since:   0.1
 */
GEN_API void gen_grammar_matcher_free(gen_grammar_matcher *matcher);

/**
 * Restricts the texts of calls that use these settings to members of `grammar`; NULL allows any
 * text and also removes a matcher. The call ends where the model ends a text that is a member
 * (GEN_FINISH_STOP_TOKEN), or where no token can follow a member (GEN_FINISH_GRAMMAR_COMPLETE). Any
 * other end, in particular max_new_tokens, can leave a text that is not yet a member
 * ("grammar_complete" of gen_result_usage shows it). With gen_sampling_set_fit_grammar, which is on
 * by default, this happens only where no short enough completion is known. If no token of the
 * vocabulary is allowed, the call fails with the finish reason GEN_FINISH_GRAMMAR_DEAD_END, see
 * gen_generate.
 *
 * @param grammar  shared, may be freed before the settings and the calls.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_grammar(gen_sampling *sampling, const gen_grammar *grammar, gen_error *error);

/**
 * As gen_sampling_set_grammar, but texts continue from the current position of a matcher, each call
 * from there. NULL allows any text and also removes a grammar. The matcher must use the tokenizer
 * of the model; the generating call refuses any other.
 *
 * @param matcher  copied, so it may advance or be freed afterwards.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_grammar_matcher(gen_sampling *sampling, const gen_grammar_matcher *matcher,
                                                    gen_error *error);

/**
 * With a non-zero `fit` (the default), a call with a grammar draws only tokens after which the text
 * can still be completed within max_new_tokens and the context, provided that a short enough
 * completion is known when the call begins. If the text is a member at its last token (of
 * max_new_tokens or of the context), the finish reason is then GEN_FINISH_GRAMMAR_COMPLETE, even
 * where the grammar alone would have let it continue. Without a grammar it has no effect.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_fit_grammar(gen_sampling *sampling, int32_t fit, gen_error *error);

/**
 * Computes which strings of a list, such as a vocabulary of the caller's, may follow a text: bit i
 * % 32 of bits[i / 32] is set if and only if `text` followed by strings[i] can still become a
 * member; it is never set for an empty string. Meant for a few positions; over many, a matcher is
 * far faster.
 *
 * @param text     [len] bytes, the text so far; len may be GEN_NUL_TERMINATED.
 * @param strings  [count] bytes of each string.
 * @param lengths  [count] their lengths; NULL if all are NUL-terminated.
 * @param bits     [words] receives the mask.
 * @param words    at least (count + 31) / 32.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, or a string above 32 KiB, naming it; GEN_ERROR_OUT_OF_RANGE
 *         for too few words; GEN_ERROR_GRAMMAR if the text itself cannot become a member, or a limit is exceeded;
 *         GEN_ERROR_CANCELLED while the grammar's flag is raised; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_token_mask(const gen_grammar *grammar, const char *text, size_t len, const char *const *strings,
                                  const size_t *lengths, size_t count, uint32_t *bits, size_t words,
                                  gen_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GENERATE_GRAMMAR_H */
