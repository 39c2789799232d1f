// SPDX-License-Identifier: Apache-2.0
// See format_table.h.
#include "calls/format_table.h"

#include <algorithm>

#include "calls/formats/formats.h"

namespace gen::calls {
namespace {

using Table = std::vector<std::shared_ptr<const CallFormat>>;

// Templates are compared in this order, so what has more signs comes before what has fewer of them.
Table make_table() {
  Table table;
  for (CallFormat (*const make)() : {
           deepseek_v4_format,
           gigachat35_format,
           deepseek_v32_format,
           deepseek_r1_format,
           deepseek_v31_format,
           mistral_id_format,
           mistral_format,
           mistral_list_format,
           muse_format,
           harmony_format,
           gemma4_format,
           function_gemma_format,
           kimi_k3_format,
           kimi_format,
           minimax_m3_format,
           minimax_m2_format,
           seed_oss_format,
           qwen_coder_format,
           glm_format,
           minicpm5_format,
           hermes_format,
           functionary_32_format,
           functionary_31_format,
           firefunction_format,
           llama3_format,
           gigachat_format,
           apertus_format,
           command_r7b_format,
           apriel_format,
           command_r_format,
           lfm2_format,
           olmo3_format,
           granite_format,
           phi4_format,
           nemotron_nano2_format,
           generic_json_format,
       }) {
    table.push_back(std::make_shared<const CallFormat>(make()));
  }
  return table;
}

}  // namespace

std::vector<std::shared_ptr<const CallFormat>> call_formats() { return make_table(); }

std::shared_ptr<const CallFormat> format_named(std::string_view name) {
  for (const auto& format : make_table()) {
    if (format->name == name) return format;
  }
  return nullptr;
}

std::string format_names() {
  std::string names;
  for (const auto& format : make_table()) names += (names.empty() ? "" : ", ") + format->name;
  return names;
}

std::shared_ptr<const CallFormat> format_of_source(std::string_view source) {
  const auto has_all = [&](const std::vector<std::string>& signs) {
    const auto has = [&](const auto& sign) { return source.find(sign) != std::string_view::npos; };
    return !signs.empty() && std::all_of(signs.begin(), signs.end(), has);
  };
  for (const auto& format : make_table()) {
    if (has_all(format->signs) || has_all(format->other_signs)) return format;
  }
  return nullptr;
}

std::shared_ptr<const CallFormat> generic_format() {
  return std::make_shared<const CallFormat>(generic_json_format());
}

}  // namespace gen::calls
