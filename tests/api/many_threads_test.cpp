// SPDX-License-Identifier: Apache-2.0
// Sixty-four threads that do anything at all with a few shared generators: calls of every form,
// streams that are closed, batches that are cancelled, sessions that are forked, saved, cut and
// freed, one session that all want. What comes out must be what the same request gave alone, to the
// bit. GEN_TRIALS sets the number of operations of each thread. Meant for the thread sanitizer, too.
#include <generate/generate.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace gen::api {
namespace {

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* handle) const { Free(handle); }
};
using Model = std::unique_ptr<gen_model, Freed<gen_model, gen_model_free>>;
using Generator = std::unique_ptr<gen_generator, Freed<gen_generator, gen_free>>;
using Session = std::unique_ptr<gen_session, Freed<gen_session, gen_session_free>>;
using Stream = std::unique_ptr<gen_stream, Freed<gen_stream, gen_stream_close>>;
using Sampling = std::unique_ptr<gen_sampling, Freed<gen_sampling, gen_sampling_free>>;
using Request = std::unique_ptr<gen_request, Freed<gen_request, gen_request_free>>;
using Result = std::unique_ptr<gen_result, Freed<gen_result, gen_result_free>>;
using Cancel = std::unique_ptr<gen_cancel, Freed<gen_cancel, gen_cancel_free>>;
using Tokens = std::vector<int32_t>;

constexpr int kThreads = 64;
constexpr const char* kPrompts[] = {"Once upon a time", "Once upon a time there was a little dog",
                                    "The big dog", "A girl named Zelda had a golden trumpet.",
                                    "a"};
constexpr size_t kSamplings = 3;

/// What a request gave; log-probabilities as bits.
struct Said {
  std::string text;
  Tokens tokens;
  std::vector<uint32_t> logprobs;

  Said() = default;
  explicit Said(const gen_result* result) {
    size_t n = 0;
    const char* const characters = gen_result_text(result, &n);
    text.assign(characters, n);
    const int32_t* const ids = gen_result_tokens(result, &n);
    tokens.assign(ids, ids + n);
    const float* const values = gen_result_logprobs(result, &n);
    logprobs.resize(n);
    if (n > 0) std::memcpy(logprobs.data(), values, n * sizeof(float));
  }
  friend bool operator==(const Said&, const Said&) = default;
};

/// A request and what it gives alone.
struct Question {
  const char* prompt = nullptr;
  const gen_sampling* sampling = nullptr;
  Tokens tokens;  // of the prompt
  Said said;
  std::vector<float> scores;
};

Session new_session(gen_generator* generator) {
  gen_session* made = nullptr;
  EXPECT_EQ(gen_session_new(generator, &made, nullptr), GEN_OK);
  return Session(made);
}

Tokens tokens_of(const gen_session* session) {
  size_t n = 0;
  EXPECT_EQ(gen_session_tokens(session, nullptr, 0, &n, nullptr), GEN_OK);
  Tokens tokens(n);
  EXPECT_EQ(gen_session_tokens(session, tokens.data(), n, &n, nullptr), GEN_OK);
  return tokens;
}

bool starts_with(const Tokens& whole, const Tokens& part) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

/// Options of a generator with all the answers to what is asked of it.
class Room {
 public:
  Room(gen_model* model, const std::vector<std::pair<const char*, const char*>>& settings,
       const std::vector<Sampling>& samplings) {
    gen_options* options = nullptr;
    EXPECT_EQ(gen_options_new(&options, nullptr), GEN_OK);
    gen_error error;
    for (const auto& [name, value] : settings) {
      EXPECT_EQ(gen_options_set(options, name, value, &error), GEN_OK) << error.message;
    }
    // The answers come from one that nobody else uses.
    for (Generator* generator : {&alone_, &generator_}) {
      gen_generator* made = nullptr;
      EXPECT_EQ(gen_create(model, options, &made, &error), GEN_OK) << error.message;
      generator->reset(made);
    }
    gen_options_free(options);
    for (const char* prompt : kPrompts) {
      for (const Sampling& sampling : samplings) ask(prompt, sampling.get());
    }
    shared_ = new_session(generator_.get());
  }
  [[nodiscard]] gen_generator* generator() const { return generator_.get(); }
  [[nodiscard]] gen_session* shared() const { return shared_.get(); }
  [[nodiscard]] const Question& any(std::mt19937& random) const {
    return questions_[random() % questions_.size()];
  }

