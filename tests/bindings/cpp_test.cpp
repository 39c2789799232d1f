// SPDX-License-Identifier: Apache-2.0
// Proves generate.hpp, as C++17: failures are exceptions with what there was by then, callbacks may
// throw, handles move and free themselves. That results are those of C is bindings_table's
// business.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <generate/generate.hpp>
#include <limits>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/adapter_file.h"

namespace {

std::string model_path() { return GEN_SOURCE_DIR "/examples/demo_model/story.gguf"; }

struct CppHeader : testing::Test {
  static void SetUpTestSuite() { model = new gen::Model(model_path()); }
  static void TearDownTestSuite() {
    delete model;
    model = nullptr;
  }
  static gen::Sampling greedy(int32_t tokens) {
    gen::Sampling sampling;
    sampling.temperature(0).max_new_tokens(tokens);
    return sampling;
  }
  static gen::Model* model;
  gen::Generator generator{*model};
};

gen::Model* CppHeader::model = nullptr;

TEST_F(CppHeader, FailuresNameTheThing) {
  try {
    const gen::Model missing("/no/such/file");
    FAIL();
  } catch (const gen::Error& error) {
    EXPECT_EQ(error.code(), GEN_ERROR_IO);
    EXPECT_STREQ(error.name(), "GEN_ERROR_IO");
    EXPECT_NE(std::string(error.what()).find("/no/such/file"), std::string::npos);
    EXPECT_EQ(error.partial(), nullptr);
  }
  EXPECT_THROW(gen::Sampling().set("no such key", "1"), gen::Error);
  EXPECT_THROW(gen::Options().kv_dtype("fp7"), gen::Error);
}

TEST_F(CppHeader, EveryFormGivesTheSameText) {
  const std::string once(generator.generate("Once upon", greedy(30)).text());
  EXPECT_FALSE(once.empty());
  std::string pieces;
  generator.generate("Once upon", greedy(30),
                     [&](const gen::Token& token) { pieces += token.text; });
  EXPECT_EQ(pieces, once);
  gen::Session session(generator);
  std::string pulled;
  gen::Stream stream = session.stream("Once upon", greedy(30));
  EXPECT_TRUE(stream.alternatives().empty());
  for (const gen::Token& token : stream) pulled += token.text;
  EXPECT_EQ(pulled, once);
  EXPECT_EQ(stream.result().text(), once);
  std::vector<gen::Request> requests;
  for (int i = 0; i < 3; ++i) requests.emplace_back("Once upon", greedy(30));
  for (const gen::Result& result : generator.generate(requests)) EXPECT_EQ(result.text(), once);
}

TEST_F(CppHeader, WhatACallbackThrowsComesOut) {
  gen::Session session(generator);
  int calls = 0;
  const auto take = [&](const gen::Token&) -> bool {
    if (++calls == 3) throw std::string("enough");
    return true;
  };
  EXPECT_THROW(session.generate("Once upon", greedy(30), take), std::string);
  EXPECT_EQ(calls, 3);
  // A callback that says false ends it without an exception.
  const gen::Result result =
      session.generate("", greedy(30), [](const gen::Token& token) { return token.index < 4; });
  EXPECT_EQ(result.finish_reason(), GEN_FINISH_CALLBACK);
  EXPECT_EQ(result.tokens().size(), 5U);
}

TEST_F(CppHeader, ACancelledCallTellsHowFarItCame) {
  gen::Cancel cancel;
  gen::Session session(generator);
  int pieces = 0;
  try {
    session.generate("Once upon", greedy(300).cancel(cancel), [&](const gen::Token&) {
      if (++pieces == 4) cancel.fire();
    });
    FAIL();
  } catch (const gen::Error& error) {
    EXPECT_EQ(error.code(), GEN_ERROR_CANCELLED);
    ASSERT_NE(error.partial(), nullptr);
    EXPECT_EQ(gen_result_finish_reason(error.partial()), GEN_FINISH_CANCELLED);
    size_t n = 0;
    gen_result_tokens(error.partial(), &n);
    EXPECT_EQ(n, 4U);
  }
}

TEST_F(CppHeader, GrammarsMakeMembers) {
  const std::regex sentence("(The|A) (cat|dog|old hen) (ran|sat)\\.");
  gen::Sampling limited;
  {
    const gen::Grammar grammar = gen::Grammar::regex("(The|A) (cat|dog|old hen) (ran|sat)\\.");
    limited.temperature(3).max_new_tokens(40).grammar(grammar);
    EXPECT_NE(grammar.describe().find("\"kind\":\"regex\""), std::string::npos);
  }
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::string text(generator.generate("Once upon", limited.seed(seed)).text());
    EXPECT_TRUE(std::regex_match(text, sentence)) << text;
  }
  const gen::Grammar choice = gen::Grammar::gbnf("root ::= \"yes\" | \"no\"");
  const std::string text(generator.generate("Well?", greedy(9).grammar(choice)).text());
  EXPECT_TRUE(text == "yes" || text == "no") << text;
  gen::GrammarMatcher matcher = choice.matcher(model->tokenizer());
  matcher.accept_bytes("y");
  EXPECT_EQ(generator.generate("Well?", greedy(9).grammar(matcher)).text(), "es");
}

