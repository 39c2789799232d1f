// SPDX-License-Identifier: Apache-2.0
// See bench_adapted.h. A session evaluates its last token when it needs what comes next. With one
// token more than `depth`, a prompt of n tokens and a text of n tokens take n rows each.
#include "bench_adapted.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

double elapsed(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class AdaptedRunner {
 public:
  AdaptedRunner(const Model& model, const ModelChoice& choice, const BenchCase& bench,
                const Adapters& adapters)
      : bench_(bench), vocab_(gen_model_config_vocab_size(gen_model_get_config(model.get()))) {
    gen_error error;
    ModelChoice own = choice;
    own.prefix_cache = 0;  // else only the first run evaluates its prompt
    const Options options = make_options(own);
    check(gen_options_set_max_batch(options.get(), bench.batch, &error), error);
    generator_ = make_by_options<Generator>(gen_create, model.get(), options.get());
    sampling_ = make<Sampling>(gen_sampling_new);
    check(gen_sampling_set_temperature(sampling_.get(), 0, &error), error);
    check(gen_sampling_set_ignore_eos(sampling_.get(), 1, &error), error);
    check(gen_sampling_set_max_new_tokens(sampling_.get(), bench.tokens, &error), error);
    name_adapters(adapters, sampling_);
    start_ = make<Session>(gen_session_new, generator_.get());
    prepare_session(start_, adapters);
    append(start_, bench.depth + 1);
  }

  /// Seconds to evaluate the prompt after `depth` tokens.
  double prefill() {
    prompted_ = make<Session>(gen_session_fork, start_.get());
    const auto start = Clock::now();
    append(prompted_, bench_.prompt);
    return elapsed(start);
  }

  /// Seconds of all decode steps after the prefill.
  double decode() {
    std::vector<Session> sessions;
    std::vector<Stream> streams;
    for (int32_t i = 0; i < bench_.batch; ++i) {
      sessions.push_back(make<Session>(gen_session_fork, prompted_.get()));
      streams.push_back(
          make<Stream>(gen_stream_open, sessions.back().get(), "", size_t{0}, sampling_.get()));
    }
    gen_error error;
    const auto start = Clock::now();
    while (!streams.empty()) {
      for (auto stream = streams.begin(); stream != streams.end();) {
        const gen_token* token = nullptr;
        int32_t state = GEN_STREAM_PENDING;
        check(gen_stream_poll(stream->get(), &token, &state, &error), error);
        const bool over = state == GEN_STREAM_END || (token != nullptr && token->done != 0);
        stream = over ? streams.erase(stream) : stream + 1;
      }
    }
    return elapsed(start);
  }

 private:
  void append(const Session& session, int32_t n) const {
    const std::vector<int32_t> tokens = made_up(n, vocab_);
    gen_error error;
    check(gen_session_append_tokens(session.get(), tokens.data(), tokens.size(), &error), error);
  }

  const BenchCase& bench_;
  const int32_t vocab_;
  Generator generator_;
  Sampling sampling_;
  Session start_;     // after `depth` tokens and one that is not evaluated yet
  Session prompted_;  // after the prompt
};

}  // namespace

Measurement measure_adapted(const Model& model, const ModelChoice& choice, const BenchCase& bench,
                            const Adapters& adapters) {
  Measurement out = measure_work(model, choice, bench);
  AdaptedRunner runner(model, choice, bench, adapters);
  runner.prefill();
  runner.decode();  // warm up
  for (int32_t run = 0; run < bench.repeat; ++run) {
    out.prefill.push_back(bench.prompt / runner.prefill());
    out.decode.push_back(double{1} * bench.batch * bench.tokens / runner.decode());
  }
  return out;
}

}  // namespace cli
