// SPDX-License-Identifier: Apache-2.0
// See template_faults.h. A template is recognised by a text that it has and one that its mended
// form has instead.
#include "chat/template_faults.h"

namespace gen::chat {
namespace {

struct Fault {
  std::string_view has;
  std::string_view lacks;
  std::string_view what;
};

constexpr Fault kFaults[] = {
    {"'<|tool_call>call:'", "{#- OpenAI Chat Completions:",
     "is an early one of Gemma 4, which loses results of tools that stand in messages of their own"},
};

bool has(std::string_view source, std::string_view text) noexcept {
  return source.find(text) != std::string_view::npos;
}

}  // namespace

std::string_view template_fault(std::string_view source) noexcept {
  for (const Fault& fault : kFaults) {
    if (has(source, fault.has) && !has(source, fault.lacks)) return fault.what;
  }
  return {};
}

}  // namespace gen::chat
