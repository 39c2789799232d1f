// SPDX-License-Identifier: Apache-2.0
// Errors and texts across the C boundary. See boundary.h.
#include "api/boundary/boundary.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

namespace gen::api {

gen_status report(const Status& status, gen_error* error) noexcept {
  const auto code = static_cast<gen_status>(status.code());
  if (code != GEN_OK && error != nullptr) {
    const char* message = status.message();
    // A status without a message means that there was no memory for one.
    if (*message == '\0')
      message = code == GEN_ERROR_OUT_OF_MEMORY ? "out of memory" : gen_status_name(code);
    const size_t length = std::min(std::strlen(message), sizeof error->message - 1);
    error->code = code;
    std::memcpy(error->message, message, length);
    error->message[length] = '\0';
  }
  return code;
}

Status current_exception_status() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "out of memory"};
  } catch (const std::length_error&) {
    return {Code::kOutOfMemory, "a container would grow beyond its limit"};
  } catch (const std::exception& exception) {
    return error(Code::kInternal, "unexpected failure: %s", exception.what());
  } catch (...) {
    return {Code::kInternal, "unexpected failure"};
  }
}

Result<std::string_view> text_in(const char* text, size_t len, const char* what) noexcept {
  if (text == nullptr) {
    if (len == 0) return std::string_view();
    return not_null(text, what);
  }
  return std::string_view(text, len == GEN_NUL_TERMINATED ? std::strlen(text) : len);
}

Status text_out(std::string_view text, char* buf, size_t capacity, size_t* n) noexcept {
  GEN_TRY(not_null(n, "n"));
  *n = text.size();
  if (buf == nullptr) return {};
  if (text.size() >= capacity) {
    return error(Code::kOutOfRange, "%zu bytes and a NUL do not fit a buffer of %zu", text.size(),
                 capacity);
  }
  std::memcpy(buf, text.data(), text.size());
  buf[text.size()] = '\0';
  return {};
}

}  // namespace gen::api
