// SPDX-License-Identifier: Apache-2.0
// Schemas with instances, one file each ({"schema": …, "tests": [{"data": …, "valid": …}]}, as
// those of JSONSchemaBench): how many pass (all verdicts are right), are refused, refuse a valid
// instance or accept an invalid one, why schemas are refused, and what masks cost, token by token.
//   maskbench FOLDER [-m GGUF]… [--vocab 128256,200064] [--json] [--list FILE] [--check-each N]
//             [--plain]
//   maskbench FOLDER --make OUT [--count 8]
// An instance is the text of json.dumps(data, ensure_ascii=False), or a test's "text", in the
// longest tokens of each vocabulary; without one, in bytes. At each token the mask is made, the
// token's bit is compared with what accepting it says, so are those of some others (with
// --check-each N of all, for one mask of N), and at its end the bit of the end token with the
// verdict.
// --plain takes the style of models (json_style.h): valid instances of another one are refused.
// --list writes a line for each schema: name, what became of it, ms to compile, mean and worst mask
// in us, reason.
// --make writes instances for schemas without, valid ones as the grammar has them and changed ones;
// maskbench_verdicts.mjs then asks another validator and leaves OUT/verdicts.jsonl, and maskbench
// OUT compares.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/vocabularies.h"
#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "support/json_walk.h"

namespace gen::grammar {
namespace {

using namespace bench;
namespace fs = std::filesystem;

struct Wanted {
  std::string text;
  bool valid = false;
};

struct Times {
  std::vector<double> all;

  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double one : all) sum += one;
    return all.empty() ? 0 : sum / static_cast<double>(all.size());
  }
  [[nodiscard]] double share(double p) {
    if (all.empty()) return 0;
    std::sort(all.begin(), all.end());
    return all[std::min(all.size() - 1, static_cast<size_t>(p * static_cast<double>(all.size())))];
  }
};

struct Over {
  std::string name;
  std::shared_ptr<const Vocabulary> vocabulary;
  Times mask;  // us, of each mask and the token behind it
};

struct Tally {
  size_t all = 0;
  size_t pass = 0;
  size_t refused = 0;
  size_t valid_refused = 0;
  size_t invalid_accepted = 0;
};

