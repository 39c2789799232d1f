// SPDX-License-Identifier: Apache-2.0
// generate-server: a model behind the HTTP API of OpenAI's clients. Prints one line with its
// address once it accepts connections; SIGINT or SIGTERM ends it with exit code 0.
#include <generate/generate.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../cli/chat_template.h"
#include "../cli/manual.h"
#include "../cli/model_file.h"
#include "adapters.h"
#include "engine.h"
#include "http_server.h"
#include "metrics.h"
#include "prompts.h"

namespace {

constexpr const char* kExamples = R"(generate-server -m model.gguf --port 8080
curl localhost:8080/v1/completions -d '{"prompt": "Once upon a time"}'
)";

struct ServerChoice {
  cli::ModelChoice model;
  std::string host = "127.0.0.1";
  int port = 8080;
  int parallel = 16;
  int queue = 64;
  int connections = 0;  // 0: enough for all running and waiting answers, and some more
  int body_kib = 4096;
  int request_seconds = 30;
  std::vector<std::string> hosts;    // names that Host may have
  std::vector<std::string> origins;  // of pages that may use it
  std::string name;
  std::vector<std::string> settings;  // KEY=VALUE for gen_options_set
  std::vector<std::string> lora;      // [NAME=]FILE[:SCALE]
  std::string chat_template;          // a file's path or the name of a form
  server::Dialect dialect;
};

/// The error in an --allow-origin; empty if a browser may send it as an Origin.
std::string origin_problem(const std::string& text) {
  if (text == "*" || text == "null") return "";
  const size_t colon = text.find("://");
  const bool named = colon != std::string::npos && colon > 0 && colon + 3 < text.size() &&
                     text.find_first_of("/ ?#", colon + 3) == std::string::npos;
  return named ? "" : "'" + text.substr(0, 100) + "' is not SCHEME://NAME or SCHEME://NAME:PORT";
}

void add_options(CLI::App& app, ServerChoice& choice) {
  cli::add_model_options(app, choice.model);
  cli::add_kv_option(app, choice.model);
  cli::add_draft_options(app, choice.model);
  cli::add_context_option(app, choice.model);
  cli::add_deterministic_option(app, choice.model);
  app.add_option("--host", choice.host, "address to listen at")->capture_default_str();
  app.add_option("--port", choice.port, "port; 0 takes a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--parallel", choice.parallel, "answers generated at once")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  app.add_option("--queue", choice.queue, "answers that may wait; more are refused with 503")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option("--connections", choice.connections,
                 "connections served at once (by default enough for --parallel and --queue)")
      ->check(CLI::Range(2, 65536));
  app.add_option("--max-tokens", choice.dialect.max_tokens, "maximum tokens of an answer")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--max-prompts", choice.dialect.max_prompts, "maximum prompts of a request")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--max-body", choice.body_kib, "maximum KiB of a request")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--request-timeout", choice.request_seconds,
                 "maximum seconds from a request's first byte to its last")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--allow-host", choice.hosts,
                 "a name that clients may use for the server, besides localhost, addresses and "
                 "--host; \"*\" is any")
      ->allow_extra_args(false);
  app.add_option("--allow-origin", choice.origins,
                 "an origin whose web pages may use the server: https://example.org; \"*\" is any")
      ->check(origin_problem)
      ->allow_extra_args(false);
  app.add_option("--name", choice.name, "the model's name for clients (its file's if not given)");
  app.add_option("--lora", choice.lora,
                 "a LoRA adapter, GGUF, that requests may use, by its file's name or NAME; "
                 "[NAME=]FILE[:SCALE]; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--chat-template", choice.chat_template, cli::kChatTemplateHelp)
      ->type_name("FILE|NAME");
  app.add_option("--set", choice.settings,
                 "KEY=VALUE: an option of the generator by name; may be repeated");
}

cli::Generator make_generator(const cli::Model& model, const ServerChoice& choice) {
  const cli::Options options = cli::make_options(choice.model);
  cli::use_drafts(choice.model, options.get());
  gen_error error;
  cli::check(gen_options_set_max_batch(options.get(), choice.parallel, &error), error);
  for (const std::string& setting : choice.settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) throw cli::Failure("--set " + setting + ": no '='", 2);
    cli::check_option("--set",
                      gen_options_set(options.get(), setting.substr(0, equals).c_str(),
                                      setting.substr(equals + 1).c_str(), &error),
                      error);
  }
  return cli::make_by_options<cli::Generator>(gen_create, model.get(), options.get());
}

