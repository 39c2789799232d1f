// SPDX-License-Identifier: Apache-2.0
// The paths of the server over HTTP: reads bodies within limits, hands them on, writes answers and
// errors. The only file of the server that knows the HTTP library is http_server.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine.h"
#include "metrics.h"
#include "openai/request.h"

namespace server {

struct HttpLimits {
  size_t body_bytes = size_t{4} << 20U;
  size_t connections = 64;  // served at once; others wait to be accepted
};

/// What the paths need. All must outlive the server.
struct Service {
  const gen_model* model;
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

  /// Takes a port (0: a free one) and returns it; -1 if that failed.
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
