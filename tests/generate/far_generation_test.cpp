// SPDX-License-Identifier: Apache-2.0
// Proves that sessions never look into their caches' memory while they generate: on an engine whose
// memory nobody may touch, in steps of many sessions, with chunked prompts and blocks that are
// taken away and given back, they say what sessions on the CPU engine say.
#include <gtest/gtest.h>

#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "generate/batch_run.h"
#include "generate/said.h"
#include "model/loader.h"
#include "engine/host_memory.h"
#include "support/far_engine.h"
#include "support/tiny_model.h"

namespace gen::generate {
namespace {

/// One model on one engine, and generators over caches in one memory.
class Side {
 public:
  Side(std::shared_ptr<engine::Engine> engine, engine::EngineMemory& caches)
      : tiny_(spec()), bytes_(tiny_.bytes()), caches_(caches) {
    model::LoadOptions load;
    load.engine = std::move(engine);
    model_ = model::load_model(gguf::GgufFile::parse(bytes_).value(), load).value()->model;
  }
  static test::TinyModelSpec spec() {
    test::TinyModelSpec spec;
    spec.context = 128;
    return spec;
  }
  /// With blocks from a common pool if there are any.
  std::shared_ptr<const Generator> generator(const char* kind, size_t blocks) {
    GeneratorOptions options;
    options.kv_dtype = kind;
    options.prefill_chunk = 16;
    options.max_sequences = 4;
    options.memory = &caches_;
    if (blocks > 0) {
      auto pool = cache::CachePool::create(kind, model_->layer_shapes(), 16, 1, caches_).value();
      std::vector<cache::Block*> taken(pool->blocks().available() - blocks);
      EXPECT_TRUE(pool->blocks().allocate(taken).ok());
      options.cache_factory = [pool](std::span<const cache::LayerShape>, int32_t capacity) {
        return cache::make_paged_cache(pool, capacity);
      };
    }
    return Generator::create(model_, nullptr, options).value();
  }

 private:
  test::TinyModel tiny_;
  std::vector<std::byte> bytes_;
  engine::EngineMemory& caches_;
  std::shared_ptr<const model::Model> model_;
};

/// What six requests say, and what the first session says next.
std::vector<Tokens> conversation(Side& side, const char* kind, size_t blocks) {
  const auto generator = side.generator(kind, blocks);
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 6; ++i) prompts.push_back(text_of(i, 20 + 9 * i));
  std::vector<BatchRequest> requests(prompts.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.tokens = prompts[i];
    requests[i].params = params_of(20);
  }
  std::vector<Tokens> said;
  for (const GenResult& result : run_batch(*generator, requests, nullptr, nullptr)) {
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    said.push_back(result.tokens);
  }
  const auto session = generator->new_session().value();
  said.push_back(say(*session, prompts[0], 10).tokens);
  EXPECT_TRUE(session->truncate(25).ok());
  said.push_back(say(*session, prompts[1], 10).tokens);
  return said;
}

TEST(FarGeneration, SaysTheSame) {
  test::FarMemory memory;
  Side near(test::cpu_engine({.threads = 2}), engine::system_memory());
  Side far(std::make_shared<test::FarEngine>(memory, 2), memory);
  for (const char* kind : {"fp32", "fp16", "fp8", "q4"}) {
    const std::vector<Tokens> want = conversation(near, kind, 0);
    ASSERT_EQ(want.size(), 8U);
    EXPECT_EQ(conversation(far, kind, 0), want) << kind;
    // Twelve blocks are too few for four sessions: some give theirs up and go on later.
    EXPECT_EQ(conversation(far, kind, 12), want) << kind;
  }
}

}  // namespace
}  // namespace gen::generate