TEST_F(CppHeader, MatchersTellWhatMayCome) {
  const gen::TokenizerView tokenizer = model->tokenizer();
  const auto begins = [](const std::string& start) {
    return !start.empty() &&
           (std::string("yes").rfind(start, 0) == 0 || std::string("no").rfind(start, 0) == 0);
  };
  gen::GrammarMatcher matcher = gen::Grammar::gbnf("root ::= \"yes\" | \"no\"").matcher(tokenizer);
  const auto expect = [&](gen::GrammarMatcher& at, const std::string& text) {
    const gen::Mask mask = at.mask();
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const std::string piece = tokenizer.piece(id);
      EXPECT_EQ(mask.has(static_cast<size_t>(id)), !piece.empty() && begins(text + piece)) << id;
    }
    for (int byte = 1; byte < 256; ++byte) {
      EXPECT_EQ(at.valid_bytes().has(static_cast<size_t>(byte)),
                begins(text + static_cast<char>(byte)))
          << byte;
    }
  };
  expect(matcher, "");
  matcher.accept_bytes("ye");
  gen::GrammarMatcher fork = matcher.fork();
  matcher.accept_token(tokenizer.encode("s", GEN_ENCODE_CONTINUE).at(0));
  EXPECT_TRUE(matcher.complete() && matcher.finished());
  EXPECT_EQ(matcher.min_tokens(), 0);
  matcher.rollback(1);
  EXPECT_FALSE(matcher.complete() || matcher.finished());
  EXPECT_EQ(matcher.min_tokens(), 1);
  expect(matcher, "ye");
  expect(fork, "ye");
  matcher.reset();
  expect(matcher, "");
  EXPECT_THROW(matcher.accept_bytes("x"), gen::Error);
  EXPECT_EQ(gen::Grammar::gbnf("root ::= <[300]> <[301]> [a-z]+").matcher(tokenizer).forced(),
            (std::vector<int32_t>{300, 301}));
  gen::GrammarMatcher moved = std::move(fork);
  EXPECT_THROW(fork.mask(), gen::Error);  // NOLINT(bugprone-use-after-move)
  expect(moved, "ye");
}

TEST_F(CppHeader, GrammarsFailAndLookAtStrings) {
  try {
    gen::Grammar::gbnf("root ::= a\na ::= (\"b\"");
    FAIL();
  } catch (const gen::Error& error) {
    EXPECT_EQ(error.code(), GEN_ERROR_GRAMMAR);
    EXPECT_NE(std::string(error.what()).find("line 2, column"), std::string::npos) << error.what();
  }
  gen::GrammarOptions options;
  EXPECT_NE(options.regex_search().describe().find("\"value\":\"search\""), std::string::npos);
  EXPECT_TRUE(gen::Grammar::regex("b", options).token_mask("", {"a"}).has(0));
  const gen::Grammar grammar = gen::Grammar::regex("abc");
  const gen::Mask mask = grammar.token_mask("a", {"b", "", "c", "bc", "bcd"});
  for (const auto& [i, can] :
       {std::pair(0U, true), {1U, false}, {2U, false}, {3U, true}, {4U, false}, {99U, false}}) {
    EXPECT_EQ(mask.has(i), can) << i;
  }
  EXPECT_FALSE(grammar.token_mask("a", {}).has(0));
  EXPECT_THROW(gen::Grammar::any_json(options.set("max_edges", "3")), gen::Error);
  const gen::Grammar sums = gen::Grammar::lark("start: N (\"+\" N)*\nN: /[0-9]+/\n%ignore \" \"");
  EXPECT_TRUE(sums.token_mask("12 +", {" 3", "x"}).has(0));
  EXPECT_FALSE(sums.token_mask("12 +", {" 3", "x"}).has(1));
  EXPECT_THROW(gen::Grammar::lark("start: (", options), gen::Error);
  const char* const tags = R"x({"tags":[{"begin":"(","regex":"[0-9]","end":")"}]})x";
  EXPECT_TRUE(gen::Grammar::tags(tags).token_mask("free (", {"1", "x"}).has(0));
  EXPECT_FALSE(gen::Grammar::tags(tags).token_mask("free (", {"1", "x"}).has(1));
  EXPECT_THROW(gen::Grammar::tags(tags, options), gen::Error);
  EXPECT_FALSE(gen::Grammar::any_json().matcher(model->tokenizer()).complete());
}

