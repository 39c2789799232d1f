// SPDX-License-Identifier: Apache-2.0
// See http_server.h.
//
// An answer that is not streamed waits for its first token before its head is written, so that
// nearly all failures have a status of their own. Errors in the request itself are reported before
// its body is read, and end the connection; errors in the body do not.
#include "http_server.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <exception>
#include <nlohmann/json.hpp>
#include <random>

#include "http/access.h"
#include "http/exchange.h"
#include "http/listener.h"
#include "openai/api_error.h"
#include "openai/response.h"
#include "reply.h"

namespace server {
namespace {

constexpr const char* kJson = "application/json";
constexpr size_t kLongestPath = 256;

constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kModels = "/v1/models";
constexpr const char* kModel = "/v1/models/";
constexpr const char* kAdapters = "/lora-adapters";
constexpr const char* kHealth = "/health";
constexpr const char* kMetrics = "/metrics";

bool is_model_path(const std::string& path) { return path.rfind(kModel, 0) == 0; }
bool posts(const std::string& path) { return path == kCompletions || path == kChat; }

/// The path as a label: one of a few.
std::string known_path(const std::string& path) {
  for (const char* known : {kCompletions, kChat, kModels, kAdapters, kHealth, kMetrics}) {
    if (path == known) return path;
  }
  return is_model_path(path) ? kModel : "other";
}

std::string random_id(const char* prefix) {
  std::random_device device;
  char text[64];
  std::snprintf(text, sizeof text, "%s-%08x%08x%08x", prefix, device(), device(), device());
  return text;
}

bool respond_error(Exchange& exchange, const ApiError& error) {
  if (error.status == 503) exchange.add("Retry-After", "1");
  return exchange.respond(error.status, kJson, dump(error_json(error)));
}

/// ApiError for what no path answers.
void check_path(const Head& head, Exchange& exchange) {
  const std::string& path = head.path;
  const std::string shown = path.substr(0, kLongestPath);
  const bool gets = path == kModels || path == kAdapters || path == kHealth || path == kMetrics ||
                    (is_model_path(path) && path.size() <= kLongestPath);
  if (!posts(path) && !gets) {
    throw not_found({}, "there is nothing at '" + shown + "'", "unknown_url");
  }
  const bool asks = head.method == "OPTIONS" && head.find("origin") != nullptr;
  const bool fits =
      posts(path) ? head.method == "POST" : head.method == "GET" || head.method == "HEAD";
  if (!fits && !asks) {
    exchange.add("Allow", posts(path) ? "POST" : "GET, HEAD");
    throw ApiError(405, "invalid_request_error", "method_not_allowed", {},
                   "'" + shown + "' takes " + (posts(path) ? "POST" : "GET"));
  }
  if (head.find("range") != nullptr) {
    throw ApiError(416, "invalid_request_error", {}, {}, "parts of a response cannot be had");
  }
}

/// ApiError for a body that will not be read.
void check_body(const Head& head) {
  Access::check_type(head);
  const std::string* coding = head.find("content-encoding");
  if (coding != nullptr && lower_case(*coding) != "identity") {
    throw ApiError(415, "invalid_request_error", {}, {}, "the body must not be compressed");
  }
  if (!head.chunked && !head.has_length) {
    throw ApiError(411, "invalid_request_error", {}, {}, "a Content-Length is needed");
  }
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const Service& service, const HttpLimits& limits)
      : service_(service),
        limits_(limits),
        access_(limits.hosts, limits.origins),
        listener_(limits.connections, limits.request_seconds,
                  [this](Connection& connection) { serve(connection); }) {}

  int bind(const std::string& host, int port) { return listener_.bind(host, port); }
  bool run() { return listener_.run(); }

  void stop() {
    service_.engine.stop();
    service_.languages.stop();
    listener_.stop();
  }

 private:
  /// One client, request after request.
  void serve(Connection& connection) noexcept try {
    for (bool more = true; more;) {
      more = false;
      Head head;
      try {
        if (!connection.read_head(head)) return;
        more = exchange(connection, head);
      } catch (const ApiError& error) {
        // There is no head, so the origin is unknown.
        const Head nobody;
        Exchange exchange(connection, nobody, {});
        respond_error(exchange, error);
        service_.metrics.responded(known_path({}), exchange.status());
      }
    }
    connection.linger();
  } catch (const std::exception&) {
    // Out of memory, even for an error: the connection ends.
  }

