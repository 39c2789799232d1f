// SPDX-License-Identifier: Apache-2.0
// See adapters.h.
#include "adapters.h"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <system_error>

namespace cli {

AdapterFile adapter_file(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::error_code failure;
  if (colon == std::string::npos || std::filesystem::exists(text, failure)) return {text};
  AdapterFile of{text.substr(0, colon)};
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data() + colon + 1, end, of.scale);
  return problem == std::errc() && rest == end ? of : AdapterFile{text};
}

void add_adapter_option(CLI::App& command, std::vector<std::string>& files) {
  command
      .add_option("--lora", files,
                  "a LoRA adapter, GGUF, or with its scale FILE:SCALE; may be repeated")
      ->allow_extra_args(false);
}

void load_adapters(const std::vector<std::string>& files, const Model& model) {
  gen_error error;
  for (size_t i = 0; i < files.size(); ++i) {
    const AdapterFile of = adapter_file(files[i]);
    const std::string name = std::to_string(i);
    check_option("--lora",
                 gen_adapter_load(model.get(), of.path.c_str(), name.c_str(), of.scale, &error),
                 error);
  }
}

void name_adapters(size_t count, const Sampling& to) {
  gen_error error;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    check_option("--lora", gen_sampling_add_adapter(to.get(), name.c_str(), 1.0F, &error), error);
  }
}

void name_adapter(size_t index, const Sampling& to) {
  gen_error error;
  const std::string name = std::to_string(index);
  check_option("--lora", gen_sampling_set_adapter(to.get(), name.c_str(), &error), error);
}

void use_adapters(const std::vector<std::string>& files, const Model& model, const Sampling& to) {
  load_adapters(files, model);
  name_adapters(files.size(), to);
}

void prepare_session(const Session& session, size_t count) {
  if (count == 0) return;
  gen_error error;
  // The adapters of a session are those of its last generating call; its text need not stay.
  const auto once = make<Sampling>(gen_sampling_new);
  check(gen_sampling_set_max_new_tokens(once.get(), 1, &error), error);
  name_adapters(count, once);
  const int32_t token = 1;
  check(gen_session_append_tokens(session.get(), &token, 1, &error), error);
  check(gen_session_generate(session.get(), "", 0, once.get(), nullptr, &error), error);
  check(gen_session_truncate(session.get(), 0, &error), error);
}

}  // namespace cli
