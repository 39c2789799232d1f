// SPDX-License-Identifier: Apache-2.0
// One row, one result, for everything at once: conversations on many threads, driven in every form,
// forked, saved, cut and taken up again, in steps of any composition, over pools that are too
// small, with the beginnings of others found in a prefix cache, with neighbours that fail and are
// cancelled. Each must say what it says alone, token by token and bit by bit. GEN_TRIALS sets the
// number of worlds that are drawn. Meant for the thread sanitizer.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "cache/prefix/prefix_cache.h"
#include "cache/sequence/paged_cache.h"
#include "engine/memory/host_memory.h"
#include "generate/batch_run.h"
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "support/fake_model.h"
#include "support/loaded_tiny.h"

namespace gen::generate {
namespace {

using Tokens = std::vector<int32_t>;
using Random = std::mt19937;

constexpr int32_t kContext = 160;
constexpr int32_t kVocab = 50;
constexpr uint64_t kTalks = 12;  // different conversations

int32_t draw(Random& random, int32_t from, int32_t to) {
  return from + static_cast<int32_t>(random() % static_cast<uint32_t>(to - from + 1));
}

struct Turn {
  Tokens prompt;
  CallParams params;
};

/// What is asked in conversation number `seed`. Half of them begin with the same words.
std::vector<Turn> talk_of(uint64_t seed) {
  Random random(static_cast<uint32_t>(seed * 77 + 5));
  std::vector<Turn> turns(static_cast<size_t>(draw(random, 1, 3)));
  for (Turn& turn : turns) {
    const bool opening = &turn == turns.data();
    if (opening && seed % 2 == 0) {
      for (int32_t i = 0; i < 21; ++i) turn.prompt.push_back(2 + (i * 7) % 40);
    }
    for (int32_t n = draw(random, 1, 25); n > 0; --n) {
      turn.prompt.push_back(draw(random, 2, kVocab - 1));
    }
    CallParams& params = turn.params;
    params.sampling.seed = seed;
    params.stops.max_new_tokens = draw(random, 1, 15);
    params.sampling.logprobs = draw(random, 0, 3);
    params.stops.ignore_eos = draw(random, 0, 1) == 0;
    if (draw(random, 0, 2) == 0) params.sampling.temperature = 0;
    if (draw(random, 0, 1) == 0) params.sampling.top_k = draw(random, 1, 20);
    if (draw(random, 0, 1) == 0) params.sampling.top_p = 0.9;
    if (draw(random, 0, 1) == 0) params.sampling.repetition_penalty = 1.3;
    if (draw(random, 0, 3) == 0) params.sampling.frequency_penalty = 0.5;
    if (draw(random, 0, 3) == 0) params.stops.tokens.push_back(draw(random, 2, kVocab - 1));
    if (draw(random, 0, 3) == 0) params.stops.strings.push_back("ab");
  }
  return turns;
}

/// What a turn gave, to the bit.
struct Said {
  Tokens tokens;
  std::string text;
  std::vector<uint32_t> logprobs;  // bits, alternatives after them
  FinishReason reason = FinishReason::kNone;

