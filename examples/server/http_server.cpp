// SPDX-License-Identifier: Apache-2.0
// See http_server.h.
//
// Disconnects: the HTTP library shows a connection only to who writes a body, so every answer is
// written by a content provider, which generates as it writes. An answer that is not streamed waits
// for its first token before that, so that nearly all failures still have a status of their own.
//
// Bodies are read by a receiver with a limit: the HTTP library's own counts neither chunked nor
// unpacked bodies. A response that leaves a part of its request unread closes the connection, which
// a provider does by returning false.
#include "http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "openai/api_error.h"
#include "reply.h"
#include "openai/response.h"

namespace server {
namespace {

constexpr const char* kJson = "application/json";
constexpr size_t kLongestPath = 256;
constexpr int kBacklog = 128;
constexpr time_t kKeepAliveSeconds = 2;  // an idle connection holds up the end of the server
constexpr time_t kReadSeconds = 10;
constexpr time_t kWriteSeconds = 10;

constexpr const char* kCompletions = "/v1/completions";
constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kModels = "/v1/models";
constexpr const char* kHealth = "/health";
constexpr const char* kMetrics = "/metrics";

bool is_model_path(const std::string& path) { return path.rfind("/v1/models/", 0) == 0; }

/// The path as a label: one of a few.
std::string known_path(const std::string& path) {
  for (const char* known : {kCompletions, kChat, kModels, kHealth, kMetrics}) {
    if (path == known) return path;
  }
  return is_model_path(path) ? "/v1/models/" : "other";
}

void set_error(httplib::Response& response, const ApiError& error) {
  response.status = error.status;
  if (error.status == 503) response.set_header("Retry-After", "1");
  response.set_content(dump(error_json(error)), kJson);
}

/// The same, and the connection is closed: what is left of the request is not read.
void set_error_and_close(httplib::Response& response, const ApiError& error) {
  response.status = error.status;
  response.set_header("Connection", "close");
  const std::string body = dump(error_json(error));
  response.set_content_provider(body.size(), kJson,
                                [body](size_t, size_t, httplib::DataSink& sink) {
                                  sink.write(body.data(), body.size());
                                  return false;
                                });
}

std::string random_id(const char* prefix) {
  std::random_device device;
  char text[64];
  std::snprintf(text, sizeof text, "%s-%08x%08x%08x", prefix, device(), device(), device());
  return text;
}

class SinkClient : public Client {
 public:
  explicit SinkClient(httplib::DataSink& sink) : sink_(sink) {}
  bool write(std::string_view bytes) override { return sink_.write(bytes.data(), bytes.size()); }
  bool is_there() override { return sink_.is_writable(); }

