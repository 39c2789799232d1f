// SPDX-License-Identifier: Apache-2.0
// maskbench FOLDER [--json] [--slow]: schemas with instances, one file each ({"schema": …, "tests":
// [{"data": …, "valid": …}]}), as those of JSONSchemaBench. Tells how many schemas pass (all verdicts
// are right), are refused, refuse a valid instance or accept an invalid one, and why schemas are
// refused.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "grammar/schema/json_value.h"

namespace {

using gen::grammar::Grammar;
using gen::grammar::JsonType;
using gen::grammar::JsonValue;
using gen::grammar::Matcher;
using gen::grammar::SchemaOptions;
using gen::grammar::TokenText;
using gen::grammar::Vocabulary;
using Clock = std::chrono::steady_clock;

void write_string(const std::string& text, std::string* out) {
  *out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    static constexpr std::string_view kFrom = "\"\\\b\f\n\r\t";
    static constexpr std::string_view kTo = "\"\\bfnrt";
    if (const size_t place = kFrom.find(c); place != std::string_view::npos) {
      *out += '\\';
      *out += kTo[place];
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      *out += escape;
    } else {
      *out += c;
    }
  }
  *out += '"';
}

// As Python's json.dumps with ensure_ascii=False.
void write(const JsonValue& value, std::string* out) {
  const auto list = [&](char begin, char end, size_t count, auto&& one) {
    *out += begin;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) *out += ", ";
      one(i);
    }
    *out += end;
  };
  switch (value.type) {
    case JsonType::kNull:
      *out += "null";
      break;
    case JsonType::kFalse:
      *out += "false";
      break;
    case JsonType::kTrue:
      *out += "true";
      break;
    case JsonType::kNumber:
      *out += value.text;
      break;
    case JsonType::kString:
      write_string(value.text, out);
      break;
    case JsonType::kArray:
      list('[', ']', value.items.size(), [&](size_t i) { write(value.items[i], out); });
      break;
    case JsonType::kObject:
      list('{', '}', value.members.size(), [&](size_t i) {
        write_string(value.members[i].first, out);
        *out += ": ";
        write(value.members[i].second, out);
      });
      break;
  }
}

