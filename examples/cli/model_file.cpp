// SPDX-License-Identifier: Apache-2.0
// See model_file.h.
#include "model_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "option_help.h"
#include "progress_bar.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

int on_progress(void* bar, double share) {
  static_cast<ProgressBar*>(bar)->update(share);
  return 0;
}

fs::path program_folder() {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  return failure ? fs::path(".") : program.parent_path();
}

/// The drafters that --draft names.
struct DraftParts {
  bool off = false;
  bool lookup = false;
  bool suffix = false;
  bool heads = false;
  std::string layers;  // their number; empty: they do not draft
  std::string file;    // of a model; empty: none
};

/// Returns the error in `text`; empty if there is none. The file is the rest of the text, because
/// its name may contain commas.
std::string read_draft_parts(std::string_view text, DraftParts* parts) {
  constexpr std::string_view kLayers = "layers";
  const std::string_view all = text;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    const bool layers = part == kLayers || part.starts_with("layers:");
    if ((part == "lookup" && parts->lookup) || (part == "suffix" && parts->suffix) ||
        (part == "heads" && parts->heads) || (layers && !parts->layers.empty())) {
      return "'" + std::string(part) + "' comes twice";
    }
    if (part == "off" && part == all) {
      parts->off = true;
    } else if (part == "heads") {
      parts->heads = true;
    } else if (part == "lookup") {
      parts->lookup = true;
    } else if (part == "suffix") {
      parts->suffix = true;
    } else if (layers) {
      parts->layers = part.substr(std::min(part.size(), kLayers.size() + 1));
      const bool number = parts->layers.find_first_not_of("0123456789") == std::string::npos;
      if (!number || parts->layers.find_first_not_of('0') == std::string::npos) {
        return "'" + std::string(part) + "' must be layers:N with a number of layers";
      }
    } else {
      parts->file = text;
      std::error_code failure;
      if (fs::exists(parts->file, failure)) return "";
      if (part.size() < text.size() && fs::exists(part, failure)) {
        return "the file '" + std::string(part) + "' must come last";
      }
      return "'" + parts->file +
             "' is not off, heads, lookup, suffix or layers:N, and there is no such file";
    }
    if (part.size() + 1 == text.size()) return "nothing stands behind the last comma";
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return "";
}

}  // namespace

std::string by_options(const std::string& message) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"max_seq_len", "--ctx"},
      {"gpu_layers", "--gpu-layers"},
      {"gpu_expert_layers", "--gpu-expert-layers"},
      {"kv_dtype", "--kv"},
      {"paged_kv", "--paged"},
      {"prefix_cache", "--prefix-cache"},
      {"compressed_kv", "--compressed"},
      {"tiered_kv", "--tiered"},
      {"window_rewind", "--window-rewind"},
      {"window_copies", "--window-copies"},
      {"state_snapshot_every", "--state-snapshot-every"},
      {"pre_tokenizer", "--pre-tokenizer"},
      {"state_snapshot_budget", "--state-snapshot-budget"},
      {"prompt_lookup", "--draft"},
      {"suffix_lookup", "--draft"},
      {"speculative_draft", "--draft"},
      {"self_draft", "--draft"},
      {"draft_heads", "--draft"},
      {"eagle", "--eagle"},
      {"draft_policy", "--draft-policy"},
      {"draft_acceptance", "--draft-acceptance"},
      {"context_policy", "--context-policy"}};
  std::string out = message;
  for (const auto& [name, option] : kNames) {
    for (size_t at = 0; (at = out.find(name, at)) != std::string::npos; at += option.size()) {
      out.replace(at, name.size(), option);
    }
  }
  return out;
}

void add_model_options(CLI::App& command, ModelChoice& choice, bool positional) {
  add_file_options(command, choice, positional);
  command.add_option("-t,--threads", choice.threads, model_help("threads"))
      ->check([](const std::string& text) {
        auto options = make<ModelOptions>(gen_model_options_new);
        gen_error error;
        const gen_status status =
            gen_model_options_set(options.get(), "threads", text.c_str(), &error);
        return status == GEN_OK ? std::string() : std::string(error.message);
      });
  command.add_option("--backend", choice.backend, model_help("backend"));
  command.add_option("--device", choice.device, model_help("device"));
  command.add_option("--gpu-layers", choice.gpu_layers, model_help("gpu_layers"));
  command.add_option("--gpu-expert-layers", choice.gpu_expert_layers,
                     model_help("gpu_expert_layers"));
  command.add_option("--pre-tokenizer", choice.pre_tokenizer, model_help("pre_tokenizer"));
}

void add_file_options(CLI::App& command, ModelChoice& choice, bool positional) {
  command.add_option(std::string("-m,--model") + (positional ? ",FILE" : ""), choice.path,
                     "GGUF file (the bundled model if not given)");
  command.add_flag("--in-place", choice.in_place,
                   "leave weights in the mapped file: no copy in memory, but slower");
  takes_count(
      command.add_option("--ctx", choice.max_seq_len,
                         "maximum context; by default the model's own, which is the limit"));
}