 private:
  void ask(const char* prompt, const gen_sampling* sampling) {
    Question question;
    question.prompt = prompt;
    question.sampling = sampling;
    const Session session = new_session(alone_.get());
    question.scores.resize(100);
    size_t n = 0;
    EXPECT_EQ(gen_session_score(session.get(), prompt, GEN_NUL_TERMINATED, question.scores.data(),
                                question.scores.size(), &n, nullptr),
              GEN_OK);
    question.scores.resize(n);
    EXPECT_EQ(gen_session_append(session.get(), prompt, GEN_NUL_TERMINATED, nullptr), GEN_OK);
    question.tokens = tokens_of(session.get());
    gen_result* result = nullptr;
    EXPECT_EQ(gen_generate(alone_.get(), prompt, GEN_NUL_TERMINATED, sampling, &result, nullptr),
              GEN_OK);
    question.said = Said(result);
    gen_result_free(result);
    questions_.push_back(std::move(question));
  }

  Generator alone_;
  Generator generator_;
  std::vector<Question> questions_;
  Session shared_;
};

/// What a callback hears, and when it has enough.
struct Heard {
  std::string text;
  int stop_at = -1;  // index of a token
  gen_cancel* cancel = nullptr;
};

int listen(void* user, const gen_token* token) {
  auto& heard = *static_cast<Heard*>(user);
  heard.text.append(token->text, token->text_len);
  if (token->done != 0 || token->index != heard.stop_at) return 0;
  if (heard.cancel == nullptr) return 7;
  gen_cancel_fire(heard.cancel);
  return 0;
}

/// One thread's work.
class Guest {
 public:
  Guest(gen_model* model, const std::vector<std::unique_ptr<Room>>& rooms, uint32_t seed)
      : model_(model), rooms_(rooms), random_(seed) {}

  void act() {
    room_ = rooms_[random_() % rooms_.size()].get();
    question_ = &room_->any(random_);
    switch (draw(0, 11)) {
      case 0:
        return at_once();
      case 1:
        return listening();
      case 2:
        return cancelled();
      case 3:
        return in_turns();
      case 4:
        return pulled();
      case 5:
        return closed();
      case 6:
        return forked();
      case 7:
        return loaded();
      case 8:
        return in_a_batch();
      case 9:
        return in_the_shared_session();
      case 10:
        return scored();
      default:
        return with_a_generator_of_its_own();
    }
  }

 private:
  int draw(int from, int to) {
    return from + static_cast<int>(random_() % static_cast<uint32_t>(to - from + 1));
  }
  const char* message() const { return error_.message; }

  /// The rest of a session's answer: it holds a part of the prompt.
  void finish(gen_session* session, const Question& question) {
    const Tokens held = tokens_of(session);
    ASSERT_TRUE(starts_with(question.tokens, held));
    const Tokens rest(question.tokens.begin() + static_cast<std::ptrdiff_t>(held.size()),
                      question.tokens.end());
    ASSERT_EQ(gen_session_append_tokens(session, rest.data(), rest.size(), &error_), GEN_OK)
        << message();
    gen_result* result = nullptr;
    ASSERT_EQ(gen_session_generate(session, "", 0, question.sampling, &result, &error_), GEN_OK)
        << message();
    EXPECT_EQ(Said(result), question.said);
    gen_result_free(result);
  }

