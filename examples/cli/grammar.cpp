// SPDX-License-Identifier: Apache-2.0
// generate grammar: which documents a grammar allows, where one violates it, and how long masks
// take.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "grammar_options.h"
#include "json_place.h"
#include "model_file.h"
#include "option_help.h"

namespace cli {
namespace {

struct GrammarTask {
  std::string action;
  GrammarChoice grammar;
  ModelChoice model;
  bool json = false;
};

using Clock = std::chrono::steady_clock;

/// Names of files and messages need not be UTF-8.
std::string json_line(const nlohmann::json& answer) {
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::string all_of_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of_input() {
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  return lines;
}

gen_status encode(const gen_tokenizer* tokenizer, const std::string& text,
                  std::vector<int32_t>* ids, gen_error* error) {
  ids->resize(text.size() + 2);
  size_t n = 0;
  const gen_status status =
      gen_tokenizer_encode(tokenizer, text.data(), text.size(), GEN_ENCODE_CONTINUE, ids->data(),
                           ids->size(), &n, error);
  ids->resize(n);
  return status;
}

std::vector<int32_t> tokens_of(const gen_tokenizer* tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  gen_error error;
  check(encode(tokenizer, text, &ids, &error), error);
  return ids;
}

/// Whether a document is a member, read byte by byte or token by token. If the check exceeds a
/// limit, the answer is unknown and `*limit` names it.
bool is_member(gen_grammar_matcher* matcher, const gen_tokenizer* tokenizer, bool by_tokens,
               const std::string& document, std::string* limit) {
  gen_error error;
  check(gen_grammar_matcher_reset(matcher, &error), error);
  gen_status status = GEN_OK;
  if (by_tokens) {
    // Text that is not UTF-8 has no tokens, and cannot be a member of a grammar that asks for
    // tokens.
    std::vector<int32_t> ids;
    if (encode(tokenizer, document, &ids, &error) != GEN_OK) return false;
    for (size_t i = 0; i < ids.size() && status == GEN_OK; ++i) {
      status = gen_grammar_matcher_accept_token(matcher, ids[i], &error);
    }
  } else {
    status = gen_grammar_matcher_accept_bytes(matcher, document.data(), document.size(), &error);
  }
  if (status == GEN_ERROR_UNSUPPORTED) *limit = error.message;
  return status == GEN_OK && gen_grammar_matcher_complete(matcher) != 0;
}

void print_results(const GrammarTask& options, const gen_tokenizer* tokenizer) {
  nlohmann::json answer = {{"compiled", true},
                           {"error", nullptr},
                           {"relaxed", nlohmann::json::array()},
                           {"unknown_formats", nlohmann::json::array()},
                           {"results", nlohmann::json::array()}};
  GrammarMatcher matcher;
  try {
    const Grammar grammar = make_grammar(options.grammar);
    matcher = make<GrammarMatcher>(gen_grammar_matcher_new, grammar.get(), tokenizer);
    const auto described =
        nlohmann::json::parse(text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
          return gen_grammar_describe(grammar.get(), buf, capacity, n, error);
        }));
    for (const char* note : {"unknown_formats", "relaxed"}) {
      if (described.contains(note)) answer[note] = described[note];
    }
  } catch (const Failure& failure) {
    // A grammar file that is not UTF-8 is an error of the grammar, too.
    const bool of_grammar =
        failure.status == GEN_ERROR_GRAMMAR ||
        (failure.status == GEN_ERROR_INVALID_ARGUMENT && failure.exit_code == 1);
    if (!options.json || !of_grammar) throw;
    answer["compiled"] = false;
    answer["error"] = failure.what();
    std::cout << json_line(answer);
    return;
  }
  for (const std::string& document : lines_of_input()) {
    std::string limit;
    const bool member =
        is_member(matcher.get(), tokenizer, !options.model.path.empty(), document, &limit);
    if (!options.json) {
      std::cout << (!limit.empty() ? "not known: " + limit : member ? "yes" : "no") << "\n";
      continue;
    }
    auto& results = answer["results"];
    results.push_back(limit.empty() ? nlohmann::json(member) : nlohmann::json());
    if (limit.empty() || !answer["error"].is_null()) continue;
    answer["error"] = "document " + std::to_string(results.size()) + ": " + limit;
  }
  if (options.json) std::cout << json_line(answer);
}

/// The bytes that may come next, in readable form: "'a' to 'z', '\n'".
std::string expected(const gen_grammar_matcher* matcher) {
  uint32_t bits[8];
  gen_error error;
  check(gen_grammar_matcher_valid_bytes(matcher, bits, &error), error);
  const auto has = [&](int byte) {
    return byte < 256 && (bits[byte / 32] >> (byte % 32) & 1U) != 0;
  };
  const auto name = [](int byte) {
    if (byte >= 0x20 && byte < 0x7F) return "'" + std::string(1, static_cast<char>(byte)) + "'";
    char text[8];
    std::snprintf(text, sizeof text, "0x%02X", static_cast<unsigned>(byte));
    return std::string(text);
  };
  std::string out;
  for (int byte = 0; byte < 256; ++byte) {
    if (!has(byte)) continue;
    int last = byte;
    while (has(last + 1)) ++last;
    if (!out.empty()) out += ", ";
    out += name(byte) + (last > byte ? " to " + name(last) : "");
    byte = last;
  }
  return out.empty() ? "nothing" : out;
}

/// Prints where a document stops being the beginning of a member.
void print_place(const GrammarTask& options, const gen_tokenizer* tokenizer) {
  const std::string document = all_of_input();
  const Grammar grammar = make_grammar(options.grammar);
  const auto matcher = make<GrammarMatcher>(gen_grammar_matcher_new, grammar.get(), tokenizer);
  size_t at = 0;
  gen_status status = GEN_OK;
  gen_error error;
  for (; at < document.size(); ++at) {
    status = gen_grammar_matcher_accept_bytes(matcher.get(), &document[at], 1, &error);
    if (status != GEN_OK) break;
  }
  if (status == GEN_ERROR_UNSUPPORTED) check(status, error);
  // A final line end comes from the editor or shell if the text is a member without it.
  if (at + 1 == document.size() && document[at] == '\n' &&
      gen_grammar_matcher_complete(matcher.get()) != 0) {
    status = GEN_OK;
  }
  const bool member = status == GEN_OK && gen_grammar_matcher_complete(matcher.get()) != 0;
  const auto line =
      1 + std::count(document.begin(), document.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const size_t begin = at == 0 ? std::string::npos : document.rfind('\n', at - 1);
  const size_t column = begin == std::string::npos ? at + 1 : at - begin;
  const char* const verdict = member ? "member" : status == GEN_OK ? "unfinished" : "left";
  std::string pointer;
  const bool is_json = options.grammar.schema.has_value() || options.grammar.any_json;
  if (is_json && !member) pointer = pointer_at_end(std::string_view(document).substr(0, at));
  if (options.json) {
    nlohmann::json answer = {
        {"verdict", verdict}, {"byte", at}, {"line", line}, {"column", column}};
    if (!member) answer["expected"] = expected(matcher.get());
    if (is_json && !member) answer["pointer"] = pointer;
    std::cout << json_line(answer);
    return;
  }
  if (member) {
    std::cout << "a member, of " << at << " bytes\n";
  } else {
    std::cout << (status == GEN_OK ? "not finished" : "not allowed") << " at byte " << at
              << " (line " << line << ", column " << column
              << (pointer.empty() ? "" : ", in " + pointer)
              << "); expected: " << expected(matcher.get()) << "\n";
  }
}

void explain(const GrammarTask& options, const gen_tokenizer* tokenizer) {
  const Grammar grammar = make_grammar(options.grammar);
  const auto matcher = make<GrammarMatcher>(gen_grammar_matcher_new, grammar.get(), tokenizer);
  nlohmann::json answer =
      nlohmann::json::parse(text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
        return gen_grammar_describe(grammar.get(), buf, capacity, n, error);
      }));
  gen_error error;
  int64_t fewest = 0;
  check(gen_grammar_matcher_min_tokens(matcher.get(), &fewest, &error), error);
  answer["begins_with"] = expected(matcher.get());
  answer["empty_text"] = gen_grammar_matcher_complete(matcher.get()) != 0;
  answer["fewest_tokens"] = fewest;
  if (options.json) {
    std::cout << answer.dump() << "\n";
    return;
  }
  for (const auto& [key, value] : answer.items()) {
    std::cout << key << ": " << (value.is_string() ? value.get<std::string>() : value.dump())
              << "\n";
  }
}

