// SPDX-License-Identifier: Apache-2.0
// See tags_text.h. The structure of the text is fixed, so it is read directly, without a tree.
#include "grammar/notation/tags_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "grammar/expression/dfa_builder.h"
#include "grammar/notation/gbnf.h"
#include "grammar/json/json.h"
#include "grammar/json/json_text.h"
#include "grammar/notation/lark.h"
#include "grammar/regex/regex.h"
#include "grammar/base/text_reader.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kMaxId = INT32_MAX;

class TagsReader : public TextReader {
 public:
  TagsReader(std::string_view text, Expressions& to, TagOptions& options,
             const SchemaOptions& schemas, SchemaReport* report)
      : TextReader(text), to_(to), options_(options), schemas_(schemas), report_(report) {}

  Result<std::vector<Tag>> run() {
    const size_t valid = utf8_valid_prefix(text_);
    if (valid != text_.size()) return error_at(text_, valid, "not UTF-8");
    space();
    GEN_TRY(object([&](const std::string& key, size_t at) { return whole_member(key, at); }));
    space();
    if (!done()) return fail("text behind the tags");
    GEN_TRY(read_schemas());
    return std::move(tags_);
  }

 private:
  struct Schema {
    size_t tag;
    size_t begin;  // of its text
    size_t end;
    bool watched = true;
    std::string unwatched = {};  // the reason, for messages
    bool among_others = false;   // other tags begin with the same text
  };

  Status whole_member(const std::string& key, size_t at) {
    if (key == "tags") return array([&] { return tag(); });
    if (key == "triggers") {
      return array([&]() -> Status {
        GEN_ASSIGN(options_.triggers.emplace_back(), string());
        return {};
      });
    }
    if (key == "at_least_one") return boolean(&options_.at_least_one);
    if (key == "stop_after_first") return boolean(&options_.stop_after_first);
    if (key == "free_text") return boolean(&options_.free_text);
    return unknown(key, at, "tags, triggers, at_least_one, stop_after_first, free_text");
  }

  Status tag() {
    const size_t begin = at_;
    Tag made;
    size_t contents = 0;
    any_json_.push_back(false);
    GEN_TRY(object([&](const std::string& key, size_t at) -> Status {
      if (key == "begin") return text(&made.begin);
      if (key == "end") return text(&made.end);
      if (key == "begin_token") return token(&made.begin_token);
      if (key == "end_token") return token(&made.end_token);
      ++contents;
      return content(key, at, &made.body);
    }));
    if (contents != 1) {
      return error_at(text_, begin,
                      contents == 0
                          ? "a tag without a content: gbnf, lark, regex, json_schema or any_json"
                          : "a tag with more than one content");
    }
    tags_.push_back(std::move(made));
    return {};
  }

  Status content(const std::string& key, size_t at, ExprId* body) {
    if (key == "any_json") {
      bool wanted = false;
      GEN_TRY(boolean(&wanted));
      if (!wanted) return error_at(text_, at, "any_json can only be true");
      *body = any_json_expression(to_, schemas_.style);
      any_json_.back() = true;
      return {};
    }
    const size_t begin = at_;
    if (key == "json_schema") {
      GEN_TRY(pass_value());
      contents_.push_back({tags_.size(), begin, at_});
      return {};
    }
    if (key != "gbnf" && key != "lark" && key != "regex") {
      return unknown(
          key, at, "begin, begin_token, gbnf, lark, regex, json_schema, any_json, end, end_token");
    }
    GEN_ASSIGN(const std::string source, string());
    auto parsed = key == "gbnf"   ? parse_gbnf(source, to_)
                  : key == "lark" ? parse_lark(source, to_, schemas_, report_)
                                  : parse_regex(source, RegexMatch::kWhole, to_, schemas_.automata);
    if (!parsed.ok() && parsed.status().code() == Code::kGrammar) {
      return error_at(text_, begin, "in this " + key + ", " + parsed.status().message());
    }
    GEN_ASSIGN(*body, std::move(parsed));
    return {};
  }

  // Whether one text may match both begins; `*same`: always both.
  static bool begin_alike(const Tag& a, const Tag& b, bool* same) {
    if (a.begin_token && b.begin_token) {
      *same = *a.begin_token == *b.begin_token;
      return *same || a.begin_token->name.empty() != b.begin_token->name.empty();
    }
    *same = a.begin == b.begin;
    return !a.begin.empty() && !b.begin.empty() &&
           (a.begin.starts_with(b.begin) || b.begin.starts_with(a.begin));
  }

