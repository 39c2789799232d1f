// SPDX-License-Identifier: Apache-2.0
// An independent oracle: random grammars, written out as GBNF, and a slow recogniser that works on
// their trees by definition. For each node of a grammar and each position of a text it keeps where
// the node may end and whether the rest of the text may be a prefix of the node. It iterates over
// all of them to a fixed point and uses no automata.
#pragma once

#include <bitset>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace gen::grammar::test {

inline constexpr int kTokenSymbol = 256;  // + id: a token without bytes
inline constexpr uint32_t kNoLimit = UINT32_MAX;
using Symbols = std::vector<int>;

class SlowGrammar {
 public:
  enum class Kind { kText, kClass, kSequence, kChoice, kRepeat, kRule, kToken };
  struct Node {
    Kind kind;
    std::vector<int> parts;
    std::vector<std::string> texts;  // kText: one; kClass: characters
    uint32_t min = 0;
    uint32_t max = 0;
    int value = 0;  // rule or token
  };
  std::vector<Node> nodes;
  std::vector<int> rules;  // bodies; [0] is the root

  int add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  }

  [[nodiscard]] std::string gbnf() const {
    std::string text;
    for (size_t r = 0; r < rules.size(); ++r) {
      text += name(static_cast<int>(r)) + " ::= " + gbnf_of(rules[r]) + "\n";
    }
    return text;
  }

  /// As a Lark file; nodes of which `terminal` says so, without rules and tokens in them, are
  /// terminals of their own.
  template <typename IsTerminal>
  [[nodiscard]] std::string lark(IsTerminal terminal) const {
    std::string text;
    std::string more;
    for (size_t r = 0; r < rules.size(); ++r) {
      text +=
          lark_name(static_cast<int>(r)) + ": " + lark_of(rules[r], terminal, false, &more) + "\n";
    }
    return text + more;
  }

  /// The body of a Lark terminal that is the root, which is regular.
  [[nodiscard]] std::string lark_terminal() const {
    std::string none;
    return lark_of(rules[0], [](int) { return false; }, true, &none);
  }

  /// The same with what `ignored` matches behind each text, class, token and terminal.
  template <typename IsTerminal>
  [[nodiscard]] SlowGrammar ignoring(int ignored, IsTerminal terminal) const {
    SlowGrammar made = *this;
    const int gap = made.add({Kind::kRepeat, {ignored}, {}, 0, kNoLimit, 0});
    for (int& rule : made.rules) rule = made.with_gaps(rule, gap, terminal);
    return made;
  }

  /// Whether rules or tokens are in it.
  [[nodiscard]] bool regular(int id) const {
    const Node& node = nodes[static_cast<size_t>(id)];
    if (node.kind == Kind::kRule || node.kind == Kind::kToken) return false;
    for (const int part : node.parts) {
      if (!regular(part)) return false;
    }
    return true;
  }

  /// Whether the symbols are a member, and whether they are the beginning of one.
  struct Answer {
    bool member;
    bool prefix;
  };
  [[nodiscard]] Answer ask(const Symbols& text) const {
    Chart chart(*this, text);
    return {chart.ends[static_cast<size_t>(rules[0])][0][text.size()],
            chart.begins[static_cast<size_t>(rules[0])][0] != 0};
  }

 private:
  static constexpr size_t kLongest = 192;
  using Places = std::bitset<kLongest + 1>;

  [[nodiscard]] static std::string name(int rule) {
    return rule == 0 ? "root" : "r" + std::to_string(rule);
  }

  [[nodiscard]] std::string gbnf_of(int id) const {
    const Node& node = nodes[static_cast<size_t>(id)];
    std::string text;
    switch (node.kind) {
      case Kind::kText:
        return "\"" + node.texts[0] + "\"";
      case Kind::kClass:
        for (const std::string& c : node.texts) text += c;
        return "[" + text + "]";
      case Kind::kRule:
        return name(node.value);
      case Kind::kToken:
        return "<[" + std::to_string(node.value) + "]>";
      case Kind::kRepeat:
        text = "(" + gbnf_of(node.parts[0]) + "){" + std::to_string(node.min) + ",";
        return text + (node.max == kNoLimit ? "" : std::to_string(node.max)) + "}";
      default:
        break;
    }
    for (const int part : node.parts) {
      if (!text.empty()) text += node.kind == Kind::kChoice ? " | " : " ";
      text += gbnf_of(part);
    }
    return "(" + text + ")";
  }

  [[nodiscard]] static std::string lark_name(int rule) {
    return rule == 0 ? "start" : "r" + std::to_string(rule);
  }

  template <typename IsTerminal>
  std::string lark_of(int id, IsTerminal terminal, bool inside, std::string* more) const {
    const Node& node = nodes[static_cast<size_t>(id)];
    std::string text;
    if (!inside && terminal(id)) {
      const std::string own = "T" + std::to_string(id);
      *more += own + ": " + lark_of(id, terminal, true, more) + "\n";
      return own;
    }
    if (inside && id % 2 == 0) return "/" + pattern_of(id) + "/";
    switch (node.kind) {
      case Kind::kText:
        return "\"" + node.texts[0] + "\"";
      case Kind::kClass:
        for (const std::string& c : node.texts) text += c;
        return "/[" + text + "]/";
      case Kind::kRule:
        return lark_name(node.value);
      case Kind::kToken:
        return "<[" + std::to_string(node.value) + "]>";
      case Kind::kRepeat:
        text = "(" + lark_of(node.parts[0], terminal, inside, more) + "){" +
               std::to_string(node.min) + ",";
        return text + (node.max == kNoLimit ? "" : std::to_string(node.max)) + "}";
      default:
        break;
    }
    for (const int part : node.parts) {
      if (!text.empty()) text += node.kind == Kind::kChoice ? " | " : " ";
      text += lark_of(part, terminal, inside, more);
    }
    return "(" + text + ")";
  }

  [[nodiscard]] std::string pattern_of(int id) const {
    const Node& node = nodes[static_cast<size_t>(id)];
    std::string text;
    if (node.kind == Kind::kRepeat) {
      text = "(?:" + pattern_of(node.parts[0]) + "){" + std::to_string(node.min) + ",";
      return text + (node.max == kNoLimit ? "" : std::to_string(node.max)) + "}";
    }
    for (const std::string& one : node.texts) text += one;
    if (node.kind == Kind::kClass) return "[" + text + "]";
    for (const int part : node.parts) {
      if (node.kind == Kind::kChoice && part != node.parts[0]) text += "|";
      text += pattern_of(part);
    }
    return "(" + text + ")";
  }

  template <typename IsTerminal>
  int with_gaps(int id, int gap, IsTerminal terminal) {
    const Node node = nodes[static_cast<size_t>(id)];
    const bool leaf =
        node.kind == Kind::kText || node.kind == Kind::kClass || node.kind == Kind::kToken;
    if (node.kind == Kind::kText && node.texts[0].empty() && !terminal(id)) return id;
    if (leaf || terminal(id)) return add({Kind::kSequence, {id, gap}, {}, 0, 0, 0});
    if (node.parts.empty()) return id;
    Node made = node;
    for (int& part : made.parts) part = with_gaps(part, gap, terminal);
    return add(std::move(made));
  }

  struct Chart {
    const SlowGrammar& grammar;
    const Symbols& text;
    std::vector<std::vector<Places>> ends;           // [node][begin]
    std::vector<std::vector<unsigned char>> begins;  // the rest of the text begins a member of it
    std::vector<unsigned char> productive;

    Chart(const SlowGrammar& g, const Symbols& t) : grammar(g), text(t) {
      const size_t count = g.nodes.size();
      ends.assign(count, std::vector<Places>(t.size() + 1));
      begins.assign(count, std::vector<unsigned char>(t.size() + 1, 0));
      productive.assign(count, 0);
      for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = 0; n < count; ++n) {
          if (productive[n] == 0 && is_productive(g.nodes[n])) productive[n] = 1, changed = true;
        }
      }
      for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = 0; n < count; ++n) {
          for (size_t i = 0; i <= t.size(); ++i) {
            Places e = ends[n][i];
            bool b = begins[n][i] != 0;
            derive(g.nodes[n], i, &e, &b);
            if (e != ends[n][i] || b != (begins[n][i] != 0)) changed = true;
            ends[n][i] = e;
            begins[n][i] = b ? 1 : 0;
          }
        }
      }
    }

    [[nodiscard]] bool is_productive(const Node& node) const {
      switch (node.kind) {
        case Kind::kRule:
          return of(productive, grammar.rules[static_cast<size_t>(node.value)]) != 0;
        case Kind::kRepeat:
          return node.min == 0 || of(productive, node.parts[0]) != 0;
        case Kind::kSequence:
          for (const int part : node.parts) {
            if (of(productive, part) == 0) return false;
          }
          return true;
        case Kind::kChoice:
          for (const int part : node.parts) {
            if (of(productive, part) != 0) return true;
          }
          return false;
        case Kind::kClass:
          return !node.texts.empty();
        default:
          return true;
      }
    }

    template <typename T>
    static const T& of(const std::vector<T>& all, int id) {
      return all[static_cast<size_t>(id)];
    }

    void match(std::string_view bytes, size_t at, Places* e, bool* b) const {
      for (size_t k = 0; k < bytes.size(); ++k) {
        if (at + k == text.size()) {
          *b = true;
          return;
        }
        if (text[at + k] != static_cast<unsigned char>(bytes[k])) return;
      }
      e->set(at + bytes.size());
      if (at + bytes.size() == text.size()) *b = true;
    }

    void derive(const Node& node, size_t i, Places* e, bool* b) const {
      switch (node.kind) {
        case Kind::kText:
        case Kind::kClass:
          for (const std::string& one : node.texts) match(one, i, e, b);
          break;
        case Kind::kToken:
          if (i == text.size()) *b = true;
          if (i < text.size() && text[i] == kTokenSymbol + node.value) {
            e->set(i + 1);
            if (i + 1 == text.size()) *b = true;
          }
          break;
        case Kind::kRule: {
          const int body = grammar.rules[static_cast<size_t>(node.value)];
          *e |= of(ends, body)[i];
          *b |= of(begins, body)[i] != 0;
          break;
        }
        case Kind::kChoice:
          for (const int part : node.parts) {
            *e |= of(ends, part)[i];
            *b |= of(begins, part)[i] != 0;
          }
          break;
        case Kind::kSequence:
          sequence(node, i, e, b);
          break;
        case Kind::kRepeat:
          repeat(node, i, e, b);
          break;
      }
    }

    void sequence(const Node& node, size_t i, Places* e, bool* b) const {
      Places here;
      here.set(i);
      for (size_t k = 0; k < node.parts.size(); ++k) {
        bool rest = true;
        for (size_t m = k + 1; m < node.parts.size(); ++m) {
          rest &= of(productive, node.parts[m]) != 0;
        }
        here = through(node.parts[k], here, rest, b);
      }
      *e |= here;
      if (here[text.size()]) *b = true;
    }

    void repeat(const Node& node, size_t i, Places* e, bool* b) const {
      Places here;
      here.set(i);
      // Behind text.size() + 1 rounds beyond the minimum a loop without an end finds nothing new.
      const auto enough = static_cast<uint32_t>(node.min + text.size() + 1);
      for (uint32_t k = 0; here.any(); ++k) {
        if (k >= node.min) {
          *e |= here;
          if (here[text.size()]) *b = true;
        }
        if (k == node.max || k == enough) break;
        here = through(node.parts[0], here, true, b);
      }
    }

    Places through(int part, const Places& from, bool rest, bool* b) const {
      Places to;
      for (size_t p = 0; p <= text.size(); ++p) {
        if (!from[p]) continue;
        to |= of(ends, part)[p];
        *b |= rest && of(begins, part)[p] != 0;
      }
      return to;
    }
  };
};

