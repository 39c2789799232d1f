// SPDX-License-Identifier: Apache-2.0
// Status: construction, copies and the formatted form. See status.h.
#include "base/status.h"

#include <cstdarg>
#include <cstdio>
#include <new>

#include "base/c_locale.h"

namespace gen {
namespace {

std::unique_ptr<std::string> make_text(std::string_view text) noexcept {
  try {
    return std::make_unique<std::string>(text);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

Status::Status(Code code, std::string_view message) noexcept
    : code_(code), message_(code == Code::kOk ? nullptr : make_text(message)) {}

Status::Status(const Status& other) noexcept
    : code_(other.code_), message_(other.message_ ? make_text(*other.message_) : nullptr) {}

Status& Status::operator=(const Status& other) noexcept {
  if (this != &other) {
    code_ = other.code_;
    message_ = other.message_ ? make_text(*other.message_) : nullptr;
  }
  return *this;
}

Status error(Code code, const char* format, ...) noexcept {
  char text[1020];
  va_list arguments;
  va_start(arguments, format);
  {
    const CLocale numbers;
    std::vsnprintf(text, sizeof text, format, arguments);
  }
  va_end(arguments);
  // One line, and nothing that moves a terminal's cursor: some of it comes from files and callers.
  for (char* c = text; *c != '\0'; ++c) {
    const auto byte = static_cast<unsigned char>(*c);
    if (byte < 0x20 || byte == 0x7F) *c = ' ';
  }
  return Status(code, text);
}

}  // namespace gen
