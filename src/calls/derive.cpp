// SPDX-License-Identifier: Apache-2.0
// See derive.h. The words of the probes are searched in what the template wrote of them; what
// stands between them are the marks. Where a mark ends shows a second rendering in which something
// else follows: with two arguments, with two calls, with text instead of a call.
#include "calls/derive.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/derivation/probes.h"
#include "calls/derivation/texts.h"
#include "calls/text.h"

namespace gen::calls {
namespace derivation {
namespace {

constexpr size_t kMaxMark = 64;  // bytes

// Where a call is in a text. Arguments that are no JSON span from the key to the value.
struct Site {
  Span object;  // with name and arguments; if there is one
  Span name;
  Span arguments;
  Keys keys;
};

class Derivation {
 public:
  explicit Derivation(const Render& render) : probes_(render) {}

  std::shared_ptr<const CallFormat> run() {
    if (!probes_.begin()) return nullptr;
    // A mark that the prompt ends with may be the first one of calls.
    for (const bool with_last_word : {false, true}) {
      with_last_word_ = with_last_word;
      if (attempt()) return std::make_shared<const CallFormat>(format_);
    }
    return nullptr;
  }

 private:
  // --- probes ---

  std::optional<Written> answer(std::string_view text, std::string_view reasoning,
                                std::vector<chat::ToolCall> calls) const {
    return probes_.answer(text, reasoning, std::move(calls), with_last_word_);
  }

  bool reads_answer(const std::optional<Written>& written, std::string_view text,
                    std::string_view reasoning, const std::vector<chat::ToolCall>& calls) const {
    return reads(format_, probes_.tools(), written, text, reasoning, calls);
  }

  // --- what is around calls ---

  bool attempt() {
    format_ = {};
    format_.name = "derived";
    text_ = answer(kTextWord, {}, {});
    if (text_ && text_->text.find(kTextWord) == kNowhere) text_.reset();
    const auto one = answer({}, {}, one_call());
    if (!one) return false;
    find_reasoning();
    size_t lead = 0;  // of answers, before what differs between text and calls
    if (text_) {
      const std::string_view text = text_->text;
      lead = common_begin(text.substr(0, text.find(kTextWord)), one->text).size();
    }
    if (with_last_word_) lead = before_word(one->text, lead);
    const std::string call = one->text.substr(lead);
    two_.reset();
    if (const auto two = answer({}, {}, two_calls())) {
      if (two->text.find(kSecondName) != kNowhere && two->text.size() > lead) {
        two_ = two->text.substr(lead);
      }
    }
    format_.parallel = two_.has_value();
    return (by_json(call) || by_python(call) || by_dict(call) || by_tags(call)) && reads_back();
  }

  void find_reasoning() {
    for (const bool with_call : {false, true}) {
      const auto shown = answer(with_call ? std::string_view() : kTextWord, kThoughtWord,
                                with_call ? one_call() : std::vector<chat::ToolCall>());
      const size_t at = shown ? shown->text.find(kThoughtWord) : kNowhere;
      if (at == kNowhere) continue;
      // The mark that opens it may be the prompt's.
      const std::string before = shown->before + shown->text.substr(0, at);
      const size_t behind = at + kThoughtWord.size();
      const size_t close = shown->text.find_first_of(">]", behind);
      size_t open = before.find_last_of("<[");
      const std::string_view mark = mark_of(
          std::string_view(shown->text).substr(behind, std::min(close, kNowhere - 1) + 1 - behind));
      // What texts have before them, too, is not enough, unless it is reasoning that is empty.
      const std::string_view text = text_ ? std::string_view(text_->text) : std::string_view();
      const std::string_view lead = text.substr(0, text.find(kTextWord));
      while (open != kNowhere && open > 0 && lead.find(mark) == kNowhere &&
             lead.find(mark_of(std::string_view(before).substr(open))) != kNowhere) {
        open = before.find_last_of("<[", open - 1);
      }
      if (open == kNowhere || close == kNowhere || before.size() - open > kMaxMark) return;
      size_t end = close + 1;
      while (end < shown->text.size() && is_blank(shown->text[end])) ++end;
      format_.reasoning = {{before.substr(open), shown->text.substr(behind, end - behind)}};
      return;
    }
    if (mark_of(probes_.prompt()).ends_with("<think>") ||
        probes_.prompt().find("</think>") != kNowhere) {
      format_.reasoning = {{"<think>", "</think>"}};
    }
  }

