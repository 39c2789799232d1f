// SPDX-License-Identifier: Apache-2.0
// Proves what running out of memory does: every allocation of a generating call fails once, and
// each time the session is as before and goes on as a fresh one. Also that decoding, once warm,
// hardly allocates. This program counts through its own operator new.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "generate/session.h"
#include "support/fake_model.h"

namespace {

int64_t allocations = 0;
int64_t fails_at = -1;  // number of the allocation that fails, -1 for none

}  // namespace

// Kept out of line: inlined, gcc takes free() for the wrong partner of new.
[[gnu::noinline]] void* operator new(size_t size) {
  if (allocations++ == fails_at) throw std::bad_alloc();
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocations++ == fails_at ? nullptr : std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace gen::generate {
namespace {

using sampling::SamplingParams;
using Tokens = std::vector<int32_t>;

std::shared_ptr<const Generator> make_generator(int32_t context) {
  auto tokenizer = std::make_shared<test::FakeTokenizer>(
      std::vector<std::string>{"a", "b", "c", "d", "\xC3", "\xA9"});
  auto model = std::make_shared<test::FakeModel>(tokenizer->vocab_size(), context);
  GeneratorOptions options;
  options.prefill_chunk = 3;
  options.cache_factory = [](std::span<const cache::LayerShape>,
                             int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
    return std::unique_ptr<cache::KvCache>(std::make_unique<test::FakeCache>(capacity));
  };
  return std::move(Generator::create(model, tokenizer, options)).value();
}

SamplingParams lively() {
  SamplingParams params;
  params.max_new_tokens = 12;
  params.ignore_eos = true;
  params.top_k = 5;
  params.top_p = 0.9;
  params.repetition_penalty = 1.2;
  params.logprobs = 2;
  params.stop_strings = {"abcdabcd"};
  return params;
}

TEST(Memory, EveryAllocationFailsOnce) {
  const auto generator = make_generator(64);
  const Prompt prompt{.text = "abcdabca", .tokens = {}};
  const SamplingParams params = lively();
  Tokens expected;
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
  SamplingParams params = lively();
  params.max_new_tokens = 900;
  params.stop_strings = {"abcdabcdabcdabcdabcd"};
  auto generation = std::move(session->open({.text = "a", .tokens = {}}, params)).value();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(generation->next().ok());
  allocations = 0;
  for (int i = 0; i < 700; ++i) ASSERT_TRUE(generation->next().ok());
  // What grows with the text doubles a few times: the text, its alternatives, the fake's entries.
  EXPECT_LE(allocations, 12);
}

}  // namespace
}  // namespace gen::generate
