// SPDX-License-Identifier: Apache-2.0
// What a mask costs, with accepting the token before it: random JSON documents, and documents drawn
// from other grammars, are spelt in the longest tokens, and at every token the mask is made and the
// token accepted. Three ways: cold (a grammar never used before), for each document another copy of
// the grammar, and warm (masks of earlier documents are there). Before it measures, it checks that
// every document is taken and that every mask has the token that comes next.
// With --check-each N, one mask of N is compared with what accept_token takes, token by token.
//   grammar_bench [--vocab 32000,128256] [--gguf FILE] [--documents 100] [--only SUBJECT]
//   [--check-each N]
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/vocabularies.h"
#include "grammar/grammar.h"
#include "grammar/json/json.h"
#include "grammar/matcher/matcher.h"

namespace gen::grammar {
namespace {

using namespace bench;

std::string random_json(std::mt19937& random, int depth) {
  const char* space = random() % 2 == 0 ? " " : "";
  switch (depth > 0 ? random() % 7 : 2 + random() % 4) {
    case 0:
    case 6: {
      std::string text = "{";
      for (size_t i = random() % 6; i > 0; --i) {
        text += (text.size() > 1 ? std::string(",") + space : "") + "\"" + random_word(random) +
                "\":" + space + random_json(random, depth - 1);
      }
      return text + "}";
    }
    case 1: {
      std::string text = "[";
      for (size_t i = random() % 6; i > 0; --i) {
        text += (text.size() > 1 ? std::string(",") + space : "") + random_json(random, depth - 1);
      }
      return text + "]";
    }
    case 2:
      return std::to_string(static_cast<int>(random() % 2000) - 500) + ".5e3";
    case 3:
      return random() % 2 == 0 ? "true" : "null";
    default: {
      std::string text = "\"";
      for (size_t i = random() % 12; i > 0; --i) {
        text += random_word(random) + (random() % 9 == 0 ? "\\n" : " \xC3\xA9");
      }
      return text + "\"";
    }
  }
}

void histogram(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double time : times) sum += time;
  const auto at = [&](double share) {
    return times[std::min(times.size() - 1,
                          static_cast<size_t>(share * static_cast<double>(times.size())))];
  };
  std::printf(
      "  %-25s %7zu masks, us: mean %.1f p50 %.1f p90 %.1f p99 %.1f p99.9 %.1f worst %.1f\n", name,
      times.size(), sum / static_cast<double>(times.size()), at(0.5), at(0.9), at(0.99), at(0.999),
      times.back());
}

int check_each = 0;  // so many masks are compared once with what is accepted; 0: none
size_t n_checked = 0;

bool is_exact(const Matcher& matcher, const std::vector<uint64_t>& mask) {
  ++n_checked;
  for (int32_t token = 0; token < matcher.grammar().vocabulary().size(); ++token) {
    const bool allowed = (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
    Matcher other = matcher.fork();
    const auto taken = other.accept_token(token);
    if (!taken.ok() || taken.value() != allowed) return false;
  }
  return true;
}

bool run(const Grammar& grammar, const std::shared_ptr<const Vocabulary>& vocabulary,
         const std::vector<int32_t>& document, std::vector<double>* times) {
  auto over = grammar.over(vocabulary);
  if (!over.ok()) return false;
  auto matcher = Matcher::create(over.value());
  if (!matcher.ok()) return false;
  std::vector<uint64_t> mask(vocabulary->words());
  for (const int32_t token : document) {
    if (check_each > 0 && times->size() % static_cast<size_t>(check_each) == 0) {
      if (!matcher->mask(mask).ok() || !is_exact(*matcher, mask)) return false;
    }
    const auto begin = now_micros();
    if (!matcher->mask(mask).ok()) return false;
    const bool allowed = (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
    const auto taken = matcher->accept_token(token);
    times->push_back(micros(begin));
    if (!allowed || !taken.ok() || !taken.value()) return false;
  }
  return matcher->is_complete();
}

std::string only;  // a subject's name

using Made = Result<std::shared_ptr<const Grammar>>;

struct Subject {
  const char* name;
  Made (*make)();
};

Made tool_calls() {
  const auto make = [](Expressions& to) -> Result<std::vector<Tag>> {
    Tag tag;
    tag.begin = "<tool_call>";
    tag.body = any_json_expression(to);
    tag.end = "</tool_call>";
    return std::vector<Tag>{tag};
  };
  return Grammar::from_tags(make, {});
}

// Kinds of grammars that people write; documents are drawn from them.
const Subject kSubjects[] = {
    {"arithmetic",
     [] {
       return Grammar::from_gbnf(
           "root ::= e\ne ::= t ([-+] t)*\nt ::= f ([*/] f)*\n"
           "f ::= \"(\" e \")\" | [0-9]+ (\".\" [0-9]+)? | [a-z_] [a-z0-9_]*\n");
     }},
    {"C-like",
     [] {
       return Grammar::from_gbnf(
           "root ::= (decl ws)+\ndecl ::= type \" \" id ws \"(\" (type \" \" id (\", \" type \" \" "
           "id)*)? "
           "\")\" ws block\nblock ::= \"{\" ws (stmt ws)* \"}\"\n"
           "stmt ::= type \" \" id (\" = \" expr)? \";\" | \"if (\" expr \") \" block (\" else \" "
           "block)? | "
           "\"while (\" expr \") \" block | \"return \" expr \";\" | id \" = \" expr \";\" | \"// "
           "\" [^\\n]* "
           "\"\\n\"\nexpr ::= expr (\" + \" | \" - \" | \" * \" | \" < \" | \" == \" | \" && \") "
           "expr | id | num | "
           "\"(\" expr \")\" | id \"(\" (expr (\", \" expr)*)? \")\" | \"\\\"\" [^\"\\\\\\n]* "
           "\"\\\"\"\n"
           "type ::= \"int\" | \"char\" | \"double\"\nid ::= [a-zA-Z_] [a-zA-Z0-9_]{0,31}\nnum ::= "
           "[0-9]{1,12} (\".\" [0-9]{1,12})?\nws ::= [ \\n\\t]{0,40}\n");
     }},
    {"CSV",
     [] {
       return Grammar::from_gbnf(
           "root ::= row+\nrow ::= cell (\",\" cell){3,7} \"\\n\"\ncell ::= [^,\"\\n\\r]* | "
           "\"\\\"\" ([^\"] "
           "| \"\\\"\\\"\")* \"\\\"\"\n");
     }},
    {"dates, one a line",
     [] {
       return Grammar::from_regex(
           "(?:\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])(?:T(?:[01]\\d|2[0-3]):[0-5]\\d:[0-"
           "5]\\d"
           "(?:\\.\\d{1,9})?(?:Z|[+-]\\d\\d:\\d\\d))?\\n){1,100}");
     }},
    {"a password by lookahead",
     [] { return Grammar::from_regex("(?=.*[A-Z])(?=.*\\d)(?!.*secret)[A-Za-z\\d]{8,64}"); }},
    {"words with \\p",
     [] { return Grammar::from_regex("(?:\\p{Lu}\\p{Ll}*(?: \\p{L}+)*[.!?] ?)+"); }},
    {"bounded strings",
     [] {
       return Grammar::from_gbnf(
           "root ::= \"[\" (s (\", \" s)*)? \"]\"\ns ::= short | mid | long\nshort ::= \"\\\"\" "
           "c{1,20} "
           "\"\\\"\"\nmid ::= \"\\\"#\" c{5,100} \"\\\"\"\nlong ::= \"\\\"!\" c{0,2000} \"\\\"\"\n"
           "c ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4})\n");
     }},
    {"tool calls in text", tool_calls},
    {"addresses with a limit",
     [] {
       return Grammar::from_json_schema(
           R"({"type": "array", "items": {"type": "string", "format": "uri", "maxLength": 2083}})",
           SchemaOptions());
     }},
    {"long names",  // near their limit from the first character on, for long tokens
     [] {
       return Grammar::from_json_schema(
           R"({"type": "array", "items": {"type": "string", "maxLength": 253,
               "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}})",
           SchemaOptions());
     }},
};

// A member: at first any bytes, mostly letters and digits, then the nearest end.
std::string draw(const Grammar& grammar, const std::shared_ptr<const Vocabulary>& vocabulary,
                 std::mt19937& random) {
  Matcher matcher = Matcher::create(grammar.over(vocabulary).value()).value();
  std::string text;
  const size_t most = 200 + random() % 400;
  while (!matcher.is_finished()) {
    const ByteSet valid = matcher.valid_bytes();
    std::vector<char> open;
    for (int byte = 0; byte < 256; ++byte) {
      const auto c = static_cast<char>(byte);
      const bool common = std::isalnum(byte) != 0 || c == ' ' || random() % 12 == 0;
      if (common && valid.has(static_cast<uint8_t>(byte))) open.push_back(c);
    }
    if (text.size() < most && open.empty()) continue;
    if (text.size() < most) {
      text.push_back(open[random() % open.size()]);
      if (!matcher.accept_bytes({&text.back(), 1}).value()) return "";
      continue;
    }
    if (matcher.is_complete()) break;
    const uint64_t left = matcher.min_bytes();
    bool nearer = false;
    for (int byte = 0; byte < 256 && !nearer; ++byte) {
      const auto c = static_cast<char>(byte);
      if (!valid.has(static_cast<uint8_t>(byte)) || !matcher.accept_bytes({&c, 1}).value())
        continue;
      nearer = matcher.min_bytes() < left;
      if (nearer) text.push_back(c);
      if (!nearer && !matcher.rollback(1).ok()) return "";
    }
    if (!nearer) return "";
  }
  return text;
}

bool measure(const Subject& subject, const std::shared_ptr<const Vocabulary>& vocabulary,
             int n_documents, std::vector<double>* all) {
  std::mt19937 random(3);
  std::vector<double> compile;
  std::vector<double> fresh;
  std::vector<double> warm;
  const auto shared = subject.make();
  if (!shared.ok()) return false;
  for (int i = 0; i < n_documents; ++i) {
    const auto document = spell(*vocabulary, draw(*shared.value(), vocabulary, random));
    // Not every vocabulary spells every byte.
    if (std::find(document.begin(), document.end(), -1) != document.end()) continue;
    const double begin = now_micros();
    const auto grammar = subject.make();
    compile.push_back(micros(begin));
    if (!run(*grammar.value(), vocabulary, document, &fresh)) return false;
    if (!run(*shared.value(), vocabulary, document, &warm)) return false;
  }
  if (compile.empty()) return true;
  std::sort(compile.begin(), compile.end());
  std::printf("  %s: compile us p50 %.0f worst %.0f, %zu states\n", subject.name,
              compile[compile.size() / 2], compile.back(),
              shared.value()->machines().states.size());
  histogram("a grammar a document", fresh);
  histogram("one grammar, warm", warm);
  all->insert(all->end(), fresh.begin(), fresh.end());
  return true;
}

bool measure(const std::shared_ptr<const Vocabulary>& vocabulary, int n_documents) {
  std::mt19937 random(9);
  std::vector<std::vector<int32_t>> documents;
  for (int i = 0; i < n_documents; ++i) {
    documents.push_back(spell(*vocabulary, random_json(random, 4)));
    for (const int32_t token : documents.back()) {
      if (token < 0) return false;
    }
  }
  std::printf("vocabulary %d, trie of %zu\n", vocabulary->size(), vocabulary->trie().size());
  std::vector<double> compile;
  std::vector<std::shared_ptr<const Grammar>> grammars;
  for (int i = 0; i < n_documents; ++i) {
    const auto begin = now_micros();
    grammars.push_back(Grammar::any_json().value());
    compile.push_back(micros(begin));
  }
  std::sort(compile.begin(), compile.end());
  std::printf("  any JSON: compile us p50 %.0f worst %.0f, %zu states, %zu bytes\n",
              compile[compile.size() / 2], compile.back(), grammars[0]->machines().states.size(),
              grammars[0]->machines().memory());
  std::vector<double> cold;
  std::vector<double> fresh;
  std::vector<double> warm;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (!run(*grammars[i], vocabulary, documents[i], &fresh)) return false;
  }
  const auto shared = Grammar::any_json().value();
  for (const auto& document : documents) {
    if (!run(*shared, vocabulary, document, &cold)) return false;
  }
  for (const auto& document : documents) {
    if (!run(*shared, vocabulary, document, &warm)) return false;
  }
  histogram("a grammar a document", fresh);
  histogram("one grammar, cold", cold);
  histogram("one grammar, warm", warm);
  std::printf("  masks kept: %zu bytes\n", shared->over(vocabulary).value()->statistics().bytes);
  std::vector<double> all = fresh;
  for (const Subject& subject : kSubjects) {
    if (!only.empty() && only != subject.name) continue;
    if (!measure(subject, vocabulary, std::max(1, n_documents / 5), &all)) return false;
  }
  histogram("ALL, a grammar a document", all);
  return true;
}

}  // namespace
}  // namespace gen::grammar

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
  std::string sizes = "32000,128256";
  int n_documents = 100;
  std::vector<std::shared_ptr<const gen::grammar::Vocabulary>> vocabularies;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--vocab") sizes = argv[i + 1];
    if (option == "--documents") n_documents = std::max(1, std::atoi(argv[i + 1]));
    if (option == "--check-each") gen::grammar::check_each = std::atoi(argv[i + 1]);
    if (option == "--only") gen::grammar::only = argv[i + 1];
    if (option == "--gguf") {
      vocabularies.push_back(gen::grammar::bench::read(argv[i + 1]));
      if (vocabularies.back() == nullptr) return std::printf("cannot read %s\n", argv[i + 1]), 1;
    }
  }
  for (size_t at = 0; at < sizes.size();) {
    const size_t size = std::strtoull(sizes.c_str() + at, nullptr, 10);
    at = std::min(sizes.find(',', at), sizes.size() - 1) + 1;
    if (size < 2000) continue;
    vocabularies.push_back(gen::grammar::bench::synthetic(size));
  }
  for (const auto& vocabulary : vocabularies) {
    if (!gen::grammar::measure(vocabulary, n_documents)) return std::printf("WRONG RESULT\n"), 1;
  }
  if (gen::grammar::n_checked > 0) {
    std::printf("%zu masks are what is accepted, token by token\n", gen::grammar::n_checked);
  }
  return 0;
}
