// SPDX-License-Identifier: Apache-2.0
// grammar.h of the C API: grammars and matchers.
#include <generate/grammar.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/text/grammar_options.h"
#include "api/text/text_handles.h"
#include "api/text/grammar_handle.h"
#include "base/json_text.h"
#include "grammar/mask/vocabulary.h"

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::end_handle;
using gen::api::guard;
using gen::api::limits_of;
using gen::api::not_null;
using gen::api::schema_options_of;
using gen::api::usable;
using gen::api::with_matcher;
using gen::grammar::Grammar;
using gen::grammar::Matcher;
using gen::grammar::RegexMatch;
using gen::grammar::SchemaReport;
using gen::grammar::Vocabulary;

constexpr size_t kMaxForced = 1024;

/// The common part of the functions that make a grammar.
template <typename F>
gen_status made(const char* kind, const gen_grammar_options* options, gen_grammar** out,
                gen_error* error, F&& make) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(auto impl, make());
    const bool by_tokenizer = options != nullptr && options->forced_by_tokenizer;
    *out = new gen_grammar{std::move(impl), kind, {}, {}, by_tokenizer};
    return {};
  });
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) {
    if (list.size() > 1) list += ',';
    list += gen::json_quote(text);
  }
  return list + "]";
}

/// The same for schemas; the description lists what the grammar does not check.
template <typename F>
gen_status made_of_schemas(const char* kind, const gen_grammar_options* options, gen_grammar** out,
                           gen_error* error, F&& make) {
  std::string notes;
  const auto noting = [&]() -> Result<std::shared_ptr<const Grammar>> {
    SchemaReport report;
    GEN_ASSIGN(auto grammar, make(&report));
    notes = ",\"unknown_formats\":" + json_list(report.unknown_formats) +
            ",\"relaxed\":" + json_list(report.relaxed);
    return grammar;
  };
  const gen_status status = made(kind, options, out, error, noting);
  if (status == GEN_OK) (*out)->notes = std::move(notes);
  return status;
}

/// A limit that was exceeded leaves the answer open: it is a status of its own.
Result<bool> within_limits(Result<bool> taken) {
  if (taken.ok() || taken.status().code() != Code::kGrammar) return taken;
  return gen::error(Code::kUnsupported, "%s", taken.status().message());
}

/// The error for bytes that a matcher refused: names the first byte that is not allowed, and its
/// place.
Status refused(Matcher& matcher, std::string_view bytes, const char* why = "") {
  const gen::grammar::MatcherTry trial(matcher);
  size_t at = 0;
  for (; at < bytes.size(); ++at) {
    const Result<bool> taken = matcher.accept_bytes(bytes.substr(at, 1));
    if (!taken.ok() || !taken.value()) break;
  }
  if (at == bytes.size())
    return gen::error(Code::kGrammar, "%sthe bytes are not allowed here", why);
  const auto byte = static_cast<unsigned char>(bytes[at]);
  char name[8];
  std::snprintf(name, sizeof name, byte >= 0x20 && byte < 0x7F ? "'%c'" : "0x%02X", byte);
  return gen::error(Code::kGrammar, "%s%s is not allowed here, byte %zu of %zu", why, name, at,
                    bytes.size());
}

Status check_words(size_t words, size_t count, const char* what) {
  const size_t wanted = (count + 31) / 32;
  if (words >= wanted) return {};
  return gen::error(Code::kOutOfRange, "a mask of %zu %s needs %zu words, there are %zu", count,
                    what, wanted, words);
}

/// Writes the mask of a matcher over `count` tokens.
Status write_mask(const Matcher& matcher, size_t count, uint32_t* bits, size_t words) {
  std::vector<uint64_t> mask(matcher.grammar().vocabulary().words());
  GEN_TRY(matcher.mask(mask));
  const size_t wanted = (count + 31) / 32;
  for (size_t i = 0; i < words; ++i) {
    bits[i] = i < wanted ? static_cast<uint32_t>(mask[i / 2] >> (i % 2 * 32)) : 0;
  }
  return {};
}

Result<std::shared_ptr<const Vocabulary>> vocabulary_of(const char* const* strings,
                                                        const size_t* lengths, size_t count) {
  std::vector<gen::grammar::TokenText> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t length = lengths != nullptr ? lengths[i] : GEN_NUL_TERMINATED;
    GEN_ASSIGN(const auto text, gen::api::text_in(strings[i], length, "a string"));
    tokens[i].bytes = text;
  }
  return Vocabulary::create(std::move(tokens), {});
}

}  // namespace

