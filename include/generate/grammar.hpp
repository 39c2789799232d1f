// SPDX-License-Identifier: Apache-2.0
// Grammars, and positions in them. See generate.hpp.
#ifndef GENERATE_GRAMMAR_HPP
#define GENERATE_GRAMMAR_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model.hpp"

namespace gen {

/// How to make a grammar. set() takes the options that describe() lists.
class GrammarOptions : public detail::Handle<gen_grammar_options, gen_grammar_options_free> {
 public:
  GrammarOptions() : Handle(detail::made<gen_grammar_options>(gen_grammar_options_new)) {}
  /// Members are texts that contain a match of the regular expression; by default the whole text
  /// must match.
  GrammarOptions &regex_search(bool search = true) { return set("regex_match", search ? "search" : "whole"); }
  GrammarOptions &set(const std::string &key, const std::string &value) {
    detail::call(gen_grammar_options_set, get(), key.c_str(), value.c_str());
    return *this;
  }
  /// A document that "$ref" in schemas may point to.
  GrammarOptions &add_schema(const std::string &uri, std::string_view text) {
    detail::call(gen_grammar_options_add_schema, get(), uri.c_str(), detail::data(text), text.size());
    return *this;
  }
  /// Stops the compilation of grammars with these options; see gen_grammar_options_set_cancel.
  GrammarOptions &cancel(Cancel &cancel) {
    detail::call(gen_grammar_options_set_cancel, get(), cancel.get());
    return *this;
  }
  std::string describe() const { return detail::filled<std::string>(gen_grammar_options_describe, get()); }
};

/// A set of tokens, bytes or strings, by number.
struct Mask {
  std::vector<uint32_t> bits;  ///< number i is bit i % 32 of element i / 32
  bool has(size_t i) const noexcept { return i / 32 < bits.size() && (bits[i / 32] >> (i % 32) & 1U) != 0; }
};

/// The position of a text in a grammar, for programs that draw tokens themselves. A call that
/// throws changes nothing.
class GrammarMatcher : public detail::Handle<gen_grammar_matcher, gen_grammar_matcher_free> {
 public:
  GrammarMatcher(const gen_grammar *grammar, const TokenizerView &tokenizer)
      : Handle(detail::made<gen_grammar_matcher>(gen_grammar_matcher_new, grammar, tokenizer.get())),
        vocab_size_(tokenizer.vocab_size()) {}
  void accept_token(int32_t token) { detail::call(gen_grammar_matcher_accept_token, get(), token); }
  void accept_bytes(std::string_view bytes) {
    detail::call(gen_grammar_matcher_accept_bytes, get(), detail::data(bytes), bytes.size());
  }
  /// Which tokens may come next.
  Mask mask() {
    Mask out{std::vector<uint32_t>((static_cast<size_t>(vocab_size_) + 31) / 32)};
    fill(&out);
    return out;
  }
  /// The same, into an existing mask.
  void fill(Mask *mask) { detail::call(gen_grammar_matcher_mask, get(), mask->bits.data(), mask->bits.size()); }
  /// Which bytes may come next.
  Mask valid_bytes() const {
    Mask out{std::vector<uint32_t>(8)};
    detail::call(gen_grammar_matcher_valid_bytes, get(), out.bits.data());
    return out;
  }
  /// Undoes the last `n` accepting calls.
  void rollback(size_t n) { detail::call(gen_grammar_matcher_rollback, get(), n); }
  GrammarMatcher fork() const {
    return GrammarMatcher(detail::made<gen_grammar_matcher>(gen_grammar_matcher_fork, get()), vocab_size_);
  }
  void reset() { detail::call(gen_grammar_matcher_reset, get()); }
  /// Whether the text is a member, and whether it is one that nothing can follow.
  bool complete() const noexcept { return gen_grammar_matcher_complete(get()) > 0; }
  bool finished() const noexcept { return gen_grammar_matcher_complete(get()) > 1; }
  /// Tokens that can be taken without asking a model; see gen_grammar_matcher_forced and its option "forced_tokens".
  std::vector<int32_t> forced() { return detail::filled<std::vector<int32_t>>(gen_grammar_matcher_forced, get()); }
  /// Minimum number of tokens until the text may end; -1 if none are known to complete it. See
  /// gen_grammar_matcher_min_tokens.
  int64_t min_tokens() {
    int64_t n = 0;
    detail::call(gen_grammar_matcher_min_tokens, get(), &n);
    return n;
  }

