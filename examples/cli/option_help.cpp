// SPDX-License-Identifier: Apache-2.0
// See option_help.h.
#include "option_help.h"

#include <nlohmann/json.hpp>

#include "handles.h"

namespace cli {
namespace {

template <typename T>
using Describe = gen_status (*)(const T*, char*, size_t, size_t*, gen_error*);

template <typename T>
std::string help_of(const T* options, Describe<T> describe, const char* key) {
  const std::string text = text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
    return describe(options, buf, capacity, n, error);
  });
  for (const auto& row : nlohmann::json::parse(text)) {
    if (row.at("key") != key) continue;
    return row.at("help").get<std::string>() + " (" + row.at("range").get<std::string>() + ")";
  }
  throw Failure(std::string("the library has no option ") + key);
}

}  // namespace

std::string model_help(const char* key) {
  return help_of(make<ModelOptions>(gen_model_options_new).get(), gen_model_options_describe, key);
}

std::string generator_help(const char* key) {
  return help_of(make<Options>(gen_options_new).get(), gen_options_describe, key);
}

std::string sampling_help(const char* key) {
  return help_of(make<Sampling>(gen_sampling_new).get(), gen_sampling_describe, key);
}

}  // namespace cli