  /// Answers one request. True if the connection may serve another.
  bool exchange(Connection& connection, const Head& head) {
    Exchange exchange(connection, head, access_.fields(head));
    bool whole = false;
    try {
      whole = answer(connection, head, exchange);
    } catch (const ApiError& error) {
      exchange.close();
      if (exchange.status() == 0) respond_error(exchange, error);
    } catch (const std::exception&) {
      exchange.close();
      if (exchange.status() == 0) {
        respond_error(exchange, server_error(500, "the request failed inside the server"));
      }
    }
    service_.metrics.responded(known_path(head.path), exchange.status());
    return whole && exchange.keeps_alive();
  }

  /// False if the client left or did not receive everything. ApiError as for serve(): the
  /// connection ends.
  bool answer(Connection& connection, const Head& head, Exchange& exchange) {
    access_.check(head);
    check_path(head, exchange);
    if (head.method == "OPTIONS") {
      for (const auto& [name, value] : Access::preflight_fields(head)) exchange.add(name, value);
      return exchange.respond(204, {}, {});
    }
    if (!posts(head.path)) return show(head.path, exchange);
    check_body(head);
    const std::string body = connection.read_body(head, limits_.body_bytes);
    try {
      return complete(head.path == kChat, body, exchange);
    } catch (const ApiError& error) {
      return exchange.status() == 0 && respond_error(exchange, error);
    } catch (const Reply::Gone&) {
      return false;
    }
  }

  /// Answers that need no generation.
  bool show(const std::string& path, Exchange& exchange) {
    if (path == kHealth) {
      const nlohmann::ordered_json body = {{"status", "ok"},
                                           {"model", service_.dialect.model},
                                           {"running", service_.engine.running()},
                                           {"waiting", service_.engine.waiting()},
                                           {"clients", service_.metrics.clients.load()}};
      return exchange.respond(200, kJson, dump(body));
    }
    if (path == kMetrics) {
      return exchange.respond(
          200, "text/plain; version=0.0.4",
          service_.metrics.page(service_.engine.running(), service_.engine.waiting(),
                                service_.languages.counts()));
    }
    const std::string& model = service_.dialect.model;
    const std::vector<std::string>& adapters = service_.dialect.adapters;
    if (path == kAdapters) return exchange.respond(200, kJson, dump(adapters_json(adapters)));
    if (path == kModels) {
      return exchange.respond(200, kJson, dump(models_json(model, adapters, started_)));
    }
    const std::string name = percent_decoded(path).substr(std::string(kModel).size());
    if (name != model && std::find(adapters.begin(), adapters.end(), name) == adapters.end()) {
      return respond_error(exchange,
                           not_found("model", "no model of this name", "model_not_found"));
    }
    return exchange.respond(200, kJson, dump(model_json(name, model, started_)));
  }

  bool complete(bool chat, const std::string& body, Exchange& exchange) {
    const Metrics::Gauge place(answering_);
    if (static_cast<size_t>(answering_) >= limits_.connections) {
      throw server_error(503,
                         std::to_string(limits_.connections - 1) +
                             " requests are being answered, the most at once; try again later",
                         "overloaded");
    }
    const Request request =
        chat ? parse_chat(body, service_.dialect) : parse_completion(body, service_.dialect);
    Heading heading;
    heading.id = random_id(chat ? "chatcmpl" : "cmpl");
    heading.model = request.model;
    heading.created = std::time(nullptr);
    Reply reply(service_.encoder, service_.languages, service_.engine, service_.metrics, request,
                std::move(heading), exchange);
    if (request.stream) {
      exchange.add("Cache-Control", "no-cache");
      // A comment between events.
      return exchange.begin("text/event-stream", ":\n\n") && reply.stream_to(exchange) &&
             exchange.finish();
    }
    return reply.wait_for_first_event(exchange) && exchange.begin(kJson, " ") &&
           reply.write_to(exchange) && exchange.finish();
  }

  const Service service_;
  const HttpLimits limits_;
  const Access access_;
  const int64_t started_ = std::time(nullptr);
  std::atomic<int64_t> answering_{0};
  Listener listener_;
};

HttpServer::HttpServer(const Service& service, const HttpLimits& limits)
    : impl_(std::make_unique<Impl>(service, limits)) {}

HttpServer::~HttpServer() = default;

int HttpServer::bind(const std::string& host, int port) { return impl_->bind(host, port); }

bool HttpServer::serve() { return impl_->run(); }

void HttpServer::stop() { impl_->stop(); }

}  // namespace server
