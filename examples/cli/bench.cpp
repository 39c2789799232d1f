// SPDX-License-Identifier: Apache-2.0
// generate bench: speed of prefill and decode, beside the machine's peaks, measured in the same
// run. Shares count the weights that are multiplied: not the embedding, the head once per row that
// wants logits, and nothing for rows that no result depends on.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters.h"
#include "bench_adapted.h"
#include "bench_case.h"
#include "bench_drafts.h"
#include "bench_peaks.h"
#include "bench_profile.h"
#include "bench_sessions.h"
#include "input_files.h"
#include "model_file.h"
#include "output.h"
#include "text_format.h"

namespace cli {
namespace {

struct Bench {
  ModelChoice model;
  std::vector<std::string> lora;  // --lora
  std::vector<int32_t> threads;
  std::vector<int32_t> depths = {0};
  std::vector<int32_t> batches = {1};
  BenchCase shape;
  SessionsBench sessions;
  DraftsBench drafts;
  bool json = false;
  bool profile = false;
  std::string svg;
  bool draws = false;  // --profile-svg was given
};

/// One kind of pass, summed over its runs and compared with the peaks.
struct Speed {
  std::vector<double> runs;  // tokens per second, ascending
  double bandwidth = 0;      // bytes per second, of weights and cache
  double weights_share = 0;  // of the read bandwidth, weights only
  double read_share = 0;     // of the read bandwidth
  double operations = 0;     // per second, of weights
  double peak_share = 0;
  double ceiling_share = 0;

  [[nodiscard]] double median() const {
    const size_t half = runs.size() / 2;
    return runs.size() % 2 == 1 ? runs[half] : (runs[half - 1] + runs[half]) / 2;
  }
};

/// `tokens` a pass takes with `work`.
Speed summed_up(std::vector<double> runs, double tokens, const Work& work, const Peaks& peaks) {
  Speed speed;
  std::sort(runs.begin(), runs.end());
  speed.runs = std::move(runs);
  const double passes = speed.median() / tokens;  // per second
  speed.bandwidth = (work.weight_bytes + work.cache_bytes) * passes;
  speed.weights_share = work.weight_bytes * passes / peaks.bandwidth;
  speed.read_share = speed.bandwidth / peaks.bandwidth;
  speed.operations = work.operations * passes;
  speed.peak_share = speed.operations / peaks.operations;
  speed.ceiling_share = peaks.ceiling > 0 ? speed.peak_share / peaks.ceiling : 0;
  return speed;
}

void print_row(int32_t threads, const BenchCase& shape, const std::string& what,
               const Speed& speed) {
  std::cout << format("%7d %7d %6d  %-12s %10.2f %20s %7s %8s %8s %8s %11s\n", threads, shape.depth,
                      shape.batch, what.c_str(), speed.median(),
                      format("%.2f to %.2f", speed.runs.front(), speed.runs.back()).c_str(),
                      number(speed.bandwidth / 1e9).c_str(), percent(speed.read_share).c_str(),
                      number(speed.operations / 1e9).c_str(), percent(speed.peak_share).c_str(),
                      percent(speed.ceiling_share).c_str())
            << std::flush;
}

nlohmann::ordered_json speed_json(const Speed& speed) {
  return {{"median", speed.median()},
          {"min", speed.runs.front()},
          {"max", speed.runs.back()},
          {"gbs", speed.bandwidth / 1e9},
          {"bandwidth_share", speed.read_share},
          {"gops", speed.operations / 1e9},
          {"peak_share", speed.peak_share},
          {"ceiling_share", speed.ceiling_share}};
}

/// The model with a given number of threads.
class Bencher {
 public:
  Bencher(const Bench& options, int32_t threads) : options_(options) {
    ModelChoice choice = options.model;
    choice.threads = threads;
    model_ = load_model(choice);
    description_ = nlohmann::json::parse(
        text_of([&](auto... out) { return gen_model_describe(model_.get(), out...); }));
    BenchCase deepest = options.shape;
    deepest.depth = *std::max_element(options.depths.begin(), options.depths.end());
    if (!options.lora.empty()) ++deepest.depth;  // see bench_adapted.h
    check_context(model_, deepest);
    adapters_ = load_adapters(options.lora, model_);
    threads_ = description_.at("threads");
    peaks_ = measure_peaks(threads_, description_);
    gen_error error;
    check(gen_model_memory(model_.get(), "stream", &stream_, &error), error);
    if (!options.json) print_peaks();
  }