  // Whether a tag begins with one of the bytes.
  [[nodiscard]] bool begins_with(const ByteSet& bytes) const {
    return std::any_of(tags_.begin(), tags_.end(), [&](const Tag& tag) {
      return !tag.begin.empty() && bytes.has(static_cast<uint8_t>(tag.begin[0]));
    });
  }

  // Whether a tag that has ended may also continue over the begin of another one, as ".*" does over
  // its end: that begin would start a tag in one parse of the text, and not in another.
  bool may_go_on(const Tag& tag, bool is_json) {
    if (tag.end_token) return false;
    if (is_json) {  // only a number or white space can continue
      ByteSet more;
      for (const char c : std::string_view("0123456789+-.eE \t\n\r")) {
        more.add(static_cast<uint8_t>(c));
      }
      return begins_with(more);
    }
    const ExprId parts[] = {tag.body, to_.literal(tag.end)};
    auto made = build_dfa(to_, to_.sequence(parts), schemas_.automata);
    if (!made.ok()) return true;  // unknown: assume so
    std::vector<bool> known(made->states.size(), false);
    std::vector<uint32_t> open;
    for (uint32_t s = 0; s < made->states.size(); ++s) {
      if (!made->states[s].final) continue;
      known[s] = true;
      open.push_back(s);
    }
    ByteSet more;
    while (!open.empty()) {
      const uint32_t s = open.back();
      open.pop_back();
      for (const ByteEdge& edge : made->states[s].edges) {
        more.add(ByteSet::range(edge.low, edge.high));
        if (known[edge.target]) continue;
        known[edge.target] = true;
        open.push_back(edge.target);
      }
    }
    return begins_with(more);
  }

  [[nodiscard]] std::string name_of(size_t tag) const {
    const Tag& one = tags_[tag];
    std::string begin = one.begin;
    if (one.begin_token) {
      begin = one.begin_token->name.empty() ? std::to_string(one.begin_token->id)
                                            : one.begin_token->name;
    }
    return "tag " + std::to_string(tag) + ", " + quoted(begin) + ",";
  }

  // A schema is watched (json_text.h) unless its text may also belong to another tag, which the
  // reader does not know.
  void choose_watched() {
    std::vector<Schema*> of_tag(tags_.size(), nullptr);
    for (Schema& one : contents_) of_tag[one.tag] = &one;
    for (size_t i = 0; i < tags_.size() && !contents_.empty(); ++i) {
      const bool is_json = of_tag[i] != nullptr || any_json_[i];
      if (!may_go_on(tags_[i], is_json)) continue;
      for (Schema& one : contents_) {
        one.watched = false;
        one.unwatched = "as " + name_of(i) + " may go on over the begin of another tag";
      }
      return;
    }
    bool changed = true;
    while (changed) {
      changed = false;
      for (Schema& one : contents_) {
        for (size_t other = 0; other < tags_.size() && one.watched; ++other) {
          bool same = false;
          if (other == one.tag || !begin_alike(tags_[one.tag], tags_[other], &same)) continue;
          one.watched = same && of_tag[other] != nullptr && of_tag[other]->watched;
          one.among_others |= same;
          if (one.watched) continue;
          one.unwatched = "as " + name_of(other) + " begins alike";
          changed = true;
        }
      }
    }
  }

  Status read_schemas() {
    choose_watched();
    for (const Schema& one : contents_) {
      SchemaOptions options = schemas_;
      options.watched = one.watched;
      options.unwatched = one.unwatched;
      options.among_others = one.among_others;
      const std::string_view text = text_.substr(one.begin, one.end - one.begin);
      auto made = schema_expression(text, options, to_, report_);
      if (!made.ok() && made.status().code() == Code::kGrammar) {
        return error_at(text_, one.begin,
                        std::string("in this json_schema, ") + made.status().message());
      }
      GEN_ASSIGN(const ExprId value, std::move(made));
      options_.watched |= one.watched;
      const ExprId mark = to_.repeat(to_.bytes(ByteSet::one(kBegins)), 0, 1);
      const ExprId parts[] = {one.watched ? mark : Expressions::kEmpty, value};
      tags_[one.tag].body = to_.sequence(parts);
    }
    return {};
  }

  Status unknown(const std::string& key, size_t at, const char* known) {
    return error_at(text_, at, "unknown key " + quoted(key) + "; there are " + known);
  }