  void at_once() {
    gen_result* result = nullptr;
    ASSERT_EQ(gen_generate(room_->generator(), question_->prompt, GEN_NUL_TERMINATED,
                           question_->sampling, &result, &error_),
              GEN_OK)
        << message();
    EXPECT_EQ(Said(result), question_->said);
    gen_result_free(result);
  }

  void listening() {
    Heard heard;
    if (draw(0, 1) == 0) heard.stop_at = draw(0, 5);
    gen_result* result = nullptr;
    const gen_status status =
        gen_generate_stream(room_->generator(), question_->prompt, GEN_NUL_TERMINATED,
                            question_->sampling, listen, &heard, &result, &error_);
    const Result owned(result);
    ASSERT_NE(result, nullptr) << message();
    EXPECT_EQ(Said(result).text, heard.text);
    if (heard.stop_at < 0) {
      EXPECT_EQ(status, GEN_OK);
      EXPECT_EQ(Said(result), question_->said);
    } else {
      EXPECT_EQ(status, GEN_ERROR_CANCELLED);
      EXPECT_EQ(Said(result).tokens.size(), static_cast<size_t>(heard.stop_at) + 1);
      EXPECT_TRUE(starts_with(question_->said.tokens, Said(result).tokens));
    }
  }

  void cancelled() {
    Cancel cancel;
    Sampling sampling;
    gen_cancel* flag = nullptr;
    gen_sampling* copy = nullptr;
    ASSERT_EQ(gen_cancel_new(&flag, nullptr), GEN_OK);
    cancel.reset(flag);
    ASSERT_EQ(gen_sampling_new(&copy, nullptr), GEN_OK);
    sampling.reset(copy);
    ASSERT_EQ(gen_sampling_set_temperature(copy, 0, nullptr), GEN_OK);
    ASSERT_EQ(gen_sampling_set_cancel(copy, flag, nullptr), GEN_OK);
    ASSERT_EQ(gen_sampling_set_max_new_tokens(copy, 50, nullptr), GEN_OK);
    Heard heard;
    heard.stop_at = draw(0, 5);
    heard.cancel = flag;
    gen_result* result = nullptr;
    EXPECT_EQ(gen_generate_stream(room_->generator(), question_->prompt, GEN_NUL_TERMINATED, copy,
                                  listen, &heard, &result, &error_),
              GEN_ERROR_CANCELLED);
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(Said(result).tokens.size(), static_cast<size_t>(heard.stop_at) + 1);
    gen_result_free(result);
  }

  void in_turns() {
    const Session session = new_session(room_->generator());
    const auto half = question_->tokens.size() / 2;
    ASSERT_EQ(
        gen_session_append_tokens(session.get(), question_->tokens.data(), half, &error_), GEN_OK)
        << message();
    finish(session.get(), *question_);
    // Another answer in the place of this one.
    ASSERT_EQ(gen_session_truncate(session.get(), static_cast<int32_t>(half), &error_), GEN_OK);
    finish(session.get(), *question_);
    ASSERT_EQ(gen_session_reset(session.get(), &error_), GEN_OK);
    finish(session.get(), room_->any(random_));
  }

  Stream open(gen_session* session) {
    gen_stream* made = nullptr;
    EXPECT_EQ(gen_stream_open(session, question_->prompt, GEN_NUL_TERMINATED, question_->sampling,
                              &made, &error_),
              GEN_OK)
        << message();
    return Stream(made);
  }

  void pulled() {
    const Session session = new_session(room_->generator());
    const Stream stream = open(session.get());
    std::string text;
    for (;;) {
      const gen_token* token = nullptr;
      int32_t state = GEN_STREAM_TOKEN;
      const gen_status status = draw(0, 1) == 0
                                    ? gen_stream_next(stream.get(), &token, &error_)
                                    : gen_stream_poll(stream.get(), &token, &state, &error_);
      ASSERT_EQ(status, GEN_OK) << message();
      if (state == GEN_STREAM_PENDING) continue;
      if (token == nullptr) break;
      text.append(token->text, token->text_len);
    }
    gen_result* result = nullptr;
    ASSERT_EQ(gen_stream_result(stream.get(), &result, &error_), GEN_OK) << message();
    EXPECT_EQ(Said(result), question_->said);
    EXPECT_EQ(text, question_->said.text);
    gen_result_free(result);
  }

