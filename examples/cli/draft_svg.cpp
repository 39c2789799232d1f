// SPDX-License-Identifier: Apache-2.0
// See draft_svg.h. The text flows in boxes, one for each token. Those of one pass with drafts stand
// in a frame: accepted drafts, then the model's own token, and below it what was drafted instead.
#include "draft_svg.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "results.h"
#include "text_format.h"

namespace cli {
namespace {

constexpr int kPageLeft = 16;
constexpr int kPageRight = 1004;
constexpr int kLine = 46;   // from one line of the text to the next, if drafts are below it
constexpr int kBelow = 19;  // from a token to the drafts below it
constexpr size_t kMostBoxes = 8000;
constexpr size_t kMostColumns = 40;  // of a token
constexpr double kColumn = 7.9;      // width of a character

struct Look {
  const char* fill;
  const char* line;
  const char* more;  // attributes of the text
};
constexpr Look kPlain = {"#ffffff", "#d8d8d8", ""};
constexpr Look kOwn = {"#ffffff", "#777777", ""};
constexpr Look kAccepted = {"#c9e8c4", "#57a14e", ""};
constexpr Look kRejected = {"#f8dcd8", "#d08a80",
                            " fill=\"#8a4238\" text-decoration=\"line-through\""};

struct Shown {
  std::string text;  // for SVG
  size_t columns = 0;
  bool ends_line = false;
};

/// A character at `at` of UTF-8 and its length; length 0: there is none.
std::pair<uint32_t, size_t> character_at(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const uint32_t first = byte(at);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return {0, 0};
  uint32_t value = first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {0, 0};
    value = value << 6 | (byte(at + i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kLeast[length] || value > 0x10ffff || surrogate) return {0, 0};
  return {value, length};
}

/// Characters that draw nothing, order others, or that XML does not allow.
bool is_hidden(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
         (c >= 0x200b && c < 0x2010) || (c >= 0x2028 && c < 0x202f) ||
         (c >= 0x2060 && c < 0x2070) || c == 0xfeff || (c >= 0xfff0 && c < 0xfffc) ||
         (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c < 0xe1000);
}

bool is_wide(uint32_t c) {
  return (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
         (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
         (c >= 0xff00 && c < 0xff61) || (c >= 0x1f300 && c < 0x1fb00) || c >= 0x20000;
}

/// `dots`: spaces are to be seen.
Shown shown(const std::string& bytes, bool dots) {
  Shown out;
  for (size_t at = 0; at < bytes.size();) {
    if (out.columns >= kMostColumns) {
      out.text += "…";
      ++out.columns;
      break;
    }
    const auto [c, length] = character_at(bytes, at);
    std::string one = bytes.substr(at, length);
    size_t columns = length > 0 && is_wide(c) ? 2 : 1;
    if (length == 0) {
      one = format("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(bytes[at])));
      columns = 4;
    } else if (c == '\n') {
      one = "↵";
    } else if (c == ' ' && dots) {
      one = "·";
    } else if (is_hidden(c)) {
      one = c < 0x100 ? format("\\x%02x", c) : format("\\u%04x", c);
      columns = one.size();
    } else if (c == '&' || c == '<' || c == '>' || c == '"') {
      one = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&quot;";
    }
    out.text += one;
    out.columns += columns;
    out.ends_line = c == '\n' && length > 0;
    at += std::max<size_t>(length, 1);
  }
  out.columns = std::max<size_t>(out.columns, 1);
  return out;
}

struct DraftBox {
  Shown shown;
  Look look;
  std::string title;
};

double width_of(const DraftBox& box) {
  return static_cast<double>(box.shown.columns) * kColumn + 6;
}

/// One pass with drafts.
struct Pass {
  size_t index = 0;  // of the first drafted token in the answer
  std::string drafter;
  std::vector<int32_t> tokens;
  std::vector<int32_t> grades;
  std::vector<size_t> accepted;
};

std::vector<Pass> passes_of(const gen_result* result) {
  const auto json =
      nlohmann::json::parse(text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
        return gen_result_drafts(result, buf, capacity, n, error);
      }));
  std::vector<Pass> passes;
  for (const auto& one : json) {
    passes.push_back({one.at("index").get<size_t>(), one.at("drafter").get<std::string>(),
                      one.at("tokens").get<std::vector<int32_t>>(),
                      one.at("grades").get<std::vector<int32_t>>(),
                      one.at("accepted").get<std::vector<size_t>>()});
  }
  return passes;
}

class Picture {
 public:
  Picture(const gen_result* result, const gen_tokenizer* tokenizer)
      : result_(result), tokenizer_(tokenizer), passes_(passes_of(result)) {
    tokens_ = gen_result_tokens(result, &count_);
  }

  std::string draw(const std::string& title) {
    head(title);
    size_t pass = 0;
    size_t at = 0;
    while (at < count_ && boxes_ < kMostBoxes) {
      if (pass < passes_.size() && passes_[pass].index == at) {
        const size_t end = pass + 1 < passes_.size() ? passes_[pass + 1].index : count_;
        at = draw_pass(pass, end);
        ++pass;
        continue;
      }
      const DraftBox box = plain(at);
      make_room(width_of(box));
      put(box, x_, y_);
      x_ += width_of(box) + 2;
      if (box.shown.ends_line) end_line();
      ++at;
    }
    if (x_ > kPageLeft) end_line();
    if (at < count_) {
      label(kPageLeft, y_, format("the first %zu of %zu tokens", at, count_));
      end_line();
    }
    return format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" ",
                  kPageRight + kPageLeft, y_) +
           "font-family=\"monospace\" font-size=\"13\">\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
           body_ + "</svg>\n";
  }

 private:
  [[nodiscard]] std::string piece(int32_t token) const {
    return text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
      return gen_tokenizer_piece(tokenizer_, token, buf, capacity, n, error);
    });
  }
  [[nodiscard]] DraftBox box(int32_t token, const Look& look, std::string title) const {
    return {shown(piece(token), true), look, std::move(title)};
  }
  [[nodiscard]] DraftBox plain(size_t at) const {
    return box(tokens_[at], kPlain,
               format("token %zu (id %d): a pass without drafts", at, tokens_[at]));
  }