  Said() = default;
  explicit Said(const GenResult& result)
      : tokens(result.tokens), text(result.text), reason(result.finish_reason) {
    const auto add = [this](float value) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      logprobs.push_back(bits);
    };
    for (const float value : result.logprobs) add(value);
    for (const int32_t id : result.top_ids) logprobs.push_back(static_cast<uint32_t>(id));
    for (const float value : result.top_logprobs) add(value);
  }
  friend bool operator==(const Said&, const Said&) = default;
};

/// A model and how its caches lie.
class World {
 public:
  World(const std::string& dtype, int32_t threads, int32_t max_sequences, int32_t chunk,
        int32_t pool_blocks, int32_t block_size, int32_t prefix_blocks)
      : tiny_(test::TinyModel(spec()), {.threads = threads}) {
    GeneratorOptions options;
    options.kv_dtype = dtype;
    options.max_sequences = max_sequences;
    options.prefill_chunk = chunk;
    // Nobody here holds blocks for good, and no machine is too slow.
    options.max_starving = options.least_starving = std::chrono::hours(1);
    if (pool_blocks > 0) {
      pool_ = pool_of(dtype, pool_blocks, block_size);
      options.cache_factory = [pool = pool_](std::span<const cache::LayerShape>, int32_t capacity) {
        return cache::make_paged_cache(pool, capacity);
      };
      if (prefix_blocks > 0) {
        std::shared_ptr<cache::BlockPool> blocks(pool_, &pool_->blocks());
        options.prefix_cache = cache::PrefixCache::create(blocks, prefix_blocks).value();
      }
    }
    std::vector<std::string> pieces;
    for (int32_t i = 0; i < kVocab - 2; ++i) {
      pieces.push_back(i % 9 == 0
                           ? std::string("\xC3\xA9").substr(static_cast<size_t>(i / 9) % 2, 1)
                       : i % 5 == 0 ? "ab"
                                    : std::string(1, static_cast<char>('a' + i % 26)));
    }
    const std::shared_ptr<const model::Model> model(&tiny_.model(), [](const model::Model*) {});
    generator_ =
        Generator::create(model, std::make_shared<test::FakeTokenizer>(pieces), options).value();
  }
  [[nodiscard]] const Generator& generator() const { return *generator_; }
  [[nodiscard]] std::shared_ptr<Session> session() const {
    return generator_->new_session().value();
  }
  /// Blocks of the pool that somebody holds.
  [[nodiscard]] size_t held() const {
    return pool_ == nullptr ? 0 : pool_->blocks().capacity() - pool_->blocks().available();
  }

 private:
  static test::TinyModelSpec spec() {
    test::TinyModelSpec made;
    made.context = kContext;
    made.vocab = kVocab;
    return made;
  }
  // Pools are sized in MiB, so this one is cut by taking blocks out for good.
  std::shared_ptr<cache::CachePool> pool_of(const std::string& dtype, int32_t blocks,
                                            int32_t block_size) {
    auto pool = cache::CachePool::create(dtype, tiny_.model().layer_shapes(), block_size, 1,
                                         engine::system_memory())
                    .value();
    const size_t left = pool->blocks().available();
    taken_.resize(left - std::min(left, static_cast<size_t>(blocks)));
    EXPECT_TRUE(pool->blocks().allocate(taken_).ok());
    return pool;
  }

