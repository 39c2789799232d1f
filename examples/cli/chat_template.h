// SPDX-License-Identifier: Apache-2.0
// The option --chat-template of the program and the server.
#pragma once

#include <sys/stat.h>

#include <string>

#include "handles.h"
#include "text_file.h"

namespace cli {

inline constexpr const char* kChatTemplateHelp =
    "a file with a Jinja template to use instead of the model's, or the name of a built-in form: "
    "chatml, llama3, gemma, gemma4, phi3, mistral, granite, command-r";

/// The text of a file, or the name of a form, as gen_chat_set_template takes it; empty for an empty
/// option. Failure if it is neither.
inline std::string chat_template(const std::string& option) {
  if (option.empty()) return "";
  struct stat found;
  const std::string text = stat(option.c_str(), &found) == 0 ? text_of_file(option) : option;
  const Chat chat = make<Chat>(gen_chat_new);
  gen_error error;
  check_option("--chat-template",
               gen_chat_set_template(chat.get(), text.data(), text.size(), &error), error);
  return text;
}

}  // namespace cli