  /// Draws a pass and returns the token after it, which is at most `end`.
  size_t draw_pass(size_t number, size_t end) {
    const Pass& pass = passes_[number];
    const std::string name =
        format("pass %zu with drafts, by %s", number + 1, shown(pass.drafter, false).text.c_str());
    std::vector<DraftBox> above;
    size_t at = pass.index;
    for (const size_t row : pass.accepted) {
      if (at >= std::min(end, count_)) break;
      above.push_back(box(tokens_[at], kAccepted,
                          format("token %zu (id %d): accepted draft %zu of %zu, grade %d; ", at,
                                 tokens_[at], row + 1, pass.tokens.size(), pass.grades[row]) +
                              name));
      ++at;
    }
    const size_t accepted = above.size();
    if (at < std::min(end, count_)) {
      above.push_back(box(tokens_[at], kOwn,
                          format("token %zu (id %d): the model's own; %zu of %zu drafts accepted, ",
                                 at, tokens_[at], pass.accepted.size(), pass.tokens.size()) +
                              name));
      ++at;
    }
    std::vector<DraftBox> below;
    for (size_t row = 0; row < pass.tokens.size(); ++row) {
      if (std::count(pass.accepted.begin(), pass.accepted.end(), row) > 0) continue;
      below.push_back(box(pass.tokens[row], kRejected,
                          format("id %d: rejected draft %zu of %zu, grade %d; ", pass.tokens[row],
                                 row + 1, pass.tokens.size(), pass.grades[row]) +
                              name));
    }
    draw_frame(above, accepted, below, name);
    return at;
  }