std::string kv_problem(const std::string& text) {
  auto options = make<Options>(gen_options_new);
  gen_error error;
  const gen_status status = gen_options_set_kv_dtype(options.get(), text.c_str(), &error);
  return status == GEN_OK ? std::string() : std::string(error.message);
}

void add_kv_option(CLI::App& command, ModelChoice& choice) {
  command.add_option("--kv", choice.kv, generator_help("kv_dtype"))
      ->check(kv_problem)
      ->capture_default_str();
  command.add_option("--paged", choice.paged, generator_help("paged_kv"));
  takes_count(command.add_option(
      "--prefix-cache", choice.prefix_cache,
      "blocks of the pool kept for prompts with a common prefix; by default none"));
  takes_count(command.add_option(
      "--compressed", choice.compressed,
      "replaces every full chunk of N positions by one entry, their mean; by default off"));
  command.add_option("--tiered", choice.tiered, generator_help("tiered_kv"));
  command.add_option("--window-rewind", choice.window_rewind,
                     generator_help_and_default("window_rewind"));
  command.add_option("--window-copies", choice.window_copies,
                     generator_help_and_default("window_copies"));
  command.add_option("--state-snapshot-every", choice.snapshot_every,
                     generator_help_and_default("state_snapshot_every"));
  command.add_option("--state-snapshot-budget", choice.snapshot_budget,
                     generator_help_and_default("state_snapshot_budget"));
}

std::string find_file(const std::string& given, const char* bundled_name) {
  if (!given.empty()) return given;
  const char* environment = std::getenv("GEN_MODEL");
  const bool is_model = fs::path(bundled_name).extension() == ".gguf";
  if (is_model && environment != nullptr && *environment != '\0') return environment;
  const fs::path installed =
      (program_folder() / ".." / "share" / "generate" / bundled_name).lexically_normal();
  if (fs::exists(installed)) return installed.string();
  throw Failure("no model: GEN_MODEL is not set, and " + installed.string() +
                " is not there; give one with -m");
}

std::string draft_file(const ModelChoice& choice) {
  DraftParts parts;
  return read_draft_parts(choice.draft, &parts).empty() ? parts.file : std::string();
}

void add_context_option(CLI::App& command, ModelChoice& choice) {
  command.add_option("--context-policy", choice.context, generator_help("context_policy"))
      ->capture_default_str();
}

void add_deterministic_option(CLI::App& command, ModelChoice& choice) {
  command.add_flag("--deterministic", choice.deterministic, generator_help("deterministic"));
}

void add_draft_options(CLI::App& command, ModelChoice& choice) {
  command
      .add_option(
          "--draft", choice.draft,
          "speculative decoding, which does not change the text: lookup (drafts from the "
          "text itself), suffix (the same with longer matches), heads (the head in the model's "
          "file, which drafts without this option, too), layers:N (the model's first N "
          "layers), or the GGUF file of a smaller model; several separated by commas, such as "
          "suffix,FILE, are tried in order; off: none")
      ->check([](const std::string& text) {
        DraftParts parts;
        return read_draft_parts(text, &parts);
      });
  command
      .add_option(
          "--eagle", choice.eagle,
          "the GGUF file of a head that drafts: EAGLE, the blocks behind a model's layers, or "
          "the assistant of a Gemma 4; it drafts where --draft finds nothing")
      ->check(CLI::ExistingFile);
  command
      .add_option("--draft-len", choice.draft_len,
                  "maximum tokens of a draft; 0: 8 for lookups, 4 for heads and models")
      ->check(CLI::Range(0, 63));
  command
      .add_option("--draft-acceptance", choice.draft_acceptance, generator_help("draft_acceptance"))
      ->capture_default_str();
  command.add_option("--draft-policy", choice.draft_policy, generator_help("draft_policy"))
      ->capture_default_str();
}

ModelOptions make_model_options(const ModelChoice& choice) {
  auto options = make<ModelOptions>(gen_model_options_new);
  gen_error error;
  if (choice.threads > 0) {
    check_option("--threads", gen_model_options_set_threads(options.get(), choice.threads, &error),
                 error);
  }
  const auto set = [&](const char* option, const char* key, const std::string& value) {
    if (value.empty()) return;
    check_option(option, gen_model_options_set(options.get(), key, value.c_str(), &error), error);
  };
  set("--backend", "backend", choice.backend);
  set("--device", "device", choice.device);
  set("--gpu-layers", "gpu_layers", choice.gpu_layers);
  set("--gpu-expert-layers", "gpu_expert_layers", choice.gpu_expert_layers);
  set("--pre-tokenizer", "pre_tokenizer", choice.pre_tokenizer);
  if (choice.in_place) check(gen_model_options_set(options.get(), "repack", "0", &error), error);
  if (choice.max_seq_len > 0) {
    check_option("--ctx",
                 gen_model_options_set_max_seq_len(options.get(), choice.max_seq_len, &error),
                 error);
  }
  return options;
}

