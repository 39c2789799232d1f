// SPDX-License-Identifier: Apache-2.0
// See option_help.h.
#include "option_help.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "grammar_options.h"
#include "handles.h"

namespace cli {
namespace {

template <typename T>
using Describe = gen_status (*)(const T*, char*, size_t, size_t*, gen_error*);

template <typename T>
nlohmann::json rows_of(const T* options, Describe<T> describe) {
  return nlohmann::json::parse(
      text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
        return describe(options, buf, capacity, n, error);
      }));
}

nlohmann::json row_of(const nlohmann::json& rows, const char* key) {
  for (const auto& row : rows) {
    if (row.at("key") == key) return row;
  }
  throw Failure(std::string("the library has no option ") + key);
}

template <typename T>
std::string help_of(const T* options, Describe<T> describe, const char* key) {
  const nlohmann::json row = row_of(rows_of(options, describe), key);
  const auto help = row.at("help").get<std::string>();
  return row.at("type") == "bool" ? help : help + " (" + row.at("range").get<std::string>() + ")";
}

/// A default is a number or a text.
std::string plain(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string model_help(const char* key) {
  return help_of(make<ModelOptions>(gen_model_options_new).get(), gen_model_options_describe, key);
}

std::string generator_help(const char* key) {
  return help_of(make<Options>(gen_options_new).get(), gen_options_describe, key);
}

std::string generator_help_and_default(const char* key) {
  const auto options = make<Options>(gen_options_new);
  const nlohmann::json row = row_of(rows_of(options.get(), gen_options_describe), key);
  return row.at("help").get<std::string>() + " (" + row.at("range").get<std::string>() +
         "; default " + plain(row.at("default")) + ")";
}

std::string sampling_help(const char* key) {
  return help_of(make<Sampling>(gen_sampling_new).get(), gen_sampling_describe, key);
}

std::string sampling_default(const char* key) {
  const nlohmann::json rows =
      rows_of(make<Sampling>(gen_sampling_new).get(), gen_sampling_describe);
  const nlohmann::json value = row_of(rows, key).at("default");
  return value.is_null() ? "" : plain(value);
}

std::string grammar_options_help() {
  std::string out;
  const auto options = make<GrammarOptions>(gen_grammar_options_new);
  for (const auto& row : rows_of(options.get(), gen_grammar_options_describe)) {
    const std::string initial = plain(row.at("default"));
    out += (out.empty() ? "  " : "\n  ") + row.at("key").get<std::string>() + ": " +
           row.at("help").get<std::string>() + " (" + row.at("range").get<std::string>() +
           (initial.empty() ? ")" : "; default " + initial + ")");
  }
  return out;
}

CLI::Option* takes_count(CLI::Option* option, int32_t least) {
  // The range without its description, which would show the upper bound in ten digits.
  return option->check(CLI::Range(least, std::numeric_limits<int32_t>::max()).description(""))
      ->type_name("N");
}

}  // namespace cli