  // Values. Each function starts at the value's first character and ends after its last one.

  // Calls `member` with each key and its position, with the reader at the value.
  template <typename F>
  Status object(F&& member) {
    if (!take("{")) return fail("expected an object");
    std::vector<std::string> keys;
    return list('}', [&]() -> Status {
      const size_t at = at_;
      GEN_ASSIGN(std::string key, string());
      for (const std::string& other : keys) {
        if (other == key) return error_at(text_, at, "key " + quoted(key) + " is there twice");
      }
      space();
      if (!take(":")) return fail("expected a colon");
      space();
      GEN_TRY(member(key, at));
      keys.push_back(std::move(key));  // all keys are known, so they are few
      return {};
    });
  }

  template <typename F>
  Status array(F&& item) {
    if (!take("[")) return fail("expected an array");
    return list(']', item);
  }

  template <typename F>
  Status list(char end, F&& item) {
    space();
    if (take({&end, 1})) return {};
    for (;;) {
      GEN_TRY(item());
      space();
      if (take({&end, 1})) return {};
      if (!take(",")) return fail(std::string("expected a comma or ") + end);
      space();
    }
  }

  Status boolean(bool* value) {
    *value = take("true");
    if (*value || take("false")) return {};
    return fail("expected true or false");
  }

  Status text(std::string* value) {
    GEN_ASSIGN(*value, string());
    return {};
  }

  Status token(std::optional<TokenTerm>* value) {
    TokenTerm term;
    if (peek() == '"') {
      const size_t begin = at_;
      GEN_ASSIGN(term.name, string());
      if (term.name.empty()) return error_at(text_, begin, "a token without a name");
    } else if (is_digit(peek())) {
      if (peek() == '0' && is_digit(peek(1))) return fail("a number that begins with 0");
      GEN_ASSIGN(const uint32_t id, number(kMaxId));
      term.id = static_cast<int32_t>(id);
    } else {
      return fail("expected the id or the text of a token");
    }
    *value = std::move(term);
    return {};
  }

  /// Skips a value of any kind, which another parser checks.
  Status pass_value() {
    const size_t begin = at_;
    size_t depth = 0;
    do {
      const char c = peek();
      if (c == '"') {
        GEN_TRY(string().status());
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') {
        if (depth == 0) break;
        --depth;
      }
      if (depth == 0 && c == ',') break;
      ++at_;
    } while (!done());
    if (at_ == begin) return fail("expected a value");
    return {};
  }

  Result<std::string> string() {
    if (!take("\"")) return fail("expected a string");
    std::string value;
    for (;;) {
      if (done()) return fail("a string without an end");
      const char c = peek();
      if (static_cast<unsigned char>(c) < 0x20) return fail("a control character in a string");
      ++at_;
      if (c == '"') return value;
      if (c != '\\') {
        value += c;
        continue;
      }
      GEN_TRY(escape(&value));
    }
  }

  Status escape(std::string* value) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
    const size_t which = done() ? std::string_view::npos : kLetters.find(peek());
    if (which != std::string_view::npos) {
      ++at_;
      *value += kMeaning[which];
      return {};
    }
    const size_t begin = at_;
    if (!take("u")) return fail("an escape that JSON has not");
    GEN_ASSIGN(uint32_t point, hexadecimal(4));
    if (point >= 0xD800 && point < 0xDC00 && take("\\u")) {
      GEN_ASSIGN(const uint32_t low, hexadecimal(4));
      if (low < 0xDC00 || low > 0xDFFF) return error_at(text_, begin, "half a surrogate pair");
      point = 0x10000 + ((point - 0xD800) << 10U) + (low - 0xDC00);
    }
    if (point >= 0xD800 && point <= 0xDFFF) {
      return error_at(text_, begin, "half a surrogate pair");
    }
    utf8_append(point, value);
    return {};
  }

  void space() noexcept {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }

  Expressions& to_;
  TagOptions& options_;
  const SchemaOptions& schemas_;
  SchemaReport* const report_;
  std::vector<Tag> tags_;
  std::vector<Schema> contents_;
  std::vector<bool> any_json_;  // by tag
};

}  // namespace

Result<std::vector<Tag>> parse_tags(std::string_view text, Expressions& to, TagOptions* options,
                                    const SchemaOptions& schemas, SchemaReport* report) {
  return TagsReader(text, to, *options, schemas, report).run();
}

}  // namespace gen::grammar
