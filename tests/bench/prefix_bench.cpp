// SPDX-License-Identifier: Apache-2.0
// What a prefix cache saves and costs: time to the first token of requests that share a long
// beginning, beside what their own tokens cost in a session that already holds the beginning; and
// prompts that have nothing in common, with and without a prefix cache. Results are compared with
// those of a generator that has none before anything is counted.
//   prefix_bench MODEL [--system 2000] [--own 16] [--kv fp32] [--block 16] [--threads 2] [--runs 5]
//                      [--misses 7]
#include <generate/generate.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

struct Options {
  const char* model = nullptr;
  size_t system = 2000;
  size_t own = 16;
  std::string kv = "fp32";
  int32_t block = 16;
  int32_t threads = 2;
  int runs = 5;
  int misses = 7;
};

using Tokens = std::vector<int32_t>;
using Model = std::unique_ptr<gen_model, decltype(&gen_model_free)>;
using Generator = std::unique_ptr<gen_generator, decltype(&gen_free)>;
using Session = std::unique_ptr<gen_session, decltype(&gen_session_free)>;

gen_error error;

void check(gen_status status) {
  if (status == GEN_OK) return;
  std::fprintf(stderr, "prefix_bench: %s\n", error.message);
  std::exit(1);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Model load(const Options& options) {
  gen_model_options* chosen = nullptr;
  gen_model* model = nullptr;
  check(gen_model_options_new(&chosen, &error));
  check(gen_model_options_set_threads(chosen, options.threads, &error));
  check(gen_model_load(options.model, chosen, &model, &error));
  gen_model_options_free(chosen);
  return {model, gen_model_free};
}

Generator make(const Model& model, const Options& options, int32_t prefix_blocks) {
  gen_options* chosen = nullptr;
  gen_generator* generator = nullptr;
  check(gen_options_new(&chosen, &error));
  check(gen_options_set_kv_dtype(chosen, options.kv.c_str(), &error));
  check(gen_options_set_paged_kv(chosen, 1024, options.block, &error));
  check(gen_options_set_prefix_cache(chosen, prefix_blocks, &error));
  check(gen_create(model.get(), chosen, &generator, &error));
  gen_options_free(chosen);
  return {generator, gen_free};
}

Session session_of(const Generator& generator) {
  gen_session* session = nullptr;
  check(gen_session_new(generator.get(), &session, &error));
  return {session, gen_session_free};
}

Tokens tokens_of(const Model& model, uint32_t seed, size_t n) {
  const auto vocab =
      static_cast<uint32_t>(gen_model_config_vocab_size(gen_model_get_config(model.get())));
  std::mt19937 random(seed);
  Tokens tokens(n);
  for (int32_t& token : tokens) token = static_cast<int32_t>(3 + random() % (vocab - 3));
  return tokens;
}

struct Answer {
  double seconds = 0;  // until the last token was there
  Tokens tokens;
  std::vector<float> logprobs;
};

Answer ask(const Session& session, const Tokens& prompt, int32_t n) {
  gen_sampling* sampling = nullptr;
  gen_result* result = nullptr;
  check(gen_sampling_new(&sampling, &error));
  check(gen_sampling_set_temperature(sampling, 0, &error));
  check(gen_sampling_set_ignore_eos(sampling, 1, &error));
  check(gen_sampling_set_logprobs(sampling, 0, &error));
  check(gen_sampling_set_max_new_tokens(sampling, n, &error));
  Answer answer;
  const double start = now();
  check(gen_session_append_tokens(session.get(), prompt.data(), prompt.size(), &error));
  check(gen_session_generate(session.get(), "", 0, sampling, &result, &error));
  answer.seconds = now() - start;
  size_t count = 0;
  const int32_t* tokens = gen_result_tokens(result, &count);
  answer.tokens.assign(tokens, tokens + count);
  const float* logprobs = gen_result_logprobs(result, &count);
  answer.logprobs.assign(logprobs, logprobs + count);
  gen_result_free(result);
  gen_sampling_free(sampling);
  return answer;
}

void expect_same(const Answer& a, const Answer& b) {
  if (a.tokens == b.tokens && a.logprobs == b.logprobs) return;
  std::fprintf(stderr, "prefix_bench: results differ\n");
  std::exit(1);
}

void hits(const Model& model, const Options& options) {
  const Generator cached = make(model, options, 1 << 20);
  const Generator plain = make(model, options, 0);
  const Tokens system = tokens_of(model, 1, options.system);
  const auto request = [&](uint32_t i) {
    Tokens all = system;
    const Tokens own = tokens_of(model, 100 + i, options.own);
    all.insert(all.end(), own.begin(), own.end());
    return all;
  };
  const double first = ask(session_of(cached), request(0), 1).seconds;
  // What a request's own tokens cost where the beginning is there.
  const Session held = session_of(plain);
  check(gen_session_append_tokens(held.get(), system.data(), system.size(), &error));
  std::vector<double> own;
  std::vector<double> second;
  for (int run = 0; run <= options.runs; ++run) {
    const auto i = static_cast<uint32_t>(run + 1);
    const Answer alone = ask(held, tokens_of(model, 100 + i, options.own), 1);
    const Answer hit = ask(session_of(cached), request(i), 1);
    expect_same(alone, hit);
    check(gen_session_truncate(held.get(), static_cast<int32_t>(system.size()), &error));
    if (run == 0) continue;  // warms up
    own.push_back(alone.seconds);
    second.push_back(hit.seconds);
  }
  const double more = median(second) - median(own);
  std::printf("%zu tokens in common, %zu of one's own, %s in blocks of %d, %d threads\n",
              options.system, options.own, options.kv.c_str(), options.block, options.threads);
  std::printf("  first request    %9.1f ms to its first token\n", 1e3 * first);
  std::printf("  own tokens alone %9.1f ms\n", 1e3 * median(own));
  std::printf("  later requests   %9.1f ms [%.1f, %.1f], %+.2f ms: %.2f %% of the first\n",
              1e3 * median(second), 1e3 * *std::min_element(second.begin(), second.end()),
              1e3 * *std::max_element(second.begin(), second.end()), 1e3 * more,
              100 * more / first);
}

void misses(const Model& model, const Options& options) {
  const Generator cached = make(model, options, 64);  // full after a few
  const Generator plain = make(model, options, 0);
  std::vector<double> with;
  std::vector<double> without;
  std::vector<double> ratio;
  for (int run = 0; run <= options.misses; ++run) {
    const Tokens prompt = tokens_of(model, 1000 + static_cast<uint32_t>(run), 128);
    Answer answers[2];
    for (const int which : {run % 2, 1 - run % 2}) {
      answers[which] = ask(session_of(which == 1 ? cached : plain), prompt, 33);
    }
    expect_same(answers[0], answers[1]);
    if (run == 0) continue;
    without.push_back(answers[0].seconds);
    with.push_back(answers[1].seconds);
    ratio.push_back(answers[1].seconds / answers[0].seconds);
  }
  std::printf("prompts of 128 tokens and 33 more, nothing in common\n");
  std::printf("  without a prefix cache %9.1f ms\n", 1e3 * median(without));
  std::printf("  with one               %9.1f ms, %+.2f %% in the median of pairs\n",
              1e3 * median(with), 100 * (median(ratio) - 1));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      options.model = argv[i];
      continue;
    }
    if (++i == argc) break;
    if (name == "--kv") options.kv = argv[i];
    const int number = std::atoi(argv[i]);
    if (name == "--system") options.system = static_cast<size_t>(number);
    if (name == "--own") options.own = static_cast<size_t>(number);
    if (name == "--block") options.block = number;
    if (name == "--threads") options.threads = number;
    if (name == "--runs") options.runs = number;
    if (name == "--misses") options.misses = number;
  }
  if (options.model == nullptr) {
    std::fprintf(stderr, "usage: prefix_bench MODEL [--system 2000] [--own 16] …\n");
    return 2;
  }
  const Model model = load(options);
  if (options.runs > 0) hits(model, options);
  if (options.misses > 0) misses(model, options);
  return 0;
}