struct Bench {
  std::vector<Over> over;
  std::map<std::string, std::string> verdicts;  // by file
  std::map<std::string, size_t> reasons;
  Tally with;  // instances
  Tally without;
  Times compile;  // ms, those refused included
  size_t n_valid = 0;
  size_t n_invalid = 0;
  size_t n_masks = 0;
  size_t wrong_bits = 0;
  size_t unreadable = 0;
  size_t no_json = 0;  // walks, for a name that stands twice
  size_t check_each = 0;
  JsonStyle style;
  std::FILE* list = nullptr;
  std::mt19937 random{1};
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// "/a/b/keyword: reason" without what differs from schema to schema.
std::string reason_of(const std::string& message) {
  const size_t colon = message.find(": ");
  if (colon == std::string::npos) return message;
  const size_t slash = message.rfind('/', colon);
  const std::string keyword =
      slash == std::string::npos ? "" : message.substr(slash + 1, colon - slash - 1);
  std::string reason = message.substr(colon + 2, 100);
  for (const char* same : {"unresolved reference", "a required member"}) {
    if (reason.rfind(same, 0) == 0) reason = same;
  }
  return keyword + ": " + reason;
}

bool bit(const std::vector<uint64_t>& mask, int32_t token) {
  return (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
}

// Whether masks say what accepting says, for tokens drawn from the mask and from all.
void compare(Bench* bench, const Matcher& matcher, const std::vector<uint64_t>& mask) {
  const int32_t size = matcher.grammar().vocabulary().size();
  const bool whole = bench->check_each > 0 && bench->n_masks % bench->check_each == 0;
  const auto check = [&](int32_t token) {
    Matcher other = matcher.fork();
    const auto taken = other.accept_token(token);
    if (taken.ok() && taken.value() != bit(mask, token)) ++bench->wrong_bits;
  };
  if (whole) {
    for (int32_t token = 0; token < size; ++token) check(token);
    return;
  }
  for (int i = 0; i < 2; ++i)
    check(static_cast<int32_t>(bench->random() % static_cast<uint32_t>(size)));
  const size_t first = bench->random() % mask.size();
  for (size_t i = 0; i < std::min<size_t>(mask.size(), 64); ++i) {
    const size_t word = (first + i) % mask.size();
    if (mask[word] == 0) continue;
    check(static_cast<int32_t>(word * 64 + static_cast<size_t>(std::countr_zero(mask[word]))));
    break;
  }
}

// Whether the text is a member, token by token; `*failed` if a mask was too much work.
bool read(Bench* bench, Over* over, Matcher& matcher, const std::string& text, bool* failed,
          Times* own) {
  std::vector<uint64_t> mask(over->vocabulary->words());
  matcher.reset();
  for (const int32_t token : spell(*over->vocabulary, text)) {
    if (token < 0) return false;
    const double begin = now_micros();
    std::fill(mask.begin(), mask.end(), 0);
    const Status made = matcher.mask(mask);
    const double masked = micros(begin);
    if (!made.ok()) {
      *failed = true;
      return false;
    }
    ++bench->n_masks;
    compare(bench, matcher, mask);
    const double again = now_micros();
    const auto taken = matcher.accept_token(token);
    own->all.push_back(masked + micros(again));
    if (!taken.ok()) {
      *failed = true;
      return false;
    }
    if (taken.value() != bit(mask, token)) ++bench->wrong_bits;
    if (!taken.value()) return false;
  }
  std::fill(mask.begin(), mask.end(), 0);
  if (!matcher.mask(mask).ok()) {
    *failed = true;
    return false;
  }
  const auto ends = over->vocabulary->ends();
  const bool complete = matcher.is_complete();
  for (const int32_t end : ends) {
    if (bit(mask, end) != complete) ++bench->wrong_bits;
  }
  return complete;
}

std::vector<Wanted> wanted_of(const Bench& bench, const JsonValue& file, const std::string& name) {
  std::vector<Wanted> made;
  // A line of make_schema_pairs.mjs.
  if (const JsonValue* texts = file.find("instances")) {
    const std::string& valid = file.find("valid")->text;
    for (size_t i = 0; i < valid.size(); ++i)
      made.push_back({texts->items[i].text, valid[i] == '1'});
    return made;
  }
  const JsonValue* tests = file.find("tests");
  if (tests == nullptr) return made;
  const auto verdicts = bench.verdicts.find(name);
  for (size_t i = 0; i < tests->items.size(); ++i) {
    const JsonValue* data = tests->items[i].find("data");
    const JsonValue* text = tests->items[i].find("text");
    const JsonValue* valid = tests->items[i].find("valid");
    Wanted one;
    if (text != nullptr) one.text = text->text;
    if (text == nullptr && data != nullptr) one.text = test::json_text(*data);
    if (verdicts != bench.verdicts.end()) {
      if (i >= verdicts->second.size() || verdicts->second[i] == '?') continue;
      one.valid = verdicts->second[i] == '1';
    } else {
      if (valid == nullptr) continue;
      one.valid = valid->is(JsonType::kTrue);
    }
    made.push_back(std::move(one));
  }
  return made;
}

Result<std::shared_ptr<const Grammar>> compile(const JsonValue& schema, const JsonStyle& style) {
  GrammarLimits limits;
  limits.text_bytes = size_t{16} << 20U;
  SchemaOptions options;
  options.style = style;
  return Grammar::from_json_schema(test::json_text(schema), options, limits);
}

void run(const std::string& name, std::string_view text, Bench* bench) {
  auto file = read_json(text);
  const JsonValue* schema = file.ok() ? file.value().find("schema") : nullptr;
  if (schema == nullptr) {
    ++bench->unreadable;
    std::fprintf(stderr, "%s: %s\n", name.c_str(), file.status().message());
    return;
  }
  const std::vector<Wanted> tests = wanted_of(*bench, file.value(), name);
  Tally& tally = tests.empty() ? bench->without : bench->with;
  ++tally.all;
  const double begin = now_micros();
  const auto grammar = compile(*schema, bench->style);
  const double ms = micros(begin) / 1000;
  bench->compile.all.push_back(ms);
  const auto tell = [&](const char* what, Times* own, const std::string& why) {
    if (bench->list == nullptr) return;
    std::fprintf(bench->list, "%s\t%s\t%.2f\t%.1f\t%.1f\t%s\n", name.c_str(), what, ms, own->mean(),
                 own->share(1), why.c_str());
  };
  Times own;
  if (!grammar.ok()) {
    ++tally.refused;
    ++bench->reasons[reason_of(grammar.status().message())];
    // That no value is valid can be wrong.
    const bool none = std::strstr(grammar.status().message(), "no value is valid") != nullptr;
    for (const Wanted& wanted : tests) {
      if (!none || !wanted.valid) continue;
      ++tally.valid_refused;
      tell("VALID REFUSED", &own, wanted.text.substr(0, 300));
      break;
    }
    tell("refused", &own, grammar.status().message());
    return;
  }
  bool refused_valid = false;
  bool accepted_invalid = false;
  std::string which;
  for (Over& over : bench->over) {
    const auto tokens = grammar.value()->once_over(over.vocabulary);
    auto matcher = Matcher::create(tokens.value());
    for (const Wanted& wanted : tests) {
      bool failed = false;
      const bool member = read(bench, &over, matcher.value(), wanted.text, &failed, &own);
      ++(wanted.valid ? bench->n_valid : bench->n_invalid);
      if (member == wanted.valid && !failed) continue;
      (wanted.valid ? refused_valid : accepted_invalid) = true;
      if (which.empty()) which = (failed ? "limit: " : "") + wanted.text.substr(0, 300);
    }
    over.mask.all.insert(over.mask.all.end(), own.all.begin(), own.all.end());
    if (&over != &bench->over.back()) own.all.clear();
  }
  tally.valid_refused += refused_valid ? 1U : 0U;
  tally.invalid_accepted += accepted_invalid ? 1U : 0U;
  tally.pass += refused_valid || accepted_invalid ? 0U : 1U;
  tell(refused_valid      ? "VALID REFUSED"
       : accepted_invalid ? "INVALID ACCEPTED"
                          : "pass",
       &own, which);
}

// Members, and what is near them; none of a schema that is refused.
void make(const fs::path& path, const fs::path& out, size_t count, Bench* bench) {
  auto file = read_json(text_of(path));
  const JsonValue* schema = file.ok() ? file.value().find("schema") : nullptr;
  if (schema == nullptr || !wanted_of(*bench, file.value(), path.filename()).empty()) return;
  ++bench->without.all;
  std::vector<std::string> texts;
  const auto grammar = compile(*schema, bench->style);
  if (grammar.ok()) {
    std::vector<std::string> words;
    test::collect_words(*schema, &words);
    const auto seed = static_cast<uint32_t>(std::hash<std::string>()(path.filename()));
    test::Walker walker(seed, std::move(words));
    auto matcher = Matcher::create(grammar.value()->once_over(bench->over[0].vocabulary).value());
    for (size_t i = 0; i < count; ++i) {
      const std::string text = walker.walk(matcher.value(), i % 2 == 0 ? 400 : 40);
      if (text.empty()) continue;
      const auto value = read_json(text);
      if (!value.ok()) {
        ++bench->no_json;
        continue;
      }
      texts.push_back(text);
      for (int k = 0; k < 2; ++k) texts.push_back(test::json_text(walker.changed(value.value())));
    }
    bench->without.pass += texts.empty() ? 0U : 1U;
  } else {
    ++bench->without.refused;
  }
  JsonValue tests = JsonValue::array();
  for (std::string& text : texts) {
    tests.items.push_back(JsonValue::object().add("text", JsonValue::of_string(std::move(text))));
  }
  JsonValue made = JsonValue::object();
  made.add("schema", *schema);
  made.add("tests", std::move(tests));
  std::ofstream(out / path.filename()) << test::json_text(made) << "\n";
}

void print(const char* title, const Tally& tally) {
  std::printf(
      "%-18s %6zu schemas: %6zu pass %6zu refused %6zu valid refused %6zu invalid accepted\n",
      title, tally.all, tally.pass, tally.refused, tally.valid_refused, tally.invalid_accepted);
}

void print(Bench* bench) {
  print("with instances", bench->with);
  print("without instances", bench->without);
  std::printf(
      "%zu valid and %zu invalid instances read; %zu masks, %zu wrong bits; %zu files "
      "unreadable\n",
      bench->n_valid, bench->n_invalid, bench->n_masks, bench->wrong_bits, bench->unreadable);
  std::printf("compile, ms of CPU: mean %.2f p50 %.2f p99 %.2f worst %.2f\n", bench->compile.mean(),
              bench->compile.share(0.5), bench->compile.share(0.99), bench->compile.share(1));
  for (Over& over : bench->over) {
    std::printf(
        "%-24s %7d tokens: mask and accept, us of CPU: mean %.1f p50 %.1f p99 %.1f p99.9 "
        "%.1f worst %.1f (%zu)\n",
        over.name.c_str(), over.vocabulary->size(), over.mask.mean(), over.mask.share(0.5),
        over.mask.share(0.99), over.mask.share(0.999), over.mask.share(1), over.mask.all.size());
  }
  std::vector<std::pair<size_t, std::string>> reasons;
  for (const auto& [reason, count] : bench->reasons) reasons.emplace_back(count, reason);
  std::sort(reasons.rbegin(), reasons.rend());
  for (const auto& [count, reason] : reasons) std::printf("%6zu  %s\n", count, reason.c_str());
}

void print_json(Bench* bench) {
  const auto tally = [](const char* name, const Tally& one) {
    std::printf(
        "\"%s\":{\"schemas\":%zu,\"pass\":%zu,\"refused\":%zu,\"valid_refused\":%zu,"
        "\"invalid_accepted\":%zu},",
        name, one.all, one.pass, one.refused, one.valid_refused, one.invalid_accepted);
  };
  std::printf("{");
  tally("with_instances", bench->with);
  tally("without_instances", bench->without);
  std::printf("\"valid\":%zu,\"invalid\":%zu,\"masks\":%zu,\"wrong_bits\":%zu,\"unreadable\":%zu,",
              bench->n_valid, bench->n_invalid, bench->n_masks, bench->wrong_bits,
              bench->unreadable);
  std::printf(
      "\"compile_ms\":{\"mean\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"worst\":%.3f},\"mask_us\":[",
      bench->compile.mean(), bench->compile.share(0.5), bench->compile.share(0.99),
      bench->compile.share(1));
  const char* comma = "";
  for (Over& over : bench->over) {
    std::string name;
    test::write_string(over.name, &name);
    std::printf(
        "%s{\"vocabulary\":%s,\"tokens\":%d,\"masks\":%zu,\"mean\":%.2f,\"p50\":%.2f,"
        "\"p99\":%.2f,\"p99.9\":%.2f,\"worst\":%.2f}",
        comma, name.c_str(), over.vocabulary->size(), over.mask.all.size(), over.mask.mean(),
        over.mask.share(0.5), over.mask.share(0.99), over.mask.share(0.999), over.mask.share(1));
    comma = ",";
  }
  std::printf("],\"reasons\":{");
  comma = "";
  for (const auto& [reason, count] : bench->reasons) {
    std::string name;
    test::write_string(reason, &name);
    std::printf("%s%s:%zu", comma, name.c_str(), count);
    comma = ",";
  }
  std::printf("}}\n");
}

void read_verdicts(const fs::path& path, Bench* bench) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto one = read_json(line);
    const JsonValue* name = one.ok() ? one.value().find("file") : nullptr;
    const JsonValue* valid = one.ok() ? one.value().find("valid") : nullptr;
    if (name != nullptr && valid != nullptr) bench->verdicts[name->text] = valid->text;
  }
}

