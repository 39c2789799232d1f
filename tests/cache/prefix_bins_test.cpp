// SPDX-License-Identifier: Apache-2.0
// Proves that a prefix cache whose stretches have a block of each bin finds the longest beginning
// of which the next row finds everything that it sees, against a plain list of what was kept; that
// a later text fills the gaps of an earlier one; and that blocks of windows that no text needs any
// more are given up before whole texts are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "cache/prefix/prefix_cache.h"
#include "cache/sequence/kv_cache.h"
#include "engine/memory/host_memory.h"
#include "support/host_view.h"

namespace gen::cache {
namespace {

using Tokens = std::vector<int32_t>;
using Blocks = std::vector<Block*>;

constexpr int32_t kSize = 8;  // positions in a block
const std::vector<int32_t> kReaches = {-1, 5, 40};

class PrefixBins : public testing::Test {
 protected:
  PrefixBins() { renew(1000, 400); }
  void renew(size_t blocks, int32_t stretches) {
    cache_.reset();
    pool_ = std::make_shared<BlockPool>(sizeof(uint64_t), kSize, blocks, engine::system_memory());
    cache_ = PrefixCache::create(pool_, stretches, kReaches).value();
  }
  static uint64_t sign(const Tokens& tokens, size_t stretch, size_t bin) {
    uint64_t digest = bin + 1;
    const size_t end = std::min(tokens.size(), (stretch + 1) * kSize);
    for (size_t i = 0; i < end; ++i) {
      digest = (digest ^ static_cast<uint64_t>(tokens[i] + 7)) * 0xBF58476D1CE4E5B9U;
      digest ^= digest >> 29;
    }
    return digest;
  }
  /// As a session does that has evaluated these tokens and gave back what lies before `from`.
  void insert(const Tokens& tokens, const std::vector<size_t>& from) {
    Blocks blocks(pieces(tokens.size()) * kReaches.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t bin = i % kReaches.size();
      const size_t stretch = i / kReaches.size();
      if (stretch < from[bin]) continue;
      blocks[i] = pool_->allocate().value();
      const uint64_t value = sign(tokens, stretch, bin);
      std::memcpy(host_bytes(*blocks[i]), &value, sizeof(value));
      pool_->set_used(*blocks[i], static_cast<int32_t>(
                                      std::min<size_t>(kSize, tokens.size() - stretch * kSize)));
    }
    ASSERT_TRUE(cache_->insert(1, tokens, blocks).ok());
    for (Block* block : blocks) {
      if (block == nullptr) continue;
      ASSERT_TRUE(pool_->release(block).ok());
    }
  }
  /// How many tokens are found. What a row behind them sees must be there, and be the text's.
  [[nodiscard]] size_t look(const Tokens& tokens) const {
    const PrefixHit hit = cache_->match(1, tokens);
    EXPECT_LE(hit.tokens(), hit.known());
    EXPECT_EQ(hit.blocks().size(), pieces(hit.tokens()) * kReaches.size());
    for (size_t i = 0; i < hit.blocks().size(); ++i) {
      const size_t bin = i % kReaches.size();
      const size_t stretch = i / kReaches.size();
      if (stretch < first_seen(bin, hit.tokens())) {
        EXPECT_EQ(hit.blocks()[i], nullptr);
        continue;
      }
      const Block* const block = hit.blocks()[i];
      if (block == nullptr) {
        ADD_FAILURE() << "bin " << bin << " lacks stretch " << stretch;
        return 0;
      }
      if ((stretch + 1) * kSize > hit.tokens()) continue;  // its rest may be another text's
      uint64_t value = 0;
      std::memcpy(&value, host_bytes(*block), sizeof(value));
      EXPECT_EQ(value, sign(tokens, stretch, bin));
    }
    return hit.tokens();
  }
  static size_t pieces(size_t n) { return (n + kSize - 1) / kSize; }
  static size_t first_seen(size_t bin, size_t n) {
    if (kReaches[bin] < 0) return 0;
    return static_cast<size_t>(KvCache::first_kept(static_cast<int32_t>(n), kReaches[bin])) / kSize;
  }
  [[nodiscard]] size_t free() const { return pool_->available(); }

