// SPDX-License-Identifier: Apache-2.0
// A rendering described by one JSON object and answered with JSON: for programs and people that try
// out templates.
#pragma once

#include <string>
#include <string_view>

#include "template/template.h"

namespace gen::templates {

/// Optional parts of a request. Empty: undefined, as in Transformers for a vocabulary without that
/// token.
struct RequestDefaults {
  std::string bos_token;
  std::string eos_token;
};

/// `request` has the members messages (an array), and where they are wanted tools,
/// add_generation_prompt, bos_token, eos_token, variables (an object; its members are variables of
/// the template) and now (ISO 8601, for strftime_now). Gives {"text": …, "segments": [{"text": …,
/// "special": …}, …]}: stretches of the text, and whether the template wrote them, so that they may
/// become special tokens. kInvalidArgument for what is no such object; else as Template::render().
Result<std::string> render_request(const Template& compiled, std::string_view request,
                                   const RequestDefaults& defaults);

}  // namespace gen::templates