  // --- shapes ---

  static std::optional<Site> json_site(std::string_view text, size_t from, std::string_view name,
                                       std::string_view key) {
    const size_t at = text.find("\"" + std::string(key) + "\"", from);
    if (at == kNowhere) return std::nullopt;
    const size_t bracket = text.substr(0, at).find_last_not_of(" \t\r\n");
    if (bracket == kNowhere || text[bracket] != '{') return std::nullopt;
    const auto arguments = json_at(text, bracket);
    if (!arguments) return std::nullopt;
    Site site;
    site.arguments = *arguments;
    for (size_t open = bracket; open > from;) {
      open = text.rfind('{', open - 1);
      if (open == kNowhere || open < from) break;
      const auto object = json_at(text, open);
      if (!object || object->end < arguments->end) continue;
      if (!read_keys(object->of(text), arguments->of(text), name, &site.keys)) break;
      site.object = *object;
      site.name.begin = text.find(name, open);
      return site;
    }
    site.name.begin = text.substr(0, bracket).rfind(name);
    if (site.name.begin == kNowhere || site.name.begin < from) return std::nullopt;
    site.name.end = site.name.begin + name.size();
    return site;
  }

  static bool read_keys(std::string_view object, std::string_view arguments, std::string_view name,
                        Keys* keys) {
    auto value = grammar::read_json(object);
    auto wanted = grammar::read_json(arguments);
    if (!value.ok() || !wanted.ok()) return false;
    keys->name = keys->arguments = keys->id = "";
    bool named = false;
    for (const auto& [key, member] : value->members) {
      if (member.is(grammar::JsonType::kString) && member.text == name) {
        keys->name = key;
        named = true;
      } else if (member.is(grammar::JsonType::kString) && member.text == kIdWord) {
        keys->id = key;
      } else if (grammar::json_equal(member, *wanted)) {
        keys->arguments = key;
      }
    }
    if (named) return !keys->arguments.empty();
    return value->members.size() == 1 && keys->arguments == name;
  }

  bool by_json(std::string_view call) {
    const auto site = json_site(call, 0, kFirstName, kKeyWord);
    if (!site) return false;
    std::optional<Site> second;
    if (two_) {
      const auto first = json_site(*two_, 0, kFirstName, kKeyWord);
      if (first) second = json_site(*two_, first->arguments.end, kSecondName, kOtherKeyWord);
      if (!second) return false;
      if (site->object.begin == kNowhere) {
        return marked(call, *site, Gap{first->arguments.end, second->name.begin});
      }
      return objects(call, *site, Gap{first->object.end, second->object.begin});
    }
    return site->object.begin == kNowhere ? marked(call, *site, {}) : objects(call, *site, {});
  }

  // Of two calls: from the end of the first one's arguments to the second one's name.
  struct Gap {
    size_t begin = kNowhere;
    size_t end = kNowhere;
  };

  bool objects(std::string_view call, const Site& site, Gap gap) {
    format_.call = {{Field::kObject}};
    format_.keys = site.keys;
    const std::string_view open = call.substr(0, site.object.begin);
    std::string_view close = without_tail(call.substr(site.object.end));
    if (gap.begin != kNowhere) {
      std::string_view between = std::string_view(*two_).substr(gap.begin, gap.end - gap.begin);
      const std::string_view lead = common_end(between, open);
      if (!is_blank_text(open) && mark_of(lead) == mark_of(open)) {
        between.remove_suffix(lead.size());
        close = common_begin(between, close);
        format_.after = between.substr(close.size());
      } else {
        format_.between = between;
        format_.several = is_blank_text(between);
      }
    }
    if (!is_blank_text(open)) {
      format_.section = {std::string(open), std::string(as_many_tags(open, close))};
    }
    return true;
  }

