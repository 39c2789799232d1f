// SPDX-License-Identifier: Apache-2.0
// The HTTP paths of the server: reads bodies within limits, passes them on, writes answers and
// errors.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine.h"
#include "languages.h"
#include "metrics.h"
#include "openai/request.h"
#include "prompts.h"

namespace server {

struct HttpLimits {
  size_t body_bytes = size_t{4} << 20U;
  size_t connections = 64;   // served at once; at least 2, one is reserved for requests without
                             // generation
  int request_seconds = 30;  // maximum time from a request's first byte to its last
  std::vector<std::string> hosts;    // as Access takes them
  std::vector<std::string> origins;  // as Access takes them
};

/// What the paths need. All must outlive the server.
struct Service {
  const Encoder& encoder;
  Languages& languages;
  Engine& engine;
  Metrics& metrics;
  Dialect dialect;
};

class HttpServer {
 public:
  HttpServer(const Service& service, const HttpLimits& limits);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Takes a port (0: a free one) and returns it. std::runtime_error with the reason.
  int bind(const std::string& host, int port);
  /// Serves until stop(), then waits for those who are being answered. False if accepting failed.
  bool serve();
  /// Any thread, once; also before serve().
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace server
