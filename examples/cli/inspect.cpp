// SPDX-License-Identifier: Apache-2.0
// generate inspect: what a file of a model or an adapter contains and how much memory it takes,
// and a graph of one token's forward pass.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "inspect_beside.h"
#include "model_file.h"
#include "output.h"
#include "text_format.h"

namespace cli {
namespace {

struct Inspect {
  ModelChoice model;
  std::string graph;   // file to draw to
  bool draws = false;  // --graph was given
  bool json = false;
};

/// Records the pass of one token through an empty cache.
void record_pass(const Model& model, const gen_tracer* tracer) {
  auto options = make<Options>(gen_options_new);
  gen_error error;
  check(gen_options_set_tracer(options.get(), tracer, &error), error);
  const Generator generator = make<Generator>(gen_create, model.get(), options.get());
  const Session session = make<Session>(gen_session_new, generator.get());
  const int32_t bos = gen_model_config_bos(gen_model_get_config(model.get()));
  const int32_t token = bos >= 0 ? bos : 0;
  check(gen_session_append_tokens(session.get(), &token, 1, &error), error);
  const Sampling sampling = make<Sampling>(gen_sampling_new);
  check(gen_sampling_set_max_new_tokens(sampling.get(), 1, &error), error);
  gen_result* raw = nullptr;
  const gen_status status =
      gen_session_generate(session.get(), "", 0, sampling.get(), &raw, &error);
  const Result result(raw);
  check(status, error);
}

/// Runs Graphviz; false if it is not installed.
bool run_dot(const std::string& type, const std::string& from, const std::string& to) {
  const std::string format = "-T" + type;
  const pid_t child = fork();
  if (child < 0) throw Failure("cannot start dot");
  if (child == 0) {
    execlp("dot", "dot", format.c_str(), "-o", to.c_str(), from.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw Failure("cannot wait for dot");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return false;
  if (status != 0) throw Failure("dot could not draw " + to);
  return true;
}

void draw(const Model& model, const std::string& path) {
  const Tracer tracer = make<Tracer>(gen_tracer_new);
  record_pass(model, tracer.get());
  gen_error error;
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".json") {
    check(gen_tracer_write_json(tracer.get(), path.c_str(), &error), error);
    return;
  }
  const bool is_dot = extension == ".dot" || extension == ".gv" || extension.size() < 2;
  const std::string dot = is_dot ? path : path + ".dot";
  check(gen_tracer_write_dot(tracer.get(), dot.c_str(), &error), error);
  if (is_dot) return;
  const bool drawn = run_dot(extension.substr(1), dot, path);
  std::filesystem::remove(dot);
  if (!drawn) {
    throw Failure("--graph " + path + ": " + extension +
                  " needs Graphviz, which is not installed; .dot and .json do not");
  }
}

/// Texts in files need not be UTF-8.
std::string dumped(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string shown(const nlohmann::ordered_json& value) {
  return printable(value.is_string() ? value.get<std::string>() : dumped(value));
}

nlohmann::ordered_json describe_model(const Model& model) {
  auto json = nlohmann::ordered_json::parse(
      text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
        return gen_model_describe(model.get(), buf, capacity, n, error);
      }));
  for (const char* key : {"file", "weights", "mapped", "workspace", "stream"}) {
    size_t bytes = 0;
    gen_error error;
    check(gen_model_memory(model.get(), key, &bytes, &error), error);
    json["memory"][key] = bytes;
  }
  for (size_t i = 0; i < gen_model_metadata_count(model.get()); ++i) {
    const char* key = gen_model_metadata_key(model.get(), i);
    json["metadata"][key] = text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
      return gen_model_metadata_value(model.get(), key, buf, capacity, n, error);
    });
  }
  return json;
}

void inspect(const Inspect& options) {
  if (options.draws) check_writable(options.graph, "--graph");
  auto json = describe_beside(find_file(options.model.path, "story.gguf"));
  if (options.draws && !json.is_null()) throw Failure("--graph: the file is no model", 2);
  if (json.is_null()) {
    const Model model = load_model(options.model);
    if (options.draws) {
      draw(model, options.graph);
      return;
    }
    json = describe_model(model);
  }
  if (options.json) {
    std::cout << dumped(json) << "\n";
    return;
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object()) {
      std::cout << key << ": " << shown(value) << "\n";
      continue;
    }
    std::cout << key << ":\n";
    for (const auto& [name, entry] : value.items()) {
      std::cout << "  " << printable(name) << ": " << shown(entry) << "\n";
    }
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<Inspect>();
  CLI::App* command =
      app.add_subcommand("inspect", "show the contents of a model file or of an adapter's");
  add_model_options(*command, options->model, true);
  command->add_option(
      "--graph", options->graph,
      "draw the forward pass of a token: .svg, .png and so on need Graphviz, .dot and "
      ".json do not");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, command] {
    options->draws = command->count("--graph") > 0;
    inspect(*options);
  });
}

}  // namespace cli