gen_status only_nine(void* calls, float* logits, size_t n, const int32_t*, size_t, size_t,
                     gen_error*) {
  ++*static_cast<int*>(calls);
  for (size_t i = 0; i < n; ++i) logits[i] = i == 9 ? 0.0F : -1.0F / 0.0F;
  return GEN_OK;
}

TEST_F(CppHeader, StreamsTellAlternativesAndHooksEdit) {
  gen::Session session(generator);
  gen::Sampling sampling = greedy(3);
  int calls = 0;
  gen::Stream stream = session.stream("Once", sampling.gumbel().logprobs(2));
  gen::Token token{};
  ASSERT_TRUE(stream.next(&token));
  const auto found = stream.alternatives();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].first, token.id);
  EXPECT_EQ(found[0].second, token.logprob);
  std::vector<std::vector<std::pair<int32_t, float>>> seen;
  const gen::Result told = generator.generate("Once", sampling, [&](const gen::Token& piece) {
    if (piece.done) return;
    seen.emplace_back();
    for (int32_t i = 0; i < piece.top_count; ++i) {
      seen.back().emplace_back(piece.top[i].id, piece.top[i].logprob);
    }
  });
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0], found);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(told.top_logprobs(i), seen[i]);
  EXPECT_TRUE(told.top_logprobs(3).empty());
  gen::Session other(generator);
  const gen::Result result = other.generate("Once", sampling.logits_callback(only_nine, &calls));
  EXPECT_EQ(result.tokens(), (std::vector<int32_t>{9, 9, 9}));
  EXPECT_EQ(calls, 3);
}

TEST_F(CppHeader, SessionsForkSaveAndMove) {
  gen::Session session(generator);
  session.append("Once upon a time");
  const int32_t length = session.length();
  gen::Session fork = session.fork();
  const std::string text(session.generate("", greedy(10)).text());
  EXPECT_EQ(fork.length(), length);
  EXPECT_EQ(fork.generate("", greedy(10)).text(), text);
  session.truncate(length);
  gen::Session loaded(generator);
  loaded.load(session.save());
  EXPECT_EQ(loaded.tokens(), session.tokens());
  gen::Session moved = std::move(loaded);
  EXPECT_EQ(loaded.get(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.generate("", greedy(10)).text(), text);
  EXPECT_EQ(moved.score(" dog").size(),
            model->tokenizer().encode(" dog", GEN_ENCODE_CONTINUE).size());
}

TEST_F(CppHeader, HandlesMayGoInAnyOrder) {
  auto of_its_own = std::make_unique<gen::Model>(model_path());
  auto own_generator = std::make_unique<gen::Generator>(*of_its_own);
  gen::Session session(*own_generator);
  of_its_own.reset();
  own_generator.reset();
  EXPECT_FALSE(session.generate("Once", greedy(5)).text().empty());
}

TEST_F(CppHeader, CachesOfEveryMaker) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  gen::Cache cache = gen::Cache::make(kv_cache_fp16_new, 2, 16);
  cache.update(1, rows.data(), rows.data(), 1, 2, 4);
  EXPECT_EQ(cache.view(1).seq, 2);
  EXPECT_EQ(cache.clone().view(1).k_dim, 4);
  cache.truncate(1);
  EXPECT_EQ(cache.view(1).seq, 1);
  EXPECT_THROW(cache.update(5, rows.data(), rows.data(), 1, 2, 4), gen::Error);
}

