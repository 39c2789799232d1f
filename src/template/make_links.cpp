// SPDX-License-Identifier: Apache-2.0
// The filter urlize: turns addresses in a text into HTML links by the rules of Jinja2.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "template/arguments.h"
#include "template/layout_filters.h"
#include "template/lexer.h"
#include "template/unicode.h"

namespace gen::templates {
namespace {

/// Recognises addresses in the characters of one word.
class Address {
 public:
  explicit Address(std::string_view text) {
    for (size_t at = 0; at < text.size();) characters_.push_back(utf8_next(text, &at));
  }

  /// http://…, www.…, a.b.org and the like, up to the end of the word.
  [[nodiscard]] bool is_web() const {
    size_t at = 0;
    const bool scheme = take_scheme(&at);
    if (scheme && numeric_host(at)) return true;
    size_t name = at;
    if ((scheme || take("www.", &name)) && named_host(name)) return true;
    return known_host();
  }

  /// something@host.name
  [[nodiscard]] bool is_mail() const {
    const size_t size = characters_.size();
    size_t sign = size;
    size_t dot = size;
    for (size_t i = 0; i < size; ++i) {
      if (characters_[i] == '@') sign = i;
      if (characters_[i] == '.') dot = i;
    }
    if (sign == 0 || sign + 1 >= size || dot == size || dot < sign + 2 || dot + 1 == size) {
      return false;
    }
    if (!is_word(characters_[sign + 1])) return false;
    for (size_t i = sign + 2; i < size; ++i) {
      const bool mark = i <= dot && (characters_[i] == '.' || characters_[i] == '-');
      if (!mark && !is_word(characters_[i])) return false;
    }
    return true;
  }

 private:
  // The letter in lower case, for comparison without regard to case.
  static uint32_t folded(uint32_t c) noexcept {
    if (c >= 'A' && c <= 'Z') return c | 0x20;
    if (c == 0x130 || c == 0x131) return 'i';
    if (c == 0x17F) return 's';
    return c == 0x212A ? 'k' : c;
  }
  [[nodiscard]] uint32_t at(size_t i) const noexcept {
    return i < characters_.size() ? characters_[i] : 0;
  }
  [[nodiscard]] bool letter(size_t i) const noexcept {
    return folded(at(i)) >= 'a' && folded(at(i)) <= 'z';
  }
  [[nodiscard]] bool digit(size_t i) const noexcept {
    return i < characters_.size() && in_class(CharacterClass::kDecimal, characters_[i]);
  }
  [[nodiscard]] bool hexadecimal(size_t i) const noexcept {
    return digit(i) || (letter(i) && folded(at(i)) <= 'f');
  }
  [[nodiscard]] bool in_label(size_t i) const noexcept {
    return i < characters_.size() &&
           (is_word(characters_[i]) || characters_[i] == '%' || characters_[i] == '-');
  }

  bool take(std::string_view what, size_t* from) const noexcept {
    for (size_t i = 0; i < what.size(); ++i) {
      if (folded(at(*from + i)) != static_cast<uint32_t>(what[i])) return false;
    }
    *from += what.size();
    return true;
  }
  bool take_scheme(size_t* from) const noexcept {
    return take("http://", from) || take("https://", from);
  }

  // After the host: an optional port and path, then the end of the word.
  [[nodiscard]] bool ends(size_t from) const noexcept {
    const auto path = [&](size_t i) {
      return i == characters_.size() || at(i) == '/' || at(i) == '?' || at(i) == '#';
    };
    if (path(from)) return true;
    if (at(from) != ':') return false;
    size_t end = from + 1;
    while (end - from <= 5 && digit(end)) ++end;
    return end > from + 1 && path(end);
  }

  [[nodiscard]] size_t label_end(size_t from) const noexcept {
    while (in_label(from)) ++from;
    return from;
  }

  // Labels and a top-level domain of at least two letters.
  [[nodiscard]] bool named_host(size_t from) const {
    for (;;) {
      size_t end = from;
      while (end - from < 63 && letter(end)) ++end;
      for (; end >= from + 2; --end) {
        if (ends(end)) return true;
      }
      size_t idna = from;
      if (take("xn--", &idna)) {
        end = idna;
        while (end - idna < 59 &&
               (at(end) == '%' || (end < characters_.size() && is_word(characters_[end])))) {
          ++end;
        }
        for (; end >= idna + 2; --end) {
          if (ends(end)) return true;
        }
      }
      end = label_end(from);
      if (end == from || at(end) != '.') return false;
      from = end + 1;
    }
  }