/// Waits for SIGINT or SIGTERM, which are blocked in every thread, in a thread of its own.
class SignalWatch {
 public:
  explicit SignalWatch(server::HttpServer& http) {
    thread_ = std::thread([this, &http] {
      if (next() == SIGUSR1) return;
      http.stop();
      if (next() != SIGUSR1) _exit(130);  // second signal
    });
  }
  ~SignalWatch() {
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Call before any thread is started.
  static void block() { pthread_sigmask(SIG_BLOCK, &set(), nullptr); }

 private:
  static const sigset_t& set() {
    static const sigset_t signals = [] {
      sigset_t made;
      sigemptyset(&made);
      for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&made, number);
      return made;
    }();
    return signals;
  }

  /// The next signal; SIGUSR1 only from the destructor, not from other processes.
  int next() const {
    int number = 0;
    do {
      sigwait(&set(), &number);
    } while (number == SIGUSR1 && !ending_);
    return number;
  }

  std::atomic<bool> ending_{false};
  std::thread thread_;
};

void serve(ServerChoice choice) {
  const std::string path = cli::find_file(choice.model.path, "story.gguf");
  SignalWatch::block();
  const cli::Model model = cli::load_model(choice.model);
  choice.dialect.model =
      choice.name.empty() ? std::filesystem::path(path).stem().string() : choice.name;
  choice.dialect.adapters = server::load_adapters(choice.lora, model.get(), choice.dialect.model);
  choice.dialect.settings = server::sampling_keys();
  // Room for prompts of tokens, and for everything else.
  const int32_t context = gen_model_config_max_seq_len(gen_model_get_config(model.get()));
  choice.dialect.max_values =
      static_cast<size_t>(choice.dialect.max_prompts) * static_cast<size_t>(context) + 65536;

  server::Metrics metrics;
  server::Engine engine(make_generator(model, choice), static_cast<size_t>(choice.parallel),
                        static_cast<size_t>(choice.queue), metrics);
  server::HttpLimits limits;
  limits.body_bytes = static_cast<size_t>(choice.body_kib) << 10U;
  limits.connections = static_cast<size_t>(
      choice.connections > 0 ? choice.connections
                             : std::min(choice.parallel + choice.queue + 16, 900));
  limits.request_seconds = choice.request_seconds;
  limits.hosts = choice.hosts;
  limits.hosts.push_back(choice.host);
  limits.origins = choice.origins;
  const server::Encoder encoder(model.get(), cli::chat_template(choice.chat_template));
  server::Languages languages(server::language_maker(model.get()), 2, size_t{64} << 20U);
  server::HttpServer http({encoder, languages, engine, metrics, choice.dialect}, limits);
  // An IPv6 address is in brackets before a port.
  const bool six = choice.host.find(':') != std::string::npos;
  const std::string host = six ? "[" + choice.host + "]" : choice.host;
  int port = 0;
  try {
    port = http.bind(choice.host, choice.port);
  } catch (const std::exception& failure) {
    throw cli::Failure("cannot listen at " + host + ":" + std::to_string(choice.port) + ": " +
                       failure.what());
  }
  const SignalWatch watch(http);
  std::printf("listening at http://%s:%d, model %s\n", host.c_str(), port,
              choice.dialect.model.c_str());
  if (std::fflush(stdout) != 0) throw cli::Failure("cannot write to standard output");
  if (!http.serve()) throw cli::Failure("the server stopped accepting connections");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Serves a GGUF model over HTTP, for clients of the OpenAI API.", "generate-server");
  app.set_version_flag("--version", std::string("generate-server ") + gen_version());
  app.failure_message(cli::parse_failure);
  ServerChoice choice;
  add_options(app, choice);
  try {
    if (argc == 2 && std::string(argv[1]) == "--man") {
      std::printf("%s", cli::manual_page(app, gen_version(), kExamples).c_str());
      return 0;
    }
    app.parse(argc, argv);
    serve(std::move(choice));
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const cli::Failure& failure) {
    std::fprintf(stderr, "generate-server: %s\n", failure.what());
    return failure.exit_code;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "generate-server: %s\n", failure.what());
    return 1;
  }
  return 0;
}
