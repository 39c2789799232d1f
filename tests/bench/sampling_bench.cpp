// SPDX-License-Identifier: Apache-2.0
// What choosing a token costs, for several vocabularies and settings, beside the floor: one pass
// over the row, which alone would find the most probable token. Rows look like those of a model:
// a bell with a few dozen tokens far above it. 512 tokens were generated before. Medians and 90th
// percentiles of --runs after a warm-up. The first line of each vocabulary is to stay below 150 us.
//   sampling_bench [--vocab 32000,128256,151936] [--runs 300]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sampling/chain.h"
#include "sampling/selection.h"

namespace gen::sampling {
namespace {

using Clock = std::chrono::steady_clock;

double micros(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

struct Case {
  const char* name;
  SamplingParams params;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const char* name, auto&& set) {
    all.push_back({name, SamplingParams()});
    set(all.back().params);
  };
  const auto penalise = [](SamplingParams& p) {
    p.repetition_penalty = 1.1;
    p.frequency_penalty = 0.1;
    p.presence_penalty = 0.1;
    p.penalty_window = 512;
  };
  add("top-k 40, top-p 0.95, penalties", [&](SamplingParams& p) {
    p.top_k = 40;
    p.top_p = 0.95;
    penalise(p);
  });
  add("greedy", [](SamplingParams& p) { p.temperature = 0; });
  add("greedy, penalties", [&](SamplingParams& p) {
    p.temperature = 0;
    penalise(p);
  });
  add("top-k 40", [](SamplingParams& p) { p.top_k = 40; });
  add("top-k 1000", [](SamplingParams& p) { p.top_k = 1000; });
  add("min-p 0.05", [](SamplingParams& p) { p.min_p = 0.05; });
  add("typical-p 0.95", [](SamplingParams& p) { p.typical_p = 0.95; });
  add("top-p 0.95", [](SamplingParams& p) { p.top_p = 0.95; });
  add("top-n-sigma 1", [](SamplingParams& p) { p.top_n_sigma = 1.0; });
  add("top-k 40, XTC", [](SamplingParams& p) {
    p.top_k = 40;
    p.xtc_probability = 0.5;
  });
  add("mirostat 5", [](SamplingParams& p) { p.mirostat_tau = 5.0; });
  add("nothing cut", [](SamplingParams&) {});
  add("greedy, 5 logprobs", [](SamplingParams& p) {
    p.temperature = 0;
    p.logprobs = 5;
  });
  return all;
}

std::vector<float> model_like_row(size_t vocab) {
  std::vector<float> row(vocab);
  for (size_t i = 0; i < vocab; ++i) {
    double sum = 0;
    for (uint64_t k = 0; k < 6; ++k) sum += uniform_double(7, k, i) - 0.5;
    row[i] = static_cast<float>(3.5 * sum);  // standard deviation 2.5
  }
  for (uint64_t i = 0; i < 40; ++i) {
    const auto at = static_cast<size_t>(uniform_double(8, 0, i) * static_cast<double>(vocab));
    row[at] = static_cast<float>(6.0 + 8.0 * uniform_double(8, 1, i));
  }
  return row;
}

double floor_us(const std::vector<float>& row, float expected) {
  const auto begin = Clock::now();
  const float max = row_max(row);
  const double elapsed = micros(begin);
  if (max != expected) std::printf("WRONG RESULT ");
  return elapsed;
}

struct Spread {
  double median;
  double high;
};

Spread spread(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 9 / 10]};
}

bool measure(size_t vocab, int runs) {
  const std::vector<float> row = model_like_row(vocab);
  std::vector<int32_t> generated;
  for (uint64_t i = 0; i < 512; ++i) {
    generated.push_back(static_cast<int32_t>(uniform_double(9, 0, i) * static_cast<double>(vocab)));
  }
  std::vector<float> logits(vocab);
  const float largest = *std::max_element(row.begin(), row.end());
  std::vector<double> floors;
  for (int run = 0; run < runs; ++run) {
    std::copy(row.begin(), row.end(), logits.begin());
    floors.push_back(floor_us(logits, largest));
  }
  const double floor = spread(floors).median;
  std::printf("vocabulary %zu: one pass %.1f us\n", vocab, floor);
  for (const Case& one : cases()) {
    Chain chain(one.params);
    std::vector<double> times;
    for (int run = -10; run < runs; ++run) {
      std::copy(row.begin(), row.end(), logits.begin());  // as the model has just written it
      const auto begin = Clock::now();
      const auto choice = chain.sample(logits, generated, static_cast<uint64_t>(run + 10), 0);
      const double elapsed = micros(begin);
      if (!choice.ok()) {
        std::printf("%s\n", choice.status().message());
        return false;
      }
      if (run >= 0) times.push_back(elapsed);
    }
    const Spread result = spread(times);
    std::printf("  %-34s median %7.1f us, 90%% %7.1f us, %5.1f passes\n", one.name, result.median,
                result.high, result.median / floor);
  }
  return true;
}

int main_of(int argc, char** argv) {
  std::string vocabs = "32000,128256,151936";
  int runs = 300;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--vocab") vocabs = argv[i + 1];
    if (name == "--runs") runs = std::max(1, std::atoi(argv[i + 1]));
  }
  for (size_t at = 0; at < vocabs.size();) {
    const size_t end = std::min(vocabs.find(',', at), vocabs.size());
    const auto vocab = static_cast<size_t>(std::atoll(vocabs.substr(at, end - at).c_str()));
    if (vocab < 1000) {
      std::printf("a vocabulary below 1000 is not measured\n");
      return 1;
    }
    if (!measure(vocab, runs)) return 1;
    at = end + 1;
  }
  return 0;
}

}  // namespace
}  // namespace gen::sampling

int main(int argc, char** argv) { return gen::sampling::main_of(argc, argv); }
