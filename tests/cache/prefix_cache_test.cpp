// SPDX-License-Identifier: Apache-2.0
// Proves that a prefix cache finds the longest beginning that it keeps and lends the very blocks
// that hold it, against a plain list of entries; that what goes is what was used longest ago; that
// blocks nobody uses are given back before a pool is empty, and no others; and all of that under
// sixteen threads and with every allocation failing. A position of a block holds a number made of
// all tokens up to it, so a wrong or freed block does not go unseen.
#include "cache/prefix/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "engine/memory/host_memory.h"
#include "support/counting_new.h"
#include "support/sanitized.h"
#include "support/host_view.h"

namespace gen::cache {
namespace {

using Tokens = std::vector<int32_t>;
using Blocks = std::vector<Block*>;

constexpr size_t kSize = 4;  // positions in a block

uint64_t sign(uint64_t domain, std::span<const int32_t> tokens) {
  uint64_t digest = domain * 0x9E3779B97F4A7C15U + 1;
  for (const int32_t token : tokens) {
    digest = (digest ^ static_cast<uint64_t>(token + 100)) * 0xBF58476D1CE4E5B9U;
    digest ^= digest >> 29;
  }
  return digest;
}

std::shared_ptr<BlockPool> make_pool(size_t count) {
  return std::make_shared<BlockPool>(kSize * sizeof(uint64_t), static_cast<int32_t>(kSize), count,
                                     engine::system_memory());
}

std::shared_ptr<PrefixCache> make(const std::shared_ptr<BlockPool>& pool, int32_t capacity) {
  return std::move(PrefixCache::create(pool, capacity)).value();
}

void fill(Block* block, size_t index, uint64_t domain, const Tokens& tokens) {
  for (size_t p = index * kSize; p < std::min(tokens.size(), (index + 1) * kSize); ++p) {
    const uint64_t value = sign(domain, std::span(tokens).first(p + 1));
    std::memcpy(host_bytes(*block) + p % kSize * sizeof(value), &value, sizeof(value));
  }
}

// Blocks for all of the tokens but the first `known` blocks, which stand in `blocks` already.
Status write(BlockPool& pool, uint64_t domain, const Tokens& tokens, Blocks* blocks) {
  const size_t known = blocks->size();
  Blocks fresh((tokens.size() + kSize - 1) / kSize - known);
  GEN_TRY(pool.allocate(fresh));
  for (size_t i = 0; i < fresh.size(); ++i) {
    fill(fresh[i], known + i, domain, tokens);
    pool.set_used(*fresh[i],
                  static_cast<int32_t>(std::min(kSize, tokens.size() - (known + i) * kSize)));
    blocks->push_back(fresh[i]);
  }
  return {};
}

void release(BlockPool& pool, const Blocks& blocks) {
  for (Block* block : blocks) ASSERT_TRUE(pool.release(block).ok());
}

// As a session does that computes everything anew.
void insert(PrefixCache& cache, BlockPool& pool, const Tokens& tokens, uint64_t domain = 1) {
  Blocks blocks;
  ASSERT_TRUE(write(pool, domain, tokens, &blocks).ok());
  ASSERT_TRUE(cache.insert(domain, tokens, blocks).ok());
  release(pool, blocks);
}

// How many tokens are found, after looking whether they are what their blocks hold.
size_t look(PrefixCache& cache, const Tokens& tokens, uint64_t domain = 1) {
  const PrefixHit hit = cache.match(domain, tokens);
  EXPECT_LE(hit.tokens(), tokens.size());
  EXPECT_EQ(hit.blocks().size(), (hit.tokens() + kSize - 1) / kSize);
  for (size_t p = 0; p < hit.tokens(); ++p) {
    uint64_t value = 0;
    std::memcpy(&value, host_bytes(*hit.blocks()[p / kSize]) + p % kSize * sizeof(value),
                sizeof(value));
    EXPECT_EQ(value, sign(domain, std::span(tokens).first(p + 1))) << "position " << p;
    EXPECT_GE(hit.blocks()[p / kSize]->used(), static_cast<int32_t>(p % kSize) + 1);
  }
  return hit.tokens();
}

TEST(PrefixCache, FindsTheLongestBeginningToAToken) {
  auto pool = make_pool(100);
  EXPECT_EQ(PrefixCache::create(pool, 0).status().code(), Code::kInvalidArgument);
  auto cache = make(pool, 50);
  const Tokens all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  insert(*cache, *pool, all);
  EXPECT_EQ(cache->size(), 3);
  EXPECT_EQ(pool->available(), 97U);
  for (size_t n = 0; n <= all.size(); ++n) {
    Tokens query(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(look(*cache, query), n);
    query.push_back(77);
    EXPECT_EQ(look(*cache, query), n);
    query.resize(30, 78);
    EXPECT_EQ(look(*cache, query), n);
  }
  EXPECT_EQ(look(*cache, {2, 1}), 0U);
  EXPECT_EQ(pool->available(), 97U);
}

TEST(PrefixCache, LendsTheVeryBlocks) {
  auto pool = make_pool(10);
  auto cache = make(pool, 10);
  const Tokens all = {1, 2, 3, 4, 5, 6};
  Blocks blocks;
  ASSERT_TRUE(write(*pool, 1, all, &blocks).ok());
  ASSERT_TRUE(cache->insert(1, all, blocks).ok());
  EXPECT_EQ(blocks[0]->references(), 2);
  {
    PrefixHit hit = cache->match(1, all);
    EXPECT_TRUE(std::equal(blocks.begin(), blocks.end(), hit.blocks().begin(), hit.blocks().end()));
    EXPECT_EQ(blocks[1]->references(), 3);
    PrefixHit moved = std::move(hit);
    EXPECT_EQ(moved.tokens(), 6U);
    PrefixHit other = cache->match(1, all);
    EXPECT_EQ(blocks[1]->references(), 4);
    other.taken();
  }
  EXPECT_EQ(blocks[1]->references(), 3);
  release(*pool, blocks);
  release(*pool, blocks);
  EXPECT_EQ(pool->available(), 8U);
  cache.reset();
  EXPECT_EQ(pool->available(), 10U);
}

TEST(PrefixCache, DomainsHaveNothingInCommon) {
  auto pool = make_pool(100);
  auto cache = make(pool, 50);
  const uint64_t a = cache->domain("model a");
  const uint64_t b = cache->domain("model b");
  EXPECT_NE(a, b);
  EXPECT_EQ(cache->domain("model a"), a);
  const Tokens all = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  insert(*cache, *pool, all, a);
  EXPECT_EQ(look(*cache, all, b), 0U);
  insert(*cache, *pool, {1, 2, 3, 4, 5}, b);
  EXPECT_EQ(look(*cache, all, a), 9U);
  EXPECT_EQ(look(*cache, all, b), 5U);
  EXPECT_EQ(cache->size(), 5);
}

TEST(PrefixCache, KnownBlocksAreKeptAndUnfinishedOnesReplaced) {
  auto pool = make_pool(100);
  auto cache = make(pool, 50);
  Blocks first;
  const Tokens six = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(write(*pool, 1, six, &first).ok());
  ASSERT_TRUE(cache->insert(1, six, first).ok());
  insert(*cache, *pool, six);  // once more, with other blocks
  EXPECT_EQ(cache->size(), 2);
  EXPECT_EQ(first[1]->references(), 2);
  insert(*cache, *pool, {1, 2, 3, 4, 5});
  EXPECT_EQ(cache->size(), 2);
  EXPECT_EQ(first[1]->references(), 2);
  insert(*cache, *pool, {1, 2, 3, 4, 5, 6, 7, 8, 9});  // the second goes on
  EXPECT_EQ(cache->size(), 3);
  EXPECT_EQ(first[0]->references(), 2);
  EXPECT_EQ(first[1]->references(), 1);
  EXPECT_EQ(look(*cache, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 9U);
  insert(*cache, *pool, {1, 2, 3, 4, 5, 6, 9});
  EXPECT_EQ(cache->size(), 4);
  EXPECT_EQ(look(*cache, {1, 2, 3, 4, 5, 6, 9, 9}), 7U);
  EXPECT_EQ(look(*cache, {1, 2, 3, 4, 5, 6, 8}), 6U);
  release(*pool, first);
  EXPECT_TRUE(cache->insert(1, {}, first).ok());
  EXPECT_TRUE(cache->insert(1, six, {}).ok());
  EXPECT_EQ(cache->size(), 4);
}

TEST(PrefixCache, BadBlocksChangeNothing) {
  auto pool = make_pool(10);
  auto other = make_pool(10);
  auto cache = make(pool, 10);
  const Tokens six = {1, 2, 3, 4, 5, 6};
  Blocks blocks;
  ASSERT_TRUE(write(*pool, 1, six, &blocks).ok());
  EXPECT_EQ(cache->insert(1, six, Blocks{blocks[0]}).code(), Code::kInvalidArgument);
  Blocks foreign;
  ASSERT_TRUE(write(*other, 1, six, &foreign).ok());
  EXPECT_EQ(cache->insert(1, six, foreign).code(), Code::kState);
  EXPECT_EQ(cache->insert(1, six, Blocks{blocks[0], nullptr}).code(), Code::kState);
  EXPECT_EQ(cache->insert(1, Tokens{1, 2, 3, 4, 5, 6, 7}, blocks).code(), Code::kInvalidArgument);
  EXPECT_EQ(cache->size(), 0);
  EXPECT_EQ(blocks[0]->references(), 1);
  EXPECT_EQ(blocks[1]->references(), 1);
  ASSERT_TRUE(pool->release(blocks[1]).ok());
  EXPECT_EQ(cache->insert(1, six, blocks).code(), Code::kState);
  EXPECT_EQ(blocks[0]->references(), 1);
  blocks[1] = pool->allocate().value();  // written by hand
  fill(blocks[1], 1, 1, six);
  ASSERT_TRUE(cache->insert(1, six, blocks).ok());
  EXPECT_EQ(blocks[1]->used(), 2);
  EXPECT_EQ(look(*cache, six), 6U);
  release(*pool, blocks);
  release(*other, foreign);
}

TEST(PrefixCache, TheLeastRecentlyUsedGo) {
  auto pool = make_pool(100);
  auto cache = make(pool, 4);
  insert(*cache, *pool, {1, 1, 1, 1, 2, 2, 2, 2});
  insert(*cache, *pool, {3, 3, 3, 3});
  insert(*cache, *pool, {4, 4, 4, 4});
  EXPECT_EQ(look(*cache, {1, 1}), 2U);  // uses the first block only
  insert(*cache, *pool, {5, 5, 5, 5});
  EXPECT_EQ(look(*cache, {1, 1, 1, 1, 2, 2}), 4U);
  EXPECT_EQ(look(*cache, {3, 3, 3, 3}), 4U);
  insert(*cache, *pool, {6});
  EXPECT_EQ(look(*cache, {4, 4, 4, 4}), 0U);
  // More than there is room for: as far as it goes, and everything else is gone.
  Tokens longer(40);
  for (size_t i = 0; i < longer.size(); ++i) longer[i] = static_cast<int32_t>(100 + i);
  insert(*cache, *pool, longer);
  EXPECT_EQ(cache->size(), 4);
  EXPECT_EQ(look(*cache, longer), 16U);
  EXPECT_EQ(pool->available(), 96U);
}

TEST(PrefixCache, APoolGetsBackWhatNobodyUses) {
  auto pool = make_pool(8);
  auto cache = make(pool, 8);
  insert(*cache, *pool, {1, 1, 1, 1, 2, 2, 2, 2});
  insert(*cache, *pool, {3, 3, 3, 3, 4, 4, 4, 4});
  insert(*cache, *pool, {5, 5, 5, 5, 6, 6});
  PrefixHit used = cache->match(1, Tokens{1, 1, 1, 1, 2, 2, 2, 2});
  EXPECT_EQ(pool->available(), 2U);
  EXPECT_EQ(cache->spare(), 4U);
  Blocks more(3);
  ASSERT_TRUE(pool->allocate(more).ok());
  EXPECT_EQ(look(*cache, {3, 3, 3, 3, 4, 4, 4, 4}), 4U);  // its end was the oldest
  EXPECT_EQ(look(*cache, {5, 5, 5, 5, 6, 6}), 6U);
  // Nothing is given up where that would not be enough.
  Blocks many(4);
  const Status full = pool->allocate(many);
  EXPECT_EQ(full.code(), Code::kPoolExhausted);
  EXPECT_STREQ(full.message(), "the pool has 0 of 8 blocks free, 4 wanted");
  EXPECT_EQ(pool->make_available(4).code(), Code::kPoolExhausted);
  EXPECT_EQ(pool->make_available(9).code(), Code::kPoolExhausted);
  EXPECT_EQ(cache->size(), 5);
  many.resize(3);
  ASSERT_TRUE(pool->make_available(3).ok());
  ASSERT_TRUE(pool->allocate(many).ok());
  EXPECT_EQ(cache->size(), 2);
  EXPECT_EQ(pool->allocate().status().code(), Code::kPoolExhausted);
  EXPECT_EQ(look(*cache, {1, 1, 1, 1, 2, 2, 2, 2}), 8U);
  release(*pool, more);
  release(*pool, many);
}

TEST(PrefixCache, WhatStandsAboveUsedBlocksIsGivenBackToo) {
  auto pool = make_pool(3);
  auto cache = make(pool, 8);
  insert(*cache, *pool, {1, 1, 1, 1});
  // Another one has computed the same and goes on; the cache keeps the first block as it was.
  Blocks own;
  const Tokens longer = {1, 1, 1, 1, 2, 2, 2, 2};
  ASSERT_TRUE(write(*pool, 1, longer, &own).ok());
  ASSERT_TRUE(cache->insert(1, longer, own).ok());
  EXPECT_EQ(cache->size(), 2);
  EXPECT_EQ(pool->available(), 0U);
  Block* last = pool->allocate().value();
  EXPECT_EQ(cache->size(), 0);
  EXPECT_EQ(own[1]->references(), 1);
  ASSERT_TRUE(pool->release(last).ok());
  release(*pool, own);
  EXPECT_EQ(pool->available(), 3U);
}

TEST(PrefixCache, SeveralShareAPoolAndLeaveIt) {
  auto pool = make_pool(4);
  auto first = make(pool, 8);
  auto second = make(pool, 8);
  insert(*first, *pool, {1, 1, 1, 1, 2});
  insert(*second, *pool, {1, 1, 1, 1, 2});
  Blocks all(3);
  ASSERT_TRUE(pool->allocate(all).ok());
  EXPECT_EQ(first->size() + second->size(), 1);
  first.reset();
  second.reset();
  Block* last = pool->allocate().value();
  EXPECT_EQ(pool->allocate().status().code(), Code::kPoolExhausted);  // asks nobody any more
  all.push_back(last);
  release(*pool, all);
}

/// Stands for the state after some tokens.
struct After final : StateSnapshot {
  [[nodiscard]] size_t bytes() const noexcept override { return tokens.size(); }
  [[nodiscard]] const void* memory() const noexcept override { return this; }
  After(uint64_t domain, const Tokens& of) : tokens(of), signature(sign(domain, of)) { ++live; }
  ~After() override { --live; }
  After(const After&) = delete;
  After& operator=(const After&) = delete;
  [[nodiscard]] int32_t length() const noexcept override {
    return static_cast<int32_t>(tokens.size());
  }

  Tokens tokens;
  uint64_t signature;
  static inline std::atomic<int64_t> live{0};
};

TEST(PrefixCache, SnapshotsStandAtTheEndsOfBlocks) {
  auto pool = make_pool(100);
  auto cache = make(pool, 3);
  Tokens all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  Blocks blocks;
  ASSERT_TRUE(write(*pool, 1, all, &blocks).ok());
  EXPECT_EQ(cache->insert(1, all, blocks, std::make_shared<After>(1, all)).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(cache->size(), 0);
  EXPECT_EQ(After::live, 0);
  ASSERT_TRUE(cache->insert(1, all, blocks).ok());
  const auto found = [&](const Tokens& tokens) {
    const PrefixHit hit = cache->match(1, tokens, true);
    EXPECT_EQ(hit.blocks().size(), hit.tokens() / kSize);
    EXPECT_EQ(hit.snapshot() == nullptr, hit.tokens() == 0);
    if (hit.snapshot() != nullptr) {
      EXPECT_EQ(hit.snapshot()->length(), static_cast<int32_t>(hit.tokens()));
    }
    return std::pair(hit.tokens(), hit.known());
  };
  EXPECT_EQ(found(all), std::pair(size_t{0}, size_t{10}));
  const Tokens four(all.begin(), all.begin() + 4);
  const Tokens eight(all.begin(), all.begin() + 8);
  ASSERT_TRUE(cache->insert(1, eight, blocks, std::make_shared<After>(1, eight)).ok());
  EXPECT_EQ(found(all), std::pair(size_t{8}, size_t{10}));
  EXPECT_EQ(found({1, 2, 3, 4, 5, 6, 7}), std::pair(size_t{0}, size_t{7}));
  ASSERT_TRUE(cache->insert(1, four, blocks, std::make_shared<After>(1, four)).ok());
  EXPECT_EQ(found({1, 2, 3, 4, 5, 6, 7}), std::pair(size_t{4}, size_t{7}));
  EXPECT_EQ(cache->match(1, eight).snapshot(), nullptr);  // only who asks has one
  EXPECT_EQ(After::live, 2);
  insert(*cache, *pool, {7, 7, 7, 7, 8, 8, 8, 8});  // leaves room for the first block only
  EXPECT_EQ(After::live, 1);
  EXPECT_EQ(found(all), std::pair(size_t{4}, size_t{4}));
  cache->clear();
  EXPECT_EQ(After::live, 0);
  release(*pool, blocks);
}

// Snapshots beyond the budget go without their blocks, what was used longest ago first; of one text
// that passes its snapshots only the last stays, unless another text has gone on from it.
TEST(PrefixCache, SnapshotsOnTerms) {
  auto pool = make_pool(100);
  auto cache = make(pool, 100);
  const auto text = [](int32_t kind, size_t n) { return Tokens(n, kind); };
  std::map<int32_t, Blocks> blocks;
  for (int32_t kind = 1; kind <= 4; ++kind) {
    ASSERT_TRUE(write(*pool, 1, text(kind, 24), &blocks[kind]).ok());
  }
  const auto keep = [&](int32_t kind, size_t n, SnapshotTerms terms) {
    EXPECT_TRUE(cache
                    ->insert(1, text(kind, n), blocks[kind],
                             std::make_shared<After>(1, text(kind, n)), terms)
                    .ok());
  };
  const auto found = [&](int32_t kind) { return cache->match(1, text(kind, 24), true).tokens(); };
  // A byte a token here: two of eight and one of four fit.
  keep(1, 8, {.budget = 20});
  keep(2, 8, {.budget = 20});
  EXPECT_EQ(found(1), 8U);
  keep(3, 4, {.budget = 20});
  EXPECT_EQ(After::live, 3);
  keep(3, 8, {.budget = 20});  // the second text's goes, for it was used longest ago
  EXPECT_EQ(found(2), 0U);
  EXPECT_EQ(found(1), 8U);
  EXPECT_EQ(found(3), 8U);
  EXPECT_EQ(cache->match(1, text(2, 24)).tokens(), 8U);  // its blocks stay
  keep(4, 24, {.budget = 20});                           // more than there may be: none is left
  EXPECT_EQ(After::live, 0);

  keep(1, 4, {});
  keep(1, 8, {.passes = true, .instead_of = 0});
  keep(1, 12, {.passes = true, .instead_of = 8});
  EXPECT_EQ(After::live, 2);
  EXPECT_EQ(cache->match(1, text(1, 11), true).tokens(), 4U);
  EXPECT_EQ(found(1), 12U);  // used by another
  keep(1, 16, {.passes = true, .instead_of = 12});
  EXPECT_EQ(cache->match(1, text(1, 15), true).tokens(), 12U);
  keep(1, 20, {.instead_of = 4});  // which is none that its text passes
  EXPECT_EQ(After::live, 4);
  for (auto& [kind, held] : blocks) release(*pool, held);
}

// The obvious cache: each block by its domain and all tokens up to its end.
struct Entry {
  Block* block = nullptr;
  uint64_t used = 0;
  bool snapshot = false;
};
using Path = std::pair<uint64_t, Tokens>;

size_t common(const Tokens& a, const Tokens& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

class Model {
 public:
  explicit Model(size_t capacity) : capacity_(capacity) {}

  void insert(uint64_t domain, const Tokens& tokens, const Blocks& blocks, bool snapshot) {
    ++clock_;
    std::vector<Path> own;
    for (size_t i = 0; i * kSize < tokens.size(); ++i) {
      const size_t end = std::min(tokens.size(), (i + 1) * kSize);
      const Path path{domain, Tokens(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(end))};
      const auto same_block = [&](const Path& other) {
        return other.first == domain && other.second.size() > i * kSize &&
               other.second.size() <= (i + 1) * kSize;
      };
      // One that begins with all of these tokens is as good; one that ends before is replaced.
      const auto goes_on = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
        return same_block(entry.first) && common(entry.first.second, path.second) == end;
      });
      const auto ends = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
        return same_block(entry.first) &&
               common(entry.first.second, path.second) == entry.first.second.size();
      });
      if (goes_on != entries.end()) {
        own.push_back(goes_on->first);
      } else {
        if (ends != entries.end()) {
          entries.erase(ends);
        } else if (entries.size() == capacity_ && !evict(own)) {
          break;
        }
        entries[path].block = blocks[i];
        own.push_back(path);
      }
    }
    for (const Path& path : own) entries.at(path).used = clock_;
    if (snapshot && own.size() * kSize == tokens.size()) entries.at(own.back()).snapshot = true;
  }
  [[nodiscard]] size_t longest(uint64_t domain, const Tokens& tokens) const {
    size_t most = 0;
    for (const auto& [path, entry] : entries) {
      if (path.first == domain) most = std::max(most, common(path.second, tokens));
    }
    return most;
  }
  [[nodiscard]] size_t longest_with_snapshot(uint64_t domain, const Tokens& tokens) const {
    size_t most = 0;
    for (const auto& [path, entry] : entries) {
      const size_t n = path.second.size();
      if (path.first == domain && entry.snapshot && common(path.second, tokens) == n) {
        most = std::max(most, n);
      }
    }
    return most;
  }
  [[nodiscard]] int64_t snapshots() const {
    return std::count_if(entries.begin(), entries.end(),
                         [](const auto& entry) { return entry.second.snapshot; });
  }
  /// These blocks were lent.
  void use(std::span<Block* const> blocks) {
    ++clock_;
    for (auto& [path, entry] : entries) {
      if (std::find(blocks.begin(), blocks.end(), entry.block) != blocks.end()) {
        entry.used = clock_;
      }
    }
  }

  std::map<Path, Entry> entries;

 private:
  bool evict(const std::vector<Path>& spared) {
    auto oldest = entries.end();
    for (auto i = entries.begin(); i != entries.end(); ++i) {
      const bool leaf = std::none_of(entries.begin(), entries.end(), [&](const auto& other) {
        return other.first.first == i->first.first &&
               other.first.second.size() > i->first.second.size() &&
               i->first.second.size() % kSize == 0 &&
               common(other.first.second, i->first.second) == i->first.second.size();
      });
      if (!leaf || std::find(spared.begin(), spared.end(), i->first) != spared.end()) continue;
      if (oldest == entries.end() || i->second.used < oldest->second.used) oldest = i;
    }
    if (oldest == entries.end()) return false;
    entries.erase(oldest);
    return true;
  }

  size_t capacity_;
  uint64_t clock_ = 0;
};

TEST(PrefixCache, EqualsTheObviousCache) {
  for (uint32_t seed = 0; seed < (test::kSanitized ? 6 : 60); ++seed) {
    std::mt19937 random(seed);
    const size_t capacity = 1 + random() % 20;
    auto pool = make_pool(100);
    auto cache = make(pool, static_cast<int32_t>(capacity));
    Model model(capacity);
    for (int step = 0; step < 500; ++step) {
      const uint64_t domain = 1 + random() % 5 / 4;
      Tokens tokens(random() % 18);
      for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 8 / 6);
      if (random() % 2 == 0) {
        Blocks blocks;
        ASSERT_TRUE(write(*pool, domain, tokens, &blocks).ok());
        std::shared_ptr<const StateSnapshot> after;
        if (!tokens.empty() && tokens.size() % kSize == 0 && random() % 3 > 0) {
          after = std::make_shared<After>(domain, tokens);
        }
        model.insert(domain, tokens, blocks, after != nullptr);
        ASSERT_TRUE(cache->insert(domain, tokens, blocks, std::move(after)).ok());
        release(*pool, blocks);
      } else {
        const PrefixHit hit = cache->match(domain, tokens);
        ASSERT_EQ(hit.tokens(), model.longest(domain, tokens)) << "step " << step;
        model.use(hit.blocks());
        ASSERT_EQ(look(*cache, tokens, domain), hit.tokens());
        const PrefixHit stateful = cache->match(domain, tokens, true);
        ASSERT_EQ(stateful.tokens(), model.longest_with_snapshot(domain, tokens));
        ASSERT_EQ(stateful.known(), hit.tokens());
        ASSERT_EQ(stateful.blocks().size(), stateful.tokens() / kSize);
        const auto* const after = static_cast<const After*>(stateful.snapshot().get());
        ASSERT_EQ(after == nullptr, stateful.tokens() == 0);
        if (after != nullptr) {
          ASSERT_EQ(after->signature, sign(domain, std::span(tokens).first(stateful.tokens())));
        }
      }
      ASSERT_EQ(After::live, model.snapshots());
      ASSERT_EQ(static_cast<size_t>(cache->size()), model.entries.size()) << "step " << step;
      ASSERT_EQ(pool->available(), 100 - model.entries.size());
      for (const auto& [path, entry] : model.entries) ASSERT_EQ(entry.block->references(), 1);
    }
    cache.reset();
    EXPECT_EQ(pool->available(), 100U);
  }
}

// Threads that go on from what they find, keep what they write, and always want more than the pool
// has.
TEST(PrefixCache, SixteenThreadsUnderPressure) {
  constexpr size_t kBlocks = 60;
  auto pool = make_pool(kBlocks);
  auto cache = make(pool, 40);
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> hits{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int step = 0; step < 400; ++step) {
        const uint64_t domain = 1 + random() % 2;
        Tokens tokens(1 + random() % 20);
        for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 5 / 4);
        PrefixHit hit = cache->match(domain, tokens);
        Blocks blocks(hit.blocks().begin(), hit.blocks().end());
        for (size_t p = 0; p < hit.tokens(); ++p) {
          uint64_t value = 0;
          std::memcpy(&value, host_bytes(*blocks[p / kSize]) + p % kSize * sizeof(value),
                      sizeof(value));
          if (value != sign(domain, std::span(tokens).first(p + 1))) ++wrong;
        }
        if (hit.tokens() > 0) ++hits;
        hit.taken();
        if (hit.tokens() % kSize != 0) {  // a shared block is not written
          if (!pool->release(blocks.back()).ok()) ++wrong;
          blocks.pop_back();
        }
        const Status written = write(*pool, domain, tokens, &blocks);
        if (written.ok()) {
          if (!cache->insert(domain, tokens, blocks).ok()) ++wrong;
        } else if (written.code() != Code::kPoolExhausted) {
          ++wrong;
        }
        for (Block* block : blocks) {
          if (!pool->release(block).ok()) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(hits, 1000U);
  EXPECT_EQ(pool->available(), kBlocks - static_cast<size_t>(cache->size()));
  EXPECT_EQ(cache->spare(), static_cast<size_t>(cache->size()));
  Blocks all(kBlocks);
  ASSERT_TRUE(pool->allocate(all).ok());
  EXPECT_EQ(cache->size(), 0);
  release(*pool, all);
}

TEST(PrefixCache, EveryAllocationMayFail) {
  auto pool = make_pool(30);
  auto cache = make(pool, 5);
  const Tokens old = {1, 2, 3, 4, 5, 6};
  const Tokens added = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  insert(*cache, *pool, old);
  insert(*cache, *pool, {9, 9, 9, 9});
  Blocks blocks;
  ASSERT_TRUE(write(*pool, 1, added, &blocks).ok());
  for (const bool matches : {true, false}) {
    for (size_t nth = 0;; ++nth) {
      bool failed = false;
      test::fail_new_at = test::news + nth;
      try {
        if (matches) {
          EXPECT_EQ(cache->match(1, old).tokens(), 6U);
        } else {
          EXPECT_TRUE(cache->insert(1, added, blocks).ok());
        }
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      test::fail_new_at = ~size_t{0};
      if (!failed) break;
      EXPECT_EQ(cache->size(), 3);
      EXPECT_EQ(look(*cache, added), 6U);
      for (const Block* block : blocks) EXPECT_EQ(block->references(), 1);
    }
  }
  EXPECT_EQ(look(*cache, added), 13U);
  EXPECT_EQ(cache->size(), 5);
  release(*pool, blocks);
  cache.reset();
  EXPECT_EQ(pool->available(), 30U);
}

}  // namespace
}  // namespace gen::cache
