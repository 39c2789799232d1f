// SPDX-License-Identifier: Apache-2.0
// Proves that threads which share a prefix cache, in a pool that is too small for what they would
// keep, each say what they say alone, and that no block is lost. Run it under the thread sanitizer.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "generate/prefix_world.h"

namespace gen::generate {
namespace {

constexpr uint32_t kThreads = 8;
constexpr uint32_t kTexts = 12;

// Three beginnings, cut and continued differently; two turns.
Tokens prompt_of(uint32_t i) {
  return join(first(text_of(i % 3, 40), 12 + 5 * i % 29), text_of(100 + i, i % 4));
}

std::array<Said, 2> talk(Session& session, uint32_t i) {
  std::array<Said, 2> said;
  said[0] = say(session, prompt_of(i), 4);
  if (said[0].status.ok()) said[1] = say(session, {7, 8, 9}, 5);
  return said;
}

/// Of a model whose blocks attend, or some of whose blocks recur.
class PrefixConcurrency : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Models, PrefixConcurrency, testing::Bool());

TEST_P(PrefixConcurrency, EachSaysWhatItSaysAlone) {
  std::vector<std::array<Said, 2>> alone;
  PrefixWorld plain({.block_size = 4, .capacity = 0, .recurrent = GetParam()});
  for (uint32_t i = 0; i < kTexts; ++i) alone.push_back(talk(*plain.session(), i));

  for (const size_t room : {size_t{128}, size_t{400}}) {  // blocks; a talk takes 14 or so
    PrefixWorld world({.block_size = 4, .capacity = 90, .recurrent = GetParam()});
    world.leave_free(std::min(room, world.pool->blocks().available()));
    const size_t all = world.pool->blocks().available();
    // No machine is too slow for what takes turns.
    world.options.max_starving = world.options.least_starving = std::chrono::hours(1);
    const auto generator = world.generator();
    std::atomic<int> wrong{0};
    std::atomic<int> hits{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint32_t i = 0; i < 3 * kTexts; ++i) {
          const uint32_t which = (i * 5 + t) % kTexts;
          const auto session = generator->new_session().value();
          std::thread canceller;
          if (i % 9 == 8) canceller = std::thread([session] { session->cancel(); });
          const auto said = talk(*session, which);
          if (canceller.joinable()) canceller.join();
          for (size_t turn = 0; turn < 2; ++turn) {
            if (said[turn].cached > 0) ++hits;
            const bool ended = said[turn].status.code() == Code::kCancelled;
            if (!(said[turn] == alone[which][turn]) && i % 9 != 8) ++wrong;
            if (!said[turn].status.ok() && !ended) ++wrong;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(hits, 100);
    EXPECT_EQ(
        world.pool->blocks().available() + static_cast<size_t>(world.options.prefix_cache->size()),
        all);
    EXPECT_EQ(world.options.prefix_cache->spare(),
              static_cast<size_t>(world.options.prefix_cache->size()));
  }
}

}  // namespace
}  // namespace gen::generate
