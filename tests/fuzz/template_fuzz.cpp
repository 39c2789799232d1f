// SPDX-License-Identifier: Apache-2.0
// Texts as chat templates, rendered with a conversation. Nothing may crash or trip a sanitizer;
// failures are of one line; what is rendered is UTF-8, stays within the memory it was given, and
// comes out the same when it is rendered again.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/utf8.h"
#include "template/json.h"
#include "template/request.h"
#include "template/template.h"

namespace {

using namespace gen::templates;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

constexpr const char* kVariables = R"({"messages": [{"role": "system", "content": "Be <|x|> kind."},
  {"role": "user", "content": "Gr\u00fc\u00dfe 'x' \"y\""}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c1",
  "type": "function", "function": {"name": "f", "arguments": {"a": 1, "b": [true, null, 2.5]}}}]}, {"role": "tool", "content": "ok"}],
  "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",
  "properties": {"a": {"type": "string", "enum": ["x", "y"]}}, "required": ["a"]}}}], "add_generation_prompt": true,
  "bos_token": "<s>", "s": "Hello, World", "n": 7, "f": 2.5, "l": [3, 1, 2], "w": ["b", "A"], "d": {"b": 1, "A": {"x": [1]}}})";

/// What requests are rendered with.
const Template* any_form() {
  static auto compiled = Template::compile(
      "{{ tools }}{{ bos_token }}{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}{{ "
      "x }}");
  return compiled.ok() ? compiled->get() : nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Heap heap;
  if (auto json = read_json(text, &heap, Writer::kUser); !json.ok()) {
    require(std::strchr(json.status().message(), '\n') == nullptr);
  }
  if (const auto* const form = any_form(); form != nullptr && !text.empty() && text[0] == '{') {
    auto made = render_request(*form, text, {});
    require(made.ok() ? gen::utf8_valid(*made) : std::strlen(made.status().message()) > 0);
  }
  const auto compiled = Template::compile(text);
  if (!compiled.ok()) {
    require(std::strlen(compiled.status().message()) > 0);
    require(std::strchr(compiled.status().message(), '\n') == nullptr);
    return 0;
  }
  auto given = read_json(kVariables, &heap, Writer::kUser);
  require(given.ok());
  Variables variables;
  for (const auto& [key, value] : given->dict().entries)
    variables.emplace_back(std::string(key.view()), value);
  RenderOptions options;
  options.now = LocalTime{};
  options.limits.steps = 20'000;
  options.limits.memory = 1 << 20;
  auto first = compiled.value()->render(variables, options);
  if (!first.ok()) {
    require(std::strlen(first.status().message()) > 0);
    require(std::strchr(first.status().message(), '\n') == nullptr);
    return 0;
  }
  require(gen::utf8_valid(first->view()));
  require(first->size() <= options.limits.memory);
  auto second = compiled.value()->render(variables, options);
  require(second.ok() && second->view() == first->view());
  return 0;
}