  void closed() {
    const Session session = new_session(room_->generator());
    Stream stream = open(session.get());
    for (int n = draw(0, 12); n > 0; --n) {
      const gen_token* token = nullptr;
      int32_t state = GEN_STREAM_PENDING;
      ASSERT_EQ(gen_stream_poll(stream.get(), &token, &state, &error_), GEN_OK) << message();
      if (state == GEN_STREAM_END) break;
      if (draw(0, 3) == 0) std::this_thread::yield();
    }
    stream.reset();
    const Tokens held = tokens_of(session.get());
    if (held.size() > question_->tokens.size()) {
      const auto length = static_cast<int32_t>(question_->tokens.size());
      ASSERT_EQ(gen_session_truncate(session.get(), length, &error_), GEN_OK);
    }
    finish(session.get(), *question_);
  }

  void forked() {
    Session session = new_session(room_->generator());
    ASSERT_EQ(gen_session_append(session.get(), question_->prompt, GEN_NUL_TERMINATED, &error_),
              GEN_OK)
        << message();
    gen_session* made = nullptr;
    ASSERT_EQ(gen_session_fork(session.get(), &made, &error_), GEN_OK) << message();
    const Session fork(made);
    finish(session.get(), *question_);
    if (draw(0, 1) == 0) session.reset();
    finish(fork.get(), *question_);
  }

  void loaded() {
    const Session session = new_session(room_->generator());
    ASSERT_EQ(gen_session_append(session.get(), question_->prompt, GEN_NUL_TERMINATED, &error_),
              GEN_OK)
        << message();
    size_t size = 0;
    ASSERT_EQ(gen_session_save_buffer(session.get(), nullptr, 0, &size, &error_), GEN_OK);
    std::vector<char> state(size);
    ASSERT_EQ(gen_session_save_buffer(session.get(), state.data(), size, &size, &error_), GEN_OK)
        << message();
    const Session other = new_session(room_->generator());
    ASSERT_EQ(gen_session_load_buffer(other.get(), state.data(), size, &error_), GEN_OK)
        << message();
    finish(other.get(), *question_);
  }