  // Without what follows a text, too.
  [[nodiscard]] std::string_view without_tail(std::string_view rest) const {
    if (!text_) return rest;
    const std::string_view text = text_->text;
    const std::string_view tail = text.substr(text.find(kTextWord) + kTextWord.size());
    rest.remove_suffix(common_end(rest, tail).size());
    return rest;
  }

  // A name between marks, and arguments in whatever syntax.
  bool marked(std::string_view call, const Site& site, Gap gap) {
    std::string before(call.substr(0, site.name.begin));
    std::string middle(call.substr(site.name.end, site.arguments.begin - site.name.end));
    std::string behind(without_tail(call.substr(site.arguments.end)));
    Field name = Field::kName;
    if (before.ends_with("functions.") && middle.starts_with(":0")) {
      before.resize(before.size() - 10);
      middle.erase(0, 2);
      name = Field::kIndexedName;
      format_.ids = IdForm::kIndexed;
    }
    std::string section_open;
    std::string section_close;
    if (gap.begin != kNowhere) {
      std::string_view between = std::string_view(*two_).substr(gap.begin, gap.end - gap.begin);
      if (name == Field::kIndexedName) between.remove_suffix(10);
      std::string end(common_begin(between, behind));
      // What stands before each tag is the next one's.
      const std::string& lead = format_.marks.lead;
      if (!lead.empty() && end.ends_with(lead)) end.resize(end.size() - lead.size());
      between.remove_prefix(end.size());
      const std::string begin(common_end(between, before));
      between.remove_suffix(begin.size());
      section_open = before.substr(0, before.size() - begin.size());
      section_close = behind.substr(end.size());
      before = begin;
      behind = end;
      // Some templates end a section only where it has several calls.
      const std::string_view last = without_tail(std::string_view(*two_).substr(gap.end));
      if (const size_t at = last.rfind(end); is_blank_text(section_close) && at != kNowhere) {
        section_close = last.substr(at + end.size());
      }
      if (is_blank_text(section_open)) {
        format_.after = between;
        // What only the template writes behind calls.
        if (!is_blank_text(section_close)) format_.wrappers.push_back({section_close, {}});
        section_close.clear();
      } else {
        format_.between = between;
        format_.several = is_blank_text(between);
      }
    }
    section_close = as_many_tags(section_open, section_close);
    if (is_blank_text(section_open)) split(&before, &behind, &section_open, &section_close);
    format_.section = {section_open, section_close};
    format_.call = {};
    if (!before.empty()) add_text(before);
    format_.call.push_back({name});
    add_text(middle);
    format_.call.push_back({Field::kArguments});
    if (!is_blank_text(behind)) add_text(behind);
    const bool has_begin = !is_blank_text(format_.section.open) || !is_blank_text(before);
    return has_begin && (format_.syntax == Syntax::kJson || format_.syntax == Syntax::kDict ||
                         format_.call.back().field == Field::kText);
  }

  // The beginning of what closes a section, with as many tags as its opening has: templates may
  // write more behind it.
  static std::string_view as_many_tags(std::string_view open, std::string_view close) {
    auto tags = std::count(open.begin(), open.end(), '>');
    if (tags == 0) return close;
    for (size_t at = 0; at < close.size(); ++at) {
      if (close[at] == '>' && --tags == 0) return close.substr(0, at + 1);
    }
    return close;
  }

  // Text of a call, in which its id may stand.
  void add_text(std::string_view text) {
    const size_t id = text.find(kIdWord);
    if (id == kNowhere) {
      format_.call.push_back({Field::kText, std::string(text)});
      return;
    }
    if (id > 0) format_.call.push_back({Field::kText, std::string(text.substr(0, id))});
    format_.call.push_back({Field::kId});
    add_text(text.substr(id + kIdWord.size()));
  }

  // A tag around a single call is a section of its own, so that layout between tags is free.
  static void split(std::string* before, std::string* behind, std::string* open,
                    std::string* close) {
    const std::string_view begin = *before;
    const size_t first = begin.find('<');
    const size_t tag = begin.find('>', first);
    const size_t last = behind->rfind('<');
    if (first == kNowhere || tag == kNowhere || last == kNowhere) return;
    size_t rest = tag + 1;
    while (rest < begin.size() && is_blank(begin[rest])) ++rest;
    if (rest >= begin.size() || begin[rest] != '<') return;
    if (is_blank_text(std::string_view(*behind).substr(0, last))) return;
    *open = begin.substr(0, rest);
    *close = behind->substr(last);
    before->erase(0, rest);
    behind->resize(last);
  }

