// SPDX-License-Identifier: Apache-2.0
// Draft models and heads. See generate.hpp.
#ifndef GENERATE_SPECULATIVE_HPP
#define GENERATE_SPECULATIVE_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "generator.hpp"

namespace gen {

/// A target model with a smaller draft model.
class Speculative : public detail::Handle<gen_speculative, gen_speculative_free> {
 public:
  Speculative(const Model &draft, const Model &target, int32_t length = 0)
      : Handle(detail::made<gen_speculative>(gen_speculative_new, draft.get(), target.get(), length, nullptr)) {}
  Speculative(const Model &draft, const Model &target, int32_t length, const Options &options)
      : Handle(detail::made<gen_speculative>(gen_speculative_new, draft.get(), target.get(), length, options.get())) {}

  Result generate(std::string_view prompt, const Sampling &sampling = Sampling()) const {
    return detail::generated(gen_speculative_generate, get(), detail::data(prompt), prompt.size(), sampling.get());
  }
  template <class Take>
  Result generate(std::string_view prompt, const Sampling &sampling, Take &&take) const {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_speculative_generate_stream, get(), detail::data(prompt), prompt.size(),
                                      sampling.get(), &callback.run, static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
  void set_adaptive(bool adaptive) const { detail::call(gen_speculative_set_adaptive, get(), adaptive ? 1 : 0); }
  /// See gen_generator_draft_stats.
  double stats(const std::string &key) const {
    double value = 0;
    detail::call(gen_speculative_stats, get(), key.c_str(), &value);
    return value;
  }
};

/// A target model with a head that was trained for it.
class Eagle : public detail::Handle<gen_eagle, gen_eagle_free> {
 public:
  /// The head of a file; "" for that of the model's own file.
  Eagle(const Model &target, const std::string &path, int32_t length = 0)
      : Handle(detail::made<gen_eagle>(gen_eagle_new, target.get(), path.c_str(), length, nullptr)) {}
  Eagle(const Model &target, const std::string &path, int32_t length, const Options &options)
      : Handle(detail::made<gen_eagle>(gen_eagle_new, target.get(), path.c_str(), length, options.get())) {}
  /// A head in memory, which is copied.
  Eagle(const Model &target, const gen_eagle_tensors &tensors, int32_t length = 0)
      : Handle(detail::made<gen_eagle>(gen_eagle_new_tensors, target.get(), &tensors, length, nullptr)) {}
  Eagle(const Model &target, const gen_eagle_tensors &tensors, int32_t length, const Options &options)
      : Handle(detail::made<gen_eagle>(gen_eagle_new_tensors, target.get(), &tensors, length, options.get())) {}

  Result generate(std::string_view prompt, const Sampling &sampling = Sampling()) const {
    return detail::generated(gen_eagle_generate, get(), detail::data(prompt), prompt.size(), sampling.get());
  }
  template <class Take>
  Result generate(std::string_view prompt, const Sampling &sampling, Take &&take) const {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_eagle_generate_stream, get(), detail::data(prompt), prompt.size(),
                                      sampling.get(), &callback.run, static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
  void set_adaptive(bool adaptive) const { detail::call(gen_eagle_set_adaptive, get(), adaptive ? 1 : 0); }
  /// See gen_generator_draft_stats.
  double stats(const std::string &key) const {
    double value = 0;
    detail::call(gen_eagle_stats, get(), key.c_str(), &value);
    return value;
  }
};

/// Drafting and verification as separate steps.
class Draft : public detail::Handle<gen_draft, gen_draft_free> {
 public:
  struct Guesses {
    std::vector<int32_t> tokens;
    std::vector<float> logprobs;
  };
  struct Verdict {
    int32_t accepted = 0;
    int32_t correction = -1;
  };
  /// Without a target: verification is refused.
  explicit Draft(const Model &draft)
      : Handle(detail::made<gen_draft>(gen_draft_new, draft.get(), nullptr, nullptr)) {}
  Draft(const Model &draft, const Model &target)
      : Handle(detail::made<gen_draft>(gen_draft_new, draft.get(), target.get(), nullptr)) {}
  Draft(const Model &draft, const Model &target, const Options &options)
      : Handle(detail::made<gen_draft>(gen_draft_new, draft.get(), target.get(), options.get())) {}
  /// The model's own first layers draft; 0 for half of them.
  static Draft self(const Model &model, int32_t layers = 0) {
    return Draft(detail::made<gen_draft>(gen_draft_new_self, model.get(), layers, nullptr));
  }

  int32_t depth() const noexcept { return gen_draft_depth(get()); }
  Guesses generate(const std::vector<int32_t> &tokens, int32_t length) const {
    Guesses guesses;
    size_t n = static_cast<size_t>(length > 0 ? length : 0);
    guesses.tokens.resize(n);
    guesses.logprobs.resize(n);
    detail::call(gen_draft_generate, get(), tokens.data(), tokens.size(), length, guesses.tokens.data(),
                 guesses.logprobs.data(), guesses.tokens.size(), &n);
    guesses.tokens.resize(n);
    guesses.logprobs.resize(n);
    return guesses;
  }
  Verdict verify(const std::vector<int32_t> &tokens, const std::vector<int32_t> &guesses) const {
    Verdict verdict;
    detail::call(gen_draft_verify, get(), tokens.data(), tokens.size(), guesses.data(), guesses.size(),
                 &verdict.accepted, &verdict.correction);
    return verdict;
  }
  double acceptance_rate(const std::vector<int32_t> &tokens, int32_t length = 0) const {
    double rate = 0;
    detail::call(gen_draft_acceptance_rate, get(), tokens.data(), tokens.size(), length, &rate);
    return rate;
  }

 private:
  explicit Draft(gen_draft *made) : Handle(made) {}
};

}  // namespace gen

#endif  // GENERATE_SPECULATIVE_HPP
