// SPDX-License-Identifier: Apache-2.0
// Proves what running out of memory does: every allocation of a generating call fails once, and
// each time the session is as before and goes on as a fresh one. Also that decoding, once warm,
// hardly allocates. This program counts through its own operator new.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>

#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "support/fake_model.h"

namespace {

int64_t allocations = 0;
int64_t fails_at = -1;     // number of the allocation that fails, -1 for none
bool fails_later = false;  // all after it, too

bool fails_now() {
  const int64_t number = allocations++;
  return number == fails_at || (fails_later && fails_at >= 0 && number > fails_at);
}

}  // namespace

// Kept out of line: inlined, gcc takes free() for the wrong partner of new.
[[gnu::noinline]] void* operator new(size_t size) {
  if (fails_now()) throw std::bad_alloc();
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return fails_now() ? nullptr : std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace gen::generate {
namespace {

using Tokens = std::vector<int32_t>;

std::shared_ptr<const Generator> make_generator(
    int32_t context, std::function<int32_t(std::span<const int32_t>)> next = nullptr) {
  auto tokenizer = std::make_shared<test::FakeTokenizer>(
      std::vector<std::string>{"a", "b", "c", "d", "\xC3", "\xA9"});
  auto model = std::make_shared<test::FakeModel>(tokenizer->vocab_size(), context);
  model->next = std::move(next);
  GeneratorOptions options;
  options.prefill_chunk = 3;
  options.cache_factory = [](std::span<const cache::LayerShape>,
                             int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
    return std::unique_ptr<cache::KvCache>(std::make_unique<test::FakeCache>(capacity));
  };
  return std::move(Generator::create(model, tokenizer, options)).value();
}

CallParams lively() {
  CallParams params;
  params.stops.max_new_tokens = 12;
  params.stops.ignore_eos = true;
  params.sampling.top_k = 5;
  params.sampling.top_p = 0.9;
  params.sampling.repetition_penalty = 1.2;
  params.sampling.logprobs = 2;
  params.stops.strings = {"abcdabcd"};
  return params;
}

/// A call's events.
struct Heard {
  char text[200] = "";  // takes no memory
  int done = 0;
};

int32_t listen(void* user, const Event& event) {
  auto& heard = *static_cast<Heard*>(user);
  std::strncat(heard.text, event.text.data(), sizeof heard.text - std::strlen(heard.text) - 1);
  heard.done += event.done ? 1 : 0;
  return 0;
}

// The text ends with what a stop string and an unfinished character hold back: it comes whole, or
// the call says that it failed.
TEST(Memory, NoTextIsLostForWantOfIt) {
  for (const bool from_now_on : {false, true}) {
    int whole = 0;
    int failed = 0;
    for (int64_t nth = 0;; ++nth) {
      SCOPED_TRACE(nth);
      const auto generator = make_generator(64, [](std::span<const int32_t> history) {
        constexpr int32_t kSaid[] = {4, 2, 3, 4, 5, 2, 3, 4, 6, test::FakeTokenizer::kEos};
        return kSaid[history.size() - 2];
      });
      const auto session = std::move(generator->new_session()).value();
      CallParams params = lively();
      params.stops.ignore_eos = false;
      params.sampling.top_k = 1;
      params.stops.strings = {"abcdabcd", std::string(60, 'x')};
      Heard heard;
      std::optional<GenResult> result;
      allocations = 0;
      fails_at = nth;
      fails_later = from_now_on;
      try {
        (void)session->generate({.text = "a", .tokens = {}}, params, listen, &heard, &result);
      } catch (const std::bad_alloc&) {  // before generation began
      }
      const bool reached = allocations > nth;
      fails_at = -1;
      ASSERT_EQ(heard.done, result.has_value() ? 1 : 0);
      if (result.has_value()) {
        EXPECT_EQ(result->text, heard.text);
        EXPECT_EQ(result->logprobs.size(), result->tokens.size());
        EXPECT_EQ(result->top_ids.size(), 2 * result->tokens.size());
        EXPECT_EQ(result->top_logprobs.size(), 2 * result->tokens.size());
        if (result->status.ok()) {
          EXPECT_STREQ(heard.text, "cabcdabc\xEF\xBF\xBD");
        }
        ++(result->status.ok() ? whole : failed);
      }
      if (!reached) break;
    }
    EXPECT_GT(whole, 0);
    EXPECT_GT(failed, 5);
  }
}

TEST(Memory, EveryAllocationFailsOnce) {
  const auto generator = make_generator(64);
  const Prompt prompt{.text = "abcdabca", .tokens = {}};
  const CallParams params = lively();
  Tokens expected;
  fails_later = false;
  for (int64_t nth = 0;; ++nth) {
    const auto session = std::move(generator->new_session()).value();
    ASSERT_TRUE(session->append({.text = "dcba", .tokens = {}}).ok());
    const Tokens before = std::move(session->tokens()).value();
    std::optional<GenResult> result;
    Status status;
    bool threw = false;
    allocations = 0;
    fails_at = nth;
    try {
      status = session->generate(prompt, params, nullptr, nullptr, &result);
    } catch (const std::bad_alloc&) {
      threw = true;  // before generation began
    }
    const bool reached = allocations > nth;
    fails_at = -1;
    if (!reached) {
      EXPECT_TRUE(status.ok());
      EXPECT_EQ(result->tokens, expected);
      EXPECT_GT(nth, 20);
      break;
    }
    if (threw || !status.ok()) {
      EXPECT_TRUE(threw || status.code() == Code::kOutOfMemory) << nth << status.message();
      EXPECT_EQ(std::move(session->tokens()).value(), before) << nth;
      EXPECT_EQ(result.has_value(), !threw);
    }
    ASSERT_TRUE(session->truncate(static_cast<int32_t>(before.size())).ok());
    ASSERT_TRUE(session->generate(prompt, params, nullptr, nullptr, &result).ok()) << nth;
    if (expected.empty()) expected = result->tokens;
    EXPECT_EQ(result->tokens, expected) << nth;
  }
}

TEST(Memory, DecodingHardlyAllocates) {
  const auto generator = make_generator(1024);
  const auto session = std::move(generator->new_session()).value();
  CallParams params = lively();
  params.stops.max_new_tokens = 900;
  params.stops.strings = {"abcdabcdabcdabcdabcd"};
  auto generation = std::move(session->open({.text = "a", .tokens = {}}, params)).value();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(generation->next().ok());
  allocations = 0;
  for (int i = 0; i < 700; ++i) ASSERT_TRUE(generation->next().ok());
  // What grows with the text doubles a few times: the text, its alternatives, the fake's entries.
  EXPECT_LE(allocations, 12);
}

}  // namespace
}  // namespace gen::generate
