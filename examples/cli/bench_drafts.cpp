// SPDX-License-Identifier: Apache-2.0
// See bench_drafts.h.
#include "bench_drafts.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "adapters.h"
#include "bench_case.h"
#include "text_format.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;
using Tokens = std::vector<int32_t>;

constexpr int32_t kPositions = 4;  // positions whose acceptance rate is shown

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double figure(const Generator& generator, const std::string& key) {
  gen_error error;
  double value = 0;
  check(gen_generator_draft_stats(generator.get(), key.c_str(), &value, &error), error);
  return value;
}

class DraftsBencher {
 public:
  DraftsBencher(const ModelChoice& choice, const DraftsBench& bench)
      : choice_(choice), bench_(bench) {
    choice_.threads = bench.threads;
    model_ = load_model(choice_);
    vocab_ = gen_model_config_vocab_size(gen_model_get_config(model_.get()));
    sampling_ = make<Sampling>(gen_sampling_new);
    gen_error error;
    gen_sampling* const s = sampling_.get();
    check(gen_sampling_set_temperature(s, bench.temperature, &error), error);
    check(gen_sampling_set_gumbel(s, bench.gumbel ? 1 : 0, &error), error);
    check(gen_sampling_set_ignore_eos(s, 1, &error), error);
    check(gen_sampling_set_max_new_tokens(s, bench.tokens, &error), error);
    adapters_ = load_adapters(bench.lora, model_);
    name_adapters(adapters_, sampling_);
    if (!bench.text.empty()) read_text();
  }

  void run() {
    costs();
    if (!bench_.json) {
      if (!adapters_.empty()) std::cout << "adapters: " << adapters_text(adapters_) << "\n";
      std::cout << format("%8s %12s %12s %9s %12s", "sessions", "plain tok/s", "drafts tok/s",
                          "speed-up", "tokens/pass");
      for (int32_t at = 1; at <= kPositions; ++at) std::cout << format(" %7s%d", "right ", at);
      std::cout << "\n";
    }
    for (const int32_t count : bench_.sessions) row(count);
  }