  // Without a scheme only the original top-level domains count.
  [[nodiscard]] bool known_host() const {
    static constexpr std::string_view kTops[] = {"com", "net", "int",  "edu",
                                                 "gov", "org", "info", "mil"};
    for (size_t from = 0;;) {
      const size_t end = label_end(from);
      if (end < from + 2 || end > from + 63 || at(end) != '.') return false;
      from = end + 1;
      for (const std::string_view top : kTops) {
        size_t behind = from;
        if (take(top, &behind) && ends(behind)) return true;
      }
    }
  }

  [[nodiscard]] bool numeric_host(size_t from) const {
    if (at(from) == '[') return six(from + 1);
    for (int part = 0; part < 4; ++part) {
      size_t end = from;
      while (end - from < 3 && digit(end)) ++end;
      if (end == from) return false;
      if (part == 3) {
        for (; end > from; --end) {
          if (ends(end)) return true;
        }
        return false;
      }
      if (at(end) != '.') return false;
      from = end + 1;
    }
    return false;
  }

  // An IPv6 address as Jinja2 matches it: two groups with colons, one to six with or without, and a
  // closing bracket.
  [[nodiscard]] bool six(size_t from) const {
    const auto group = [&](size_t i) {
      size_t end = i;
      while (end - i < 4 && hexadecimal(end)) ++end;
      return end;
    };
    for (int i = 0; i < 2; ++i) {
      from = group(from);
      if (at(from) != ':') return false;
      ++from;
    }
    for (int i = 0; i < 6; ++i) {
      from = group(from);
      if (at(from) == ':') ++from;
      if (at(from) == ']') return ends(from + 1);
    }
    return false;
  }

  std::vector<uint32_t> characters_;
};

struct LinkForm {
  std::optional<int64_t> limit;  // most characters shown of an address
  Text attributes;               // rel and target attributes
  std::vector<std::string> schemes;
};

size_t count(std::string_view text, std::string_view what) {
  size_t times = 0;
  for (size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + what.size())) {
    ++times;
  }
  return times;
}

// A word, without the brackets and punctuation around the address in it.
struct Word {
  Text head;
  Text middle;
  Text tail;
};

Word parted(const Text& word) {
  const std::string_view view = word.view();
  const auto starts = [&](size_t at, std::string_view what) {
    return view.substr(at, what.size()) == what;
  };
  size_t begin = 0;
  for (;;) {
    if (starts(begin, "(") || starts(begin, "<")) {
      ++begin;
    } else if (starts(begin, "&lt;")) {
      begin += 4;
    } else {
      break;
    }
  }
  size_t end = view.size();
  for (;;) {
    const std::string_view rest = view.substr(begin, end - begin);
    if (rest.ends_with("&gt;")) {
      end -= 4;
    } else if (!rest.empty() &&
               std::string_view(")>.,\n").find(rest.back()) != std::string_view::npos) {
      --end;
    } else {
      break;
    }
  }
  Word made{word.slice(0, begin), word.slice(begin, end), word.slice(end, view.size())};
  for (const auto& [open, close] :
       {std::pair<std::string_view, std::string_view>{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}}) {
    const size_t opened = count(made.middle.view(), open);
    if (opened <= count(made.middle.view(), close)) continue;
    size_t behind = 0;
    for (size_t n = std::min(opened, count(made.tail.view(), close)); n > 0; --n) {
      behind = made.tail.view().find(close, behind) + close.size();
    }
    made.middle.append(made.tail, 0, behind);
    made.tail = made.tail.slice(behind, made.tail.size());
  }
  return made;
}

Text link(std::string_view before, const Text& address, const Text& attributes, const Text& shown) {
  Text made("<a href=\"", Writer::kTemplate);
  made.append(before, Writer::kTemplate);
  made.append(address);
  made.append("\"", Writer::kTemplate);
  made.append(attributes);
  made.append(">", Writer::kTemplate);
  made.append(shown);
  made.append("</a>", Writer::kTemplate);
  return made;
}

Text shortened(const Text& text, const std::optional<int64_t>& limit) {
  const auto size = static_cast<int64_t>(count_characters(text.view()));
  if (!limit.has_value() || size <= *limit) return text;
  const int64_t kept = *limit < 0 ? std::max<int64_t>(size + *limit, 0) : *limit;
  Text made = text.slice(0, offset_of(text.view(), static_cast<size_t>(kept)));
  made.append("...", Writer::kTemplate);
  return made;
}

Text linked(Text middle, const LinkForm& form) {
  const std::string_view view = middle.view();
  const Address address(view);
  if (address.is_web()) {
    const bool scheme = view.starts_with("https://") || view.starts_with("http://");
    return link(scheme ? "" : "https://", middle, form.attributes, shortened(middle, form.limit));
  }
  if (view.starts_with("mailto:") && Address(view.substr(7)).is_mail()) {
    return link("", middle, Text(), middle.slice(7, middle.size()));
  }
  if (view.find('@') != std::string_view::npos && !view.starts_with("www.") &&
      !view.starts_with("@") && view.find(':') == std::string_view::npos && address.is_mail()) {
    return link("mailto:", middle, Text(), middle);
  }
  for (const std::string& scheme : form.schemes) {
    if (middle.view() == scheme || !middle.view().starts_with(scheme)) continue;
    middle = link("", middle, form.attributes, middle);
  }
  return middle;
}

bool is_scheme(std::string_view text) {
  size_t letters = 0;
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at;
    const uint32_t c = utf8_next(text, &next);
    if (!is_word(c) && c != '.' && c != '+' && c != '-') break;
    ++letters;
    at = next;
  }
  const std::string_view rest = text.substr(at);
  return letters >= 2 && (rest == ":" || rest == ":/" || rest == "://");
}