  test::LoadedTiny tiny_;
  std::vector<cache::Block*> taken_;
  std::shared_ptr<cache::CachePool> pool_;
  std::shared_ptr<const Generator> generator_;
};

/// What all conversations say alone.
std::vector<std::vector<Said>> alone(const std::string& dtype) {
  const World world(dtype, 1, 1, 512, 0, 0, 0);
  std::vector<std::vector<Said>> all;
  for (uint64_t seed = 0; seed < kTalks; ++seed) {
    const auto session = world.session();
    all.emplace_back();
    for (const Turn& turn : talk_of(seed)) {
      std::optional<GenResult> result;
      const Status status =
          session->generate({.tokens = turn.prompt}, turn.params, nullptr, nullptr, &result);
      EXPECT_TRUE(status.ok()) << status.message();
      all.back().emplace_back(*result);
    }
  }
  return all;
}

void pause(Random& random) {
  if (draw(random, 0, 3) == 0) std::this_thread::yield();
  if (draw(random, 0, 19) == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
}

/// One turn in some form; the text of the events must be the result's.
Said take_turn(Session& session, const Turn& turn, Random& random) {
  Tokens prompt = turn.prompt;
  if (prompt.size() > 3 && draw(random, 0, 3) == 0) {  // some of it beforehand
    const auto early =
        static_cast<size_t>(draw(random, 1, static_cast<int32_t>(prompt.size()) - 1));
    EXPECT_TRUE(session.append({.tokens = std::span(prompt).first(early)}).ok());
    prompt.erase(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(early));
  }
  std::string text;
  const int32_t form = draw(random, 0, 3);
  if (form == 0) {
    std::optional<GenResult> result;
    const auto gather = [](void* user, const Event& event) -> int32_t {
      static_cast<std::string*>(user)->append(event.text);
      return 0;
    };
    const Status status = session.generate({.tokens = prompt}, turn.params, gather, &text, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    EXPECT_EQ(text, result->text);
    return Said(*result);
  }
  auto generation = session.open({.tokens = prompt}, turn.params);
  EXPECT_TRUE(generation.ok()) << generation.status().message();
  if (!generation.ok()) return {};
  while (!generation.value()->ended()) {
    pause(random);
    const Event* event = nullptr;
    if (form == 1 || (form == 2 && draw(random, 0, 1) == 0)) {
      event = generation.value()->next().value();
    } else {
      event = generation.value()->poll();
    }
    if (event != nullptr) text += event->text;
  }
  EXPECT_TRUE(generation.value()->result().status.ok())
      << generation.value()->result().status.message();
  EXPECT_EQ(text, generation.value()->result().text);
  return Said(generation.value()->result());
}

/// Something that must not matter, between two turns. Gives the session to go on with.
std::shared_ptr<Session> disturb(const World& world, std::shared_ptr<Session> session,
                                 Random& random) {
  switch (draw(random, 0, 5)) {
    case 0: {  // goes on in a fork, while the other one says something else
      auto fork = session->fork().value();
      std::optional<GenResult> ignored;
      (void)session->generate({.tokens = Tokens{3, 4, 5}}, {}, nullptr, nullptr, &ignored);
      return fork;
    }
    case 1: {  // in another session, from a saved state
      std::vector<std::byte> state;
      const Status saved = session->save([&](const cache::StateContents& contents) -> Status {
        GEN_ASSIGN(const size_t size, cache::state_size(contents));
        state.resize(size);
        return cache::save_state(cache::StateKind::kSession, contents, state);
      });
      EXPECT_TRUE(saved.ok()) << saved.message();
      auto loaded = world.session();
      const Status status = loaded->load(state);
      // A state takes its blocks at once, and there may be none.
      if (status.code() == Code::kPoolExhausted) return session;
      EXPECT_TRUE(status.ok()) << status.message();
      return loaded;
    }
    case 2: {  // a part is cut and comes again
      const Tokens all = session->tokens().value();
      const int32_t kept = draw(random, 0, static_cast<int32_t>(all.size()) - 1);
      EXPECT_TRUE(session->truncate(kept).ok());
      EXPECT_TRUE(
          session->append({.tokens = std::span(all).subspan(static_cast<size_t>(kept))}).ok());
      return session;
    }
    case 3: {  // a call that is cancelled half way, taken back
      const int32_t before = session->length();
      auto generation = session->open({.tokens = Tokens{7, 8, 9, 10}}, {}).value();
      for (int32_t n = draw(random, 0, 4); n > 0 && !generation->ended(); --n) {
        (void)generation->next();
      }
      if (!generation->ended()) {
        session->cancel();
        if (draw(random, 0, 1) == 0) (void)generation->next();
      }
      generation.reset();
      EXPECT_TRUE(session->truncate(before).ok());
      return session;
    }
    case 4: {  // scores change nothing
      std::vector<float> scores;
      EXPECT_TRUE(session->score({.tokens = Tokens{11, 12, 13}}, &scores, nullptr).ok());
      return session;
    }
    default:
      return session;
  }
}

void converse(const World& world, const std::vector<std::vector<Said>>& expected, Random random) {
  for (int32_t n = 0; n < 3; ++n) {
    const auto seed = static_cast<uint64_t>(draw(random, 0, kTalks - 1));
    const std::vector<Turn> turns = talk_of(seed);
    auto session = world.session();
    for (size_t turn = 0; turn < turns.size(); ++turn) {
      if (turn > 0) session = disturb(world, session, random);
      EXPECT_EQ(take_turn(*session, turns[turn], random), expected[seed][turn])
          << "conversation " << seed << ", turn " << turn;
    }
  }
}

void send_batches(const World& world, const std::vector<std::vector<Said>>& expected,
                  Random random) {
  std::vector<uint64_t> seeds;
  std::vector<Turn> turns;
  for (int32_t n = draw(random, 1, 6); n > 0; --n) {
    seeds.push_back(static_cast<uint64_t>(draw(random, 0, kTalks - 1)));
    turns.push_back(talk_of(seeds.back()).front());
  }
  std::vector<BatchRequest> requests(turns.size());
  for (size_t i = 0; i < turns.size(); ++i) {
    requests[i].prompt.tokens = turns[i].prompt;
    requests[i].params = turns[i].params;
    requests[i].urgency.priority = draw(random, -2, 2);
  }
  const std::vector<GenResult> results = run_batch(world.generator(), requests, nullptr, nullptr);
  for (size_t i = 0; i < turns.size(); ++i) {
    EXPECT_TRUE(results[i].status.ok()) << results[i].status.message();
    EXPECT_EQ(Said(results[i]), expected[seeds[i]].front()) << "conversation " << seeds[i];
  }
}

/// Calls that fail, stop and are cut off, all the time.
void make_trouble(const World& world, const std::atomic<bool>& over, Random random) {
  while (!over) {
    const auto session = world.session();
    const Tokens prompt(static_cast<size_t>(draw(random, 1, 30)), draw(random, 2, kVocab + 5));
    CallParams params;
    params.stops.max_new_tokens = draw(random, 1, 20);
    const auto stop = [](void* user, const Event& event) -> int32_t {
      return event.index == *static_cast<int32_t*>(user) ? 5 : 0;
    };
    int32_t stop_at = draw(random, 0, 30);
    if (draw(random, 0, 2) == 0) session->cancel();
    std::optional<GenResult> result;
    (void)session->generate({.tokens = prompt}, params, stop, &stop_at, &result);
    std::this_thread::yield();
  }
}

/// Twenty, or as many as GEN_TRIALS says.
int trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::max(1, std::atoi(wanted)) : 20;
}

TEST(Stress, EverybodySaysWhatTheySayAlone) {
  std::map<std::string, std::vector<std::vector<Said>>> expected;
  for (int trial = 0; trial < trials(); ++trial) {
    Random random(static_cast<uint32_t>(trial * 1013 + 1));
    const char* const dtypes[] = {"fp32", "fp16", "fp8", "q4"};
    const std::string dtype = dtypes[draw(random, 0, 3)];
    if (!expected.contains(dtype)) expected[dtype] = alone(dtype);
    const int32_t block_size = 16 * draw(random, 1, 2);
    // From a little more than one conversation takes to room for all; or no pool.
    const int32_t blocks =
        draw(random, 0, 3) == 0 ? 0 : kContext / block_size + draw(random, 1, 10);
    const int32_t prefixes = draw(random, 0, 1) * draw(random, 1, 30);
    const int32_t sequences = draw(random, 1, 8);
    const int32_t chunk = draw(random, 1, 40);
    SCOPED_TRACE(dtype + ", " + std::to_string(sequences) + " at once, chunks of " +
                 std::to_string(chunk) + ", " + std::to_string(blocks) + " blocks of " +
                 std::to_string(block_size) + ", prefixes in " + std::to_string(prefixes) +
                 ", world " + std::to_string(trial));
    const World world(dtype, draw(random, 1, 2), sequences, chunk, blocks, block_size, prefixes);
    std::atomic<bool> over{false};
    std::thread trouble([&, seed = random()] { make_trouble(world, over, Random(seed)); });
    std::vector<std::thread> threads;
    for (int32_t n = draw(random, 1, 5); n > 0; --n) {
      threads.emplace_back([&, seed = random()] {
        Random own(seed);
        if (draw(own, 0, 2) == 0) {
          send_batches(world, expected.at(dtype), own);
        } else {
          converse(world, expected.at(dtype), own);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    over = true;
    trouble.join();
  }
}

}  // namespace
}  // namespace gen::generate