 private:
  void read_text() {
    std::ifstream in(bench_.text, std::ios::binary);
    if (!in) {
      throw Failure("--text: cannot read '" + bench_.text +
                    "': " + std::system_category().message(errno));
    }
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const gen_tokenizer* const tokenizer = gen_model_tokenizer(model_.get());
    if (tokenizer == nullptr) throw Failure("--text needs a model with a tokenizer");
    gen_error error;
    size_t n = 0;
    check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), 0, nullptr, 0, &n, &error),
          error);
    text_.resize(n);
    check(gen_tokenizer_encode(tokenizer, text.data(), text.size(), 0, text_.data(), n, &n, &error),
          error);
    if (text_.size() < static_cast<size_t>(bench_.prompt)) {
      throw Failure(bench_.text + " has fewer tokens than a prompt");
    }
  }

  [[nodiscard]] Tokens prompt(int32_t id) const {
    const auto n = static_cast<size_t>(bench_.prompt);
    if (!text_.empty()) {
      const size_t begin = static_cast<size_t>(id) * 997 % (text_.size() - n + 1);
      const auto at = text_.begin() + static_cast<std::ptrdiff_t>(begin);
      return {at, at + static_cast<std::ptrdiff_t>(n)};
    }
    std::mt19937 random(static_cast<uint32_t>(id));
    Tokens tokens;
    for (size_t i = 0; i < n; ++i) {
      tokens.push_back(3 + static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_ - 3)));
    }
    return tokens;
  }

  /// Time of a pass over several rows of one sequence, relative to one row.
  void costs() {
    gen_error error;
    const Tokens tokens = prompt(0);
    // Where a cache cannot be cut, each pass comes behind the one before.
    const bool cuts = can_be_cut(model_, plain_choice());
    const int32_t behind = cuts ? 64 : 64 * (bench_.repeat + 1);
    const Cache cache = make_cache(model_, plain_choice(), bench_.prompt + behind);
    std::vector<float> logits(static_cast<size_t>(vocab_) * 16);
    check(gen_model_forward(model_.get(), tokens.data(), tokens.size(), cache.get(), logits.data(),
                            logits.size(), &error),
          error);
    const int32_t rows[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};
    std::vector<std::vector<double>> times(std::size(rows));
    kv_cache* const caches[] = {cache.get()};
    for (int32_t run = 0; run <= bench_.repeat; ++run) {
      for (size_t i = 0; i < std::size(rows); ++i) {
        const auto begin = Clock::now();
        check(gen_model_forward_batch(model_.get(), tokens.data(), nullptr, nullptr,
                                      std::min<size_t>(static_cast<size_t>(rows[i]), tokens.size()),
                                      caches, 1, logits.data(), logits.size(), &error),
              error);
        if (run > 0) times[i].push_back(seconds_since(begin));
        if (cuts) check(kv_cache_truncate(cache.get(), bench_.prompt, &error), error);
      }
    }
    nlohmann::ordered_json out;
    const double one = middle(times[0]);
    std::string line =
        format("a pass over one row takes %.2f ms; rows, and how many times that:", one * 1e3);
    for (size_t i = 1; i < std::size(rows); ++i) {
      const double ratio = middle(times[i]) / one;
      line += format("  %d %.2f", rows[i], ratio);
      out[std::to_string(rows[i])] = ratio;
    }
    if (bench_.json) {
      std::cout << nlohmann::ordered_json{{"pass_ms", one * 1e3}, {"rows", out}}.dump()
                << std::endl;
    } else {
      std::cout << line << "\n\n";
    }
  }

  [[nodiscard]] ModelChoice plain_choice() const {
    ModelChoice plain = choice_;
    plain.draft = "off";
    plain.eagle.clear();
    return plain;
  }

  /// Seconds that all sessions take together, without their prompts.
  double generate(const Generator& generator, int32_t count) {
    gen_error error;
    std::vector<Session> sessions;
    std::vector<Stream> streams;
    for (int32_t id = 0; id < count; ++id) {
      const Tokens tokens = prompt(id);
      sessions.push_back(make<Session>(gen_session_new, generator.get()));
      prepare_session(sessions.back(), adapters_);
      check(gen_session_append_tokens(sessions.back().get(), tokens.data(), tokens.size(), &error),
            error);
      streams.push_back(
          make<Stream>(gen_stream_open, sessions.back().get(), "", size_t{0}, sampling_.get()));
    }
    const auto begin = Clock::now();
    std::vector<bool> over(streams.size(), false);
    for (size_t left = streams.size(); left > 0;) {
      for (size_t i = 0; i < streams.size(); ++i) {
        if (over[i]) continue;
        const gen_token* token = nullptr;
        int32_t state = GEN_STREAM_PENDING;
        check(gen_stream_poll(streams[i].get(), &token, &state, &error), error);
        if (state == GEN_STREAM_END || (token != nullptr && token->done != 0)) {
          over[i] = true;
          --left;
        }
      }
    }
    return seconds_since(begin);
  }

  void row(int32_t count) {
    const Generator plain = make_generator(model_, plain_choice());
    const Generator drafts = make_generator(model_, choice_);
    generate(plain, count);
    generate(drafts, count);  // warms up, and lets the policy measure
    std::vector<double> ratios;
    std::vector<double> plain_rates;
    std::vector<double> draft_rates;
    const double tokens = double{1} * count * bench_.tokens;
    for (int32_t run = 0; run < bench_.repeat; ++run) {
      // The first run finds colder caches, so each is first in every second pair.
      double without = run % 2 == 0 ? generate(plain, count) : 0;
      const double with = generate(drafts, count);
      if (run % 2 != 0) without = generate(plain, count);
      ratios.push_back(without / with);
      plain_rates.push_back(tokens / without);
      draft_rates.push_back(tokens / with);
    }
    std::vector<double> right;
    for (int32_t at = 1; at <= kPositions; ++at) {
      right.push_back(figure(drafts, "acceptance_at_" + std::to_string(at)));
    }
    if (bench_.json) {
      nlohmann::ordered_json out = {{"sessions", count},
                                    {"plain_tps", plain_rates},
                                    {"drafts_tps", draft_rates},
                                    {"speed_up", ratios},
                                    {"tokens_per_pass", figure(drafts, "tokens_per_pass")},
                                    {"acceptance_rate", figure(drafts, "acceptance_rate")},
                                    {"acceptance_at", right}};
      add_adapters(adapters_, out);
      std::cout << out.dump() << std::endl;
      return;
    }
    std::cout << format("%8d %12.2f %12.2f %9.2f %12.2f", count, middle(plain_rates),
                        middle(draft_rates), middle(ratios), figure(drafts, "tokens_per_pass"));
    for (const double share : right) std::cout << format(" %7.2f ", share);
    std::cout << "\n" << std::flush;
  }

  ModelChoice choice_;
  const DraftsBench& bench_;
  Model model_;
  Adapters adapters_;
  int32_t vocab_ = 0;
  Sampling sampling_;
  Tokens text_;
};

}  // namespace

void bench_drafts(const ModelChoice& choice, const DraftsBench& bench) {
  DraftsBencher(choice, bench).run();
}

}  // namespace cli
