/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_grammar: which texts are allowed. A generating call that is given one (gen_sampling_set_grammar) draws no
 * token that its text could not go on with, and lets the model end the text only where it is a member of the
 * language. A grammar constrains the text of the call, not the prompt. gen_grammar_matcher is the same for programs
 * that draw tokens themselves: it reads a text token by token and tells which tokens may come next.
 *
 * Tokens are looked at as the bytes that they put into a text. A token stands for no bytes if it is a control token,
 * and comes only where a grammar asks for it by name or id. Where a text may end, those that end texts may come.
 */
#ifndef GENERATE_GRAMMAR_H
#define GENERATE_GRAMMAR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes the options of grammars with their defaults.
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
 * Gives a document that references of JSON Schemas ("$ref": "http://…/address.json#/$defs/street") can lead to, by its URI.
 * It may be of another draft, which its "$schema" tells, may refer to others, and takes the place of one that was given
 * under the same URI. A reference to what was not given is refused: nothing is fetched.
 *
 * @param uri   absolute; what is behind a # does not count.
 * @param text  [len] UTF-8, copied; len may be GEN_NUL_TERMINATED. It is read when a grammar is made that refers to it,
 *              which fails where it is wrong.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL or an empty URI; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_options_add_schema(gen_grammar_options *options, const char *uri, const char *text,
                                                  size_t len, gen_error *error);

