// SPDX-License-Identifier: Apache-2.0
// Generators and batches. See generate.hpp.
#ifndef GENERATE_GENERATOR_HPP
#define GENERATE_GENERATOR_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "sampling.hpp"
#include "result.hpp"

namespace gen {

/// Generator options: caches, batches. set() takes the options that describe() lists.
class Options : public detail::Handle<gen_options, gen_options_free> {
 public:
  Options() : Handle(detail::made<gen_options>(gen_options_new)) {}
  Options &kv_dtype(const std::string &name) { return apply(gen_options_set_kv_dtype, name.c_str()); }
  Options &paged_kv(int32_t max_memory_mb, int32_t block_size = 16) {
    return apply(gen_options_set_paged_kv, max_memory_mb, block_size);
  }
  Options &prefix_cache(int32_t blocks) { return apply(gen_options_set_prefix_cache, blocks); }
  Options &state_snapshot_every(int32_t tokens) {
    return apply(gen_options_set_state_snapshot_every, tokens);
  }
  Options &state_snapshot_budget(int32_t max_memory_mb) {
    return apply(gen_options_set_state_snapshot_budget, max_memory_mb);
  }
  Options &prefill_chunk(int32_t tokens) { return apply(gen_options_set_prefill_chunk, tokens); }
  Options &max_batch(int32_t sequences) { return apply(gen_options_set_max_batch, sequences); }
  Options &max_queue(int32_t calls) { return apply(gen_options_set_max_queue, calls); }
  Options &fairness(int32_t steps) { return apply(gen_options_set_fairness, steps); }
  Options &deterministic(bool on = true) { return apply(gen_options_set_deterministic, on ? 1 : 0); }
  Options &prompt_lookup(int32_t ngram, int32_t length = 0) {
    return apply(gen_options_set_prompt_lookup, ngram, length);
  }
  /// The options, and generators made from them, keep the model alive.
  Options &speculative_draft(const Model &model, int32_t length = 0) {
    return apply(gen_options_set_speculative_draft, model.get(), length);
  }
  /// The head of an EAGLE file drafts where lookups find nothing; "" for none.
  Options &eagle(const std::string &path) { return apply(gen_options_set_eagle, path.c_str()); }
  /// `keep` as for an option by name without a number.
  Options &context_policy(const std::string &policy, int32_t keep = 4) {
    return apply(gen_options_set_context_policy, policy.c_str(), keep);
  }
  Options &metrics(const gen_metrics_sink *sink) { return apply(gen_options_set_metrics, sink); }
  Options &set(const std::string &key, const std::string &value) {
    return apply(gen_options_set, key.c_str(), value.c_str());
  }
  std::string describe() const { return detail::filled<std::string>(gen_options_describe, get()); }

 private:
  template <class Setter, class... Args>
  Options &apply(Setter setter, Args... args) {
    detail::call(setter, get(), args...);
    return *this;
  }
};

/// One of many generations of a batch.
class Request : public detail::Handle<gen_request, gen_request_free> {
 public:
  explicit Request(std::string_view prompt) : Handle(detail::made<gen_request>(gen_request_new)) {
    detail::call(gen_request_set_prompt, get(), detail::data(prompt), prompt.size());
  }
  Request(std::string_view prompt, const Sampling &sampling) : Request(prompt) {
    detail::call(gen_request_set_sampling, get(), sampling.get());
  }
  Request &priority(int32_t priority) {
    detail::call(gen_request_set_priority, get(), priority);
    return *this;
  }
  Request &deadline_ms(int64_t milliseconds) {
    detail::call(gen_request_set_deadline_ms, get(), milliseconds);
    return *this;
  }
};

/// A model with a scheduler, from which sessions are made.
class Generator : public detail::Handle<gen_generator, gen_free> {
 public:
  explicit Generator(const Model &model) : Handle(detail::made<gen_generator>(gen_create, model.get(), nullptr)) {}
  Generator(const Model &model, const Options &options)
      : Handle(detail::made<gen_generator>(gen_create, model.get(), options.get())) {}

  /// "lookups", "hits", "tokens", "blocks" or "evictions" of the prefix cache; the last two count
  /// stretches of positions where layers with windows have blocks of their own.
  int64_t prefix_stats(const std::string &key) const {
    int64_t value = 0;
    detail::call(gen_generator_prefix_stats, get(), key.c_str(), &value);
    return value;
  }
  void prefix_clear() const { detail::call(gen_generator_prefix_clear, get()); }
  /// A statistic of drafts, see gen_generator_draft_stats.
  double draft_stats(const std::string &key) const {
    double value = 0;
    detail::call(gen_generator_draft_stats, get(), key.c_str(), &value);
    return value;
  }
  /// Whether the head of Options::eagle() drafts: its file was there.
  bool eagle_enabled() const noexcept { return gen_generator_eagle_enabled(get()) != 0; }
  /// The path that Options::eagle() was given.
  std::string eagle_path() const { return detail::filled<std::string>(gen_generator_eagle_path, get()); }

  Result generate(std::string_view prompt, const Sampling &sampling = Sampling()) const {
    return detail::generated(gen_generate, get(), detail::data(prompt), prompt.size(), sampling.get());
  }
  /// `take(const Token &)` is called for each piece on this thread; false stops, and an exception
  /// from it leaves this call.
  template <class Take>
  Result generate(std::string_view prompt, const Sampling &sampling, Take &&take) const {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_generate_stream, get(), detail::data(prompt), prompt.size(), sampling.get(),
                                      &callback.run, static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
  /// All together; each result has its own error().
  std::vector<Result> generate(const std::vector<Request> &requests) const {
    std::vector<const gen_request *> handles;
    for (const Request &request : requests) handles.push_back(request.get());
    std::vector<Result> results;
    results.reserve(requests.size());
    std::vector<gen_result *> made(requests.size());
    detail::call(gen_batch_generate, get(), handles.data(), handles.size(), made.data());
    for (gen_result *result : made) results.emplace_back(result);
    return results;
  }
  /// Several texts from one prompt: text i has the seed of `sampling` + i. With `best_of` above n
  /// the most probable n of best_of.
  std::vector<Result> generate(std::string_view prompt, const Sampling &sampling, int32_t n, int32_t best_of) const {
    std::vector<Result> results(n > 0 ? static_cast<size_t>(n) : 0);
    std::vector<gen_result *> made(results.size());
    detail::call(gen_generate_n, get(), detail::data(prompt), prompt.size(), sampling.get(), n, best_of, made.data());
    for (size_t i = 0; i < made.size(); ++i) results[i] = Result(made[i]);
    return results;
  }
};

}  // namespace gen

#endif  // GENERATE_GENERATOR_HPP
