// SPDX-License-Identifier: Apache-2.0
// Requests of HTTP for the example server. Nothing may crash or trip a sanitizer; what is taken has
// one framing, fields without control characters and a body within its limit, and bodies in chunks
// are the same in one piece as byte by byte.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/access.h"
#include "http/head.h"
#include "openai/api_error.h"

namespace {

using namespace server;

constexpr size_t kBody = 4096;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

struct Body {
  bool taken = true;
  bool done = false;
  std::string text;
};

Body read_chunks(std::string_view bytes, size_t piece) {
  Body body;
  ChunkReader reader(kBody);
  try {
    while (!bytes.empty() && !reader.done()) {
      std::string_view next = bytes.substr(0, piece);
      bytes.remove_prefix(next.size());
      reader.read(next, body.text);
    }
  } catch (const ApiError& error) {
    require(error.status == 400 || error.status == 413);
    body.taken = false;
  }
  require(body.text.size() <= kBody);
  body.done = reader.done();
  return body;
}

void expect_sound(const Head& head) {
  require(!head.path.empty() && head.path.front() == '/');
  require(head.fields.size() <= kMaxHeadFields);
  require(!(head.chunked && head.has_length));
  require(!(head.method == "GET" && (head.chunked || head.content_length > 0)));
  for (const auto& [name, value] : head.fields) {
    require(!name.empty() && name == lower_case(name));
    require(std::none_of(value.begin(), value.end(),
                         [](char c) { return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f; }));
  }
  const Access access({"name"}, {"https://page"});
  try {
    access.check(head);
    Access::check_type(head);
  } catch (const ApiError& error) {
    require(error.status == 400 || error.status == 403 || error.status == 415);
  }
  access.fields(head);
  require(!Access::preflight_fields(head).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string_view rest = bytes;
  try {
    if (const auto end = find_head_end(bytes, 0)) {
      expect_sound(parse_head(bytes.substr(0, *end)));
      rest = bytes.substr(*end);
    }
  } catch (const ApiError& error) {
    require(error.status >= 400 && error.status <= 505);
  }
  const Body whole = read_chunks(rest, size + 1);
  const Body bytewise = read_chunks(rest, 1);
  require(whole.taken == bytewise.taken && whole.done == bytewise.done);
  require(!whole.taken || whole.text == bytewise.text);
  return 0;
}