/**
 * Lets `cancel` stop the making of grammars with these options, which is then cancelled as any call; NULL for
 * none. A grammar keeps the flag: calls that have to prepare it for a tokenizer, as the first gen_grammar_matcher_new of
 * the two does, look at it, too, and make nothing while it is raised. What has been made stays as it is.
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
 * Makes a grammar from GBNF, the notation of llama.cpp: rules `name ::= alternatives`, of which "root" is the whole
 * text; "texts", [character classes], `.`, groups, ? * + {m} {m,} {m,n}, tokens as <[id]> or <name> and any but them
 * with !, and comments from # on. Rules may refer to themselves in any place, the first included. Of rules with the same
 * name the last one counts.
 *
 * @param text     [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR, naming line and column, if it is wrong, and
 *         naming the limit if it is too large; GEN_ERROR_CANCELLED, see gen_grammar_options_set_cancel;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_from_gbnf(const char *text, size_t len, const gen_grammar_options *options,
                                         gen_grammar **out, gen_error *error);

/**
 * Makes a grammar from a regular expression as JavaScript (ECMA-262) has it, with the flag u where that makes no
 * pattern wrong: a text is a member if all of it matches, or, with the option "regex_match" "search", if it holds a
 * match. Lookahead, lookbehind, \b and \p{…} are exact. Backreferences are refused.
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
 * Makes a grammar from a Lark file in llguidance's dialect: rules in lower case, of which "start" is the whole text,
 * and terminals in upper case; "texts", /regular expressions/ as Rust has them, "a".."z", groups, [x] x? x* x+ x{m,n}
 * x~m..n, %ignore, %import common.NAME, %json {schema}, %regex, %lark, tokens as <name>, <[1,5-7]>, <[^1]> and <[*]>; in
 * terminals & and ~, and rules with [lazy], [suffix=…] or [stop=…].
 *
 * There is no lexer: a terminal may end wherever it matches, and every way to divide the text counts. Priorities and
 * aliases have no effect. Text that %ignore names may follow each terminal, but not stand within one. Refused by name are
 * templates, parameters, %declare, %override, %extend, imports other than those of common, max_tokens and temperature, and
 * in patterns lookaround, ^ $ \b, lazy quantifiers, backreferences and classes in classes.
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
 * Makes the grammar of any JSON value, spelled as programs write it, or in any way that RFC 8259 has with the option
 * "json_style" "any". "json_space" and "json_digits" say it of white space and numbers. JSON Schemas heed all of these,
 * too, also in tags and in Lark's %json.
 *
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR where options leave too little room for it;
 *         GEN_ERROR_CANCELLED; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_any_json(const gen_grammar_options *options, gen_grammar **out, gen_error *error);

/**
 * Makes the grammar of free text with constrained parts, as tool calls are, from a JSON object:
 * {"tags": [{"begin": "<add>", "regex": "[0-9]+", "end": "</add>"}, …]}.
 *
 * A tag has a begin, "begin" (a text) or "begin_token"; a content, "gbnf", "lark", "regex" (from end to end),
 * "json_schema" (the schema itself, not a string that holds it) or "any_json": true; and an end, "end" and behind it "end_token", of which
 * none, one or both may be given. Tokens are ids as numbers or texts as strings, as in GBNF; a "begin_token" should be a
 * control token, as other tokens are free text, too. Free text is any text in which no begin of a tag occurs; what begins
 * as a tag must go on as one. Besides "tags" there may be
 *   "triggers"          [texts] from which on only tags that begin with them can follow; else the begins are,
 *   "at_least_one"      true: the text cannot end before a tag has,
 *   "stop_after_first"  true: it ends behind the first tag,
 *   "free_text"         false: there is nothing but tags.
 *
 * @param text     [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return as gen_grammar_from_gbnf; GEN_ERROR_GRAMMAR also for a trigger that holds another one.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_from_tags(const char *text, size_t len, const gen_grammar_options *options,
                                         gen_grammar **out, gen_error *error);

/**
 * Makes the grammar of the JSON texts (RFC 8259, without duplicate names) whose values are valid under a JSON Schema
 * of draft 4 to 2020-12, which "$schema" tells (2020-12 without it). Of these it takes the ones that programs write and
 * usual decoders take: members in the schema's order, at most one blank in one place, numbers and dates of bounded
 * length. With the option "json_style" "any" members may come in any order, characters may be escaped, and numbers are
 * compared by value: 1.0 is an integer from draft 6 on. A number with an exponent that a keyword limits has at most 4
 * digits before its point and 17 behind it. docs/grammars.md has the details and lists what is not exact.
 *
 * What cannot be kept exactly is refused with the keyword's JSON pointer: references to documents that
 * gen_grammar_options_add_schema has not been given,
 * uniqueItems together with contains, the formats idn-hostname and regex, and what takes more than the limits.
 * Formats that no vocabulary knows say nothing; gen_grammar_describe lists them.
 *
 * @param schema   [len] UTF-8; len may be GEN_NUL_TERMINATED.
 * @param options  read during the call; NULL means defaults.
 * @param out      receives the grammar; free it with gen_grammar_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR, with line and column for text that is no
 *         JSON, else with a JSON pointer, if the schema is wrong, is refused, or has no valid value;
 *         GEN_ERROR_CANCELLED; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_from_json_schema(const char *schema, size_t len, const gen_grammar_options *options,
                                                gen_grammar **out, gen_error *error);

/**
 * What a grammar is, as JSON: {"kind":"gbnf","states":…,"bytes":…}; kind is "gbnf", "lark", "regex", "any_json", "tags"
 * or "json_schema", states are those of its automata, and bytes is the memory of these. Of a schema: unknown_formats, an
 * array of names, and relaxed, what options have taken from it, an array like ["/properties/a/oneOf: as anyOf",
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
 * Begins an empty text over the tokens of a tokenizer. What matchers and calls of one grammar and one tokenizer find
 * out about masks they share.
 *
 * @param out  receives the matcher; free it with gen_grammar_matcher_free. It keeps what it needs of the other two.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR if the grammar names a token that the
 *         tokenizer lacks, or its start is above a limit; GEN_ERROR_CANCELLED if the grammar's flag
 *         (gen_grammar_options_set_cancel) is raised and nobody has prepared it for this tokenizer yet;
 *         GEN_ERROR_OUT_OF_MEMORY.
 * Threads: any.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_new(const gen_grammar *grammar, const gen_tokenizer *tokenizer,
                                           gen_grammar_matcher **out, gen_error *error);

/**
 * Goes on by a token, or one that ends texts where the text may end; behind that only tokens that end texts can
 * come, which add nothing to it. Where the grammar asks for an end token by its name or id, it is a part of the text,
 * also where the text may end; gen_grammar_matcher_complete is 2 behind one that has ended it.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE for an id outside the vocabulary;
 *         GEN_ERROR_GRAMMAR if the token cannot come here; GEN_ERROR_UNSUPPORTED, naming it, if to find that out
 *         takes more than a limit (max_items, max_work). On failure nothing has changed, here and below.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_accept_token(gen_grammar_matcher *matcher, int32_t token, gen_error *error);

/**
 * Goes on by bytes, which need not be whole characters nor tokens.
 *
 * @param bytes  [len]; len may be GEN_NUL_TERMINATED.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_GRAMMAR if the bytes cannot come here;
 *         GEN_ERROR_UNSUPPORTED, naming it, if to find that out takes more than a limit.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_accept_bytes(gen_grammar_matcher *matcher, const char *bytes, size_t len,
                                                    gen_error *error);

/**
 * Which tokens may come next: bit t % 32 of bits[t / 32] is set exactly if gen_grammar_matcher_accept_token would
 * take token t. That a token may come does not mean that the vocabulary has others to finish the text with.
 *
 * @param bits   [words] receives the mask; words that no token has are 0.
 * @param words  at least (V + 31) / 32 for a vocabulary of V tokens.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE for too few words;
 *         GEN_ERROR_GRAMMAR if it takes more than a limit.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_mask(gen_grammar_matcher *matcher, uint32_t *bits, size_t words,
                                            gen_error *error);

/**
 * Which bytes may come next: bit b % 32 of bits[b / 32] is set for byte b.
 *
 * @param bits  [8].
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_valid_bytes(const gen_grammar_matcher *matcher, uint32_t *bits,
                                                   gen_error *error);

/**
 * Takes back what the last `n` accepting calls took.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if there were fewer.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_rollback(gen_grammar_matcher *matcher, size_t n, gen_error *error);

/**
 * Makes another matcher in the same place, which can take back the calls of the first one, too. The two share
 * what they have read so far until one of them goes on.
 *
 * @param out  receives the matcher; free it with gen_grammar_matcher_free.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_fork(const gen_grammar_matcher *matcher, gen_grammar_matcher **out,
                                            gen_error *error);

/**
 * Back to the empty text.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_reset(gen_grammar_matcher *matcher, gen_error *error);

/**
 * Whether the text is a member: 0 if not yet, 1 if it is, 2 if it is and nothing can come behind it. 0 for NULL, and
 * while another thread uses the matcher.
 *
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API int32_t gen_grammar_matcher_complete(const gen_grammar_matcher *matcher);

/**
 * Tokens from here on, at most 1024, that can be taken without asking a model: each is the only one that may come. There
 * are none where the vocabulary spells the next byte in two ways, such as "." and "<0x2E>", as those of SentencePiece do
 * for every byte. With the grammar's option "forced_tokens" "tokenizer" they are the tokens that the tokenizer makes of the
 * bytes that must come, without the last ones where what comes later may join them.
 *
 * @param ids       [capacity] receives them, or NULL to ask their number.
 * @param n         receives their number; also when the buffer is too small.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL; GEN_ERROR_OUT_OF_RANGE if the buffer is too small;
 *         GEN_ERROR_GRAMMAR if it takes more than a limit.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_grammar_matcher_forced(gen_grammar_matcher *matcher, int32_t *ids, size_t capacity, size_t *n,
                                              gen_error *error);

/**
 * Fewest tokens until the text may end, one that ends it not counted: exact, or where that would take long to find
 * out, of the shortest text that ends it, if that has at most 128 KiB and takes no more work than a mask may.
 *
 * @param n  receives the number; -1 if no tokens of the vocabulary are known to end the text.
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
 * Has the texts of calls that use these settings be members of `grammar`; NULL for any text, which also takes a
 * matcher back. Where the model ends a text that is one, or no token can follow it, the call ends
 * (GEN_FINISH_STOP_TOKEN, GEN_FINISH_GRAMMAR_COMPLETE); what else ends it, its greatest length first of all, can leave
 * a text that is none yet ("grammar_complete" of gen_result_usage says so): with gen_sampling_set_fit_grammar, which is
 * on by default, only where no short enough one is known. Where no token of the vocabulary can come the call fails, with
 * the reason GEN_FINISH_GRAMMAR_DEAD_END, see gen_generate.
 *
 * @param grammar  shared, may be freed before the settings and the calls.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_grammar(gen_sampling *sampling, const gen_grammar *grammar, gen_error *error);

/**
 * The same, for texts that go on where a matcher stands now: each call from there. NULL for any text, which also
 * takes a grammar back. The matcher must be over the tokenizer of the model; the generating call
 * refuses another one.
 *
 * @param matcher  forked, so it may go on or be freed.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL; GEN_ERROR_OUT_OF_MEMORY.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_grammar_matcher(gen_sampling *sampling, const gen_grammar_matcher *matcher,
                                                    gen_error *error);

/**
 * With a non-zero `fit`, the default, a call under a grammar draws only tokens with which the text can still end within
 * max_new_tokens and the context, if a short enough way to its end is known where the call begins. A text that is a member at its last
 * token (of max_new_tokens, or of the context) has then been ended by its grammar: GEN_FINISH_GRAMMAR_COMPLETE, also
 * where the grammar alone would have let it go on. Without a grammar it does nothing.
 *
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT if sampling is NULL.
 * Threads: one at a time per object.
 * Since:   0.1
 */
GEN_API gen_status gen_sampling_set_fit_grammar(gen_sampling *sampling, int32_t fit, gen_error *error);

/**
 * Which strings of a list, a vocabulary of one's own, can come behind a text: bit i % 32 of bits[i / 32] is set
 * exactly if `text` followed by strings[i] can still become a member; never for an empty string. For a look at few
 * places: a matcher is far faster over many.
 *
 * @param text     [len] bytes, what has been said; len may be GEN_NUL_TERMINATED.
 * @param strings  [count] bytes of each string.
 * @param lengths  [count] their lengths; NULL if all are NUL-terminated.
 * @param bits     [words] receives the mask.
 * @param words    at least (count + 31) / 32.
 * @return GEN_OK; GEN_ERROR_INVALID_ARGUMENT for NULL, or a string above 32 KiB, naming it; GEN_ERROR_OUT_OF_RANGE
 *         for too few words; GEN_ERROR_GRAMMAR if the text itself cannot become a member, or a limit is passed;
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