/// Times of masks and accepted tokens over documents; a document that is not a member counts up to
/// its first error.
void bench(const GrammarTask& options, const gen_tokenizer* tokenizer) {
  const std::vector<std::string> documents = lines_of_input();
  auto begin = Clock::now();
  const Grammar grammar = make_grammar(options.grammar);
  const double compile = microseconds_since(begin);
  begin = Clock::now();
  const auto matcher = make<GrammarMatcher>(gen_grammar_matcher_new, grammar.get(), tokenizer);
  const double first = microseconds_since(begin);
  std::vector<uint32_t> bits((static_cast<size_t>(gen_tokenizer_vocab_size(tokenizer)) + 31) / 32);
  std::vector<double> times;
  size_t left = 0;
  gen_error error;
  for (const std::string& document : documents) {
    check(gen_grammar_matcher_reset(matcher.get(), &error), error);
    for (const int32_t id : tokens_of(tokenizer, document)) {
      begin = Clock::now();
      check(gen_grammar_matcher_mask(matcher.get(), bits.data(), bits.size(), &error), error);
      if (gen_grammar_matcher_accept_token(matcher.get(), id, nullptr) != GEN_OK) {
        ++left;
        break;
      }
      times.push_back(microseconds_since(begin));
    }
  }
  if (left > 0) std::cerr << "documents that are not members: " << left << "\n";
  if (times.empty()) throw Failure("no token of a document on standard input is allowed");
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double time : times) sum += time;
  const auto share = [&](double p) {
    return times[static_cast<size_t>(std::ceil(p * static_cast<double>(times.size()))) - 1];
  };
  const nlohmann::json answer = {
      {"compile_us", compile},   {"matcher_us", first},
      {"tokens", times.size()},  {"mean_us", sum / static_cast<double>(times.size())},
      {"p50_us", share(0.5)},    {"p99_us", share(0.99)},
      {"p999_us", share(0.999)}, {"worst_us", times.back()}};
  if (options.json) {
    std::cout << answer.dump() << "\n";
    return;
  }
  std::printf(
      "compiled in %.1f us, matcher in %.1f us\n%zu tokens, mask and accept in us: mean %.2f, p50 "
      "%.2f, "
      "p99 %.2f, p99.9 %.2f, worst %.2f\n",
      compile, first, times.size(), sum / static_cast<double>(times.size()), share(0.5),
      share(0.99), share(0.999), times.back());
  // A histogram by powers of two.
  size_t at = 0;
  for (double end = 1; at < times.size(); end *= 2) {
    size_t n = 0;
    while (at < times.size() && times[at] < end) ++at, ++n;
    std::printf("%10.0f %8zu %s\n", end, n,
                std::string((60 * n + times.size() - 1) / times.size(), '#').c_str());
  }
}

