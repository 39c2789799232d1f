// SPDX-License-Identifier: Apache-2.0
// See bench_sessions.h. Prompts are arbitrary tokens that no two sessions share; texts do not stop
// before their length.
#include "bench_sessions.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>

#include "adapters.h"
#include "text_format.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// The work of one session, and the times of its tokens.
struct Job {
  int32_t id = 0;
  int32_t prompt = 0;
  int32_t tokens = 0;
  double arrival = 0;  // seconds after the start
  Clock::time_point begun;
  std::vector<Clock::time_point> came;
  std::string failure;
};

int note_time(void* user, const gen_token* token) {
  if (!token->done) static_cast<Job*>(user)->came.push_back(Clock::now());
  return 0;
}

std::vector<int32_t> prompt_of(const Job& job, int32_t vocab) {
  std::mt19937 random(static_cast<uint32_t>(job.id));
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < job.prompt; ++i) {
    tokens.push_back(3 + static_cast<int32_t>(random() % static_cast<uint32_t>(vocab - 3)));
  }
  return tokens;
}

/// What all jobs of a benchmark have in common.
struct Place {
  gen_generator* generator;
  int32_t vocab;
  Adapters adapters;
  bool each;  // a job uses one of them, not all
};

Sampling sampling_of(const Job& job, const Place& place) {
  gen_error error;
  auto sampling = make<Sampling>(gen_sampling_new);
  check(gen_sampling_set_temperature(sampling.get(), 0, &error), error);
  check(gen_sampling_set_ignore_eos(sampling.get(), 1, &error), error);
  check(gen_sampling_set_max_new_tokens(sampling.get(), job.tokens, &error), error);
  if (place.each) {
    name_adapter(place.adapters[static_cast<size_t>(job.id) % place.adapters.size()], sampling);
  } else {
    name_adapters(place.adapters, sampling);
  }
  return sampling;
}

Request request_of(const Job& job, const Place& place) {
  gen_error error;
  auto request = make<Request>(gen_request_new);
  const std::vector<int32_t> tokens = prompt_of(job, place.vocab);
  check(gen_request_set_prompt_tokens(request.get(), tokens.data(), tokens.size(), &error), error);
  check(gen_request_set_sampling(request.get(), sampling_of(job, place).get(), &error), error);
  return request;
}

void begin(Job* job) {
  job->came.clear();
  job->came.reserve(static_cast<size_t>(job->tokens));
  job->begun = Clock::now();
}

int note_time_of(void* user, size_t index, const gen_token* token) {
  return note_time(&static_cast<Job*>(user)[index], token);
}

/// One call with `count` jobs as requests. A session that is new has no adapters before its first
/// generating call, but a request's prompt is evaluated with those of its settings.
void run_requests(const Place& place, Job* jobs, size_t count) {
  gen_error error;
  std::vector<Request> requests;
  std::vector<const gen_request*> handles;
  for (size_t i = 0; i < count; ++i) {
    requests.push_back(request_of(jobs[i], place));
    handles.push_back(requests.back().get());
  }
  std::vector<gen_result*> results(count);
  for (size_t i = 0; i < count; ++i) begin(&jobs[i]);
  check(gen_batch_generate_stream(place.generator, handles.data(), count, note_time_of, jobs,
                                  results.data(), &error),
        error);
  std::string failed;
  for (gen_result* raw : results) {
    const Result result(raw);
    if (const gen_error* failure = gen_result_error(raw)) failed = failure->message;
  }
  if (!failed.empty()) throw Failure(failed);
}

void run_job(const Place& place, Job* job) {
  try {
    run_requests(place, job, 1);
  } catch (const std::exception& failure) {
    job->failure = failure.what();
  }
}

/// Seconds of one call with all jobs as requests.
double run_batch(const Place& place, std::vector<Job>* jobs) {
  const auto start = Clock::now();
  run_requests(place, jobs->data(), jobs->size());
  return seconds_between(start, Clock::now());
}

/// Seconds until all jobs have ended; together, or one after another in this thread.
double run_jobs(const Place& place, std::vector<Job>* jobs, bool together) {
  const auto start = Clock::now();
  if (together) {
    std::vector<std::thread> threads;
    for (Job& job : *jobs) {
      threads.emplace_back([&job, &place, start] {
        std::this_thread::sleep_until(start + std::chrono::duration<double>(job.arrival));
        run_job(place, &job);
      });
    }
    for (std::thread& thread : threads) thread.join();
  } else {
    for (Job& job : *jobs) run_job(place, &job);
  }
  const double seconds = seconds_between(start, Clock::now());
  for (const Job& job : *jobs) {
    if (!job.failure.empty()) throw Failure(job.failure);
  }
  return seconds;
}

double middle(std::vector<double>* values) {
  if (values->empty()) return 0;
  std::sort(values->begin(), values->end());
  return (*values)[values->size() / 2];
}

/// Tokens generated, times to the first and between tokens; the session of the long prompt is not
/// counted.
struct Figures {
  double seconds = 0;
  double tokens = 0;
  double first = 0;  // median
  double between = 0;
  double worst = 0;
  [[nodiscard]] double rate() const { return tokens / seconds; }
};

