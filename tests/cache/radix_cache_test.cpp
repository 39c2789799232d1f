// SPDX-License-Identifier: Apache-2.0
// Proves the index: the published hashes and examples, random operations against a list of paths
// with times of use, the same with hashes that say nothing, exact counts and unique ids under
// sixteen threads, and that every allocation may fail.
#include "cache/prefix/radix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "support/counting_new.h"
#include "support/sanitized.h"

namespace gen::cache {
namespace {

using Tokens = std::vector<int32_t>;
using Ids = std::vector<int32_t>;

constexpr uint64_t kSame = 7;
uint64_t same_hash(std::span<const int32_t>) noexcept { return kSame; }
uint64_t short_hash(std::span<const int32_t> tokens) noexcept { return block_hash(tokens) % 3; }

std::unique_ptr<RadixCache> make(int32_t block_size, int32_t max_blocks,
                                 RadixCache::Hash hash = block_hash) {
  return std::move(RadixCache::create(block_size, max_blocks, hash)).value();
}

Ids insert(RadixCache& cache, const Tokens& tokens) {
  Ids ids(tokens.size() + 1);
  RadixCache::Ids out{ids.data(), ids.size()};
  EXPECT_TRUE(cache.insert(tokens, &out).ok());
  ids.resize(out.count);
  return ids;
}

struct Found {
  size_t matched = 0;
  Ids ids;
};

Found look(RadixCache& cache, const Tokens& tokens, bool pins = false) {
  Found found;
  found.ids.resize(tokens.size() + 1);
  RadixCache::Ids out{found.ids.data(), found.ids.size()};
  EXPECT_TRUE(
      (pins ? cache.pin(tokens, &found.matched, &out) : cache.match(tokens, &found.matched, &out))
          .ok());
  found.ids.resize(out.count);
  return found;
}

RadixCache::Stats stats(const RadixCache& cache) {
  RadixCache::Stats stats;
  EXPECT_TRUE(cache.stats(&stats).ok());
  return stats;
}

TEST(RadixCache, HashesAreThePublishedOnes) {
  EXPECT_EQ(block_hash(Tokens{1, 2, 3, 4}), 0x898F7E1CE6964921U);
  EXPECT_EQ(block_hash(Tokens{4, 3, 2, 1}), 0x9EC5899263E0F7A1U);
  EXPECT_EQ(block_hash(Tokens{5, 6}), 0xB70A5D074331A7E6U);
  EXPECT_EQ(block_hash(Tokens{42}), 0xFF3ADD6B3789DAEFU);
  EXPECT_EQ(block_hash(Tokens{0}), 0xA8C7F832281A39C5U);
  EXPECT_EQ(block_hash(Tokens{-1}), 0x8CF51A8BFCA3883DU);
  EXPECT_EQ(block_hash(Tokens{}), 14695981039346656037U);
}

TEST(RadixCache, PublishedExamples) {
  EXPECT_EQ(RadixCache::create(0, 1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(RadixCache::create(1, 0).status().code(), Code::kInvalidArgument);
  for (const RadixCache::Hash hash : {block_hash, same_hash}) {
    auto four = make(4, 100, hash);
    EXPECT_EQ(insert(*four, {1, 2, 3, 4, 5, 6, 7, 8}).size(), 2U);
    const Found found = look(*four, {1, 2, 3, 4, 9, 10, 11, 12});
    EXPECT_EQ(found.matched, 4U);
    EXPECT_EQ(found.ids.size(), 1U);

    auto two = make(2, 3, hash);
    const Ids first = insert(*two, {1, 2, 3, 4});
    const Ids second = insert(*two, {5, 6});
    EXPECT_EQ(look(*two, {1, 2, 3, 4}).matched, 4U);
    EXPECT_EQ(insert(*two, {7, 8}), second);  // the id that 5, 6 had
    EXPECT_EQ(stats(*two).evictions, 1U);
    EXPECT_EQ(look(*two, {5, 6}).matched, 0U);
    EXPECT_EQ(look(*two, {1, 2, 3, 4}).ids, first);
    EXPECT_EQ(stats(*two).hits, 2U);
    EXPECT_EQ(stats(*two).misses, 1U);
  }
}

TEST(RadixCache, AShortLastBlockMatchesOnlyItself) {
  auto cache = make(4, 100);
  const Ids ids = insert(*cache, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(ids.size(), 2U);
  EXPECT_EQ(look(*cache, {1, 2, 3, 4, 5, 6}).matched, 6U);
  EXPECT_EQ(look(*cache, {1, 2, 3, 4, 5, 6, 7}).matched, 4U);
  EXPECT_EQ(look(*cache, {1, 2, 3, 4, 5}).matched, 4U);
  EXPECT_EQ(insert(*cache, {1, 2, 3, 4, 5, 6, 7, 8}).size(), 2U);
  EXPECT_EQ(look(*cache, {1, 2, 3, 4, 5, 6}).ids, ids);
  EXPECT_EQ(cache->size(), 3);
  EXPECT_EQ(look(*cache, {}).matched, 0U);
  EXPECT_EQ(stats(*cache).misses, 1U);
  EXPECT_TRUE(insert(*cache, {}).empty());
  EXPECT_EQ(look(*cache, {1}).matched, 0U);
}

TEST(RadixCache, TheOwnPathIsNeverEvicted) {
  auto cache = make(1, 1);
  const Ids ids = insert(*cache, {1, 2, 3});
  EXPECT_EQ(ids.size(), 1U);  // what fits
  EXPECT_EQ(look(*cache, {1, 2, 3}).matched, 1U);
  EXPECT_EQ(stats(*cache).evictions, 0U);
  EXPECT_EQ(insert(*cache, {2, 1}), ids);
  EXPECT_EQ(stats(*cache).evictions, 1U);
  EXPECT_EQ(cache->size(), 1);
}

TEST(RadixCache, WhatIsPinnedStays) {
  auto cache = make(2, 4);
  insert(*cache, {1, 2, 3, 4});
  insert(*cache, {5, 6});
  EXPECT_EQ(look(*cache, {1, 2, 3, 4, 9, 9}, true).matched, 4U);
  EXPECT_EQ(look(*cache, {1, 2}, true).matched, 2U);
  EXPECT_EQ(stats(*cache).hits + stats(*cache).misses, 0U);
  EXPECT_EQ(insert(*cache, {7, 7, 8, 8, 9, 9}).size(), 2U);
  EXPECT_EQ(look(*cache, {1, 2, 3, 4}).matched, 4U);
  EXPECT_EQ(look(*cache, {5, 6}).matched, 0U);
  size_t removed = 9;
  EXPECT_EQ(cache->remove(Tokens{1}, &removed).code(), Code::kBusy);
  EXPECT_EQ(cache->remove(Tokens{}, &removed).code(), Code::kBusy);
  EXPECT_EQ(removed, 0U);
  EXPECT_EQ(cache->size(), 4);
  EXPECT_EQ(cache->unpin(Tokens{1, 2, 3}).code(), Code::kState);
  EXPECT_EQ(cache->unpin(Tokens{7, 7}).code(), Code::kState);
  EXPECT_TRUE(cache->unpin(Tokens{}).ok());
  EXPECT_TRUE(cache->unpin(Tokens{1, 2}).ok());
  EXPECT_EQ(cache->unpin(Tokens{1, 2}).code(), Code::kState);  // held, but not pinned itself
  EXPECT_TRUE(cache->unpin(Tokens{1, 2, 3, 4}).ok());
  EXPECT_EQ(cache->unpin(Tokens{1, 2, 3, 4}).code(), Code::kState);
  EXPECT_TRUE(cache->remove(Tokens{1}, &removed).ok());
  EXPECT_EQ(removed, 2U);
}

TEST(RadixCache, BuffersThatAreTooSmallChangeNothing) {
  auto cache = make(2, 4);
  Ids ids(2, -7);
  RadixCache::Ids out{ids.data(), 1};
  EXPECT_EQ(cache->insert(Tokens{1, 2, 3}, &out).code(), Code::kOutOfRange);
  EXPECT_EQ(out.count, 2U);
  EXPECT_EQ(cache->size(), 0);
  out.capacity = 2;
  EXPECT_TRUE(cache->insert(Tokens{1, 2, 3}, &out).ok());
  size_t matched = 5;
  out = {ids.data(), 1};
  EXPECT_EQ(cache->match(Tokens{1, 2, 3}, &matched, &out).code(), Code::kOutOfRange);
  EXPECT_EQ(matched, 0U);
  EXPECT_EQ(out.count, 2U);
  EXPECT_EQ(stats(*cache).hits, 0U);
  out = {nullptr, 0};
  EXPECT_TRUE(cache->match(Tokens{1, 2, 3}, &matched, &out).ok());
  EXPECT_EQ(matched, 3U);
  EXPECT_EQ(out.count, 2U);
}

// The obvious index: every block by all tokens up to its end, with a time of use.
class Model {
 public:
  explicit Model(size_t block_size) : block_size_(block_size) {}

  struct Entry {
    int32_t id = -1;
    uint64_t used = 0;
    int pins = 0;
  };

  /// Ends of the blocks of a sequence.
  [[nodiscard]] std::vector<Tokens> beginnings(const Tokens& tokens) const {
    std::vector<Tokens> all;
    for (size_t end = 0; end < tokens.size();) {
      end = std::min(end + block_size_, tokens.size());
      all.emplace_back(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return all;
  }
  [[nodiscard]] bool is_leaf(const Tokens& path) const {
    return std::none_of(entries.begin(), entries.end(), [&](const auto& other) {
      return path.size() % block_size_ == 0 && other.first.size() > path.size() &&
             std::equal(path.begin(), path.end(), other.first.begin());
    });
  }
  /// The leaf that goes first, if any; never one of `spared`.
  [[nodiscard]] const Tokens* oldest(const std::vector<Tokens>& spared) const {
    const Tokens* found = nullptr;
    uint64_t used = ~uint64_t{0};
    for (const auto& [path, entry] : entries) {
      if (entry.pins > 0 || entry.used >= used || !is_leaf(path)) continue;
      if (std::find(spared.begin(), spared.end(), path) != spared.end()) continue;
      found = &path;
      used = entry.used;
    }
    return found;
  }
  /// What is there of a sequence.
  [[nodiscard]] std::vector<Tokens> known(const Tokens& tokens) const {
    std::vector<Tokens> all = beginnings(tokens);
    const auto missing = std::find_if(all.begin(), all.end(),
                                      [&](const Tokens& path) { return !entries.contains(path); });
    all.erase(missing, all.end());
    return all;
  }
  void use(const std::vector<Tokens>& paths) {
    ++clock;
    for (const Tokens& path : paths) entries[path].used = clock;
  }

  std::map<Tokens, Entry> entries;
  uint64_t clock = 0;

 private:
  size_t block_size_;
};

void free_id(void* user, int32_t id) { static_cast<Ids*>(user)->push_back(id); }

void random_operations(RadixCache::Hash hash, uint32_t seed) {
  std::mt19937 random(seed);
  const size_t block_size = 1 + random() % 4;
  const size_t max_blocks = 1 + random() % 24;
  auto cache = make(static_cast<int32_t>(block_size), static_cast<int32_t>(max_blocks), hash);
  Model model(block_size);
  Ids freed;
  ASSERT_TRUE(cache->set_on_free(free_id, &freed).ok());
  RadixCache::Stats counted;
  std::vector<Tokens> pinned;
  std::multiset<int32_t> expected;
  const auto goes = [&](const Tokens& path) {
    expected.insert(model.entries.at(path).id);
    model.entries.erase(path);
  };
  for (int step = 0; step < 600; ++step) {
    Tokens tokens(random() % 11);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 2) - 1;
    freed.clear();
    expected.clear();
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {  // insert
        const std::vector<Tokens> all = model.beginnings(tokens);
        std::vector<Tokens> there = model.known(tokens);
        const size_t before = there.size();
        while (there.size() < all.size()) {
          if (model.entries.size() == max_blocks) {
            const Tokens* const oldest = model.oldest(there);
            if (oldest == nullptr) break;
            goes(Tokens(*oldest));
            ++counted.evictions;
          }
          there.push_back(all[there.size()]);
          model.entries[there.back()];
        }
        model.use(there);
        const Ids ids = insert(*cache, tokens);
        ASSERT_EQ(ids.size(), there.size());
        for (size_t i = 0; i < ids.size(); ++i) {
          Model::Entry& entry = model.entries[there[i]];
          if (i >= before) entry.id = ids[i];
          ASSERT_EQ(entry.id, ids[i]);
        }
        break;
      }
      case 3:
      case 4: {  // match or pin
        const std::vector<Tokens> there = model.known(tokens);
        const bool pins = random() % 3 == 0;
        const Found found = look(*cache, tokens, pins);
        ASSERT_EQ(found.matched, there.empty() ? 0 : there.back().size());
        ASSERT_EQ(found.ids.size(), there.size());
        for (size_t i = 0; i < there.size(); ++i) {
          ASSERT_EQ(found.ids[i], model.entries.at(there[i]).id);
        }
        if (pins) {
          for (const Tokens& path : there) ++model.entries.at(path).pins;
          pinned.push_back(there.empty() ? Tokens() : there.back());
        } else {
          model.use(there);
          ++(there.empty() ? counted.misses : counted.hits);
        }
        break;
      }
      case 5: {  // unpin
        if (pinned.empty()) break;
        const size_t i = random() % pinned.size();
        const std::vector<Tokens> there = model.beginnings(pinned[i]);
        for (const Tokens& path : there) --model.entries.at(path).pins;
        // Only what is free again was used; the rest is not in anybody's order.
        ++model.clock;
        for (const Tokens& path : there) {
          if (model.entries.at(path).pins == 0) model.entries.at(path).used = model.clock;
        }
        ASSERT_TRUE(cache->unpin(pinned[i]).ok());
        pinned.erase(pinned.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
      case 6: {  // evict
        const Tokens* const oldest = model.oldest({});
        int32_t id = -5;
        ASSERT_TRUE(cache->evict(&id).ok());
        ASSERT_EQ(id, oldest != nullptr ? model.entries.at(*oldest).id : -1);
        if (oldest != nullptr) {
          goes(Tokens(*oldest));
          ++counted.evictions;
        }
        break;
      }
      default: {  // remove
        if (random() % 4 != 0) break;
        tokens.resize(std::min<size_t>(tokens.size(), 1 + random() % 4));
        // Blocks with all of these tokens before or in them go.
        std::vector<Tokens> going;
        bool is_pinned = false;
        for (const auto& [path, entry] : model.entries) {
          if (path.size() < tokens.size() ||
              !std::equal(tokens.begin(), tokens.end(), path.begin())) {
            continue;
          }
          going.push_back(path);
          is_pinned = is_pinned || entry.pins > 0;
        }
        size_t removed = 0;
        const Status status = cache->remove(tokens, &removed);
        ASSERT_EQ(status.code(), is_pinned ? Code::kBusy : Code::kOk);
        ASSERT_EQ(removed, is_pinned ? 0 : going.size());
        if (!is_pinned) {
          for (const Tokens& path : going) goes(path);
        }
      }
    }
    ASSERT_EQ(std::multiset<int32_t>(freed.begin(), freed.end()), expected) << "step " << step;
    ASSERT_EQ(cache->size(), static_cast<int32_t>(model.entries.size()));
    std::set<int32_t> ids;
    for (const auto& [path, entry] : model.entries) {
      ASSERT_GE(entry.id, 0);
      ASSERT_LT(entry.id, static_cast<int32_t>(max_blocks));
      ids.insert(entry.id);
    }
    ASSERT_EQ(ids.size(), model.entries.size());
    const RadixCache::Stats now = stats(*cache);
    ASSERT_EQ(now.hits, counted.hits);
    ASSERT_EQ(now.misses, counted.misses);
    ASSERT_EQ(now.evictions, counted.evictions);
  }
}

TEST(RadixCache, EqualsTheObviousIndex) {
  for (uint32_t seed = 0; seed < (test::kSanitized ? 6 : 60); ++seed) {
    for (const RadixCache::Hash hash : {block_hash, same_hash, short_hash}) {
      random_operations(hash, seed);
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    }
  }
}

TEST(RadixCache, DeepAndWideTreesAreFine) {
  const int32_t all = test::kSanitized ? 30000 : 300000;
  auto cache = make(1, all);
  Tokens tokens(static_cast<size_t>(all) / 3 * 2, 5);
  EXPECT_EQ(insert(*cache, tokens).size(), tokens.size());
  EXPECT_EQ(look(*cache, tokens).matched, tokens.size());
  for (int32_t i = 0; i < all / 3; ++i) insert(*cache, {i + 6});
  size_t removed = 0;
  EXPECT_EQ(cache->size(), all);
  EXPECT_TRUE(cache->remove(Tokens{5}, &removed).ok());
  EXPECT_EQ(removed, tokens.size());
  insert(*cache, tokens);
}

struct Caller {
  RadixCache* cache;
  std::vector<Code> codes;
  int32_t size = -1;
};

void call_again(void* user, int32_t) {
  auto* caller = static_cast<Caller*>(user);
  RadixCache& cache = *caller->cache;
  size_t n = 0;
  RadixCache::Ids ids;
  RadixCache::Stats stats;
  int32_t id = 0;
  caller->codes = {cache.insert(Tokens{1}, &ids).code(),
                   cache.match(Tokens{1}, &n, &ids).code(),
                   cache.pin(Tokens{1}, &n, &ids).code(),
                   cache.unpin(Tokens{1}).code(),
                   cache.evict(&id).code(),
                   cache.remove(Tokens{1}, &n).code(),
                   cache.stats(&stats).code(),
                   cache.set_on_free(nullptr, nullptr).code()};
  caller->size = cache.size();
}

TEST(RadixCache, CallsFromTheCallbackAreBusy) {
  auto cache = make(1, 2);
  Caller caller{cache.get(), {}};
  ASSERT_TRUE(cache->set_on_free(call_again, &caller).ok());
  insert(*cache, {1});
  insert(*cache, {2});
  EXPECT_TRUE(caller.codes.empty());
  insert(*cache, {3});
  EXPECT_EQ(caller.codes, std::vector<Code>(8, Code::kBusy));
  EXPECT_EQ(caller.size, 1);
  EXPECT_EQ(cache->size(), 2);
  EXPECT_EQ(look(*cache, {3}).matched, 1U);
}

// What an id stands for while it is pinned: a number made of all tokens up to its block's end.
constexpr int32_t kSlots = 40;
std::atomic<uint64_t> slots[kSlots];

void clear_slot(void*, int32_t id) { slots[id].store(0); }

TEST(RadixCache, SixteenThreadsNeverShareAnId) {
  constexpr uint32_t kThreads = 16;
  for (const RadixCache::Hash hash : {block_hash, same_hash}) {
    auto cache = make(2, kSlots, hash);
    for (auto& slot : slots) slot = 0;
    ASSERT_TRUE(cache->set_on_free(clear_slot, nullptr).ok());
    std::atomic<uint64_t> wrong{0};
    std::atomic<uint64_t> looked{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int step = 0; step < 800; ++step) {
          Tokens tokens(1 + random() % 9);
          for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 3);
          insert(*cache, tokens);
          if (random() % 2 == 0) {
            look(*cache, tokens);
            ++looked;
          }
          const Found pinned = look(*cache, tokens, true);
          for (size_t i = 0; i < pinned.ids.size(); ++i) {
            const size_t end = std::min((i + 1) * 2, tokens.size());
            const uint64_t sign = block_hash(std::span(tokens).first(end));
            uint64_t before = 0;
            auto& slot = slots[pinned.ids[i]];
            if (!slot.compare_exchange_strong(before, sign) && before != sign) ++wrong;
          }
          if (random() % 16 == 0) {
            size_t removed = 0;
            const Status status = cache->remove(std::span(tokens).first(1), &removed);
            if (status.code() != Code::kBusy && !pinned.ids.empty()) ++wrong;
          }
          int32_t id = -1;
          if (random() % 16 == 0 && !cache->evict(&id).ok()) ++wrong;
          tokens.resize(pinned.matched);
          if (!cache->unpin(tokens).ok()) ++wrong;
          if (cache->size() > kSlots) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(stats(*cache).hits + stats(*cache).misses, looked);
    size_t removed = 0;
    const auto size = static_cast<size_t>(cache->size());
    EXPECT_TRUE(cache->remove(Tokens{}, &removed).ok());  // nothing has stayed pinned
    EXPECT_EQ(removed, size);
  }
}

TEST(RadixCache, EveryAllocationMayFail) {
  auto cache = make(2, 6);
  const Tokens old = {1, 2, 3, 4, 5, 6};
  const Tokens added = {1, 2, 9, 8, 7, 6, 5, 4, 3};
  insert(*cache, old);
  insert(*cache, {8, 8, 9, 9});
  const Found before = look(*cache, old);
  for (size_t nth = 0;; ++nth) {
    RadixCache::Ids out;
    bool failed = false;
    test::fail_new_at = test::news + nth;
    try {
      EXPECT_TRUE(cache->insert(added, &out).ok());
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    test::fail_new_at = ~size_t{0};
    if (!failed) {
      EXPECT_GT(nth, 8U);
      break;
    }
    EXPECT_EQ(cache->size(), 5);
    EXPECT_EQ(look(*cache, old).ids, before.ids);
    EXPECT_EQ(look(*cache, added).matched, 2U);
    EXPECT_EQ(stats(*cache).evictions, 0U);
  }
  EXPECT_EQ(look(*cache, added).matched, added.size());
  EXPECT_EQ(cache->size(), 6);
  EXPECT_EQ(stats(*cache).evictions, 3U);
  size_t removed = 0;
  EXPECT_TRUE(cache->remove(Tokens{}, &removed).ok());  // no failure has left anything held
  EXPECT_EQ(removed, 6U);
}

}  // namespace
}  // namespace gen::cache