  // Where the words of a call are that is no JSON.
  static std::optional<Site> raw_site(std::string_view text, size_t from, std::string_view name,
                                      std::string_view key, std::string_view value) {
    Site site;
    site.name.begin = text.find(name, from);
    if (site.name.begin == kNowhere) return std::nullopt;
    site.name.end = site.name.begin + name.size();
    site.arguments.begin = text.find(key, site.name.end);
    if (site.arguments.begin == kNowhere) return std::nullopt;
    site.arguments.end = text.find(value, site.arguments.begin);
    if (site.arguments.end == kNowhere) return std::nullopt;
    site.arguments.end += value.size();
    return site;
  }

  // The gap of two calls whose arguments end `more` bytes behind their value.
  bool raw_marked(std::string_view call, Site site, size_t before_key, size_t more) {
    Gap gap;
    if (two_) {
      const auto first = raw_site(*two_, 0, kFirstName, kKeyWord, kValueWord);
      if (!first) return false;
      const size_t second = two_->find(kSecondName, first->arguments.end);
      if (second == kNowhere) return false;
      gap = {std::min(first->arguments.end + more, second), second};
    }
    site.arguments.begin -= before_key;
    site.arguments.end += more;
    return site.arguments.end <= call.size() && marked(call, site, gap);
  }

  bool by_python(std::string_view call) {
    const auto site = raw_site(call, 0, kFirstName, kKeyWord, kValueWord);
    if (!site) return false;
    const std::string_view equals = site->arguments.of(call).substr(kKeyWord.size(), 2);
    const std::string_view rest = call.substr(site->arguments.end);
    const bool fits = call.substr(site->name.end, site->arguments.begin - site->name.end) == "(" &&
                      (equals == "=\"" || equals == "='") && rest.starts_with(equals[1]) &&
                      rest.substr(1).starts_with(')');
    if (!fits) return false;
    format_.syntax = Syntax::kPython;
    if (!raw_marked(call, *site, 0, 1)) return false;
    // Only the bracket ends the call; behind it is what ends the section.
    Part& end = format_.call.back();
    if (end.field != Field::kText || !end.text.starts_with(')')) return false;
    if (end.text.size() > 1) format_.section.close = end.text.substr(1) + format_.section.close;
    end.text = ")";
    if (format_.call.front().field == Field::kText) {
      format_.section.open += format_.call.front().text;
      format_.call.erase(format_.call.begin());
    }
    return !is_blank_text(format_.section.open);
  }

  bool by_dict(std::string_view call) {
    const auto site = raw_site(call, 0, kFirstName, kKeyWord, kValueWord);
    if (!site || site->arguments.begin == 0 || call[site->arguments.begin - 1] != '{') return false;
    const std::string_view inside = site->arguments.of(call).substr(kKeyWord.size());
    if (!inside.starts_with(':')) return false;
    const std::string_view quote = mark_of(inside.substr(1, inside.size() - 1 - kValueWord.size()));
    const std::string_view rest = call.substr(site->arguments.end);
    if (!rest.starts_with(quote) || !rest.substr(quote.size()).starts_with('}')) return false;
    format_.syntax = Syntax::kDict;
    format_.marks.quote = quote;
    return raw_marked(call, *site, 1, quote.size() + 1);
  }

