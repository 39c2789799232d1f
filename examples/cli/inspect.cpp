// SPDX-License-Identifier: Apache-2.0
// generate inspect: what a GGUF file contains, whatever it is, tensor by tensor and by layer, how
// much memory its model takes and what of it is not used; and a graph of one token's forward pass.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "gguf_head.h"
#include "gguf_types.h"
#include "input_files.h"
#include "inspect_beside.h"
#include "inspect_tensors.h"
#include "model_file.h"
#include "output.h"
#include "text_format.h"

namespace cli {
namespace {

using nlohmann::ordered_json;

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

/// A file that does not stay.
struct Removed {
  explicit Removed(std::string name) : path(std::move(name)) {}
  Removed(const Removed&) = delete;
  Removed& operator=(const Removed&) = delete;
  ~Removed() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }

  std::string path;
};

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
  if (is_dot) {
    check(gen_tracer_write_dot(tracer.get(), path.c_str(), &error), error);
    return;
  }
  const Removed dot(path + "." + std::to_string(getpid()) + ".dot");
  check(gen_tracer_write_dot(tracer.get(), dot.path.c_str(), &error), error);
  if (!run_dot(extension.substr(1), dot.path, path)) {
    throw Failure("--graph " + path + ": " + extension +
                  " needs Graphviz, which is not installed; .dot and .json do not");
  }
}

/// Texts in files need not be UTF-8.
std::string dumped(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// Of a long array its first elements.
std::string shown(const ordered_json& value) {
  if (value.is_string()) return printable(value.get<std::string>());
  const bool is_long = value.is_object() && value.contains("first");
  const ordered_json& list = is_long ? value["first"] : value;
  if (!list.is_array() || list.size() < kGgufFirst || (!is_long && list.size() == kGgufFirst)) {
    return printable(dumped(value));
  }
  std::string out;
  for (size_t i = 0; i < kGgufFirst; ++i) out += dumped(list[i]) + ", ";
  const uint64_t count = is_long ? value["count"].get<uint64_t>() : list.size();
  return printable("[" + out + "... " + std::to_string(count) + " in all]");
}

/// A value of the metadata: long texts, such as chat templates, are cut.
std::string shown_value(const std::string& key, const ordered_json& value) {
  if (key == "general.file_type" && is_count(value)) {
    const std::string name = gguf_file_type_name(value.get<uint64_t>());
    return shown(value) + (name.empty() ? "" : " (" + name + ")");
  }
  if (!value.is_string()) return shown(value);
  constexpr size_t kShown = 100;
  const auto& text = value.get_ref<const std::string&>();
  size_t characters = 0;
  size_t cut = text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (characters++ == kShown) cut = i;
  }
  if (characters <= kShown) return printable(text);
  return printable(text.substr(0, cut)) + "… " + std::to_string(characters) + " characters in all";
}

bool is_on_cpu(const ModelChoice& choice) {
  return choice.backend.empty() || choice.backend == "cpu";
}

/// Whether the head in the file drafts without an option: then a generator takes more memory than
/// one without drafts.
bool head_drafts(const Inspect& options, const std::string& path) {
  const ModelOptions model = make_model_options(options.model);
  size_t sums[2] = {};
  for (const int off : {0, 1}) {
    const Options generator = make<Options>(gen_options_new);
    gen_error error;
    if (off == 1) check(gen_options_set(generator.get(), "draft_heads", "off", &error), error);
    const MemoryEstimate estimate = make_by_options<MemoryEstimate>(
        gen_estimate_memory, path.c_str(), model.get(), generator.get());
    for (const char* key : {"weights", "cache", "device_weights", "device_cache"}) {
      size_t bytes = 0;
      check(gen_memory_estimate_get(estimate.get(), key, &bytes, &error), error);
      sums[off] += bytes;
    }
  }
  return sums[0] > sums[1];
}

/// What its weights take when it is loaded, without loading them.
void estimate_memory(const Inspect& options, const std::string& path, ordered_json* memory) {
  const MemoryEstimate estimate = make_by_options<MemoryEstimate>(
      gen_estimate_memory, path.c_str(), make_model_options(options.model).get(), nullptr);
  for (const char* key : {"file", "weights", "mapped", "workspace", "stream"}) {
    size_t bytes = 0;
    gen_error error;
    check(gen_memory_estimate_get(estimate.get(), key, &bytes, &error), error);
    (*memory)[key] = bytes;
  }
}

ordered_json describe_model(const Inspect& options, const std::string& path) {
  ModelChoice choice = options.model;
  choice.path = path;
  // A device's layers are known once it has them. Otherwise no weight need be read.
  if (is_on_cpu(choice)) choice.in_place = true;
  const Model model = load_model(choice);
  auto json =
      ordered_json::parse(text_of([&](char* buf, size_t capacity, size_t* n, gen_error* error) {
        return gen_model_describe(model.get(), buf, capacity, n, error);
      }));
  json["loads"] = true;
  if (is_on_cpu(choice)) {
    estimate_memory(options, path, &json["memory"]);
    return json;
  }
  for (const char* key : {"file", "weights", "mapped", "workspace", "stream"}) {
    size_t bytes = 0;
    gen_error error;
    check(gen_model_memory(model.get(), key, &bytes, &error), error);
    json["memory"][key] = bytes;
  }
  return json;
}