  std::shared_ptr<BlockPool> pool_;
  std::shared_ptr<PrefixCache> cache_;
};

Tokens numbers(size_t n, int32_t first = 1) {
  Tokens tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = first + static_cast<int32_t>(i);
  return tokens;
}

TEST_F(PrefixBins, ATextIsFoundWhereItsWindowsAre) {
  const Tokens text = numbers(80);
  insert(text, {0, 8, 4});  // all; from 64 on; from 32 on
  EXPECT_EQ(look(text), 80U);
  // 5 entries before 69 begin in the tile at 64, and 40 before it in the one at 16.
  EXPECT_EQ(look(Tokens(text.begin(), text.begin() + 79)), 79U);
  EXPECT_EQ(look(Tokens(text.begin(), text.begin() + 72)), 72U);
  EXPECT_EQ(look(Tokens(text.begin(), text.begin() + 71)), 0U);
  EXPECT_EQ(cache_->match(1, Tokens(text.begin(), text.begin() + 71)).known(), 71U);
}

TEST_F(PrefixBins, GapsAreFilledByLaterTexts) {
  const Tokens text = numbers(80);
  insert(text, {0, 9, 9});
  EXPECT_EQ(look(text), 0U);
  const size_t before = free();
  insert(text, {0, 0, 2});
  EXPECT_EQ(look(text), 80U);
  EXPECT_EQ(look(Tokens(text.begin(), text.begin() + 56)), 56U);
  EXPECT_EQ(look(Tokens(text.begin(), text.begin() + 55)), 0U);
  EXPECT_EQ(before - free(), 9U + 7U);  // only what was missing
}

TEST_F(PrefixBins, WindowsThatNoTextNeedsGoFirst) {
  renew(3 * 20, 400);
  insert(numbers(80), {0, 0, 0});       // ten stretches, used last …
  insert(numbers(80, 500), {0, 0, 0});  // … before these
  ASSERT_EQ(free(), 0U);
  ASSERT_EQ(look(numbers(80, 500)), 80U);
  ASSERT_EQ(look(numbers(80)), 80U);
  // The windows of the middle of both texts: nine stretches of 5 entries' reach, eight of which end
  // before the tile that the end of a text sees, and of 40 entries' reach those before it.
  std::vector<Block*> taken(8);
  ASSERT_TRUE(pool_->allocate(taken).ok());
  EXPECT_EQ(look(numbers(80)), 80U);
  EXPECT_EQ(look(numbers(80, 500)), 80U);
  EXPECT_EQ(cache_->evicted(), 0U);
  // Then the text that was used longer ago.
  std::vector<Block*> more(24);
  ASSERT_TRUE(pool_->allocate(more).ok());
  EXPECT_EQ(look(numbers(80, 500)) == 80U ? look(numbers(80)) : look(numbers(80, 500)), 0U);
  for (Block* block : taken) ASSERT_TRUE(pool_->release(block).ok());
  for (Block* block : more) ASSERT_TRUE(pool_->release(block).ok());
}

TEST_F(PrefixBins, NothingIsLost) {
  std::mt19937 random(3);
  const auto draw = [&](int32_t most) {
    return std::uniform_int_distribution<int32_t>(0, most)(random);
  };
  for (int round = 0; round < 30; ++round) {
    renew(20000, 5000);
    // By a text's whole stretches: the bins that are there.
    std::map<Tokens, std::vector<bool>> kept;
    const auto has = [&](const Tokens& tokens, size_t stretch, size_t bin) {
      const auto end = tokens.begin() + static_cast<std::ptrdiff_t>((stretch + 1) * kSize);
      const auto at = kept.find(Tokens(tokens.begin(), end));
      return at != kept.end() && at->second[bin];
    };
    for (int step = 0; step < 30; ++step) {
      Tokens text;
      for (int i = draw(20); i >= 0; --i) {
        const int32_t kind = draw(1);
        for (int32_t k = 0; k < kSize; ++k) text.push_back(kind * 10 + k % 3);
      }
      const size_t n = text.size() / kSize;
      if (draw(1) == 0) {
        const std::vector<size_t> from = {0, static_cast<size_t>(draw(static_cast<int32_t>(n))),
                                          static_cast<size_t>(draw(static_cast<int32_t>(n)))};
        insert(text, from);
        for (size_t i = 0; i < n; ++i) {
          const auto end = text.begin() + static_cast<std::ptrdiff_t>((i + 1) * kSize);
          std::vector<bool>& bins = kept.try_emplace(Tokens(text.begin(), end), 3).first->second;
          for (size_t bin = 0; bin < 3; ++bin) bins[bin] = bins[bin] || i >= from[bin];
        }
      }
      size_t want = 0;
      for (size_t end = 1; end <= n && has(text, end - 1, 0); ++end) {
        bool all = true;
        for (size_t bin = 0; bin < 3; ++bin) {
          for (size_t i = first_seen(bin, end * kSize); i < end; ++i) {
            all = all && has(text, i, bin);
          }
        }
        if (all) want = end * kSize;
      }
      // A text that goes on like a kept one is found to the token; whole stretches are compared.
      ASSERT_EQ(look(text) / kSize * kSize, want);
    }
    const size_t blocks = pool_->capacity();
    cache_->clear();
    ASSERT_EQ(free(), blocks);
  }
}

}  // namespace
}  // namespace gen::cache