Figures figures_of(const std::vector<Job>& jobs, size_t counted, double seconds) {
  Figures figures;
  figures.seconds = seconds;
  std::vector<double> first;
  std::vector<double> between;
  for (size_t i = 0; i < counted; ++i) {
    const Job& job = jobs[i];
    figures.tokens += static_cast<double>(job.came.size());
    if (job.came.empty()) continue;
    first.push_back(seconds_between(job.begun, job.came.front()));
    for (size_t t = 1; t < job.came.size(); ++t) {
      between.push_back(seconds_between(job.came[t - 1], job.came[t]));
    }
  }
  figures.first = middle(&first);
  figures.between = middle(&between);
  if (!between.empty()) figures.worst = between.back();
  return figures;
}

std::vector<Job> make_jobs(const SessionsBench& bench, int32_t count, double solo_seconds) {
  std::mt19937 random(7);
  const auto part = [&](int32_t most) {
    return std::max(1, static_cast<int32_t>(random() % static_cast<uint32_t>(most)) + 1);
  };
  std::vector<Job> jobs(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    Job& job = jobs[static_cast<size_t>(i)];
    job.id = i;
    job.prompt = bench.mixed ? part(bench.prompt) : bench.prompt;
    job.tokens = bench.mixed ? part(bench.tokens) : bench.tokens;
    // All arrive within the time of two jobs, so that steps can be shared.
    if (bench.mixed) job.arrival = 2 * solo_seconds * static_cast<double>(random() % 1000) / 1000;
  }
  return jobs;
}

void print(const SessionsBench& bench, const Adapters& adapters, const char* what, int32_t count,
           const Figures& figures, double times) {
  if (bench.json) {
    nlohmann::ordered_json row = {{"sessions", count},
                                  {"order", what},
                                  {"tokens_per_second", figures.rate()},
                                  {"times", times},
                                  {"first_token_ms", figures.first * 1e3},
                                  {"between_tokens_ms", figures.between * 1e3},
                                  {"worst_between_ms", figures.worst * 1e3}};
    add_adapters(adapters, row);
    if (bench.lora_each) row["lora_each"] = true;
    std::cout << row.dump() << std::endl;
    return;
  }
  std::cout << format("%8d  %-12s %10.2f %7.2f %12.1f %12.1f %12.1f\n", count, what, figures.rate(),
                      times, figures.first * 1e3, figures.between * 1e3, figures.worst * 1e3)
            << std::flush;
}

}  // namespace

void bench_sessions(const ModelChoice& choice, const SessionsBench& bench) {
  ModelChoice with_threads = choice;
  with_threads.threads = bench.threads;
  const Model model = load_model(with_threads);
  const gen_model_config* const config = gen_model_get_config(model.get());
  const int32_t vocab = gen_model_config_vocab_size(config);
  const int32_t context = gen_model_config_max_seq_len(config);
  if (bench.prompt > context - bench.tokens) {
    throw Failure(format("a prompt of %d tokens and %d more are over the context of %d",
                         bench.prompt, bench.tokens, context));
  }
  gen_error error;
  const Options options = make_options(choice);
  check(gen_options_set_prefill_chunk(options.get(), bench.prefill_chunk, &error), error);
  const auto generator = make<Generator>(gen_create, model.get(), options.get());
  const Place place = {generator.get(), vocab, load_adapters(bench.lora, model), bench.lora_each};

  if (!bench.json) {
    if (!place.adapters.empty()) {
      std::cout << (place.each ? "adapters, one for each session in turns: " : "adapters: ")
                << adapters_text(place.adapters) << "\n";
    }
    std::cout << format("%8s  %-12s %10s %7s %12s %12s %12s\n", "sessions", "order", "tokens/s",
                        "times", "first ms", "between ms", "worst ms");
  }
  std::vector<Job> one = make_jobs(bench, 1, 0);
  run_jobs(place, &one, false);  // warms up
  const double solo = run_jobs(place, &one, false);
  const Figures alone = figures_of(one, 1, solo);
  for (const int32_t count : bench.counts) {
    std::vector<Job> jobs = make_jobs(bench, count, solo);
    Figures base = alone;
    if (bench.mixed) {
      const double seconds = run_jobs(place, &jobs, false);
      base = figures_of(jobs, jobs.size(), seconds);
      print(bench, place.adapters, "one by one", count, base, 1);
    }
    const size_t counted = jobs.size();
    if (bench.long_prompt > 0) {
      Job disturber;
      disturber.id = count;
      disturber.prompt = bench.long_prompt;
      disturber.tokens = 1;
      disturber.arrival = solo;
      jobs.push_back(disturber);
    }
    const double seconds = run_jobs(place, &jobs, true);
    const Figures together = figures_of(jobs, counted, seconds);
    print(bench, place.adapters, "together", count, together, together.rate() / base.rate());
    if (bench.mixed || bench.long_prompt > 0) continue;
    const double called = run_batch(place, &jobs);
    const Figures batch = figures_of(jobs, counted, called);
    print(bench, place.adapters, "one call", count, batch, batch.rate() / base.rate());
  }
}

}  // namespace cli