void run_grammar(const GrammarTask& options) {
  if (!options.grammar.given())
    throw Failure("give one of --grammar, --lark, --regex, --tags, --json-schema and --any-json",
                  2);
  const Tokenizer tokenizer = load_tokenizer(options.model);
  if (options.action == "check") return print_results(options, tokenizer.get());
  if (options.action == "test") return print_place(options, tokenizer.get());
  if (options.action == "explain") return explain(options, tokenizer.get());
  bench(options, tokenizer.get());
}

}  // namespace

void add_grammar(CLI::App& app) {
  auto options = std::make_shared<GrammarTask>();
  CLI::App* command =
      app.add_subcommand("grammar", "try a grammar on documents from standard input");
  command
      ->add_option(
          "ACTION", options->action,
          "check: which lines are members; test: where the input, one document, "
          "violates the grammar; explain: properties of the grammar; bench: how long masks "
          "take per line")
      ->required()
      ->check(CLI::IsMember({"check", "test", "explain", "bench"}));
  add_grammar_options(*command, options->grammar);
  options->grammar.any_style = true;  // documents need not come from a model
  command->add_option(
      "-m,--model", options->model.path,
      "GGUF or SentencePiece file with the tokenizer; check then reads documents token "
      "by token, without it byte by byte");
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      "Options of grammars, for --grammar-set (json_style is any here unless set, because "
      "documents "
      "need not come from a model):\n" +
      grammar_options_help());
  command->callback([options] { run_grammar(*options); });
}

}  // namespace cli