/// Random trees over a, two marks (which masks know as kinds of their own, so that stretches of the
/// trie are taken at once) and a character of two bytes; tokens from `first_token` on have no
/// bytes.
class RandomGrammar {
 public:
  RandomGrammar(std::mt19937& random, int first_token, int n_tokens)
      : random_(random), first_token_(first_token), n_tokens_(n_tokens) {}

  SlowGrammar make() {
    SlowGrammar grammar;
    n_rules_ = 1 + static_cast<int>(random_() % 5);
    for (int r = 0; r < n_rules_; ++r) grammar.rules.push_back(node(grammar, 3));
    return grammar;
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  uint32_t number(int count) { return static_cast<uint32_t>(below(count)); }

  std::string character() {
    static const char* const kCharacters[] = {"a", "!", ",", "\xC3\xA9"};
    return kCharacters[below(4)];
  }

  int node(SlowGrammar& grammar, int depth) {
    using Kind = SlowGrammar::Kind;
    SlowGrammar::Node made{Kind::kText, {}, {}, 0, 0, 0};
    const int choice = below(depth > 0 ? 12 : 5);
    if (choice < 1) {
      made.texts.emplace_back();
      for (int i = below(4); i > 0; --i) made.texts[0] += character();
    } else if (choice < 2) {
      made.kind = Kind::kClass;
      for (int i = 1 + below(3); i > 0; --i) made.texts.push_back(character());
    } else if (choice < 3 && n_tokens_ > 0 && below(3) == 0) {
      made.kind = Kind::kToken;
      made.value = first_token_ + below(n_tokens_);
    } else if (choice < 5) {
      made.kind = Kind::kRule;
      made.value = below(n_rules_);
    } else if (choice < 8) {
      made.kind = Kind::kSequence;
      for (int i = 1 + below(3); i > 0; --i) made.parts.push_back(node(grammar, depth - 1));
    } else if (choice < 10) {
      made.kind = Kind::kChoice;
      for (int i = 1 + below(3); i > 0; --i) made.parts.push_back(node(grammar, depth - 1));
    } else {
      made.kind = Kind::kRepeat;
      made.parts.push_back(node(grammar, depth - 1));
      made.min = number(3);
      made.max = made.min + number(3);
      // Sometimes more than is written out, and so few that texts come to the end of it.
      const uint32_t many = below(3) == 0 ? 66 : 17;
      if (below(3) == 0) made.max = many + number(4);
      if (below(8) == 0 && made.max > 0) made.min = made.max - number(2);
      if (below(3) == 0) made.max = kNoLimit;
      if (below(6) == 0) made.min = many;
      if (made.max < made.min) made.max = made.min;
    }
    return grammar.add(std::move(made));
  }

  std::mt19937& random_;
  int first_token_;
  int n_tokens_;
  int n_rules_ = 1;
};

}  // namespace gen::grammar::test