Model load_model(const ModelChoice& choice) {
  const ModelOptions options = make_model_options(choice);
  const std::string path = find_file(choice.path, "story.gguf");
  ProgressBar bar("loading");
  gen_error error;
  check(gen_model_options_set_progress(options.get(), on_progress, &bar, &error), error);
  return make_by_options<Model>(gen_model_load, path.c_str(), options.get());
}

Tokenizer load_tokenizer(const ModelChoice& choice) {
  const ModelOptions options = make_model_options(choice);
  return make_by_options<Tokenizer>(gen_tokenizer_load_with,
                                    find_file(choice.path, "story.gguf").c_str(), options.get());
}

Options make_options(const ModelChoice& choice) {
  auto options = make<Options>(gen_options_new);
  gen_error error;
  gen_options* o = options.get();
  const auto set = [&](const char* option, const char* key, const std::string& value) {
    if (value.empty()) return;
    check_option(option, gen_options_set(o, key, value.c_str(), &error), error);
  };
  check_option("--kv", gen_options_set_kv_dtype(o, choice.kv.c_str(), &error), error);
  set("--paged", "paged_kv", choice.paged);
  check_option("--prefix-cache", gen_options_set_prefix_cache(o, choice.prefix_cache, &error),
               error);
  check_option("--compressed", gen_options_set_compressed_kv(o, choice.compressed, &error), error);
  set("--context-policy", "context_policy", choice.context);
  set("--tiered", "tiered_kv", choice.tiered);
  set("--window-rewind", "window_rewind", choice.window_rewind);
  set("--window-copies", "window_copies", choice.window_copies);
  set("--state-snapshot-every", "state_snapshot_every", choice.snapshot_every);
  set("--state-snapshot-budget", "state_snapshot_budget", choice.snapshot_budget);
  check_option("--deterministic",
               gen_options_set_deterministic(o, choice.deterministic ? 1 : 0, &error), error);
  if (choice.special) {
    check_option("--special", gen_options_set(o, "parse_special", "1", &error), error);
  }
  return options;
}

void use_drafts(const ModelChoice& choice, gen_options* options, bool loads) {
  constexpr int32_t kNgram = 3;
  gen_error error;
  DraftParts parts;
  if (const std::string problem = read_draft_parts(choice.draft, &parts); !problem.empty()) {
    throw Failure("--draft: " + problem);
  }
  if (parts.lookup) {
    check_option("--draft-len",
                 gen_options_set_prompt_lookup(options, kNgram, choice.draft_len, &error), error);
  }
  if (parts.suffix) {
    const std::string length = std::to_string(choice.draft_len > 0 ? choice.draft_len : 8);
    check_option("--draft-len", gen_options_set(options, "suffix_lookup", length.c_str(), &error),
                 error);
  }
  if (!choice.eagle.empty()) {
    check_option("--eagle", gen_options_set_eagle(options, choice.eagle.c_str(), &error), error);
  }
  const char* const use = parts.heads ? "on," : choice.draft.empty() ? "auto," : "off,";
  const std::string heads = use + std::to_string(choice.draft_len);
  check_option("--draft", gen_options_set(options, "draft_heads", heads.c_str(), &error), error);
  check_option("--draft-policy",
               gen_options_set(options, "draft_policy",
                               parts.off ? "off" : choice.draft_policy.c_str(), &error),
               error);
  check_option(
      "--draft-acceptance",
      gen_options_set(options, "draft_acceptance", choice.draft_acceptance.c_str(), &error), error);
  if (!parts.layers.empty()) {
    const std::string value = parts.layers + "," + std::to_string(choice.draft_len);
    check_option("--draft", gen_options_set(options, "self_draft", value.c_str(), &error), error);
  }
  if (parts.file.empty()) return;
  if (!loads) throw Failure("--draft: estimate '" + parts.file + "' as a model of its own", 2);
  ModelChoice draft = choice;
  draft.path = parts.file;
  draft.max_seq_len = 0;
  const Model model = load_model(draft);
  check_option("--draft",
               gen_options_set_speculative_draft(options, model.get(), choice.draft_len, &error),
               error);
}

Generator make_generator(const Model& model, const ModelChoice& choice) {
  const Options options = make_options(choice);
  use_drafts(choice, options.get());
  return make_by_options<Generator>(gen_create, model.get(), options.get());
}

Cache make_cache(const Model& model, const ModelChoice& choice, int32_t tokens) {
  const gen_model_config* config = gen_model_get_config(model.get());
  const int32_t capacity = std::min(tokens, gen_model_config_max_seq_len(config));
  return make<Cache>(kv_cache_generator_new, make_generator(model, choice).get(), capacity);
}

}  // namespace cli