TEST_F(CppHeader, CachesAreReadSavedAndLoaded) {
  const std::vector<float> keys = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> values = {8, 7, 6, 5, 4, 3, 2, 1};
  gen::Cache cache = gen::Cache::make(kv_cache_new, 2, 16);
  EXPECT_EQ(cache.layer(0).keys.data.size(), 0U);
  cache.update(1, keys.data(), values.data(), 1, 2, 4);
  const gen::CacheLayer layer = cache.layer(1);
  EXPECT_EQ(layer.keys.data, keys);
  EXPECT_EQ(layer.values.data, values);
  EXPECT_EQ(layer.keys.shape, (std::array<int32_t, 3>{1, 2, 4}));
  const std::vector<std::byte> state = cache.save();
  gen::Cache other = gen::Cache::make(kv_cache_new, 2, 16);
  other.load(state);
  EXPECT_EQ(other.layer(1).keys.data, keys);
  EXPECT_THROW(other.load(state), gen::Error);  // it is not empty
  const std::string path = testing::TempDir() + "cpp_cache_" + std::to_string(getpid());
  cache.save(path);
  other.reset();
  other.load(path);
  std::remove(path.c_str());
  EXPECT_EQ(other.layer(1).values.data, values);
  EXPECT_EQ(other.kind() + " " + other.dtype(), "fp32 fp32");
  EXPECT_EQ(other.describe().rfind("{\"kind\":\"fp32\",\"dtype\":\"fp32\"", 0), 0U);
  EXPECT_EQ(other.layer_seq_len(1) + other.kv_len(1) + other.num_layers() + other.max_seq_len(),
            2 + 2 + 2 + 16);
  EXPECT_FALSE(other.is_lossy());
  EXPECT_GT(other.memory().payload, 0U);
  EXPECT_TRUE(other.capabilities() & KV_CACHE_CAN_CLONE);
  EXPECT_EQ(other.underlying(), nullptr);
}

TEST_F(CppHeader, PagedCaches) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  const gen::BlockPool pool(1, 2, 4, 1);
  gen::Cache cache = pool.cache(1);
  cache.update(0, rows.data(), rows.data(), 1, 2, 4);
  const auto blocks = gen::BlockPool::table(cache);
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(pool.available(), pool.capacity() - 1);
  pool.retain(blocks[0]);
  gen::Cache twin = pool.cache(1);
  gen::BlockPool::inject(twin, blocks, 2, 1, 4);
  EXPECT_EQ(twin.layer(0).keys.data, rows);
  pool.free(pool.alloc());
  EXPECT_EQ(pool.block_size(), 2);
}

TEST_F(CppHeader, TieredCaches) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  gen::TierConfig config;
  config.set("num_layers", "2").set("max_seq_len", "8");
  EXPECT_NE(config.describe().find("num_layers"), std::string::npos);
  const gen::TieredCache made(config);
  gen::TieredCache cache(config);
  cache.update(0, rows.data(), rows.data(), 1, 2, 4);
  const int32_t hot = cache.tier(0);
  cache.demote(0);
  EXPECT_NE(cache.tier(0), hot);
  EXPECT_EQ(cache.layer(0).keys.data.size(), rows.size());
  cache.promote(0);
  EXPECT_EQ(cache.tier(0), hot);
  cache.manage();
  cache.prefetch({0, 1});
  EXPECT_LE(cache.prefetched(0).keys.data.size(), rows.size());  // it may not have come yet
  EXPECT_THROW(cache.demote(7), gen::Error);
  cache.close();
}

TEST_F(CppHeader, BlocksAndHotLayersOnADevice) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  const gen::GpuAllocator gpu = gen::GpuAllocator::host();
  gen::BlockPool pool(1, 2, 4, 1);
  gen::Cache paged = pool.gpu_allocator(gpu.get()).cache(1);
  paged.update(0, rows.data(), rows.data(), 1, 2, 4);
  const size_t blocks = gpu.bytes();
  EXPECT_GT(blocks, 0U);
  EXPECT_EQ(paged.layer(0).keys.data, rows);
  gen::TierConfig config;
  config.set("num_layers", "1").set("max_seq_len", "8").gpu_allocator(gpu.get());
  gen::TieredCache tiered(config);
  tiered.update(0, rows.data(), rows.data(), 1, 2, 4);
  EXPECT_GT(gpu.bytes(), blocks);
  EXPECT_EQ(tiered.layer(0).keys.data, rows);
  tiered.demote(0);
  EXPECT_EQ(gpu.bytes(), blocks);
  EXPECT_THROW(pool.gpu_allocator(gpu.get()), gen::Error);  // a block has been taken
}

