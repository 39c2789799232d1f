// SPDX-License-Identifier: Apache-2.0
// The parser of Lark files, see lark_file.h. Open groups are on an explicit stack.
#include <algorithm>
#include <string>
#include <utility>

#include "grammar/notation/lark_common.h"
#include "grammar/notation/lark_file.h"
#include "grammar/schema/json_value.h"
#include "grammar/base/text_error.h"
#include "grammar/base/text_reader.h"

namespace gen::grammar {
namespace {

constexpr size_t kMaxNested = 8;

using Node = LarkNode;
using NodeKind = LarkNode::Kind;

struct OpenGroup {
  char sign = 0;  // ( or [; none for the whole body
  uint32_t place = 0;
  bool in_terminal = false;
  bool negated = false;  // after a ~
  std::vector<uint32_t> choices;
  std::vector<uint32_t> both;
  std::vector<uint32_t> sequence;
};

class Parser {
 public:
  Parser(std::string_view text, const std::vector<LarkPlace>& places)
      : text_(text), places_(places) {}

  Result<std::unique_ptr<LarkFile>> file(size_t depth) {
    auto made = std::make_unique<LarkFile>();
    LarkFile* const outer = std::exchange(out_, made.get());
    depth_ = depth;
    for (;;) {
      while (word() == LarkWord::kNewline) ++at_;
      if (word() == LarkWord::kTextEnd || (depth > 0 && is("}"))) break;
      GEN_TRY(item());
    }
    made->end_place = at_;
    out_ = outer;
    return made;
  }

 private:
  [[nodiscard]] LarkWord word(uint32_t ahead = 0) const {
    return places_[std::min<size_t>(at_ + size_t{ahead}, places_.size() - 1)].word;
  }
  [[nodiscard]] std::string_view spelled(uint32_t place) const {
    return text_.substr(places_[place].begin, places_[place].end - places_[place].begin);
  }
  [[nodiscard]] bool is(std::string_view sign) const {
    return word() == LarkWord::kSign && spelled(at_) == sign;
  }
  bool take(std::string_view sign) {
    if (!is(sign)) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] Status fail(uint32_t place, const std::string& message) const {
    return error_at(text_, places_[place].begin, message);
  }
  [[nodiscard]] Status expected(const std::string& what) const {
    const bool end = word() == LarkWord::kTextEnd;
    const bool text = !end && spelled(at_).starts_with('"');  // a string that contains quotes
    const std::string found = word() == LarkWord::kNewline ? "the end of the line"
                              : end                        ? "the end"
                              : text                       ? "the text " + std::string(spelled(at_))
                                                           : quoted(spelled(at_));
    return fail(at_, "expected " + what + ", there is " + found);
  }

  Status item() {
    while (is("!") || is("?")) ++at_;
    if (word() == LarkWord::kRule || word() == LarkWord::kTerminal) return definition();
    if (word() != LarkWord::kKeyword) return expected("a rule, a terminal or a statement");
    const uint32_t place = at_++;
    const std::string_view name = spelled(place);
    if (name == "%ignore") {
      LarkBody body;
      GEN_TRY(alternatives(true, &body));
      out_->ignored.push_back(body);
      return end_of_line();
    }
    if (name == "%import") return import();
    if (name == "%llguidance") return options(place);
    if (name == "%declare" || name == "%override" || name == "%extend") {
      return fail(place, std::string(name) + " is not supported");
    }
    return fail(place, "no statement " + quoted(name));
  }

  Status end_of_line() {
    if (word() == LarkWord::kNewline || word() == LarkWord::kTextEnd) return {};
    if (depth_ > 0 && is("}")) return {};
    return expected("the end of the line");
  }

  Status definition() {
    LarkDefinition made;
    made.place = at_;
    made.name = spelled(at_);
    made.terminal = word() == LarkWord::kTerminal;
    made.body.begin = static_cast<uint32_t>(out_->nodes.size());
    ++at_;
    if (is("::")) return fail(at_, "rules with a parameter are not supported");
    if (is("{")) return fail(at_, "templates are not supported");
    if (take(".")) {
      if (word() != LarkWord::kNumber) return expected("a priority");
      ++at_;  // priorities have no effect: all parses are followed
    }
    if (is("[")) {
      if (made.terminal) return fail(at_, "a terminal has no attributes, only a rule has");
      GEN_TRY(attributes(&made));
    }
    if (!take(":")) return expected("a colon behind " + quoted(made.name));
    const uint32_t begin = made.body.begin;
    GEN_TRY(
        alternatives(made.terminal || made.lazy || made.has_suffix || made.has_stop, &made.body));
    made.body.begin = begin;
    out_->definitions.push_back(made);
    return end_of_line();
  }

