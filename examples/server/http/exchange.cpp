// SPDX-License-Identifier: Apache-2.0
// See exchange.h.
#include "exchange.h"

#include <cstdio>

namespace server {
namespace {

const char* status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

std::string Exchange::response_head(int status, const std::string& type,
                                    const std::string& length) const {
  std::string out = "HTTP/1.1 " + std::to_string(status) + ' ' + status_text(status) + "\r\n";
  if (!type.empty()) out += "Content-Type: " + type + "\r\n";
  out += length;
  for (const auto& [name, value] : fields_) out += name + ": " + value + "\r\n";
  if (!keeps_alive()) out += "Connection: close\r\n";
  return out + "\r\n";
}

bool Exchange::respond(int status, const std::string& type, std::string_view body) {
  status_ = status;
  const bool counted = status != 204;
  std::string out = response_head(
      status, type, counted ? "Content-Length: " + std::to_string(body.size()) + "\r\n" : "");
  if (head_.method != "HEAD") out += body;
  return connection_.write(out);
}

bool Exchange::begin(const std::string& type, std::string_view probe) {
  status_ = 200;
  probe_ = probe;
  // Without chunks, closing the connection ends the body.
  if (!head_.version11) close();
  return connection_.write(
      response_head(200, type, head_.version11 ? "Transfer-Encoding: chunked\r\n" : ""));
}

bool Exchange::write(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (!head_.version11) return connection_.write(bytes);
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  std::string out = size;
  return connection_.write(out.append(bytes).append("\r\n"));
}

bool Exchange::is_there() {
  if (status_ == 0) {
    // Before a response only an interim response is without effect, and only for HTTP/1.1 clients.
    static constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!head_.version11) return true;
    return connection_.is_there([this] { return connection_.write(kInterim); });
  }
  return connection_.is_there([this] { return write(probe_); });
}

bool Exchange::finish() { return !head_.version11 || connection_.write("0\r\n\r\n"); }

}  // namespace server