// The rel and target attributes; the words of rel are sorted and include noopener.
Status read_attributes(const Call& call, LinkForm* form) {
  GEN_ASSIGN(const bool nofollow, truth_argument(call, 2, false));
  std::vector<std::string> words = {"noopener"};
  if (nofollow) words.emplace_back("nofollow");
  if (call.given(4) && truthy(call[4])) {
    GEN_TRY(need_text(call, 4));
    const std::string_view rel = call[4].view();
    for (size_t at = stripped_begin(rel); at < rel.size(); at += stripped_begin(rel.substr(at))) {
      const size_t begin = at;
      while (at < rel.size()) {
        size_t next = at;
        if (is_space(utf8_next(rel, &next))) break;
        at = next;
      }
      words.emplace_back(rel.substr(begin, at - begin));
    }
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::string rel;
  for (const std::string& word : words) rel += (rel.empty() ? "" : " ") + word;
  Heap& heap = call.evaluator.heap();
  const auto add = [&](const char* name, const Value& value) -> Status {
    GEN_ASSIGN(const Value escaped, escape_html(call.evaluator, value));
    form->attributes.append(name, Writer::kTemplate);
    form->attributes.append(escaped.text());
    form->attributes.append("\"", Writer::kTemplate);
    return {};
  };
  GEN_ASSIGN(const Value joined,
             heap.string(rel, call.given(4) ? Writer::kUser : Writer::kTemplate));
  GEN_TRY(add(" rel=\"", joined));
  if (call.given(3) && truthy(call[3])) GEN_TRY(add(" target=\"", call[3]));
  return {};
}

}  // namespace

Result<Value> make_links(const Call& call) {
  LinkForm form;
  if (call.given(1) && !call[1].is(Kind::kNone)) {
    GEN_ASSIGN(form.limit, integer_argument(call, 1, 0));
  }
  GEN_TRY(read_attributes(call, &form));
  if (call.given(5) && !call[5].is(Kind::kNone)) {
    std::vector<Value> storage;
    GEN_ASSIGN(const auto schemes, call.evaluator.items(call[5], &storage));
    for (const Value& scheme : schemes) {
      if (!scheme.is(Kind::kString) || !is_scheme(scheme.view())) {
        return error(Code::kInvalidArgument, "extra_schemes holds what is no scheme");
      }
      form.schemes.emplace_back(scheme.view());
    }
  }
  GEN_ASSIGN(const Value escaped, escape_html(call.evaluator, call[0]));
  const Text& text = escaped.text();
  const size_t most = 64 + 2 * form.attributes.size();
  GEN_TRY(call.evaluator.work(16 * text.size()));
  Text made;
  for (size_t at = 0; at < text.size();) {
    const size_t space = at + stripped_begin(text.view().substr(at));
    made.append(text, at, space);
    size_t end = space;
    while (end < text.size()) {
      size_t next = end;
      if (is_space(utf8_next(text.view(), &next))) break;
      end = next;
    }
    if (end > space) {
      GEN_TRY(call.evaluator.heap().charge(most + 4 * (end - space)));
      GEN_TRY(call.evaluator.work(form.schemes.size() * 64));
      const Word word = parted(text.slice(space, end));
      made.append(word.head);
      made.append(linked(word.middle, form));
      made.append(word.tail);
    }
    at = end;
  }
  return call.evaluator.heap().string(std::move(made));
}

}  // namespace gen::templates
