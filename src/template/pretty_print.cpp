// SPDX-License-Identifier: Apache-2.0
// The filter pprint: repr() of a value, broken into lines to stay within 80 columns, in the layout
// of Python's pprint.
#include <algorithm>

#include "base/utf8.h"
#include "template/arguments.h"
#include "template/layout_filters.h"
#include "template/lexer.h"

namespace gen::templates {
namespace {

constexpr int64_t kColumns = 80;
constexpr int kDeepest = 100;

using Entries = std::vector<std::pair<Value, Value>>;

int64_t width_of(const Text& text) noexcept {
  return static_cast<int64_t>(count_characters(text.view()));
}

// Keys that cannot be compared are ordered by the names of their types.
int rank_of(const Value& key) noexcept {
  if (key.is(Kind::kNone)) return 0;
  if (key.is_number()) return 1;
  return key.is(Kind::kString) ? 2 : 3;
}

bool is_list(const Value& value) noexcept {
  return value.is(Kind::kSequence) && value.sequence().form <= Form::kTuple;
}

class Printer {
 public:
  explicit Printer(Evaluator& evaluator) : evaluator_(evaluator) {}

  /// `allowance`: columns needed after this value to close the values around it.
  Status print(const Value& value, int64_t indent, int64_t allowance, int level) {
    if (level > kDeepest || evaluator_.near_stack_end())
      return error(Code::kOutOfRange, "a value is nested too deep");
    GEN_ASSIGN(Text text, repr(value, level));
    if (width_of(text) > kColumns - indent - allowance) {
      if (value.is(Kind::kDict)) return print_dict(value.dict(), indent, allowance + 1, level);
      if (is_list(value)) return print_row(value.sequence(), indent, allowance, level);
      if (value.is(Kind::kString) && !value.text().empty())
        return print_text(value.text(), indent, allowance, level == 0);
    }
    out_.append(text);
    return {};
  }

  Text take() && { return std::move(out_); }

 private:
  void add(std::string_view mark) { out_.append(mark, Writer::kTemplate); }
  Status line(int64_t indent) {
    GEN_TRY(evaluator_.heap().charge(static_cast<size_t>(indent) + 1));
    add("\n");
    add(std::string(static_cast<size_t>(indent), ' '));
    return {};
  }

  Result<Entries> sorted(const Dict& dict) {
    Entries entries = dict.entries;
    GEN_TRY(evaluator_.work(entries.size() * 256));
    Status status;
    std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
      const int left = rank_of(a.first);
      const int right = rank_of(b.first);
      if (left != right || !status.ok()) return left < right;
      if (left == 0) return false;
      auto order = evaluator_.precedes(a.first, b.first);
      if (!order.ok() && order.status().code() == Code::kOutOfRange) status = order.status();
      return order.ok() && *order;
    });
    GEN_TRY(std::move(status));
    return entries;
  }

  /// repr() with sorted keys.
  Result<Text> repr(const Value& value, int level) {
    Text made;
    GEN_TRY(append(value, &made, level));
    GEN_TRY(evaluator_.work(made.size()));
    GEN_TRY(evaluator_.heap().charge(made.size()));
    return made;
  }

  Status append(const Value& value, Text* out, int level) {
    if (level > kDeepest || evaluator_.near_stack_end())
      return error(Code::kOutOfRange, "a value is nested too deep");
    if (value.is(Kind::kDict)) {
      GEN_ASSIGN(const Entries entries, sorted(value.dict()));
      const char* before = "{";
      for (const auto& [key, one] : entries) {
        out->append(before, Writer::kTemplate);
        before = ", ";
        GEN_TRY(append(key, out, level + 1));
        out->append(": ", Writer::kTemplate);
        GEN_TRY(append(one, out, level + 1));
      }
      out->append(entries.empty() ? "{}" : "}", Writer::kTemplate);
      return {};
    }
    if (!is_list(value)) return append_repr(evaluator_, value, out, level);
    const Sequence& row = value.sequence();
    const bool tuple = row.form == Form::kTuple;
    out->append(tuple ? "(" : "[", Writer::kTemplate);
    for (size_t i = 0; i < row.values.size(); ++i) {
      if (i > 0) out->append(", ", Writer::kTemplate);
      GEN_TRY(append(row.values[i], out, level + 1));
    }
    out->append(!tuple ? "]" : row.values.size() == 1 ? ",)" : ")", Writer::kTemplate);
    return {};
  }