  void in_a_batch() {
    const auto count = static_cast<size_t>(draw(1, 4));
    std::vector<const Question*> questions;
    std::vector<Request> owned;
    std::vector<gen_request*> requests;
    for (size_t i = 0; i < count; ++i) {
      questions.push_back(&room_->any(random_));
      gen_request* made = nullptr;
      ASSERT_EQ(gen_request_new(&made, nullptr), GEN_OK);
      owned.emplace_back(made);
      requests.push_back(made);
      ASSERT_EQ(gen_request_set_prompt(made, questions[i]->prompt, GEN_NUL_TERMINATED, nullptr),
                GEN_OK);
      ASSERT_EQ(gen_request_set_sampling(made, questions[i]->sampling, nullptr), GEN_OK);
      ASSERT_EQ(gen_request_set_priority(made, draw(-1, 1), nullptr), GEN_OK);
    }
    std::vector<gen_result*> results(count, nullptr);
    ASSERT_EQ(gen_batch_generate(room_->generator(), requests.data(), count, results.data(),
                                 &error_),
              GEN_OK)
        << message();
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(Said(results[i]), questions[i]->said);
      gen_result_free(results[i]);
    }
  }

  /// All want this one; whoever has it says what it should say of where it is.
  void in_the_shared_session() {
    gen_session* const session = room_->shared();
    gen_result* result = nullptr;
    const gen_status status = gen_session_generate(session, question_->prompt, GEN_NUL_TERMINATED,
                                                   question_->sampling, &result, &error_);
    EXPECT_TRUE(status == GEN_OK || status == GEN_ERROR_BUSY || status == GEN_ERROR_CANCELLED ||
                status == GEN_ERROR_CONTEXT_FULL)
        << message();
    EXPECT_TRUE(result != nullptr || status != GEN_OK);
    gen_result_free(result);
    if (draw(0, 3) == 0) gen_session_cancel(session);
    const double progress = gen_session_progress(session);
    EXPECT_TRUE(progress >= 0 && progress <= 1);
    const gen_status reset = gen_session_reset(session, &error_);
    EXPECT_TRUE(reset == GEN_OK || reset == GEN_ERROR_BUSY);
  }

  void scored() {
    const Session session = new_session(room_->generator());
    std::vector<float> scores(100);
    size_t n = 0;
    ASSERT_EQ(gen_session_score(session.get(), question_->prompt, GEN_NUL_TERMINATED,
                                scores.data(), scores.size(), &n, &error_),
              GEN_OK)
        << message();
    scores.resize(n);
    EXPECT_EQ(scores, question_->scores);
    finish(session.get(), *question_);
  }

  /// The generator goes before its session.
  void with_a_generator_of_its_own() {
    question_ = &rooms_.front()->any(random_);  // the default options
    gen_generator* made = nullptr;
    ASSERT_EQ(gen_create(model_, nullptr, &made, &error_), GEN_OK) << message();
    Generator generator(made);
    const Session session = new_session(made);
    generator.reset();
    finish(session.get(), *question_);
  }

  gen_model* const model_;
  const std::vector<std::unique_ptr<Room>>& rooms_;
  std::mt19937 random_;
  gen_error error_{};
  const Room* room_ = nullptr;
  const Question* question_ = nullptr;
};

int operations() {
  const char* const wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::max(1, std::atoi(wanted)) : 6;
}

TEST(ManyThreads, EachIsAnsweredAsIfItWereAlone) {
  gen_error error;
  gen_model* loaded = nullptr;
  const std::string path = std::string(GEN_TEST_SOURCE_DIR) + "/examples/demo_model/draft.gguf";
  ASSERT_EQ(gen_model_load(path.c_str(), nullptr, &loaded, &error), GEN_OK) << error.message;
  const Model model(loaded);
  std::vector<Sampling> samplings;
  for (size_t i = 0; i < kSamplings; ++i) {
    gen_sampling* made = nullptr;
    ASSERT_EQ(gen_sampling_new(&made, &error), GEN_OK);
    samplings.emplace_back(made);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(made, 6, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_ignore_eos(made, 1, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_logprobs(made, 0, &error), GEN_OK);
    EXPECT_EQ(gen_sampling_set_seed(made, 11 + i, &error), GEN_OK);
    if (i == 0) {
      EXPECT_EQ(gen_sampling_set_temperature(made, 0, &error), GEN_OK);
    }
    if (i == 2) {
      EXPECT_EQ(gen_sampling_set_repetition_penalty(made, 1.2, &error), GEN_OK);
    }
  }
  std::vector<std::unique_ptr<Room>> rooms;
  using Settings = std::vector<std::pair<const char*, const char*>>;
  for (const Settings& settings :
       {Settings{}, Settings{{"paged_kv", "64,8"}, {"prefix_cache", "64"}, {"prefill_chunk", "3"}},
        Settings{{"kv_dtype", "q4"}, {"max_batch", "5"}}}) {
    rooms.push_back(std::make_unique<Room>(model.get(), settings, samplings));
  }
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Guest guest(model.get(), rooms, static_cast<uint32_t>(thread * 65537 + 3));
      for (int i = 0; i < operations() && !testing::Test::HasFailure(); ++i) guest.act();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gen::api
