// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP request, and chunked bodies, parsed strictly: input that two parsers could
// understand differently is refused, so that a proxy in front of the server never sees other
// requests than the server does. Knows nothing of sockets; tested and fuzzed alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server {

constexpr size_t kMaxHeadBytes = 16384;
constexpr size_t kMaxHeadFields = 100;

struct Head {
  std::string method;
  std::string path;       // without the query; as sent, nothing is decoded
  bool version11 = true;  // HTTP/1.1, else HTTP/1.0
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case

  size_t content_length = 0;
  bool has_length = false;
  bool chunked = false;
  bool keep_alive = false;        // the connection may serve another request
  bool expects_continue = false;  // the body is sent once the server says so

  /// The value of the first field of this name, in lower case; null if there is none.
  const std::string* find(std::string_view name) const;
};

/// Length of the head, including its empty line; nothing if more input is needed. The first `seen`
/// bytes were searched before. ApiError 400 for a line that does not end in CR LF, 431 for a head
/// above kMaxHeadBytes.
std::optional<size_t> find_head_end(std::string_view bytes, size_t seen);

/// Reads what find_head_end() found. ApiError 400, 431 or 505.
Head parse_head(std::string_view bytes);

/// `text` in lower case, ASCII only.
std::string lower_case(std::string_view text);

/// Decodes "%41" and the like; invalid escapes stay.
std::string percent_decoded(std::string_view text);

/// Decodes a chunked body, in pieces of any size.
class ChunkReader {
 public:
  explicit ChunkReader(size_t max_bytes) : max_bytes_(max_bytes) {}
  /// Moves the part of the body in `bytes` to the end of `body`, and removes it from `bytes`; what
  /// follows the body stays. ApiError 400, and 413 for a body above the limit.
  void read(std::string_view& bytes, std::string& body);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kSize, kData, kDataEnd, kTrailer, kDone };
  bool read_line(std::string_view& bytes);
  void end_line();

  const size_t max_bytes_;
  State state_ = State::kSize;
  std::string line_;
  size_t left_ = 0;           // of the chunk's data
  size_t trailer_bytes_ = 0;  // of all lines after the last chunk
};

}  // namespace server
