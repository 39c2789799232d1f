// SPDX-License-Identifier: Apache-2.0
// See head.h. The rules are those of RFC 9112; where it allows either repair or refusal, this
// refuses.
#include "head.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "../openai/api_error.h"

namespace server {
namespace {

constexpr size_t kMaxChunkLine = 128;  // a chunk's size and its extensions

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || is_upper(c) || (c >= 'a' && c <= 'z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

/// Allowed in a field's value or a chunk's extension: anything except control characters.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

ApiError malformed(const std::string& message) { return bad_request({}, message); }

void read_request_line(std::string_view line, Head& head) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    throw malformed("the request's first line is not a method, a target and a version");
  }
  head.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!std::all_of(head.method.begin(), head.method.end(), is_upper) || head.method.empty()) {
    throw malformed("the request's method is not a word in capitals");
  }
  const bool visible = std::all_of(target.begin(), target.end(),
                                   [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  if (!visible || target.empty() || target.front() != '/') {
    throw malformed("the request's target is not a path");
  }
  head.path = target.substr(0, target.find('?'));
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool other = version.rfind("HTTP/", 0) == 0;
    throw ApiError(other ? 505 : 400, "invalid_request_error", {}, {},
                   "the request's version is neither HTTP/1.1 nor HTTP/1.0");
  }
  head.version11 = version == "HTTP/1.1";
}

void read_field(std::string_view line, Head& head) {
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  // Refuses a space before the colon and a folded line.
  if (colon == std::string_view::npos || !is_token(name)) {
    throw malformed("the request has a header line without a valid name");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_plain(value)) {
    throw malformed("the request's header '" + lower_case(name.substr(0, 64)) +
                    "' has a control character");
  }
  if (head.fields.size() == kMaxHeadFields) {
    throw ApiError(431, "invalid_request_error", {}, {},
                   "the request has more than " + std::to_string(kMaxHeadFields) + " headers");
  }
  head.fields.emplace_back(lower_case(name), value);
}

/// The value of a field that may occur once.
const std::string* single(const Head& head, std::string_view name) {
  const auto is_it = [&](const auto& field) { return field.first == name; };
  if (std::count_if(head.fields.begin(), head.fields.end(), is_it) > 1) {
    throw malformed("the request has two headers '" + std::string(name) + "'");
  }
  return head.find(name);
}

/// How the body is delimited: by one length, by chunks, or there is none.
void read_framing(Head& head) {
  const std::string* length = single(head, "content-length");
  const std::string* coding = single(head, "transfer-encoding");
  if (length != nullptr) {
    const char* end = length->data() + length->size();
    const auto [stop, failure] = std::from_chars(length->data(), end, head.content_length);
    // No sign, no list, no number beyond size_t.
    if (failure != std::errc() || stop != end || !is_digit(length->front())) {
      throw malformed("the request's Content-Length is not a number of bytes");
    }
    head.has_length = true;
  }
  if (coding != nullptr) {
    if (length != nullptr) {
      throw malformed("the request has both a Content-Length and a Transfer-Encoding");
    }
    if (!head.version11 || lower_case(*coding) != "chunked") {
      throw malformed("the request's Transfer-Encoding is not 'chunked'");
    }
    head.chunked = true;
  }
  const bool may_have = head.method == "POST" || head.method == "PUT" || head.method == "PATCH";
  if (!may_have && (head.chunked || head.content_length > 0)) {
    throw malformed("a request of this method has no body");
  }
}

/// Whether one of the comma-separated words of a field is `word`.
bool has_word(const Head& head, std::string_view name, std::string_view word) {
  for (const auto& [key, value] : head.fields) {
    if (key != name) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (lower_case(trimmed(rest.substr(0, comma))) == word) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

void read_connection(Head& head) {
  for (const char* name : {"origin", "content-type"}) single(head, name);
  const std::string* host = single(head, "host");
  if (head.version11 && host == nullptr) throw malformed("the request has no Host");
  head.keep_alive = head.version11 && !has_word(head, "connection", "close");
  if (const std::string* expected = single(head, "expect")) {
    if (lower_case(*expected) != "100-continue") {
      throw ApiError(417, "invalid_request_error", {}, {}, "the request has an unknown Expect");
    }
    head.expects_continue = head.version11;
  }
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const std::string_view digits = text.substr(i).substr(1, 2);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    const bool whole = digits.size() == 2 && read.ptr == digits.data() + 2;
    if (text[i] == '%' && whole) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

const std::string* Head::find(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<size_t> find_head_end(std::string_view bytes, size_t seen) {
  for (size_t i = seen; i < bytes.size() && i < kMaxHeadBytes; ++i) {
    if (bytes[i] != '\n') continue;
    if (i == 0 || bytes[i - 1] != '\r') {
      throw malformed("the request has a line that does not end in CR LF");
    }
    if (i >= 3 && bytes[i - 2] == '\n') return i + 1;
  }
  if (bytes.size() < kMaxHeadBytes) return std::nullopt;
  throw ApiError(
      431, "invalid_request_error", {}, {},
      "the request's headers are larger than " + std::to_string(kMaxHeadBytes) + " bytes");
}

Head parse_head(std::string_view bytes) {
  Head head;
  for (bool first = true;; first = false) {
    const size_t end = bytes.find("\r\n");
    const std::string_view line = bytes.substr(0, end);
    if (first) {
      read_request_line(line, head);
    } else if (line.empty()) {
      break;
    } else {
      read_field(line, head);
    }
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 2);
  }
  read_framing(head);
  read_connection(head);
  return head;
}

void ChunkReader::read(std::string_view& bytes, std::string& body) {
  while (!bytes.empty() && !done()) {
    if (state_ != State::kData) {
      if (read_line(bytes)) end_line();
      if (state_ == State::kData && left_ > max_bytes_ - body.size()) {
        throw ApiError(413, "invalid_request_error", "body_too_large", {},
                       "the body is larger than " + std::to_string(max_bytes_) + " bytes");
      }
      continue;
    }
    const size_t n = std::min(left_, bytes.size());
    body.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    left_ -= n;
    if (left_ == 0) state_ = State::kDataEnd;
  }
}

/// True once line_ is a whole line, without its end.
bool ChunkReader::read_line(std::string_view& bytes) {
  while (!bytes.empty()) {
    const char c = bytes.front();
    bytes.remove_prefix(1);
    if (c == '\n') {
      if (line_.empty() || line_.back() != '\r') break;
      line_.pop_back();
      if (!is_plain(line_)) break;
      return true;
    }
    line_ += c;
    trailer_bytes_ += state_ == State::kTrailer ? 1 : 0;
    const size_t most = state_ == State::kTrailer ? kMaxHeadBytes : kMaxChunkLine;
    if (line_.size() > most || trailer_bytes_ > kMaxHeadBytes) break;
    if (bytes.empty()) return false;
  }
  throw malformed("the request's body is not in valid chunks");
}

void ChunkReader::end_line() {
  const std::string line = std::exchange(line_, {});
  if (state_ == State::kSize) {
    const auto [stop, failure] =
        std::from_chars(line.data(), line.data() + line.size(), left_, 16);
    const size_t digits = static_cast<size_t>(stop - line.data());
    const bool ended = digits == line.size() || line[digits] == ';';
    if (failure != std::errc() || digits == 0 || line.front() == '-' || !ended) {
      throw malformed("the request's body has a chunk without a valid size");
    }
    state_ = left_ == 0 ? State::kTrailer : State::kData;
  } else if (state_ == State::kDataEnd) {
    if (!line.empty())
      throw malformed("the request's body has a chunk of another size than declared");
    state_ = State::kSize;
  } else if (line.empty()) {
    state_ = State::kDone;
  }
}

}  // namespace server