  Status print_dict(const Dict& dict, int64_t indent, int64_t allowance, int level) {
    GEN_ASSIGN(const Entries entries, sorted(dict));
    add("{");
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) {
        add(",");
        GEN_TRY(line(indent + 1));
      }
      GEN_ASSIGN(const Text key, repr(entries[i].first, level + 1));
      out_.append(key);
      add(": ");
      const bool last = i + 1 == entries.size();
      GEN_TRY(print(entries[i].second, indent + 1 + width_of(key) + 2, last ? allowance : 1,
                    level + 1));
    }
    add("}");
    return {};
  }

  Status print_row(const Sequence& row, int64_t indent, int64_t allowance, int level) {
    const bool tuple = row.form == Form::kTuple;
    const char* const close = !tuple ? "]" : row.values.size() == 1 ? ",)" : ")";
    allowance += static_cast<int64_t>(std::string_view(close).size());
    add(tuple ? "(" : "[");
    for (size_t i = 0; i < row.values.size(); ++i) {
      if (i > 0) {
        add(",");
        GEN_TRY(line(indent + 1));
      }
      const bool last = i + 1 == row.values.size();
      GEN_TRY(print(row.values[i], indent + 1, last ? allowance : 1, level + 1));
    }
    add(close);
    return {};
  }

  Result<Text> quoted(const Text& text) {
    GEN_ASSIGN(const Value value, evaluator_.heap().string(text));
    return repr(value, 0);
  }

  // Words, each with the white space after it.
  Result<std::vector<Text>> words(const Text& text) {
    std::vector<Text> made;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      bool spaces = false;
      while (at < text.size()) {
        size_t next = at;
        const bool space = is_space(utf8_next(text.view(), &next));
        if (spaces && !space) break;
        spaces = space;
        at = next;
      }
      GEN_TRY(evaluator_.heap().charge(sizeof(Text)));
      made.push_back(text.slice(begin, at));
    }
    return made;
  }

  // A string as quoted parts, one per line: its lines, and the words of a line that is too long.
  Status print_text(const Text& text, int64_t indent, int64_t allowance, bool alone) {
    if (alone) {
      ++indent;
      ++allowance;
    }
    const int64_t width = kColumns - indent;
    std::vector<Text> parts;
    GEN_ASSIGN(const std::vector<Text> lines, split_lines(&evaluator_.heap(), text, true));
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool last = i + 1 == lines.size();
      GEN_ASSIGN(Text whole, quoted(lines[i]));
      if (width_of(whole) <= width - (last ? allowance : 0)) {
        parts.push_back(std::move(whole));
        continue;
      }
      Text held;
      GEN_ASSIGN(const std::vector<Text> all, words(lines[i]));
      for (size_t j = 0; j < all.size(); ++j) {
        Text longer = held;
        longer.append(all[j]);
        GEN_ASSIGN(const Text shown, quoted(longer));
        const int64_t room = width - (last && j + 1 == all.size() ? allowance : 0);
        if (width_of(shown) > room) {
          if (!held.empty()) {
            GEN_ASSIGN(Text done, quoted(held));
            parts.push_back(std::move(done));
          }
          held = all[j];
        } else {
          held = std::move(longer);
        }
      }
      if (!held.empty()) {
        GEN_ASSIGN(Text done, quoted(held));
        parts.push_back(std::move(done));
      }
    }
    const bool brackets = alone && parts.size() > 1;
    if (brackets) add("(");
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) GEN_TRY(line(indent));
      out_.append(parts[i]);
    }
    if (brackets) add(")");
    return {};
  }

  Evaluator& evaluator_;
  Text out_;
};

}  // namespace

Result<Value> pretty_print(const Call& call) {
  Printer printer(call.evaluator);
  GEN_TRY(printer.print(call[0], 0, 0, 0));
  return call.evaluator.heap().string(std::move(printer).take());
}

}  // namespace gen::templates