 private:
  GrammarMatcher(gen_grammar_matcher *owned, int32_t vocab_size) : Handle(owned), vocab_size_(vocab_size) {}
  int32_t vocab_size_;
};

/// A language of allowed texts: Sampling().grammar(Grammar::gbnf("root ::= \"yes\" | \"no\"")).
class Grammar : public detail::Handle<gen_grammar, gen_grammar_free> {
 public:
  /// An error is GEN_ERROR_GRAMMAR and names line and column. Without options the defaults apply.
  static Grammar gbnf(std::string_view text) { return from(gen_grammar_from_gbnf, text, nullptr); }
  static Grammar gbnf(std::string_view text, const GrammarOptions &options) {
    return from(gen_grammar_from_gbnf, text, options.get());
  }
  /// A Lark file in llguidance's dialect: see gen_grammar_from_lark.
  static Grammar lark(std::string_view text) { return from(gen_grammar_from_lark, text, nullptr); }
  static Grammar lark(std::string_view text, const GrammarOptions &options) {
    return from(gen_grammar_from_lark, text, options.get());
  }
  /// A JavaScript regular expression, without slashes and flags.
  static Grammar regex(std::string_view pattern) { return from(gen_grammar_from_regex, pattern, nullptr); }
  static Grammar regex(std::string_view pattern, const GrammarOptions &options) {
    return from(gen_grammar_from_regex, pattern, options.get());
  }
  /// Free text with constrained sections, from a JSON object: see gen_grammar_from_tags.
  static Grammar tags(std::string_view text) { return from(gen_grammar_from_tags, text, nullptr); }
  static Grammar tags(std::string_view text, const GrammarOptions &options) {
    return from(gen_grammar_from_tags, text, options.get());
  }
  /// The JSON texts that are valid under a JSON Schema. A refused schema is GEN_ERROR_GRAMMAR and
  /// names the JSON pointer.
  static Grammar json_schema(std::string_view schema) { return from(gen_grammar_from_json_schema, schema, nullptr); }
  static Grammar json_schema(std::string_view schema, const GrammarOptions &options) {
    return from(gen_grammar_from_json_schema, schema, options.get());
  }
  static Grammar any_json() { return any_json(nullptr); }
  static Grammar any_json(const GrammarOptions &options) { return any_json(options.get()); }
  std::string describe() const { return detail::filled<std::string>(gen_grammar_describe, get()); }
  /// A matcher at the empty text; it keeps alive what it needs of the grammar and the tokenizer.
  GrammarMatcher matcher(const TokenizerView &tokenizer) const { return GrammarMatcher(get(), tokenizer); }
  /// Which of these strings, such as a vocabulary of your own, may follow a text. Meant for a few
  /// positions.
  Mask token_mask(std::string_view text, const std::vector<std::string> &strings) const {
    std::vector<const char *> each;
    std::vector<size_t> lengths;
    for (const std::string &string : strings) {
      each.push_back(string.data());
      lengths.push_back(string.size());
    }
    Mask out{std::vector<uint32_t>(strings.size() / 32 + 1)};  // one word more, so that the address
                                                               // is not null
    detail::call(gen_token_mask, get(), detail::data(text), text.size(), each.data(), lengths.data(), each.size(),
                 out.bits.data(), out.bits.size());
    return out;
  }

 private:
  explicit Grammar(gen_grammar *owned) : Handle(owned) {}
  template <class Maker>
  static Grammar from(Maker maker, std::string_view text, const gen_grammar_options *options) {
    return Grammar(detail::made<gen_grammar>(maker, detail::data(text), text.size(), options));
  }
  static Grammar any_json(const gen_grammar_options *options) {
    return Grammar(detail::made<gen_grammar>(gen_grammar_any_json, options));
  }
};

}  // namespace gen

#endif  // GENERATE_GRAMMAR_HPP