  /// `below` begins under box `under` of `above`.
  void draw_frame(const std::vector<DraftBox>& above, size_t under,
                  const std::vector<DraftBox>& below, const std::string& name) {
    double all = 0;
    for (const DraftBox& one : below) all += width_of(one) + 2;
    constexpr double kLeast = 170;  // of what is below, without a new line
    const double wanted = std::min(all, kLeast);
    double begin = x_;
    const auto frame = [&](bool two) {
      body_ += format(
                   "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"4\" "
                   "fill=\"#eef2f7\" stroke=\"#b9c4d2\"><title>",
                   begin - 2, y_ - 16, x_ - begin + 2, two ? 43 : 24) +
               name + "</title></rect>\n" + std::exchange(held_, "");
      x_ += 6;
    };
    if (above.empty()) make_room(wanted + 8);
    begin = x_ += 2;
    double below_at = x_;
    for (size_t i = 0; i < above.size(); ++i) {
      const double need = i == under ? std::max(width_of(above[i]), wanted) : width_of(above[i]);
      if (x_ + need > kPageRight && x_ > kPageLeft + 4) {
        if (x_ > begin) frame(false);
        end_line();
        begin = x_ += 2;
      }
      if (i == under) below_at = x_;
      hold(above[i], x_, y_);
      x_ += width_of(above[i]) + 2;
    }
    if (under >= above.size()) {  // the text ended with an accepted draft
      if (x_ + wanted > kPageRight) {
        if (x_ > begin) frame(false);
        end_line();
        begin = x_ += 2;
      }
      below_at = x_;
    }
    for (size_t i = 0; i < below.size(); ++i) {
      const std::string rest = format("+%zu", below.size() - i);
      const double last = i + 1 < below.size() ? 40 : 0;
      if (below_at + width_of(below[i]) + last > kPageRight && i > 0) {
        hold({{rest, rest.size(), false}, kRejected, rest + " more rejected drafts; " + name},
             below_at, y_ + kBelow);
        below_at += static_cast<double>(rest.size()) * kColumn + 8;
        break;
      }
      hold(below[i], below_at, y_ + kBelow);
      below_at += width_of(below[i]) + 2;
    }
    x_ = std::max(x_, below.empty() ? x_ : below_at);
    low_ = low_ || !below.empty();
    frame(!below.empty());
    const bool ends = std::any_of(above.begin(), above.end(),
                                  [](const DraftBox& one) { return one.shown.ends_line; });
    if (ends) end_line();
  }

  void make_room(double width) {
    if (x_ + width > kPageRight && x_ > kPageLeft) end_line();
  }
  void end_line() {
    x_ = kPageLeft;
    y_ += std::exchange(low_, false) ? kLine : kLine - kBelow;
  }

  void hold(const DraftBox& one, double x, double y) {
    ++boxes_;
    held_ +=
        format("<g><title>") + one.title + "</title>" +
        format(
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" rx=\"2\" fill=\"%s\" "
            "stroke=\"%s\"/><text x=\"%.1f\" y=\"%.1f\"%s>",
            x, y - 13, width_of(one), one.look.fill, one.look.line, x + 3, y + 1, one.look.more) +
        one.shown.text + "</text></g>\n";
  }
  void put(const DraftBox& one, double x, double y) {
    hold(one, x, y);
    body_ += std::exchange(held_, "");
  }
  void label(double x, double y, const std::string& text) {
    body_ += format("<text x=\"%.1f\" y=\"%.1f\" font-family=\"sans-serif\" fill=\"#444\">", x, y) +
             text + "</text>\n";
  }

  void head(const std::string& title) {
    body_ += format(
                 "<text x=\"%d\" y=\"%.1f\" font-family=\"sans-serif\" font-size=\"17\" "
                 "font-weight=\"bold\">",
                 kPageLeft, y_) +
             shown(title, false).text + "</text>\n";
    y_ += 24;
    label(kPageLeft, y_, draft_line(result_));
    std::map<std::string, std::pair<size_t, size_t>> by;  // accepted, drafted
    for (const Pass& pass : passes_) {
      by[pass.drafter].first += pass.accepted.size();
      by[pass.drafter].second += pass.tokens.size();
    }
    std::string line;
    for (const auto& [name, counts] : by) {
      line += (line.empty() ? "" : "; ") + shown(name, false).text +
              format(": %zu of %zu accepted", counts.first, counts.second);
    }
    if (!line.empty()) {
      y_ += 19;
      label(kPageLeft, y_, line);
    }
    y_ += 28;
    const std::pair<const char*, const Look*> kinds[] = {{"accepted draft", &kAccepted},
                                                         {"rejected draft", &kRejected},
                                                         {"model's own", &kOwn},
                                                         {"without drafts", &kPlain}};
    for (const auto& [name, look] : kinds) {
      const DraftBox box = {shown(name, false), *look, name};
      put(box, x_, y_);
      x_ += width_of(box) + 10;
    }
    label(x_, y_, "a frame is one pass of the model");
    end_line();
    y_ += 14;
    boxes_ = 0;
  }

  const gen_result* result_;
  const gen_tokenizer* tokenizer_;
  std::vector<Pass> passes_;
  const int32_t* tokens_ = nullptr;
  size_t count_ = 0;
  size_t boxes_ = 0;
  std::string body_;
  std::string held_;  // boxes whose frame comes first
  double x_ = kPageLeft;
  double y_ = 28;
  bool low_ = false;  // the line has drafts below its text
};

}  // namespace

std::string draft_svg(const std::string& title, const gen_result* result,
                      const gen_tokenizer* tokenizer) {
  return Picture(result, tokenizer).draw(title);
}

}  // namespace cli