  void run(int32_t depth, int32_t batch) {
    BenchCase shape = options_.shape;
    shape.depth = depth;
    shape.batch = batch;
    const bool profiles = options_.profile || options_.draws;
    const Measurement measured = options_.lora.empty()
                                     ? measure(model_, options_.model, shape, profiles)
                                     : measure_adapted(model_, options_.model, shape, adapters_);
    const Speed prefill = summed_up(measured.prefill, shape.prompt, measured.prefill_work, peaks_);
    const Speed decode = summed_up(measured.decode, shape.batch, measured.decode_work, peaks_);
    if (options_.json) {
      print_json(shape, measured, prefill, decode);
    } else {
      print_row(threads_, shape, "prefill " + std::to_string(shape.prompt), prefill);
      print_row(threads_, shape, "decode " + std::to_string(shape.tokens), decode);
      if (options_.profile) {
        for (const ProfilePart& part : measured.profiles) {
          std::cout << "\n" << profile_table(part, peaks_) << std::flush;
        }
        std::cout << "\n";
      }
    }
    if (options_.draws) {
      write_profile_svg(
          options_.svg,
          name() + ", " + std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads"),
          measured.profiles, peaks_);
    }
  }

 private:
  [[nodiscard]] std::string name() const {
    const std::string given = description_.value("name", "");
    return given.empty() ? find_file(options_.model.path, "story.gguf") : given;
  }

  void print_peaks() const {
    std::cout << format(
        "%s: %.1f MB of weights read per token; %d thread%s read%s %.1f GB/s, %s %.0f "
        "GOP/s",
        name().c_str(), static_cast<double>(stream_) / 1e6, threads_, threads_ == 1 ? "" : "s",
        threads_ == 1 ? "s" : "", peaks_.bandwidth / 1e9, peaks_.products.c_str(),
        peaks_.operations / 1e9);
    if (peaks_.ceiling > 0 && peaks_.ceiling < 1) {
      std::cout << format(", of which block scales leave %.0f %%", peaks_.ceiling * 100);
    }
    if (!adapters_.empty()) std::cout << "\nadapters: " << adapters_text(adapters_);
    std::cout << format("\n%7s %7s %6s  %-12s %10s %20s %7s %8s %8s %8s %11s\n", "threads", "depth",
                        "batch", "test", "tokens/s", "min to max", "GB/s", "of read", "GOP/s",
                        "of peak", "of ceiling");
  }

  void print_json(const BenchCase& shape, const Measurement& measured, const Speed& prefill,
                  const Speed& decode) const {
    nlohmann::ordered_json out = {
        {"engine", std::string("libgenerate ") + gen_version()},
        {"model", find_file(options_.model.path, "story.gguf")},
        {"threads", threads_},
        {"prompt", shape.prompt},
        {"gen", shape.tokens},
        {"kv", options_.model.kv},
        {"prefill_tps", measured.prefill},
        {"decode_tps", measured.decode},
        {"read_bandwidth_gbs", peaks_.bandwidth / 1e9},
        {"stream_bytes_per_token", stream_},
        {"decode_bandwidth_share", decode.weights_share},
        {"depth", shape.depth},
        {"batch", shape.batch},
        {"cpu", nlohmann::json::parse(text_of(gen_build_info)).value("cpu", "")},
        {"weight_types", description_.at("weight_types")},
        {"products_per_token", measured.decode_work.operations / 2 / shape.batch},
        {"cache_bytes_per_step", measured.decode_work.cache_bytes},
        {"peak", peaks_.products},
        {"peak_gops", peaks_.operations / 1e9},
        {"scale_ceiling", peaks_.ceiling},
        {"prefill", speed_json(prefill)},
        {"decode", speed_json(decode)}};
    add_adapters(adapters_, out);
    if (options_.profile) {
      out["profile"] = {{"prefill", profile_json(measured.profiles[0], peaks_)},
                        {"decode", profile_json(measured.profiles[1], peaks_)}};
    }
    std::cout << out.dump() << std::endl;
  }