  bool by_tags(std::string_view call) {
    const auto pair =
        answer({}, {}, with_arguments(R"({"zqkey": "zqvalue", "zqother": "zqsecond"})"));
    const auto site = raw_site(call, 0, kFirstName, kKeyWord, kValueWord);
    if (!pair || !site) return false;
    const auto first = raw_site(pair->text, 0, kFirstName, kKeyWord, kValueWord);
    if (!first) return false;
    const size_t second = pair->text.find(kOtherKeyWord, first->arguments.end);
    if (second == kNowhere) return false;
    const std::string_view middle = site->arguments.of(call)
                                        .substr(kKeyWord.size())
                                        .substr(0, site->arguments.end - site->arguments.begin -
                                                       kKeyWord.size() - kValueWord.size());
    const std::string_view behind = call.substr(site->arguments.end);
    const std::string closing = "</" + std::string(kKeyWord) + ">";
    if (middle == ">" && call.substr(0, site->arguments.begin).ends_with('<')) {
      const size_t at = behind.find(closing);
      if (at == kNowhere) return false;
      format_.syntax = Syntax::kNested;
      format_.marks.lead = behind.substr(0, at);
      const size_t before_key = format_.marks.lead.size() + 1;
      const std::string_view lead = call.substr(0, site->arguments.begin - 1);
      if (!lead.ends_with(format_.marks.lead)) return false;
      return raw_marked(call, *site, before_key, at + closing.size());
    }
    const std::string_view gap =
        std::string_view(pair->text).substr(first->arguments.end, second - first->arguments.end);
    const std::string_view close = common_begin(gap, behind);
    const std::string_view open = gap.substr(close.size());
    if (is_blank_text(close) || is_blank_text(open) || is_blank_text(middle)) return false;
    if (!call.substr(0, site->arguments.begin).ends_with(open)) return false;
    format_.syntax = Syntax::kTagged;
    format_.marks.open = open;
    format_.marks.middle = middle;
    format_.marks.close = close;
    for (const char* const value : {"41733", "true", "[41733]", "{\"zqsecond\": 41733}", "null"}) {
      add_middle(value);
    }
    return raw_marked(call, *site, open.size(), close.size());
  }

  // The mark before a value that is no string, if it is another one than before strings.
  void add_middle(std::string_view value) {
    const auto shown = answer({}, {}, with_arguments("{\"zqkey\": " + std::string(value) + "}"));
    if (!shown) return;
    const auto site = raw_site(shown->text, 0, kFirstName, kKeyWord, value);
    if (!site) return;
    std::string_view middle = site->arguments.of(shown->text).substr(kKeyWord.size());
    middle.remove_suffix(value.size());
    ArgumentMarks& marks = format_.marks;
    if (marks.text_middle.empty()) {
      if (middle == marks.middle) return;
      marks.text_middle = std::exchange(marks.middle, middle);
    } else if (middle != marks.middle) {
      marks.other_middles.emplace_back(middle);
    }
  }

  // --- the proof ---

  bool reads_back() {
    if (!reads_answer(text_, kTextWord, {}, {})) wrap_text();
    const auto both = answer(kTextWord, {}, one_call());
    const bool shows_both = both && both->text.find(kValueWord) != kNowhere;
    return reads_answer(text_, kTextWord, {}, {}) &&
           reads_answer(answer({}, {}, one_call()), {}, {}, one_call()) &&
           (!two_ || reads_answer(answer({}, {}, two_calls()), {}, {}, two_calls())) &&
           (!shows_both || reads_answer(both, kTextWord, {}, one_call())) &&
           reads_answer(answer({}, {}, with_types()), {}, {}, with_types()) &&
           reads_answer(answer({}, kThoughtWord, one_call()), {}, kThoughtWord, one_call());
  }

  // Marks around texts, which are none of a call.
  void wrap_text() {
    const std::string_view text = text_->text;
    const size_t at = text.find(kTextWord);
    const std::string_view before = text.substr(0, at);
    const std::string_view behind = text.substr(at + kTextWord.size());
    const size_t tag = behind.find_first_of(">]");
    const bool more = tag != kNowhere && !is_blank_text(behind.substr(tag + 1));
    format_.wrappers.push_back(
        {std::string(before), std::string(more ? behind.substr(0, tag + 1) : std::string_view())});
  }

  Probes probes_;
  bool with_last_word_ = false;
  std::optional<Written> text_;     // the answer that is a text
  std::optional<std::string> two_;  // with two calls, from the calls on
  CallFormat format_;
};

}  // namespace
}  // namespace derivation

std::shared_ptr<const CallFormat> derive_format(const Render& render) {
  return derivation::Derivation(render).run();
}

}  // namespace gen::calls
