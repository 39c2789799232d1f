// SPDX-License-Identifier: Apache-2.0
// See bench_case.h. Token ids are arbitrary, because speed does not depend on them; decoding takes
// the most probable token of each row, as in a greedy answer.
#include "bench_case.h"

#include <algorithm>
#include <chrono>
#include <functional>

namespace cli {
namespace {

constexpr size_t kMaxRows = 512;  // of a batch

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Runner {
 public:
  Runner(const Model& model, const ModelChoice& choice, const BenchCase& bench)
      : model_(model), bench_(bench) {
    const gen_model_config* config = gen_model_get_config(model.get());
    vocab_ = gen_model_config_vocab_size(config);
    const int32_t needed = bench.depth + bench.prompt + bench.tokens;
    logits_.resize(static_cast<size_t>(vocab_) * static_cast<size_t>(bench.batch));
    caches_.push_back(make_cache(model, choice, needed));
    recurrent_ = !can_be_cut(model, choice);
    if (bench.depth > 0) feed(made_up(bench.depth, vocab_), nullptr);
    if (recurrent_) start_ = make<Cache>(kv_cache_clone, caches_[0].get());
  }

  /// Seconds to evaluate the prompt after `depth` tokens.
  double prefill(gen_profile* profile) {
    gen_error error;
    if (recurrent_) {
      caches_.clear();
      caches_.push_back(make<Cache>(kv_cache_clone, start_.get()));
    }
    check(kv_cache_truncate(caches_[0].get(), bench_.depth, &error), error);
    const std::vector<int32_t> tokens = made_up(bench_.prompt, vocab_);
    const auto start = Clock::now();
    feed(tokens, profile);
    const double seconds = seconds_since(start);
    if (recurrent_) prompted_ = make<Cache>(kv_cache_clone, caches_[0].get());
    return seconds;
  }

  /// Seconds of all decode steps, each starting after the prefill.
  double decode(gen_profile* profile) {
    gen_error error;
    if (recurrent_) caches_.clear();
    while (caches_.size() < static_cast<size_t>(bench_.batch)) {
      caches_.push_back(
          make<Cache>(kv_cache_clone, recurrent_ ? prompted_.get() : caches_[0].get()));
    }
    std::vector<kv_cache*> caches;
    std::vector<int32_t> sequences;
    for (const Cache& cache : caches_) {
      check(kv_cache_truncate(cache.get(), bench_.depth + bench_.prompt, &error), error);
      caches.push_back(cache.get());
      sequences.push_back(static_cast<int32_t>(sequences.size()));
    }
    std::vector<int32_t> next(caches.size(), 1);
    const auto start = Clock::now();
    for (int32_t step = 0; step < bench_.tokens; ++step) {
      if (profile != nullptr) {
        check(gen_model_forward_profiled(model_.get(), next.data(), sequences.data(), nullptr,
                                         next.size(), caches.data(), caches.size(), logits_.data(),
                                         logits_.size(), profile, &error),
              error);
      } else {
        check(gen_model_forward_batch(model_.get(), next.data(), sequences.data(), nullptr,
                                      next.size(), caches.data(), caches.size(), logits_.data(),
                                      logits_.size(), &error),
              error);
      }
      for (size_t row = 0; row < next.size(); ++row) {
        const auto begin = logits_.begin() + static_cast<std::ptrdiff_t>(row) * vocab_;
        next[row] = static_cast<int32_t>(std::max_element(begin, begin + vocab_) - begin);
      }
    }
    return seconds_since(start);
  }

 private:
  /// Evaluates tokens in the first cache; only the last row wants logits.
  void feed(const std::vector<int32_t>& tokens, gen_profile* profile) {
    gen_error error;
    if (profile == nullptr) {
      check(gen_model_forward(model_.get(), tokens.data(), tokens.size(), caches_[0].get(),
                              logits_.data(), logits_.size(), &error),
            error);
      return;
    }
    kv_cache* cache = caches_[0].get();
    for (size_t begin = 0; begin < tokens.size(); begin += kMaxRows) {
      const size_t rows = std::min(kMaxRows, tokens.size() - begin);
      std::vector<uint8_t> wants(rows, 0);
      if (begin + rows == tokens.size()) wants.back() = 1;
      check(gen_model_forward_profiled(model_.get(), tokens.data() + begin, nullptr, wants.data(),
                                       rows, &cache, 1, logits_.data(), logits_.size(), profile,
                                       &error),
            error);
    }
  }

  const Model& model_;
  const BenchCase& bench_;
  bool recurrent_ = false;
  Cache start_;     // after `depth` tokens, of a recurrent model
  Cache prompted_;  // after the prompt
  int32_t vocab_ = 0;
  std::vector<float> logits_;
  std::vector<Cache> caches_;  // the first one is filled, the others are its clones
};

Work work_of(const gen_profile* profile, double passes) {
  const ProfileRow weights = profile_sum(profile, "linear");
  const ProfileRow attention = profile_sum(profile, "attention");
  return {weights.bytes / passes, attention.bytes / passes, weights.operations / passes};
}

/// One run.
Measurement counted(Runner* runner, int32_t tokens) {
  Measurement out;
  const auto prefill = make<Profile>(gen_profile_new);
  const auto decode = make<Profile>(gen_profile_new);
  runner->prefill(prefill.get());
  runner->decode(decode.get());
  out.prefill_work = work_of(prefill.get(), 1);
  out.decode_work = work_of(decode.get(), tokens);
  return out;
}

/// Passes of `pass` for a profile.
ProfilePart profile_of(const std::string& title, int32_t repeat, double passes,
                       const std::function<double(gen_profile*)>& pass) {
  const auto profile = make<Profile>(gen_profile_new);
  ProfilePart part;
  part.title = title;
  for (int32_t run = 0; run < repeat; ++run) part.wall_seconds += pass(profile.get());
  part.passes = repeat * passes;
  part.rows = profile_rows(profile.get());
  return part;
}

}  // namespace

std::vector<int32_t> made_up(int32_t n, int32_t vocab) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < n; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % std::min(vocab, 30000)));
  }
  return tokens;
}