/// The same of a model that the library does not load, from the file alone: `why` is the reason.
ordered_json describe_unloaded(const GgufHead& head, const std::string& why) {
  ordered_json out;
  out["architecture"] = head.metadata.value("general.architecture", ordered_json());
  out["name"] = head.metadata.value("general.name", ordered_json());
  uint64_t weights = 0;
  for (const GgufHead::Tensor& tensor : head.tensors) weights += tensor.elements;
  out["parameters"] = weights;
  out["gguf_version"] = head.version;
  out["loads"] = false;
  out["why"] = why;
  out["memory"]["file"] = head.size();
  return out;
}

void print_missing(const ordered_json& missing) {
  const std::string end = size_text(missing["ends_at"].get<uint64_t>());
  const auto listed = missing["listed"].get<uint64_t>();
  const auto tensors = missing["tensors"].get<uint64_t>();
  const auto whole = missing["whole"].get<uint64_t>();
  if (listed < tensors) {
    std::cout << "incomplete: the file ends at " << end << ", in its list of tensors, which has "
              << listed << " of " << tensors << "\n";
  } else if (whole < tensors) {
    std::cout << "incomplete: the file ends at " << end << " of "
              << size_text(missing["needed"].get<uint64_t>()) << ", " << whole << " of " << tensors
              << " tensors are whole";
    if (missing.contains("first")) {
      std::cout << ", the first that is not: " << shown(missing["first"]);
    }
    std::cout << "\n";
  }
  if (!missing.contains("parts")) return;
  for (const ordered_json& part : missing["parts"]) {
    std::cout << "missing part: " << shown(part) << "\n";
  }
}

void print(const ordered_json& json) {
  for (const auto& [key, value] : json.items()) {
    if (key == "tensors") {
      print_tensors(json);
    } else if (key == "types" || key == "weight_types" || key == "unused" ||
               key == "unused_tensors" || key == "head" || value.is_null()) {
      continue;  // with the tensors
    } else if (key == "missing") {
      print_missing(value);
    } else if (key == "parameters" || key == "active_parameters") {
      std::cout << key << ": " << count_text(value.get<uint64_t>()) << "\n";
    } else if (!value.is_object()) {
      std::cout << key << ": " << shown(value) << "\n";
    } else {
      std::cout << key << ":\n";
      for (const auto& [name, entry] : value.items()) {
        std::cout << "  " << printable(name) << ": "
                  << (key == "memory" ? size_text(entry.get<uint64_t>()) : shown_value(name, entry))
                  << "\n";
      }
    }
  }
}

/// All that is known of a file.
ordered_json describe(const Inspect& options, const std::string& path) {
  const auto head = read_gguf_head(path);
  if (!head && is_older_importance(path)) {
    throw Failure("'" + path +
                  "' is an importance matrix of the older binary form; quantize takes it, but "
                  "only the GGUF form is listed");
  }
  if (!head) return describe_model(options, path);  // which says what is wrong with it
  ordered_json json = describe_beside(*head);
  ordered_json loaded;
  if (json.is_null()) {
    try {
      json = loaded = describe_model(options, path);
    } catch (const Failure& failure) {
      const bool is_of_file =
          failure.status == GEN_ERROR_FORMAT || failure.status == GEN_ERROR_UNSUPPORTED;
      if (!is_of_file || !options.model.pre_tokenizer.empty()) throw;
      json = describe_unloaded(*head, failure.what());
    }
  }
  if (ordered_json missing = describe_missing(*head); !missing.is_null()) {
    json["missing"] = std::move(missing);
  }
  if (const size_t named = parts_of(path).size(); named > 1 && head->parts.size() == 1) {
    json["odd_name"] = "one of " + std::to_string(named) + " parts, but split.count is not above 1";
  }
  const bool has_unused = loaded.is_object() && !loaded["unused_tensors"].empty();
  describe_tensors(*head, loaded, has_unused && head_drafts(options, path), &json);
  json["metadata"] = head->metadata;
  return json;
}

void inspect(const Inspect& options) {
  gen_log_set_level(GEN_LOG_INFO);
  const std::string path = find_file(options.model.path, "story.gguf");
  if (options.draws) {
    check_writable(options.graph, "--graph");
    check_apart(options.graph, "--graph", files_of(options.model));
    const auto head = read_gguf_head(path);
    if (head && !describe_beside(*head).is_null())
      throw Failure("--graph: the file is no model", 2);
    ModelChoice choice = options.model;
    choice.in_place = choice.in_place || is_on_cpu(choice);  // one token reads each weight once
    draw(load_model(choice), options.graph);
    return;
  }
  const ordered_json json = describe(options, path);
  if (options.json) {
    std::cout << dumped(json) << "\n";
  } else {
    print(json);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<Inspect>();
  CLI::App* command =
      app.add_subcommand("inspect", "show what a GGUF file contains: metadata, tensors, memory");
  add_model_options(*command, options->model, true);
  CLI::Option* const graph = command->add_option(
      "--graph", options->graph,
      "draw the forward pass of a token instead: .svg, .png and so on need Graphviz, .dot and "
      ".json do not");
  command->add_flag("--json", options->json, "print one JSON object")->excludes(graph);
  command->callback([options, command] {
    options->draws = command->count("--graph") > 0;
    inspect(*options);
  });
}

}  // namespace cli