gen_status gen_grammar_from_gbnf(const char* text, size_t len, const gen_grammar_options* options,
                                 gen_grammar** out, gen_error* error) {
  return made("gbnf", options, out, error, [&]() -> Result<std::shared_ptr<const Grammar>> {
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    return Grammar::from_gbnf(view, limits_of(options));
  });
}

gen_status gen_grammar_from_regex(const char* pattern, size_t len,
                                  const gen_grammar_options* options, gen_grammar** out,
                                  gen_error* error) {
  return made("regex", options, out, error, [&]() -> Result<std::shared_ptr<const Grammar>> {
    GEN_ASSIGN(const auto view, gen::api::text_in(pattern, len, "pattern"));
    const RegexMatch match = options != nullptr ? options->match : RegexMatch::kWhole;
    return Grammar::from_regex(view, match, limits_of(options));
  });
}

gen_status gen_grammar_any_json(const gen_grammar_options* options, gen_grammar** out,
                                gen_error* error) {
  return made("any_json", options, out, error, [&] {
    return Grammar::any_json(limits_of(options), gen::api::json_style_of(options));
  });
}

gen_status gen_grammar_from_tags(const char* text, size_t len, const gen_grammar_options* options,
                                 gen_grammar** out, gen_error* error) {
  return made_of_schemas("tags", options, out, error,
                         [&](SchemaReport* report) -> Result<std::shared_ptr<const Grammar>> {
                           GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
                           return Grammar::from_tags(view, limits_of(options),
                                                     schema_options_of(options), report);
                         });
}

gen_status gen_grammar_from_lark(const char* text, size_t len, const gen_grammar_options* options,
                                 gen_grammar** out, gen_error* error) {
  return made_of_schemas("lark", options, out, error,
                         [&](SchemaReport* report) -> Result<std::shared_ptr<const Grammar>> {
                           GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
                           return Grammar::from_lark(view, limits_of(options),
                                                     schema_options_of(options), report);
                         });
}

gen_status gen_grammar_from_json_schema(const char* schema, size_t len,
                                        const gen_grammar_options* options, gen_grammar** out,
                                        gen_error* error) {
  return made_of_schemas("json_schema", options, out, error,
                         [&](SchemaReport* report) -> Result<std::shared_ptr<const Grammar>> {
                           GEN_ASSIGN(const auto view, gen::api::text_in(schema, len, "schema"));
                           return Grammar::from_json_schema(view, schema_options_of(options),
                                                            limits_of(options), report);
                         });
}

gen_status gen_grammar_describe(const gen_grammar* grammar, char* buf, size_t capacity, size_t* n,
                                gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(grammar, "grammar"));
    const gen::grammar::Machines& machines = grammar->impl->machines();
    return gen::api::text_out(std::string("{\"kind\":\"") + grammar->kind +
                                  "\",\"states\":" + std::to_string(machines.states.size() - 1) +
                                  ",\"bytes\":" + std::to_string(machines.memory()) +
                                  grammar->notes + "}",
                              buf, capacity, n);
  });
}

void gen_grammar_free(gen_grammar* grammar) { end_handle(grammar); }

gen_status gen_grammar_matcher_new(const gen_grammar* grammar, const gen_tokenizer* tokenizer,
                                   gen_grammar_matcher** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(grammar, "grammar"));
    GEN_TRY(not_null(tokenizer, "tokenizer"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const auto vocabulary, Vocabulary::of(*tokenizer->impl));
    GEN_ASSIGN(auto over, grammar->impl->over(vocabulary));
    GEN_ASSIGN(Matcher matcher, Matcher::create(std::move(over)));
    *out = new gen_grammar_matcher(std::move(matcher),
                                   grammar->forced_by_tokenizer ? tokenizer->impl : nullptr);
    return {};
  });
}

gen_status gen_grammar_matcher_accept_token(gen_grammar_matcher* matcher, int32_t token,
                                            gen_error* error) {
  return guard(error, [&] {
    return with_matcher(matcher, [&](Matcher& impl) -> Status {
      GEN_ASSIGN(const bool taken, within_limits(impl.accept_token(token)));
      return taken ? Status() : gen::error(Code::kGrammar, "token %d is not allowed here", token);
    });
  });
}

gen_status gen_grammar_matcher_accept_bytes(gen_grammar_matcher* matcher, const char* bytes,
                                            size_t len, gen_error* error) {
  return guard(error, [&] {
    return with_matcher(matcher, [&](Matcher& impl) -> Status {
      GEN_ASSIGN(const auto view, gen::api::text_in(bytes, len, "bytes"));
      GEN_ASSIGN(const bool taken, within_limits(impl.accept_bytes(view)));
      return taken ? Status() : refused(impl, view);
    });
  });
}