 private:
  httplib::DataSink& sink_;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const Service& service, const HttpLimits& limits) : service_(service), limits_(limits) {
    const size_t threads = limits.connections;
    http_.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
    http_.set_keep_alive_max_count(1000);
    http_.set_keep_alive_timeout(kKeepAliveSeconds);
    http_.set_read_timeout(kReadSeconds);
    http_.set_write_timeout(kWriteSeconds);
    http_.set_tcp_nodelay(true);
    http_.set_payload_max_length(limits.body_bytes);
    http_.set_socket_options([this](socket_t socket) {
      // Not SO_REUSEPORT, which would let two servers share a port without a word.
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      socket_ = socket;
    });
    http_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          using Handled = httplib::Server::HandlerResponse;
          return refuse(request, response) ? Handled::Handled : Handled::Unhandled;
        });
    http_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty() || response.content_provider_) return;
      set_error(response, {response.status,
                           "invalid_request_error",
                           {},
                           {},
                           "the server cannot read the request for '" +
                               request.path.substr(0, kLongestPath) + "'"});
    });
    http_.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
          set_error_and_close(response, server_error(500, "the request failed inside the server"));
        });
    http_.set_logger([this](const httplib::Request& request, const httplib::Response& response) {
      service_.metrics.responded(known_path(request.path), response.status);
    });
    add_paths();
  }

  int bind(const std::string& host, int port) {
    const bool bound = port == 0 || http_.bind_to_port(host, port);
    const int taken = port == 0 ? http_.bind_to_any_port(host) : port;
    if (!bound || taken < 0) return -1;
    // The HTTP library asks for a queue of five, in which a burst of clients would not fit.
    ::listen(socket_, kBacklog);
    return taken;
  }

  bool serve() {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return true;
      serving_ = true;
    }
    const bool accepted = http_.listen_after_bind();
    const std::lock_guard lock(mutex_);
    serving_ = false;
    return accepted || stopped_;
  }

  void stop() {
    service_.engine.stop();
    std::unique_lock lock(mutex_);
    stopped_ = true;
    // Before it accepts, the HTTP library does not hear of the wish to stop.
    while (serving_ && !http_.is_running()) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      lock.lock();
    }
    http_.stop();
  }

 private:
  /// Answers what no path answers, before any of its body is read.
  bool refuse(const httplib::Request& request, httplib::Response& response) {
    const std::string& path = request.path;
    const bool posts = path == kCompletions || path == kChat;
    const bool gets = path == kModels || path == kHealth || path == kMetrics ||
                      (is_model_path(path) && path.size() <= kLongestPath);
    const std::string shown = path.substr(0, kLongestPath);
    if (!posts && !gets) {
      set_error_and_close(response,
                          not_found({}, "there is nothing at '" + shown + "'", "unknown_url"));
      return true;
    }
    const bool fits =
        posts ? request.method == "POST" : request.method == "GET" || request.method == "HEAD";
    if (!fits) {
      response.set_header("Allow", posts ? "POST" : "GET, HEAD");
      set_error_and_close(response, {405,
                                     "invalid_request_error",
                                     "method_not_allowed",
                                     {},
                                     "'" + shown + "' takes " + (posts ? "POST" : "GET")});
      return true;
    }
    if (request.has_header("Range")) {
      set_error_and_close(
          response, {416, "invalid_request_error", {}, {}, "parts of a response cannot be had"});
      return true;
    }
    return false;
  }

  void add_paths() {
    using httplib::Request;
    using httplib::Response;
    http_.Get(kHealth, [this](const Request&, Response& response) {
      const nlohmann::ordered_json body = {{"status", "ok"},
                                           {"model", service_.dialect.model},
                                           {"running", service_.engine.running()},
                                           {"waiting", service_.engine.waiting()},
                                           {"clients", service_.metrics.clients.load()}};
      response.set_content(dump(body), kJson);
    });
    http_.Get(kMetrics, [this](const Request&, Response& response) {
      response.set_content(
          service_.metrics.page(service_.engine.running(), service_.engine.waiting()),
          "text/plain; version=0.0.4");
    });
    http_.Get(kModels, [this](const Request&, Response& response) {
      response.set_content(dump(models_json(service_.dialect.model, started_)), kJson);
    });
    http_.Get(std::string(kModels) + "/(.+)", [this](const Request& request, Response& response) {
      if (request.matches[1] != service_.dialect.model) {
        set_error(response, not_found("model", "no model of this name", "model_not_found"));
        return;
      }
      response.set_content(dump(model_json(service_.dialect.model, started_)), kJson);
    });
    for (const bool chat : {false, true}) {
      http_.Post(chat ? kChat : kCompletions,
                 [this, chat](const Request& request, Response& response,
                              const httplib::ContentReader& reader) {
                   std::string body;
                   if (!read_body(request, response, reader, body)) return;
                   try {
                     complete(request, response,
                              chat ? parse_chat(body, service_.dialect)
                                   : parse_completion(body, service_.dialect));
                   } catch (const ApiError& error) {
                     set_error(response, error);
                   }
                 });
    }
  }

  /// False if the body cannot be had; the response says why.
  bool read_body(const httplib::Request& request, httplib::Response& response,
                 const httplib::ContentReader& reader, std::string& body) {
    if (request.is_multipart_form_data()) {
      set_error_and_close(response,
                          {415, "invalid_request_error", {}, {}, "the body must be JSON"});
      return false;
    }
    const bool chunked = request.has_header("Transfer-Encoding");
    if (!chunked && !request.has_header("Content-Length")) {
      set_error_and_close(response,
                          {411, "invalid_request_error", {}, {}, "a Content-Length is needed"});
      return false;
    }
    // Some more than the limit is read and dropped: a client that is still sending would not see
    // the response.
    bool fits = true;
    size_t received = 0;
    const bool whole = reader([&](const char* data, size_t n) {
      received += n;
      fits = fits && received <= limits_.body_bytes;
      if (fits) body.append(data, n);
      return received <= 4 * limits_.body_bytes;
    });
    if (!fits || response.status == 413) {
      set_error_and_close(
          response, {413,
                     "invalid_request_error",
                     "body_too_large",
                     {},
                     "the body is larger than " + std::to_string(limits_.body_bytes) + " bytes"});
      return false;
    }
    if (!whole) {
      const int status = response.status == 415 ? 415 : 400;
      set_error_and_close(response,
                          {status, "invalid_request_error", {}, {}, "the body cannot be read"});
      return false;
    }
    return true;
  }

  void complete(const httplib::Request& http, httplib::Response& response, const Request& request) {
    Heading heading;
    heading.id = random_id(request.chat ? "chatcmpl" : "cmpl");
    heading.model = service_.dialect.model;
    heading.created = std::time(nullptr);
    const auto reply = std::make_shared<Reply>(service_.model, service_.engine, service_.metrics,
                                               request, std::move(heading));
    if (!request.stream) reply->wait_for_first_event();

    const bool stream = request.stream;
    const bool chunks = http.version != "HTTP/1.0";
    const auto provider = [reply, stream, chunks](size_t, httplib::DataSink& sink) {
      try {
        SinkClient client(sink);
        if (!(stream ? reply->stream_to(client) : reply->write_to(client))) return false;
        sink.done();
        return chunks;  // without chunks it is the end of the connection that ends the body
      } catch (const std::exception&) {
        return false;  // out of memory; nothing may leave a provider
      }
    };
    if (stream) response.set_header("Cache-Control", "no-cache");
    const char* type = stream ? "text/event-stream" : kJson;
    if (chunks) {
      response.set_chunked_content_provider(type, provider);
    } else {
      response.set_content_provider(type, provider);
    }
  }

  const Service service_;
  const HttpLimits limits_;
  const int64_t started_ = std::time(nullptr);
  httplib::Server http_;
  socket_t socket_ = INVALID_SOCKET;
  std::mutex mutex_;
  bool serving_ = false;
  bool stopped_ = false;
};

HttpServer::HttpServer(const Service& service, const HttpLimits& limits)
    : impl_(std::make_unique<Impl>(service, limits)) {}

HttpServer::~HttpServer() = default;

int HttpServer::bind(const std::string& host, int port) { return impl_->bind(host, port); }

bool HttpServer::serve() { return impl_->serve(); }

void HttpServer::stop() { impl_->stop(); }

}  // namespace server
