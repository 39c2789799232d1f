// SPDX-License-Identifier: Apache-2.0
// See adapters.h.
#include "adapters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "text_format.h"

namespace cli {
namespace {

constexpr size_t kNameBytes = 64;  // of a file's name; messages show as much of an adapter's

bool is_file(const std::string& path) {
  std::error_code failure;
  return std::filesystem::exists(path, failure);
}

/// Names of files need not be UTF-8, but those of adapters must be.
std::string name_of(const std::string& path) {
  using nlohmann::json;
  const std::string name = std::filesystem::path(path).filename().string().substr(0, kNameBytes);
  if (name.empty()) return "adapter";
  return json::parse(json(name).dump(-1, ' ', false, json::error_handler_t::replace));
}

/// The name, or with a number if another adapter has it.
std::string unused_name(const std::string& name, const Adapters& others) {
  const auto is_used = [&](const std::string& one) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Adapter& other) { return other.name == one; });
  };
  std::string out = name;
  for (size_t i = 2; is_used(out); ++i) out = name + " (" + std::to_string(i) + ")";
  return out;
}

/// The shortest number that is read as this one.
std::string number_text(float value) {
  std::array<char, 32> digits;
  const auto [end, problem] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end};
}

}  // namespace

AdapterFile adapter_file(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || is_file(text)) return {text};
  AdapterFile of{text.substr(0, colon)};
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data() + colon + 1, end, of.scale);
  const bool is_number = problem != std::errc::invalid_argument && rest == end;
  if (is_number && problem == std::errc() && std::isfinite(of.scale)) return of;
  if (!is_file(of.path)) return {text};
  throw Failure("--lora: " + of.path + ": the scale " + text.substr(colon + 1, kNameBytes) +
                    (is_number ? " is outside the finite numbers" : " is not a number"),
                2);
}

void add_adapter_option(CLI::App& command, std::vector<std::string>& files) {
  command
      .add_option("--lora", files,
                  "a LoRA adapter, GGUF, or with its scale FILE:SCALE; may be repeated")
      ->allow_extra_args(false);
}

void add_adapter_files(const std::vector<std::string>& lora, std::vector<std::string>* files) {
  for (const std::string& text : lora) files->push_back(adapter_file(text).path);
}

void load_adapter(const gen_model* model, const Adapter& adapter) {
  gen_error error;
  const gen_status status = gen_adapter_load(model, adapter.file.path.c_str(), adapter.name.c_str(),
                                             adapter.file.scale, &error);
  if (status == GEN_OK) return;
  const int code = status == GEN_ERROR_INVALID_ARGUMENT ? 2 : 1;
  throw Failure(std::string("--lora: ") + error.message, code, status);
}

Adapters load_adapters(const std::vector<std::string>& files, const Model& model) {
  Adapters adapters;
  for (const std::string& text : files) {
    AdapterFile file = adapter_file(text);
    std::string name = unused_name(name_of(file.path), adapters);
    adapters.push_back({std::move(name), std::move(file)});
    load_adapter(model.get(), adapters.back());
  }
  return adapters;
}

void name_adapters(const Adapters& adapters, const Sampling& to) {
  gen_error error;
  for (const Adapter& adapter : adapters) {
    check_option("--lora", gen_sampling_add_adapter(to.get(), adapter.name.c_str(), 1.0F, &error),
                 error);
  }
}

void name_adapter(const Adapter& adapter, const Sampling& to) {
  gen_error error;
  check_option("--lora", gen_sampling_set_adapter(to.get(), adapter.name.c_str(), &error), error);
}

void use_adapters(const std::vector<std::string>& files, const Model& model, const Sampling& to) {
  name_adapters(load_adapters(files, model), to);
}

void prepare_session(const Session& session, const Adapters& adapters) {
  if (adapters.empty()) return;
  gen_error error;
  // The adapters of a session are those of its last generating call; its text need not stay.
  const auto once = make<Sampling>(gen_sampling_new);
  check(gen_sampling_set_max_new_tokens(once.get(), 1, &error), error);
  name_adapters(adapters, once);
  const int32_t token = 1;
  check(gen_session_append_tokens(session.get(), &token, 1, &error), error);
  check(gen_session_generate(session.get(), "", 0, once.get(), nullptr, &error), error);
  check(gen_session_truncate(session.get(), 0, &error), error);
}

std::string adapters_text(const Adapters& adapters) {
  std::string text;
  for (const Adapter& adapter : adapters) {
    if (!text.empty()) text += ", ";
    text += printable(adapter.name);
    if (adapter.file.scale != 1) text += " (scale " + number_text(adapter.file.scale) + ")";
  }
  return text;
}

void add_adapters(const Adapters& adapters, nlohmann::ordered_json& object) {
  for (const Adapter& adapter : adapters) {
    const auto scale = nlohmann::ordered_json::parse(number_text(adapter.file.scale));
    object["adapters"].push_back({{"name", adapter.name}, {"scale", scale}});
  }
}

}  // namespace cli