TEST_F(CppHeader, CachesForKernelsOnADevice) {
  const std::vector<float> row = {1, 2049, 65519, 65520};
  const gen::GpuAllocator gpu = gen::GpuAllocator::host();
  gen::Cache halves = gen::Cache::make(kv_cache_gpu_new_typed, gpu.get(), 1, 8, 2, 2, "fp16");
  EXPECT_EQ(gpu.bytes(), 2U * 8 * 4 * 2 + 12);
  halves.update(0, row.data(), row.data(), 1, 1, 4);
  const std::vector<float> nearest = {1, 2048, 65504, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(halves.layer(0).values.data, nearest);
  const gen::Cache floats = gen::Cache::make(kv_cache_gpu_new, gpu.get(), 1, 8, 2, 2);
  EXPECT_EQ(gpu.bytes(), 2U * 8 * 4 * (2 + 4) + 24);
}

TEST_F(CppHeader, CachesOfManySequences) {
  std::vector<gen::BatchCache> parts;
  parts.push_back(gen::BatchCache::make(kv_cache_swa_new, 2));
  parts.push_back(gen::BatchCache::make(kv_cache_causal_new));
  gen::BatchCache cache = gen::BatchCache::wrapper(parts);
  cache.set_config(1, false, "fp16");
  EXPECT_EQ(cache.dtype(), "");
  cache.init("fp32", 2, 8, 4);
  EXPECT_EQ(cache.dtype(), "fp32");
  cache.start_forward({0, 1, 2}, {0, 0, 0});
  cache.set_layer(0);
  cache.set_layer_type(1);
  EXPECT_STREQ(kv_cache_kind(cache.underlying()), "causal");
  const std::vector<float> rows = {1, 2, 3};
  cache.put(rows.data(), 1, 1, rows.data(), 1, 1, 3);
  const gen::BatchCache::Masked seen = cache.get_masked();
  EXPECT_EQ(seen.keys.data, rows);
  EXPECT_EQ(seen.mask_shape, (std::array<int32_t, 2>{3, 3}));
  EXPECT_EQ(seen.mask.size(), 3U * 3U * 2U);
  EXPECT_TRUE(cache.can_resume(0, 3));
  cache.copy_prefix(0, 1, 2);
  cache.remove(0, 0, KV_CACHE_TO_THE_END);
  EXPECT_GE(cache.compact(8), 0);
  EXPECT_THROW(static_cast<void>(cache.encoder_cached(0)),
               gen::Error);  // none of them is an encoder's
  EXPECT_THROW(cache.start_forward({0}, {0, 0}), gen::Error);
  cache.close();
  EXPECT_THROW(cache.set_layer(0), gen::Error);
}

TEST_F(CppHeader, PrefixesAndFairness) {
  gen::Options options;
  options.paged_kv(8, 4).prefix_cache(32).fairness(3).context_policy("shift").prompt_lookup(3);
  EXPECT_NE(options.describe().find("\"value\":\"shift,4\""), std::string::npos);
  const gen::Generator shared(*model, options);
  for (int i = 0; i < 2; ++i) shared.generate("Once upon a time there was a dog", greedy(2));
  EXPECT_EQ(shared.prefix_stats("lookups"), 2);
  EXPECT_EQ(shared.prefix_stats("hits"), 1);
  shared.prefix_clear();
  EXPECT_EQ(shared.prefix_stats("blocks"), 0);
  EXPECT_THROW(generator.prefix_stats("hits"), gen::Error);
}

TEST_F(CppHeader, HeadsFromFiles) {
  const std::string path = GEN_SOURCE_DIR "/examples/demo_model/eagle3.gguf";
  const gen::Generator drafting(*model, gen::Options().eagle(path).set("draft_policy", "always"));
  EXPECT_TRUE(drafting.eagle_enabled());
  EXPECT_EQ(drafting.eagle_path(), path);
  const std::string prompt = "Once upon a time";
  const gen::Result drafted = drafting.generate(prompt, greedy(24));
  const gen::Result plain = generator.generate(prompt, greedy(24));
  EXPECT_EQ(drafted.text(), plain.text());
  EXPECT_NE(drafted.drafts().find("\"drafter\":\"head\""), std::string::npos);
  EXPECT_EQ(plain.drafts(), "[]");
  EXPECT_GT(drafting.draft_stats("accepted"), 0);
  const gen::Generator without(*model, gen::Options().eagle("/no/such/head.gguf"));
  EXPECT_FALSE(without.eagle_enabled());
  EXPECT_EQ(without.eagle_path(), "/no/such/head.gguf");
  EXPECT_EQ(generator.eagle_path(), "");
  EXPECT_THROW(gen::Generator(*model, gen::Options().eagle(model_path())), gen::Error);
}

TEST_F(CppHeader, HeadsWithVerbsOfTheirOwn) {
  const std::string path = GEN_SOURCE_DIR "/examples/demo_model/eagle3.gguf";
  const gen::Eagle of_file(*model, path);
  const auto hidden =
      static_cast<size_t>(gen_model_config_hidden(gen_model_get_config(model->get())));
  const std::vector<float> zeros(hidden * hidden);
  gen_eagle_tensors tensors = {};
  tensors.struct_size = sizeof tensors;
  tensors.hidden = static_cast<int32_t>(hidden);
  tensors.norm_weight = tensors.norm_bias = zeros.data();
  tensors.fc1_weight = tensors.fc2_weight = zeros.data();
  const gen::Eagle of_tensors(*model, tensors, 3, gen::Options().prompt_lookup(3, 4));
  const std::string want(generator.generate("Once upon a time", greedy(24)).text());
  for (const gen::Eagle* const eagle : {&of_file, &of_tensors}) {
    eagle->set_adaptive(false);
    EXPECT_EQ(eagle->generate("Once upon a time", greedy(24)).text(), want);
    std::string pieces;
    eagle->generate("Once upon a time", greedy(24), [&pieces](const gen::Token& token) {
      pieces += token.text;
      return true;
    });
    EXPECT_EQ(pieces, want);
    EXPECT_GT(eagle->stats("drafted"), 0);
  }
  EXPECT_GT(of_file.stats("accepted"), 0);
  EXPECT_THROW(gen::Eagle(*model, "/no/such/head.gguf"), gen::Error);
  EXPECT_THROW(gen::Eagle(*model, ""), gen::Error);
}

TEST_F(CppHeader, AdaptersByName) {
  const std::string path = testing::TempDir() + "cpp_adapter_" + std::to_string(getpid());
  ASSERT_TRUE(write_adapter(path.c_str(), model->get(), "blk.0.attn_q.weight", 3));
  model->load_adapter(path, "one");
  model->load_adapter(path, "half", 0.5F);
  EXPECT_EQ(model->adapters(), (std::vector<std::string>{"one", "half"}));
  const auto text = [&](const gen::Sampling& sampling) {
    return std::string(generator.generate("Once upon", sampling).text());
  };
  const std::string base = text(greedy(20));
  const std::string one = text(std::move(greedy(20).adapter("one")));
  const std::string half = text(std::move(greedy(20).adapter("half")));
  EXPECT_NE(one, base);
  EXPECT_NE(half, base);
  EXPECT_NE(half, one);
  EXPECT_EQ(text(std::move(greedy(20).adapter("one").adapter("half"))), half);
  EXPECT_EQ(text(std::move(greedy(20).adapter("one").adapter(""))), base);
  EXPECT_EQ(text(std::move(greedy(20).add_adapter("one", 0.5F))), half);
  EXPECT_EQ(text(std::move(greedy(20).add_adapter("half", 2).add_adapter("one", 0))), one);
  EXPECT_THROW(gen::Sampling().adapter("one").add_adapter("one", 1), gen::Error);
  model->unload_adapter("one");
  EXPECT_EQ(model->adapters(), std::vector<std::string>{"half"});
  EXPECT_THROW(text(std::move(greedy(20).adapter("one"))), gen::Error);
  EXPECT_THROW(model->unload_adapter("one"), gen::Error);
  EXPECT_THROW(model->load_adapter(model_path(), "one"), gen::Error);
  EXPECT_THROW(model->set_adapter_budget(-1), gen::Error);
  model->set_adapter_budget(1);
  EXPECT_EQ(model->adapters(), std::vector<std::string>{"half"});
  model->set_adapter_budget(0);
  model->unload_adapter("half");
  std::remove(path.c_str());
}

TEST_F(CppHeader, AnEmptyViewIsEmptyText) {
  gen::Session session(generator);
  session.append("Once");
  EXPECT_NO_THROW(session.append(std::string_view()));
  EXPECT_EQ(model->tokenizer().encode(std::string_view()), std::vector<int32_t>());
}

}  // namespace