  Status attributes(LarkDefinition* made) {
    ++at_;
    while (!take("]")) {
      const uint32_t place = at_;
      if (word() != LarkWord::kRule) return expected("the name of an attribute");
      const std::string_view name = spelled(at_++);
      if (name == "lazy") {
        made->lazy = true;
      } else if (name == "capture" || name == "stop_capture") {
        if (take("=") && word() != LarkWord::kString) return expected("a name in quotes");
        if (word() == LarkWord::kString) ++at_;  // an alias has no effect on texts
      } else if (name == "suffix" || name == "stop") {
        if (made->has_suffix || made->has_stop) return fail(place, "one of stop and suffix, once");
        if (!take("=")) return expected("=");
        (name == "stop" ? made->has_stop : made->has_suffix) = true;
        GEN_ASSIGN((name == "stop" ? made->stop : made->suffix), leaf(true));
      } else if (name == "max_tokens" || name == "temperature") {
        return fail(place, "the attribute " + std::string(name) + " is not supported");
      } else {
        return fail(place, "no attribute " + quoted(name) +
                               "; there are lazy, suffix, stop, capture, stop_capture");
      }
      if (!is("]") && !take(",")) return expected("a comma or ]");
    }
    return {};
  }

  Status import() {
    const uint32_t place = at_;
    if (word() != LarkWord::kRule || spelled(at_) != "common") {
      return fail(place, "only the terminals of common can be imported");
    }
    ++at_;
    take(".");
    if (take("(")) {
      do {
        GEN_TRY(import_one());
      } while (take(","));
      if (!take(")")) return expected("a comma or )");
      return end_of_line();
    }
    GEN_TRY(import_one());
    return end_of_line();
  }

  Status import_one() {
    const uint32_t place = at_;
    if (word() != LarkWord::kTerminal) return expected("the name of a terminal");
    const auto known = lark_common(spelled(at_++));
    if (!known) return fail(place, "common has no terminal " + quoted(spelled(place)));
    LarkDefinition made;
    made.place = place;
    made.terminal = true;
    made.name = spelled(place);
    if (take("->")) {
      if (word() != LarkWord::kTerminal) return expected("the name of a terminal");
      made.name = spelled(at_++);
    }
    Node node;
    node.kind = NodeKind::kCommon;
    node.in_terminal = true;
    node.place = place;
    node.min = static_cast<uint32_t>(*known);
    made.body.whole = made.body.begin = add(node);
    made.body.end = made.body.begin + 1;
    out_->definitions.push_back(made);
    return {};
  }

  Status options(uint32_t place) {
    const LarkPlace& word = places_[place];
    const auto value = read_json(text_.substr(word.end, word.next - word.end));
    if (!value.ok()) return inside(place, value.status());
    if (!value.value().is(JsonType::kObject)) return fail(place, "the options are no object");
    for (const auto& [key, chosen] : value.value().members) {
      if (!chosen.is_boolean()) return fail(place, "the option " + quoted(key) + " is no boolean");
      const bool on = chosen.is(JsonType::kTrue);
      if (key == "allow_initial_skip") {
        out_->ignore_at_start = on;
      } else if (key == "ignore_once") {
        out_->ignore_once = on;
      } else if (key == "allow_invalid_utf8") {
        if (on) return fail(place, "the option allow_invalid_utf8 is not supported");
      } else if (key != "no_forcing") {  // forcing is up to the caller that draws tokens
        return fail(place, "no option " + quoted(key) +
                               "; there are allow_initial_skip, ignore_once, no_forcing");
      }
    }
    return end_of_line();
  }

  [[nodiscard]] Status inside(uint32_t place, const Status& status) const {
    if (status.code() != Code::kGrammar) return status;
    return fail(place, "in this " + std::string(spelled(place)) + ", " + status.message());
  }

  uint32_t add(const Node& node) {
    out_->nodes.push_back(node);
    return static_cast<uint32_t>(out_->nodes.size() - 1);
  }

