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

#include "calls/arguments/json_scanner.h"
#include "calls/call_parser.h"
#include "calls/tool.h"

namespace gen::calls {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

constexpr size_t kMaxMark = 64;  // bytes

constexpr std::string_view kQuestionWord = "zqquestion";
constexpr std::string_view kTextWord = "zqtext";
constexpr std::string_view kThoughtWord = "zqthought";
constexpr std::string_view kIdWord = "zqid11111";
constexpr std::string_view kKeyWord = "zqkey";
constexpr std::string_view kValueWord = "zqvalue";
constexpr std::string_view kOtherKeyWord = "zqother";
constexpr std::string_view kOtherValueWord = "zqsecond";
constexpr std::string_view kNumberWord = "41733";

std::vector<chat::ToolCall> one_call() {
  return {{std::string(kIdWord), "zqalpha", R"({"zqkey": "zqvalue"})"}};
}
std::vector<chat::ToolCall> two_calls() {
  return {one_call()[0], {"zqid22222", "zqbeta", R"({"zqother": "zqsecond"})"}};
}
std::vector<chat::ToolCall> with_arguments(std::string arguments) {
  return {{std::string(kIdWord), "zqalpha", std::move(arguments)}};
}

bool is_layout(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_blank_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_layout);
}

std::string_view without_layout(std::string_view text) {
  while (!text.empty() && is_layout(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_layout(text.back())) text.remove_suffix(1);
  return text;
}

// The most of a text's first n bytes that does not end inside a tag.
size_t before_tag(std::string_view text, size_t n) {
  const size_t tag = text.substr(0, n).find_last_of("<>");
  return n < text.size() && tag != kNowhere && text[tag] == '<' ? tag : n;
}

// What both begin with, whole tags only.
std::string_view common_begin(std::string_view a, std::string_view b) {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto n = static_cast<size_t>(ends.first - a.begin());
  return a.substr(0, std::min(before_tag(a, n), before_tag(b, n)));
}

// What both end with. It begins with a tag, or at the end of one.
std::string_view common_end(std::string_view a, std::string_view b) {
  size_t n = 0;
  while (n < std::min(a.size(), b.size()) && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  std::string_view end = a.substr(a.size() - n);
  const size_t tag = end.find_first_of("<>");
  if (n < std::max(a.size(), b.size()) && tag != kNowhere && end[tag] == '>') {
    end.remove_prefix(tag + 1);
  }
  return end;
}

struct Span {
  size_t begin = kNowhere;
  size_t end = kNowhere;
  [[nodiscard]] std::string_view of(std::string_view text) const {
    return text.substr(begin, end - begin);
  }
};

// The JSON value of which `begin` is the first bracket.
std::optional<Span> json_at(std::string_view text, size_t begin) {
  JsonScanner scanner;
  for (size_t at = begin; at < text.size(); ++at) {
    const auto state = scanner.take(text[at]);
    if (state == ArgumentReader::State::kBad) return std::nullopt;
    if (state == ArgumentReader::State::kDone) return Span{begin, at + 1};
  }
  return std::nullopt;
}

// Where a call is in a text. Arguments that are no JSON span from the key to the value.
struct Site {
  Span object;  // with name and arguments; if there is one
  Span name;
  Span arguments;
  Keys keys;
};

class Derivation {
 public:
  explicit Derivation(const Render& render) : render_(render) {}

  std::shared_ptr<const CallFormat> run() {
    if (!begin()) return nullptr;
    // A mark that the prompt ends with may be the first one of calls.
    for (const bool with_last_word : {false, true}) {
      with_last_word_ = with_last_word;
      if (attempt()) return std::make_shared<const CallFormat>(format_);
    }
    return nullptr;
  }

 private:
  // --- rendering ---

  bool begin() {
    base_.messages = {{"user", std::string(kQuestionWord)}};
    auto tools = std::make_shared<Tools>();
    for (const char* const name : {"zqalpha", "zqbeta"}) {
      const std::string parameters =
          R"({"type": "object", "properties": {"zqkey": {"type": "string", "description": "d"}, )"
          R"("zqother": {"type": "string", "description": "d"}, )"
          R"("zqnumber": {"type": "integer", "description": "d"}, )"
          R"("zqtruth": {"type": "boolean", "description": "d"}, )"
          R"("zqlist": {"type": "array", "description": "d"}}, "required": []})";
      auto tool = make_tool(name, "d", parameters);
      if (!tool.ok()) return false;
      base_.tools.push_back(describe_tool(*tool));
      tools->push_back(std::move(*tool));
    }
    tools_ = std::move(tools);
    if (!without_answer()) {
      base_.tools.clear();
      if (!without_answer()) return false;
    }
    return true;
  }

  bool without_answer() {
    auto base = render_(base_, false);
    auto prompt = render_(base_, true);
    if (!base.ok() || !prompt.ok()) return false;
    base_text_ = std::move(*base);
    prompt_text_ = std::move(*prompt);
    return true;
  }

  // An answer as the template writes it.
  struct Written {
    std::string before;  // the conversation, with what the prompt writes of the answer
    std::string text;    // with what ends the answer
  };

  // Nothing if the template does not take it.
  std::optional<Written> answer(std::string_view text, std::string_view reasoning,
                                std::vector<chat::ToolCall> calls) {
    chat::Conversation conversation = base_;
    chat::ChatMessage message{"assistant", std::string(text), std::string(reasoning)};
    message.tool_calls = std::move(calls);
    conversation.messages.push_back(std::move(message));
    auto whole = render_(conversation, false);
    if (!whole.ok() && !conversation.tools.empty()) {
      conversation.tools.clear();
      whole = render_(conversation, false);
    }
    if (!whole.ok()) return std::nullopt;
    const size_t question = whole->rfind(kQuestionWord);
    size_t from = common_begin(*whole, prompt_text_).size();
    from = std::max(from, common_begin(*whole, base_text_).size());
    // Prompts that are no beginning of the conversation: what follows the question.
    if (question != kNowhere && from < question) from = question + kQuestionWord.size();
    if (with_last_word_) from = before_word(*whole, from);
    return Written{whole->substr(0, from), whole->substr(from)};
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
      if (two->text.find("zqbeta") != kNowhere && two->text.size() > lead) {
        two_ = two->text.substr(lead);
      }
    }
    format_.parallel = two_.has_value();
    return (by_json(call) || by_python(call) || by_dict(call) || by_tags(call)) && reads_back();
  }

  // Back over a word that may be a mark, but not over layout and tags.
  static size_t before_word(std::string_view text, size_t at) {
    while (at > 0 && !is_layout(text[at - 1])) {
      const size_t tag = text.substr(0, at - 1).find_last_of("<>");
      if (text[at - 1] == '>' && tag != kNowhere && text[tag] == '<') break;
      --at;
    }
    return at;
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
      const std::string_view mark = without_layout(
          std::string_view(shown->text).substr(behind, std::min(close, kNowhere - 1) + 1 - behind));
      // What texts have before them, too, is not enough, unless it is reasoning that is empty.
      const std::string_view text = text_ ? std::string_view(text_->text) : std::string_view();
      const std::string_view lead = text.substr(0, text.find(kTextWord));
      while (open != kNowhere && open > 0 && lead.find(mark) == kNowhere &&
             lead.find(without_layout(std::string_view(before).substr(open))) != kNowhere) {
        open = before.find_last_of("<[", open - 1);
      }
      if (open == kNowhere || close == kNowhere || before.size() - open > kMaxMark) return;
      size_t end = close + 1;
      while (end < shown->text.size() && is_layout(shown->text[end])) ++end;
      format_.reasoning = {{before.substr(open), shown->text.substr(behind, end - behind)}};
      return;
    }
    if (without_layout(prompt_text_).ends_with("<think>") ||
        prompt_text_.find("</think>") != kNowhere) {
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
      } else if (member.is(grammar::JsonType::kString) && member.text.starts_with("zqid")) {
        keys->id = key;
      } else if (grammar::json_equal(member, *wanted)) {
        keys->arguments = key;
      }
    }
    if (named) return !keys->arguments.empty();
    return value->members.size() == 1 && keys->arguments == name;
  }

  bool by_json(std::string_view call) {
    const auto site = json_site(call, 0, "zqalpha", kKeyWord);
    if (!site) return false;
    std::optional<Site> second;
    if (two_) {
      const auto first = json_site(*two_, 0, "zqalpha", kKeyWord);
      if (first) second = json_site(*two_, first->arguments.end, "zqbeta", kOtherKeyWord);
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
      if (!is_blank_text(open) && without_layout(lead) == without_layout(open)) {
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
    while (rest < begin.size() && is_layout(begin[rest])) ++rest;
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
      const auto first = raw_site(*two_, 0, "zqalpha", kKeyWord, kValueWord);
      if (!first) return false;
      const size_t second = two_->find("zqbeta", first->arguments.end);
      if (second == kNowhere) return false;
      gap = {std::min(first->arguments.end + more, second), second};
    }
    site.arguments.begin -= before_key;
    site.arguments.end += more;
    return site.arguments.end <= call.size() && marked(call, site, gap);
  }

  bool by_python(std::string_view call) {
    const auto site = raw_site(call, 0, "zqalpha", kKeyWord, kValueWord);
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
    const auto site = raw_site(call, 0, "zqalpha", kKeyWord, kValueWord);
    if (!site || site->arguments.begin == 0 || call[site->arguments.begin - 1] != '{') return false;
    const std::string_view inside = site->arguments.of(call).substr(kKeyWord.size());
    if (!inside.starts_with(':')) return false;
    const std::string_view quote =
        without_layout(inside.substr(1, inside.size() - 1 - kValueWord.size()));
    const std::string_view rest = call.substr(site->arguments.end);
    if (!rest.starts_with(quote) || !rest.substr(quote.size()).starts_with('}')) return false;
    format_.syntax = Syntax::kDict;
    format_.marks.quote = quote;
    return raw_marked(call, *site, 1, quote.size() + 1);
  }

  bool by_tags(std::string_view call) {
    const auto pair =
        answer({}, {}, with_arguments(R"({"zqkey": "zqvalue", "zqother": "zqsecond"})"));
    const auto site = raw_site(call, 0, "zqalpha", kKeyWord, kValueWord);
    if (!pair || !site) return false;
    const auto first = raw_site(pair->text, 0, "zqalpha", kKeyWord, kValueWord);
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
    const auto number = answer({}, {}, with_arguments(R"({"zqkey": 41733})"));
    if (const auto other =
            number ? raw_site(number->text, 0, "zqalpha", kKeyWord, kNumberWord) : std::nullopt) {
      const std::string_view inside = other->arguments.of(number->text).substr(kKeyWord.size());
      const std::string_view said = inside.substr(0, inside.size() - kNumberWord.size());
      if (said != middle) {
        format_.marks.text_middle = middle;
        format_.marks.middle = said;
      }
    }
    return raw_marked(call, *site, open.size(), close.size());
  }

  // --- the proof ---

  bool reads(const std::optional<Written>& written, std::string_view text,
             std::string_view reasoning, const std::vector<chat::ToolCall>& calls) {
    if (!written) return true;
    auto format = std::make_shared<const CallFormat>(format_);
    std::string_view opening;
    if (!format_.reasoning.empty()) opening = without_layout(format_.reasoning[0].open);
    if (!without_layout(written->before).ends_with(opening)) opening = {};
    CallParser parser(format, tools_, opening);
    std::vector<Piece> pieces;
    parser.feed(written->text, &pieces);
    parser.finish(&pieces);
    const Answer& read = parser.answer();
    std::string before;  // text before the first call
    for (const Piece& piece : pieces) {
      if (piece.kind == PieceKind::kCallName) break;
      if (piece.kind == PieceKind::kText) before += piece.text;
    }
    if (read.calls.size() != calls.size()) return false;
    for (size_t i = 0; i < calls.size(); ++i) {
      auto is = grammar::read_json(read.calls[i].arguments);
      auto wanted = grammar::read_json(calls[i].arguments);
      if (read.calls[i].name != calls[i].name || !is.ok() || !wanted.ok() ||
          !grammar::json_equal(*is, *wanted)) {
        return false;
      }
    }
    // Templates drop texts beside calls and older reasoning, and some write texts as reasoning or
    // behind the calls. What ends an answer comes as text here.
    const std::string_view said = without_layout(calls.empty() ? read.text : before);
    if (!said.starts_with(text) && !said.empty()) return false;
    if (!calls.empty() && said.size() > text.size()) return false;
    const bool has_text = !text.empty() && written->text.find(text) != kNowhere;
    if (has_text && (read.text + read.reasoning).find(text) == kNowhere) return false;
    const bool has_thought = !reasoning.empty() && written->text.find(reasoning) != kNowhere;
    return !has_thought || without_layout(read.reasoning) == reasoning;
  }

  bool reads_back() {
    if (!reads(text_, kTextWord, {}, {})) wrap_text();
    const auto both = answer(kTextWord, {}, one_call());
    const bool shows_both = both && both->text.find(kValueWord) != kNowhere;
    return reads(text_, kTextWord, {}, {}) &&
           reads(answer({}, {}, one_call()), {}, {}, one_call()) &&
           (!two_ || reads(answer({}, {}, two_calls()), {}, {}, two_calls())) &&
           (!shows_both || reads(both, kTextWord, {}, one_call())) && reads_types() &&
           reads(answer({}, kThoughtWord, one_call()), {}, kThoughtWord, one_call());
  }

  bool reads_types() {
    const auto typed = with_arguments(
        R"({"zqkey": "a \"b\" {c}\n<d>", "zqnumber": 3, "zqtruth": true, "zqlist": [1, {"a": "b"}]})");
    return reads(answer({}, {}, typed), {}, {}, typed);
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

  const Render& render_;
  chat::Conversation base_;
  std::shared_ptr<const Tools> tools_;
  std::string base_text_;
  std::string prompt_text_;
  bool with_last_word_ = false;
  std::optional<Written> text_;     // the answer that is a text
  std::optional<std::string> two_;  // with two calls, from the calls on
  CallFormat format_;
};

}  // namespace

std::shared_ptr<const CallFormat> derive_format(const Render& render) {
  return Derivation(render).run();
}

}  // namespace gen::calls