struct Tally {
  size_t pass = 0;
  size_t refused = 0;
  size_t valid_refused = 0;
  size_t invalid_accepted = 0;
  size_t valid_seen = 0;
  size_t invalid_seen = 0;
  std::map<std::string, size_t> reasons;
  std::vector<double> compile_ms;
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// "/a/b/keyword: reason 12" without what differs from schema to schema.
std::string reason_of(const std::string& message) {
  const size_t colon = message.find(": ");
  if (colon == std::string::npos) return message;
  const size_t slash = message.rfind('/', colon);
  const std::string keyword =
      slash == std::string::npos ? "" : message.substr(slash + 1, colon - slash - 1);
  std::string reason = message.substr(colon + 2);
  if (reason.rfind("unresolved reference", 0) == 0) reason = "unresolved reference";
  return keyword + ": " + reason;
}

void run(const std::filesystem::path& path, bool verbose,
         const std::shared_ptr<const Vocabulary>& bytes, Tally* tally) {
  auto file = gen::grammar::read_json(text_of(path));
  if (!file.ok()) {
    std::printf("%s: %s\n", path.filename().c_str(), file.status().message());
    return;
  }
  const JsonValue* schema = file->find("schema");
  const JsonValue* tests = file->find("tests");
  if (schema == nullptr) return;
  std::string text;
  write(*schema, &text);
  const auto begin = Clock::now();
  gen::grammar::GrammarLimits limits;
  limits.text_bytes = size_t{16} << 20U;
  auto grammar = Grammar::from_json_schema(text, SchemaOptions(), limits);
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  tally->compile_ms.push_back(ms);
  if (verbose && ms > 200) std::printf("%s: compiled in %.0f ms\n", path.filename().c_str(), ms);
  if (!grammar.ok()) {
    ++tally->refused;
    ++tally->reasons[reason_of(grammar.status().message())];
    if (verbose) {
      std::printf("%s: refused: %s\n", path.filename().c_str(), grammar.status().message());
    }
    return;
  }
  auto over = grammar.value()->once_over(bytes);
  auto matcher = Matcher::create(*over);
  bool right = true;
  static const JsonValue kNone = JsonValue::array();
  size_t number = 0;
  bool refused_valid = false;
  bool accepted_invalid = false;
  for (const JsonValue& test : (tests != nullptr ? tests : &kNone)->items) {
    const JsonValue* data = test.find("data");
    const JsonValue* valid = test.find("valid");
    if (data == nullptr || valid == nullptr) continue;
    std::string instance;
    write(*data, &instance);
    matcher->reset();
    auto taken = matcher->accept_bytes(instance);
    const bool member = taken.ok() && *taken && matcher->is_complete();
    const bool wanted = valid->is(JsonType::kTrue);
    ++(wanted ? tally->valid_seen : tally->invalid_seen);
    if (member != wanted) {
      right = false;
      (wanted ? refused_valid : accepted_invalid) = true;
      if (verbose) {
        std::printf("%s: test %zu: %s%s: %.200s\n", path.filename().c_str(), number,
                    wanted ? "valid refused" : "invalid accepted",
                    taken.ok() ? "" : taken.status().message(), instance.c_str());
      }
    }
    ++number;
  }
  tally->valid_refused += refused_valid ? 1 : 0;
  tally->invalid_accepted += accepted_invalid ? 1 : 0;
  tally->pass += right ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "maskbench FOLDER [--json] [-v]\n");
    return 2;
  }
  bool json = false;
  bool verbose = false;
  for (int i = 2; i < argc; ++i) {
    json |= std::string(argv[i]) == "--json";
    verbose |= std::string(argv[i]) == "-v";
  }
  std::vector<TokenText> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back({std::string(1, static_cast<char>(byte)), ""});
  }
  const auto bytes = Vocabulary::create(std::move(tokens), {}).value();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Tally tally;
  for (const auto& path : files) run(path, verbose, bytes, &tally);
  std::sort(tally.compile_ms.begin(), tally.compile_ms.end());
  const auto share = [&](double p) {
    if (tally.compile_ms.empty()) return 0.0;
    const auto last = static_cast<double>(tally.compile_ms.size() - 1);
    return tally.compile_ms[static_cast<size_t>(p * last)];
  };
  if (json) {
    std::printf("{\"schemas\":%zu,\"pass\":%zu,\"refused\":%zu,\"valid_refused\":%zu,"
                "\"invalid_accepted\":%zu,\"compile_ms\":{\"p50\":%.3f,\"p99\":%.3f,"
                "\"worst\":%.3f},\"reasons\":{",
                files.size(), tally.pass, tally.refused, tally.valid_refused,
                tally.invalid_accepted, share(0.5), share(0.99), share(1));
    const char* comma = "";
    for (const auto& [reason, count] : tally.reasons) {
      std::string name;
      write_string(reason, &name);
      std::printf("%s%s:%zu", comma, name.c_str(), count);
      comma = ",";
    }
    std::printf("}}\n");
    return 0;
  }
  std::printf("%zu schemas: %zu pass, %zu refused, %zu refuse a valid instance, %zu accept an "
              "invalid one (%zu valid and %zu invalid instances)\n",
              files.size(), tally.pass, tally.refused, tally.valid_refused,
              tally.invalid_accepted, tally.valid_seen, tally.invalid_seen);
  std::printf("compiled in ms: p50 %.2f, p99 %.2f, worst %.2f\n", share(0.5), share(0.99),
              share(1));
  for (const auto& [reason, count] : tally.reasons) {
    std::printf("%6zu  %s\n", count, reason.c_str());
  }
  return 0;
}