  // A node for operands; a single operand stays as it is.
  uint32_t add(NodeKind kind, const std::vector<uint32_t>& parts, const OpenGroup& group) {
    if (parts.size() == 1) return parts[0];
    Node node;
    node.kind = kind;
    node.in_terminal = group.in_terminal;
    node.place = group.place;
    node.first = static_cast<uint32_t>(out_->parts.size());
    node.count = static_cast<uint32_t>(parts.size());
    out_->parts.insert(out_->parts.end(), parts.begin(), parts.end());
    return add(node);
  }

  uint32_t add_over(NodeKind kind, uint32_t part, bool in_terminal, uint32_t place) {
    Node node;
    node.kind = kind;
    node.in_terminal = in_terminal;
    node.place = place;
    node.first = static_cast<uint32_t>(out_->parts.size());
    node.count = 1;
    out_->parts.push_back(part);
    return add(node);
  }

  void end_both(OpenGroup* group) {
    group->both.push_back(add(NodeKind::kSequence, group->sequence, *group));
    group->sequence.clear();
  }
  void end_choice(OpenGroup* group) {
    end_both(group);
    group->choices.push_back(add(NodeKind::kBoth, group->both, *group));
    group->both.clear();
  }

  // Up to the end of the line, or to the } of a nested file.
  Status alternatives(bool in_terminal, LarkBody* body) {
    body->begin = static_cast<uint32_t>(out_->nodes.size());
    std::vector<OpenGroup> open(1);
    open[0].place = at_;
    open[0].in_terminal = in_terminal;
    for (;;) {
      OpenGroup& group = open.back();
      const bool whole = open.size() == 1;
      if (word() == LarkWord::kNewline) {
        const bool goes_on = word(1) == LarkWord::kSign && spelled(at_ + 1) == "|";
        if (whole && !goes_on) break;
        ++at_;
      } else if (word() == LarkWord::kTextEnd || (is("}") && whole)) {
        if (!whole) {
          return fail(group.place, group.sign == '(' ? "( without )" : "[ without ]");
        }
        break;
      } else if (take("|")) {
        end_choice(&group);
      } else if (is("&")) {
        if (!group.in_terminal) return fail(at_, "& can only stand in a terminal, in upper case");
        ++at_;
        end_both(&group);
      } else if (take("->")) {
        if (word() != LarkWord::kRule && word() != LarkWord::kTerminal) {
          return expected("the name of an alternative");
        }
        ++at_;
      } else if (is(")") || is("]")) {
        const char sign = is(")") ? '(' : '[';
        if (whole || group.sign != sign)
          return fail(at_, sign == '(' ? ") without (" : "] without [");
        ++at_;
        GEN_TRY(close(&open));
      } else {
        GEN_TRY(part(&open));
      }
    }
    end_choice(&open[0]);
    body->whole = add(NodeKind::kChoice, open[0].choices, open[0]);
    body->end = static_cast<uint32_t>(out_->nodes.size());
    return {};
  }

  Status close(std::vector<OpenGroup>* open) {
    OpenGroup group = std::move(open->back());
    open->pop_back();
    end_choice(&group);
    uint32_t node = add(NodeKind::kChoice, group.choices, group);
    if (group.sign == '[') {
      node = add_over(NodeKind::kRepeat, node, group.in_terminal, group.place);
      out_->nodes[node].max = 1;
    }
    return push(node, group.negated, group.place, &open->back());
  }

  // An optional ~ and its operand: the begin of a group, or a leaf.
  Status part(std::vector<OpenGroup>* open) {
    const uint32_t place = at_;
    const bool negated = take("~");
    const bool in_terminal = open->back().in_terminal || negated;
    if (is("(") || is("[")) {
      OpenGroup group;
      group.sign = is("(") ? '(' : '[';
      group.place = at_++;
      group.in_terminal = in_terminal;
      group.negated = negated;
      open->push_back(std::move(group));
      return {};
    }
    GEN_ASSIGN(const uint32_t node, leaf(in_terminal));
    return push(node, negated, place, &open->back());
  }