  const Bench& options_;
  Model model_;
  Adapters adapters_;
  nlohmann::json description_;
  int32_t threads_ = 0;
  Peaks peaks_;
  size_t stream_ = 0;
};

void bench_all_sessions(const Bench& options) {
  SessionsBench sessions = options.sessions;
  sessions.prompt = options.shape.prompt;
  sessions.tokens = options.shape.tokens;
  sessions.json = options.json;
  sessions.lora = options.lora;
  if (options.threads.size() > 1) throw Failure("--sessions takes one number of threads");
  sessions.threads = options.threads.empty() ? 0 : options.threads.front();
  bench_sessions(options.model, sessions);
}

/// Whether what drafts is measured.
bool drafts(const Bench& options) {
  return !options.model.draft.empty() || !options.model.eagle.empty();
}

void bench_all_drafts(const Bench& options) {
  DraftsBench drafts = options.drafts;
  if (!options.sessions.counts.empty()) drafts.sessions = options.sessions.counts;
  drafts.prompt = options.shape.prompt;
  drafts.tokens = options.shape.tokens;
  drafts.repeat = options.shape.repeat;
  drafts.json = options.json;
  drafts.lora = options.lora;
  if (options.threads.size() > 1) throw Failure("--draft takes one number of threads");
  if (options.model.draft == "off") throw Failure("--draft off drafts nothing to measure", 2);
  drafts.threads = options.threads.empty() ? 0 : options.threads.front();
  bench_drafts(options.model, drafts);
}

void bench(const Bench& options) {
  if (options.draws) {
    std::vector<std::string> read = files_of(options.model);
    read.push_back(options.drafts.text);
    check_writable(options.svg, "--profile-svg");
    check_apart(options.svg, "--profile-svg", read);
  }
  if (drafts(options)) return bench_all_drafts(options);
  if (!options.sessions.counts.empty()) return bench_all_sessions(options);
  if (options.draws &&
      options.depths.size() * options.batches.size() * std::max<size_t>(options.threads.size(), 1) >
          1) {
    throw Failure("--profile-svg draws one case: give one depth, one batch, one number of threads");
  }
  const std::vector<int32_t> threads =
      options.threads.empty() ? std::vector<int32_t>{0} : options.threads;
  for (const int32_t count : threads) {
    Bencher bencher(options, count);
    for (const int32_t depth : options.depths) {
      for (const int32_t batch : options.batches) bencher.run(depth, batch);
    }
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<Bench>();
  CLI::App* command =
      app.add_subcommand("bench", "measure prefill and decode speed against this machine's peaks");
  add_file_options(*command, options->model);
  add_kv_option(*command, options->model);
  const CLI::Range tokens(1, 1 << 20);
  command->add_option("-p,--prompt", options->shape.prompt, "prompt tokens")
      ->check(tokens)
      ->capture_default_str();
  command->add_option("-n,--tokens", options->shape.tokens, "tokens to decode")
      ->check(tokens)
      ->capture_default_str();
  command
      ->add_option("-r,--repeat", options->shape.repeat,
                   "number of counted runs, after one to warm up")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("-t,--threads", options->threads,
                   "numbers of threads, such as 1,2 (default: one per usable CPU)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--depth", options->depths,
                   "tokens already in the cache, one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--batch", options->batches,
                   "sequences decoded together, one or several numbers")
      ->delimiter(',')
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  CLI::Option* sessions =
      command
          ->add_option(
              "--sessions", options->sessions.counts,
              "measure that many sessions at once instead, each in its thread, then as one batch")
          ->delimiter(',')
          ->check(CLI::Range(1, 1024));
  command
      ->add_flag("--mixed", options->sessions.mixed,
                 "with --sessions: random lengths and arrivals, compared with one after another")
      ->needs(sessions);
  command
      ->add_option("--long-prompt", options->sessions.long_prompt,
                   "with --sessions: one more session adds a prompt of that many tokens meanwhile")
      ->needs(sessions)
      ->check(tokens);
  command
      ->add_option("--chunk", options->sessions.prefill_chunk,
                   "with --sessions: prompt tokens per step; 0: chosen by the backend")
      ->needs(sessions)
      ->check(CLI::Range(0, 2048))
      ->capture_default_str();
  add_draft_options(*command, options->model);
  CLI::Option* const draft = command->get_option("--draft");
  add_adapter_option(*command, options->lora);
  CLI::Option* const lora = command->get_option("--lora");
  command
      ->add_flag(
          "--lora-each", options->sessions.lora_each,
          "with --sessions: each session uses one adapter, in turns, instead of all together")
      ->needs(sessions)
      ->needs(lora)
      ->excludes(draft);
  command->add_option(
      "--text", options->drafts.text,
      "with --draft or --eagle: take prompts from this file instead of arbitrary tokens");
  command
      ->add_option("--temp", options->drafts.temperature,
                   "with --draft or --eagle: temperature; 0 takes the most probable token")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_flag("--gumbel", options->drafts.gumbel,
                    "with --draft or --eagle: draw with the Gumbel-max trick");
  command->add_flag("--profile", options->profile, "also show the time of each kind of operation")
      ->excludes(lora);
  command->add_option("--profile-svg", options->svg, "write the profile to this file as SVG")
      ->excludes(lora);
  command->add_flag("--json", options->json, "print one JSON object per case, each on a line");
  command->callback([options, command] {
    options->draws = command->count("--profile-svg") > 0;
    for (const char* option : {"--text", "--temp", "--gumbel"}) {
      if (command->count(option) == 0 || drafts(*options)) continue;
      throw Failure(std::string(option) + " requires --draft or --eagle", 2);
    }
    bench(*options);
  });
}

}  // namespace cli
