// SPDX-License-Identifier: Apache-2.0
// The filter wordwrap: breaks lines to a width where Python's textwrap breaks them.
#include <algorithm>

#include "base/utf8.h"
#include "template/arguments.h"
#include "template/layout_filters.h"
#include "template/lexer.h"
#include "template/unicode.h"

namespace gen::templates {
namespace {

/// Characters [begin, end) of a line.
struct Piece {
  size_t begin = 0;
  size_t end = 0;
  [[nodiscard]] size_t size() const noexcept { return end - begin; }
};

struct WrapForm {
  size_t width = 79;
  bool break_long_words = true;
  bool at_hyphens = true;       // words may be broken after hyphens
  bool break_at_hyphen = true;  // a word that is too long is broken after a hyphen if it has one
};

/// One line, without its line break.
class Wrapper {
 public:
  Wrapper(const Text& line, const WrapForm& form) : line_(line), form_(form) {
    for (size_t at = 0; at < line.size();) {
      offsets_.push_back(at);
      characters_.push_back(utf8_next(line.view(), &at));
    }
    offsets_.push_back(line.size());
    hyphens_.resize(characters_.size() + 1);
    for (size_t i = characters_.size(); i-- > 0;) {
      hyphens_[i] = characters_[i] == '-' ? hyphens_[i + 1] + 1 : 0;
    }
  }

  void run(std::vector<Text>* out) {
    std::vector<Piece> pieces;
    for (size_t at = 0; at < characters_.size();) {
      const size_t end = end_of_piece(at);
      pieces.push_back({at, end});
      at = end;
    }
    const size_t before = out->size();
    for (size_t i = 0; i < pieces.size();) {
      if (out->size() > before && blank(pieces[i])) ++i;
      // Pieces are consecutive, so those of a line are one range.
      std::vector<Piece> row;
      size_t used = 0;
      for (; i < pieces.size() && used + pieces[i].size() <= form_.width; ++i) {
        used += pieces[i].size();
        row.push_back(pieces[i]);
      }
      if (i < pieces.size() && pieces[i].size() > form_.width) {
        if (form_.break_long_words) {
          const size_t cut = pieces[i].begin + cut_of(pieces[i], form_.width - used);
          row.push_back({pieces[i].begin, cut});
          pieces[i].begin = cut;
        } else if (row.empty()) {
          row.push_back(pieces[i++]);
        }
      }
      if (!row.empty() && blank(row.back())) row.pop_back();
      if (!row.empty()) {
        out->push_back(line_.slice(offsets_[row.front().begin], offsets_[row.back().end]));
      }
    }
  }

 private:
  [[nodiscard]] bool is(size_t i, uint32_t c) const noexcept {
    return i < characters_.size() && characters_[i] == c;
  }
  // White space as textwrap defines it, which is less than Unicode's.
  [[nodiscard]] bool space(size_t i) const noexcept {
    return characters_[i] == ' ' || (characters_[i] >= '\t' && characters_[i] <= '\r');
  }
  [[nodiscard]] bool word(size_t i) const noexcept {
    return i < characters_.size() && is_word(characters_[i]);
  }
  [[nodiscard]] bool letter(size_t i) const noexcept {
    return word(i) && !in_class(CharacterClass::kDecimal, characters_[i]);
  }
  // A character of a word, or one that may end a word before a dash.
  [[nodiscard]] bool before_dash(size_t i) const noexcept {
    const uint32_t c = characters_[i];
    return word(i) || c == '!' || c == '"' || c == '\'' || c == '&' || c == '.' || c == ',' ||
           c == '?';
  }
  [[nodiscard]] bool dash_at(size_t i) const noexcept {
    return hyphens_[i] >= 2 && word(i + hyphens_[i]);
  }
  [[nodiscard]] bool blank(const Piece& piece) const noexcept {
    return std::all_of(characters_.begin() + static_cast<ptrdiff_t>(piece.begin),
                       characters_.begin() + static_cast<ptrdiff_t>(piece.end), is_space);
  }