  // Adds a node with its repetition operator.
  Status push(uint32_t node, bool negated, uint32_t place, OpenGroup* to) {
    if (negated) node = add_over(NodeKind::kNot, node, to->in_terminal, place);
    for (;;) {
      uint32_t min = 0;
      uint32_t max = UINT32_MAX;
      const uint32_t begin = at_;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (is("~") && word(1) == LarkWord::kNumber) {
        ++at_;
        GEN_TRY(count(&min));
        max = min;
        if (take("..")) GEN_TRY(count(&max));
      } else if (is("{")) {
        GEN_TRY(counts(&min, &max));
      } else {
        break;
      }
      if (max < min) return fail(begin, "most repetitions below the fewest");
      node = add_over(NodeKind::kRepeat, node, to->in_terminal, begin);
      out_->nodes[node].min = min;
      out_->nodes[node].max = max;
    }
    to->sequence.push_back(node);
    return {};
  }

  Status counts(uint32_t* min, uint32_t* max) {
    ++at_;
    if (word() != LarkWord::kNumber && !is(",")) {
      return fail(at_ - 1,
                  "templates are not supported, and a repetition is {m}, {m,}, {,n} or {m,n}");
    }
    if (!is(",")) GEN_TRY(count(min));
    *max = *min;
    if (take(",")) {
      *max = UINT32_MAX;
      if (!is("}")) GEN_TRY(count(max));
    }
    if (!take("}")) return expected("}");
    return {};
  }

  Status count(uint32_t* value) {
    if (word() != LarkWord::kNumber) return expected("a number");
    uint64_t number = 0;
    for (const char c : spelled(at_)) {
      if (!is_digit(c)) return fail(at_, "no number of repetitions");
      number = number * 10 + static_cast<uint64_t>(c - '0');
      if (number > kMaxRepetitions) {
        return fail(at_, "number above " + std::to_string(kMaxRepetitions));
      }
    }
    *value = static_cast<uint32_t>(number);
    ++at_;
    return {};
  }

  Result<uint32_t> leaf(bool in_terminal) {
    Node node;
    node.in_terminal = in_terminal;
    node.place = at_;
    switch (word()) {
      case LarkWord::kString:
        node.kind = NodeKind::kString;
        ++at_;
        if (take("..")) {
          if (word() != LarkWord::kString) return expected("the end of the range");
          node.kind = NodeKind::kRange;
          node.min = at_++;
        }
        return add(node);
      case LarkWord::kRegex:
        node.kind = NodeKind::kRegex;
        ++at_;
        return add(node);
      case LarkWord::kRule:
      case LarkWord::kTerminal:
        node.kind = NodeKind::kName;
        ++at_;
        if (is("::")) return fail(at_, "rules with a parameter are not supported");
        return add(node);
      case LarkWord::kToken:
        if (in_terminal) return fail(at_, "a token cannot stand in a terminal");
        node.kind = NodeKind::kToken;
        ++at_;
        return add(node);
      case LarkWord::kGrammar:
        return fail(at_, "references to other grammars are not supported");
      case LarkWord::kKeyword:
        return keyword(node);
      default:
        return expected("a rule, a terminal, a text, a regular expression or a token");
    }
  }

  Result<uint32_t> keyword(Node node) {
    const std::string_view name = spelled(at_);
    if (name == "%regex") {
      node.kind = NodeKind::kSubstring;
    } else if (name == "%json" || name == "%lark") {
      if (node.in_terminal) return fail(at_, std::string(name) + " cannot stand in a terminal");
      node.kind = name == "%json" ? NodeKind::kJson : NodeKind::kNested;
    } else {
      return fail(at_, quoted(name) + " cannot stand here");
    }
    ++at_;
    if (node.kind != NodeKind::kNested) return add(node);
    if (!take("{")) return expected("{");
    const size_t depth = depth_;
    if (depth >= kMaxNested) {
      return fail(node.place, "more than " + std::to_string(kMaxNested) + " %lark in each other");
    }
    GEN_ASSIGN(auto nested, file(depth + 1));
    depth_ = depth;
    if (!take("}")) return fail(node.place, "%lark without its }");
    node.min = static_cast<uint32_t>(out_->nested.size());
    out_->nested.push_back(std::move(nested));
    return add(node);
  }

  std::string_view text_;
  const std::vector<LarkPlace>& places_;
  LarkFile* out_ = nullptr;
  uint32_t at_ = 0;
  size_t depth_ = 0;
};

}  // namespace

Result<std::unique_ptr<LarkFile>> parse_lark_file(std::string_view text,
                                                  const std::vector<LarkPlace>& places) {
  return Parser(text, places).file(0);
}

}  // namespace gen::grammar