bool can_be_cut(const Model& model, const ModelChoice& choice) {
  const int32_t tokens[] = {1, 1};
  std::vector<float> logits(
      static_cast<size_t>(gen_model_config_vocab_size(gen_model_get_config(model.get()))));
  const Cache cache = make_cache(model, choice, 2);
  const auto forward = [&](size_t n, gen_error* error) {
    return gen_model_forward(model.get(), tokens, n, cache.get(), logits.data(), logits.size(),
                             error);
  };
  gen_error error;
  check(forward(2, &error), error);
  check(kv_cache_truncate(cache.get(), 1, &error), error);
  const gen_status status = forward(1, &error);
  if (status != GEN_ERROR_STATE) check(status, error);
  return status == GEN_OK;
}

void check_context(const Model& model, const BenchCase& bench) {
  const gen_model_config* config = gen_model_get_config(model.get());
  const int64_t needed = int64_t{bench.depth} + bench.prompt + bench.tokens;
  if (const int32_t context = gen_model_config_max_seq_len(config); needed > context) {
    throw Failure("depth " + std::to_string(bench.depth) + ", prompt " +
                  std::to_string(bench.prompt) + " and " + std::to_string(bench.tokens) +
                  " tokens do not fit the context of " + std::to_string(context));
  }
}

Measurement measure_work(const Model& model, const ModelChoice& choice, const BenchCase& bench) {
  Runner runner(model, choice, bench);
  return counted(&runner, bench.tokens);
}

Measurement measure(const Model& model, const ModelChoice& choice, const BenchCase& bench,
                    bool with_profiles) {
  Runner runner(model, choice, bench);
  Measurement out = counted(&runner, bench.tokens);
  for (int32_t run = 0; run < bench.repeat; ++run) {
    out.prefill.push_back(bench.prompt / runner.prefill(nullptr));
    out.decode.push_back(double{1} * bench.batch * bench.tokens / runner.decode(nullptr));
  }
  if (!with_profiles) return out;
  const std::string after = bench.depth > 0 ? " after " + std::to_string(bench.depth) : "";
  const std::string together = bench.batch > 1 ? " of " + std::to_string(bench.batch) : "";
  out.profiles.push_back(profile_of("prefill of " + std::to_string(bench.prompt) + after,
                                    bench.repeat, 1,
                                    [&](gen_profile* profile) { return runner.prefill(profile); }));
  // Decoding continues where a prefill ended.
  out.profiles.push_back(profile_of("decode step" + together + after, bench.repeat, bench.tokens,
                                    [&](gen_profile* profile) { return runner.decode(profile); }));
  return out;
}

}  // namespace cli