  // Whether a word may be broken after the hyphen at `i`: letters on both sides, as in a-b or ab-c.
  [[nodiscard]] bool cut_behind(size_t i) const noexcept {
    if (!is(i, '-') || i < 2 || !letter(i - 1)) return false;
    const bool left = letter(i - 2) || (i >= 3 && is(i - 2, '-') && letter(i - 3));
    const bool right = letter(i + 1) && (letter(i + 2) || (is(i + 2, '-') && letter(i + 3)));
    return left && right;
  }

  [[nodiscard]] size_t end_of_piece(size_t at) const noexcept {
    const size_t size = characters_.size();
    size_t end = at;
    if (space(at)) {
      while (end < size && space(end)) ++end;
      return end;
    }
    if (!form_.at_hyphens) {
      while (end < size && !space(end)) ++end;
      return end;
    }
    if (at > 0 && before_dash(at - 1) && dash_at(at)) return at + hyphens_[at];
    for (end = at + 1; end < size; ++end) {
      if (cut_behind(end)) return end + 1;
      if (space(end) || (before_dash(end - 1) && dash_at(end))) return end;
    }
    return end;
  }

  // How many characters of a word that is too long fit if `room` are left.
  [[nodiscard]] size_t cut_of(const Piece& piece, size_t room) const noexcept {
    if (!form_.break_at_hyphen || piece.size() <= room) return room;
    for (size_t i = room; i-- > 1;) {
      if (!is(piece.begin + i, '-')) continue;
      const bool word = std::any_of(characters_.begin() + static_cast<ptrdiff_t>(piece.begin),
                                    characters_.begin() + static_cast<ptrdiff_t>(piece.begin + i),
                                    [](uint32_t c) { return c != '-'; });
      return word ? i + 1 : room;
    }
    return room;
  }

  const Text& line_;
  const WrapForm& form_;
  std::vector<uint32_t> characters_;
  std::vector<size_t> offsets_;  // byte offsets of the characters and of the end
  std::vector<size_t> hyphens_;  // number of hyphens that start at a character
};

}  // namespace

Result<Value> word_wrap(const Call& call) {
  GEN_TRY(need_text(call, 0));
  WrapForm form;
  GEN_ASSIGN(const int64_t width, integer_argument(call, 1, 79));
  GEN_ASSIGN(form.break_long_words, truth_argument(call, 2, true));
  GEN_ASSIGN(form.break_at_hyphen, truth_argument(call, 4, true));
  form.at_hyphens = !call.given(4) || (call[4].is(Kind::kBool) && call[4].truth);
  Text between("\n", Writer::kTemplate);
  if (call.given(3) && !call[3].is(Kind::kNone)) {
    GEN_TRY(need_text(call, 3));
    between = call[3].text();
  }
  const Text& text = call[0].text();
  if (width <= 0 && !text.empty()) {
    return error(Code::kInvalidArgument, "a width of %lld", static_cast<long long>(width));
  }
  form.width = static_cast<size_t>(std::max<int64_t>(width, 1));
  GEN_TRY(call.evaluator.work(16 * text.size()));
  GEN_TRY(call.evaluator.heap().charge(64 * text.size()));
  std::vector<Text> lines;
  GEN_ASSIGN(const std::vector<Text> given, split_lines(&call.evaluator.heap(), text));
  for (const Text& line : given) {
    const size_t before = lines.size();
    Wrapper(line, form).run(&lines);
    if (lines.size() == before) lines.emplace_back();  // white space only
  }
  GEN_TRY(call.evaluator.heap().charge(lines.size() * (between.size() + sizeof(Text))));
  Text made;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) made.append(between);
    made.append(lines[i]);
  }
  return call.evaluator.heap().string(std::move(made));
}

}  // namespace gen::templates