int run(int argc, char** argv) {
  Bench bench;
  fs::path folder;
  fs::path out;
  size_t count = 8;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--json" || option == "--plain") {
      if (option == "--json") json = true;
      if (option == "--plain") bench.style = JsonStyle::of_models();
      continue;
    }
    if (option[0] != '-') {
      folder = option;
      continue;
    }
    ++i;
    if (option == "-m") {
      auto vocabulary = bench::read(value);
      if (vocabulary == nullptr) return std::fprintf(stderr, "cannot read %s\n", value), 1;
      bench.over.push_back({fs::path(value).filename(), std::move(vocabulary), {}});
    } else if (option == "--vocab") {
      for (const char* at = value; *at != 0;) {
        char* end = nullptr;
        const size_t size = std::strtoull(at, &end, 10);
        if (size < 2000) return std::fprintf(stderr, "%s: sizes from 2000 on\n", value), 2;
        bench.over.push_back({"synthetic", synthetic(size), {}});
        at = *end == ',' ? end + 1 : end;
      }
    } else if (option == "--list") {
      bench.list = std::fopen(value, "w");
    } else if (option == "--make") {
      out = value;
    } else if (option == "--count") {
      count = std::strtoull(value, nullptr, 10);
    } else if (option == "--check-each") {
      bench.check_each = std::strtoull(value, nullptr, 10);
    }
  }
  if (!fs::exists(folder)) {
    std::fprintf(stderr,
                 "maskbench FOLDER [-m GGUF]... [--vocab N,N] [--json] [--list FILE] "
                 "[--check-each N] [--plain] | maskbench FOLDER --make OUT [--count N]\n");
    return 2;
  }
  if (bench.over.empty()) {
    std::vector<TokenText> tokens;
    for (int byte = 0; byte < 256; ++byte)
      tokens.push_back({std::string(1, static_cast<char>(byte)), ""});
    tokens.push_back({"", "</s>"});
    const int32_t end = 256;
    bench.over.push_back({"bytes", Vocabulary::create(std::move(tokens), {&end, 1}).value(), {}});
  }
  read_verdicts(folder / "verdicts.jsonl", &bench);
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::is_directory(folder) ? fs::directory_iterator(folder) : fs::directory_iterator()) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (!out.empty()) {
    fs::create_directories(out);
    for (const fs::path& path : files) make(path, out, count, &bench);
    std::printf(
        "%zu schemas without instances, %zu refused, instances made for %zu; %zu walks ended in "
        "no JSON\n",
        bench.without.all, bench.without.refused, bench.without.pass, bench.no_json);
    return 0;
  }
  for (const fs::path& path : files) run(path.filename(), text_of(path), &bench);
  if (!fs::is_directory(folder)) {
    std::ifstream lines(folder);
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) run(std::to_string(++number), line, &bench);
  }
  if (bench.list != nullptr) std::fclose(bench.list);
  json ? print_json(&bench) : print(&bench);
  return bench.wrong_bits == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gen::grammar

int main(int argc, char** argv) { return gen::grammar::run(argc, argv); }