gen_status gen_grammar_matcher_mask(gen_grammar_matcher* matcher, uint32_t* bits, size_t words,
                                    gen_error* error) {
  return guard(error, [&] {
    return with_matcher(matcher, [&](const Matcher& impl) -> Status {
      GEN_TRY(not_null(bits, "bits"));
      const auto count = static_cast<size_t>(impl.grammar().vocabulary().size());
      GEN_TRY(check_words(words, count, "tokens"));
      return write_mask(impl, count, bits, words);
    });
  });
}

gen_status gen_grammar_matcher_valid_bytes(const gen_grammar_matcher* matcher, uint32_t* bits,
                                           gen_error* error) {
  return guard(error, [&] {
    return with_matcher(matcher, [&](const Matcher& impl) -> Status {
      GEN_TRY(not_null(bits, "bits"));
      const gen::grammar::ByteSet set = impl.valid_bytes();
      for (size_t i = 0; i < 8; ++i) {
        bits[i] = static_cast<uint32_t>(set.words[i / 2] >> (i % 2 * 32));
      }
      return {};
    });
  });
}

gen_status gen_grammar_matcher_rollback(gen_grammar_matcher* matcher, size_t n, gen_error* error) {
  return guard(error, [&] {
    return with_matcher(matcher, [&](Matcher& impl) -> Status { return impl.rollback(n); });
  });
}

gen_status gen_grammar_matcher_fork(const gen_grammar_matcher* matcher, gen_grammar_matcher** out,
                                    gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&] {
    return with_matcher(matcher, [&](const Matcher& impl) -> Status {
      GEN_TRY(not_null(out, "out"));
      *out = new gen_grammar_matcher(impl.fork(), matcher->speller);
      return {};
    });
  });
}

gen_status gen_grammar_matcher_reset(gen_grammar_matcher* matcher, gen_error* error) {
  return guard(error, [&] {
    return with_matcher(matcher, [&](Matcher& impl) -> Status {
      impl.reset();
      return {};
    });
  });
}

int32_t gen_grammar_matcher_complete(const gen_grammar_matcher* matcher) {
  if (!usable(matcher)) return 0;
  int32_t complete = 0;
  static_cast<void>(with_matcher(matcher, [&](const Matcher& impl) -> Status {
    complete = impl.is_finished() ? 2 : impl.is_complete() ? 1 : 0;
    return {};
  }));
  return complete;
}

gen_status gen_grammar_matcher_forced(gen_grammar_matcher* matcher, int32_t* ids, size_t capacity,
                                      size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&] {
    return with_matcher(matcher, [&](Matcher& impl) -> Status {
      GEN_TRY(not_null(n, "n"));
      std::vector<int32_t> tokens;
      if (matcher->speller != nullptr) {
        // A token has at least one byte, so there are at most kMaxForced.
        GEN_ASSIGN(tokens,
                   impl.forced_tokens(*matcher->speller, gen::tokenizer::kInText, kMaxForced));
      }
      // A token that the grammar asks for by name has no bytes.
      if (tokens.empty()) {
        GEN_ASSIGN(tokens, impl.forced_tokens(kMaxForced));
      }
      return gen::api::array_out<int32_t>(tokens, ids, capacity, n, "ids");
    });
  });
}

gen_status gen_grammar_matcher_min_tokens(gen_grammar_matcher* matcher, int64_t* n,
                                          gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&] {
    return with_matcher(matcher, [&](Matcher& impl) -> Status {
      GEN_TRY(not_null(n, "n"));
      const uint64_t tokens = impl.min_tokens().tokens;
      *n = tokens == gen::grammar::kNoWay ? -1 : static_cast<int64_t>(tokens);
      return {};
    });
  });
}

void gen_grammar_matcher_free(gen_grammar_matcher* matcher) {
  if (usable(matcher) && matcher->in_use.retire()) end_handle(matcher);
}

gen_status gen_token_mask(const gen_grammar* grammar, const char* text, size_t len,
                          const char* const* strings, const size_t* lengths, size_t count,
                          uint32_t* bits, size_t words, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(grammar, "grammar"));
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    if (count > 0) GEN_TRY(not_null(static_cast<const void*>(strings), "strings"));
    GEN_TRY(not_null(bits, "bits"));
    GEN_TRY(check_words(words, count, "strings"));
    GEN_ASSIGN(const auto vocabulary, vocabulary_of(strings, lengths, count));
    GEN_ASSIGN(auto over, grammar->impl->once_over(vocabulary));
    GEN_ASSIGN(Matcher matcher, Matcher::create(std::move(over)));
    GEN_ASSIGN(const bool taken, matcher.accept_bytes(view));
    if (!taken) return refused(matcher, view, "the text cannot become a member: ");
    return write_mask(matcher, count, bits, words);
  });
}
