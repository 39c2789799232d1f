// SPDX-License-Identifier: Apache-2.0
// Proves that no failing call of files or memory loses anything of a tiered store, and that the
// call can be made again.
#include <algorithm>

#include "cache/tiered_store_fixture.h"
#include "support/counting_allocator.h"

namespace gen::cache {
namespace {

using test::CountingAllocator;

/// A life of a store; calls that fail are checked and made again.
template <typename Failed>
void live(TieredStore& store, Failed&& failed) {
  const auto must = [&](auto&& call) {
    for (int tries = 0; failed(call()); ++tries) ASSERT_LT(tries, 3);
  };
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    must([&] { return append(store, layer, 6, static_cast<uint32_t>(layer)); });
  }
  for (int step = 0; step < 2; ++step) {
    for (int32_t layer : {0, 1}) must([&] { return store.demote(layer); });
  }
  must([&] { return store.manage(); });
  must([&] { return store.promote(0); });
  must([&] { return store.demote(0); });
  const int32_t all[] = {0, 1, 2};
  EXPECT_TRUE(store.prefetch(all).ok());
  store.finish_prefetch();
  std::unique_ptr<TensorProvider> copy;
  must([&] {
    auto made = store.clone();
    if (made.ok()) copy = std::move(made).value();
    return made.status();
  });
  must([&] { return copy->truncate(2); });
  must([&] { return store.truncate(5); });
  must([&] { return append(store, 0, 1, 50); });
}

/// Each layer begins as live() wrote it; failing calls must leave that, and the lengths.
void expect_start(const TieredStore& store) {
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    const int32_t length = store.layer_seq_len(layer);
    if (length == 0) continue;
    const size_t count = static_cast<size_t>(kBatch * length * kDim);
    std::vector<float> k(count);
    // The failure of this turn may come now.
    if (!store.get(layer, k.data(), nullptr).ok()) {
      ASSERT_TRUE(store.get(layer, k.data(), nullptr).ok());
    }
    const std::vector<float> want = numbers(6, static_cast<uint32_t>(layer));
    const auto shown = static_cast<size_t>(std::min(length, 5) * kDim);
    ASSERT_TRUE(
        std::equal(k.begin(), k.begin() + static_cast<std::ptrdiff_t>(shown), want.begin()));
  }
}

TEST(TieredStore, EveryFileCallMayFail) {
  for (const bool given : {false, true}) {
    for (size_t fail = 0;; ++fail) {
      FailingFiles files;
      const TestFolder folder;
      files.fail_at = fail;
      const TierOptions options = options_for(files, given ? folder.path() : std::string());
      int failures = 0;
      auto made = TieredStore::create(options, system_allocator());
      if (!made.ok()) {
        ASSERT_EQ(made.status().code(), Code::kIo);
        ASSERT_TRUE(folder.all().empty());
        made = TieredStore::create(options, system_allocator());
      }
      ASSERT_TRUE(made.ok());
      TieredStore& store = **made;
      std::string where = store.folder();
      live(store, [&](const Status& status) {
        if (status.ok()) return false;
        EXPECT_EQ(status.code(), Code::kIo) << status.message();
        ++failures;
        expect_start(store);
        return true;
      });
      ASSERT_LE(failures, 1);
      expect_start(store);
      Status closed = store.close();
      if (!closed.ok()) closed = store.close();
      ASSERT_TRUE(closed.ok()) << closed.message();
      made = Status(Code::kInternal, "");
      ASSERT_EQ(files.open_files, 0) << "call " << fail;
      if (!given) {
        ASSERT_FALSE(std::filesystem::exists(where)) << "call " << fail;
      } else {  // what is left are whole folders that can be used again
        auto again = TieredStore::open(
            [&] {
              TierOptions same = options;
              same.store_id = where.substr(where.rfind("kv-") + 3);
              return same;
            }(),
            system_allocator());
        if (again.ok()) {
          for (int32_t layer = 1; layer < 2; ++layer) {
            ASSERT_EQ(again.value()->tier(layer), Tier::kCold);
          }
          expect_start(**again);
        } else {
          ASSERT_LE(files.calls, fail + 30) << again.status().message();
        }
        for (const std::string& name : folder.all()) {
          ASSERT_EQ(name.find(".part"), std::string::npos) << name << " at call " << fail;
        }
      }
      if (fail > files.calls) break;
      ASSERT_LT(fail, 2000U);
    }
  }
}

TEST(TieredStore, AFullDiskLosesNothing) {
  FailingFiles files;
  auto store = make(options_for(files));
  ASSERT_TRUE(append(*store, 0, 6, 1).ok());
  ASSERT_TRUE(store->demote(0).ok());
  files.fail_for = 1000000;
  files.fail_at = files.calls.load();
  const Status full = store->demote(0);
  EXPECT_EQ(full.code(), Code::kIo);
  EXPECT_EQ(store->tier(0), Tier::kWarm);
  EXPECT_EQ(store->manage().code(), Code::kIo);
  EXPECT_EQ(store->tier(0), Tier::kWarm);
  expect_layer(*store, 0, 6, 1, 6);
  files.fail_at = FailingFiles::kNever;
  ASSERT_TRUE(store->demote(0).ok());
  EXPECT_EQ(store->tier(0), Tier::kCold);
  expect_layer(*store, 0, 6, 1, 6);
}

TEST(TieredStore, EveryAllocationMayFail) {
  for (size_t fail = 0;; ++fail) {
    FailingFiles files;
    CountingAllocator allocator;
    allocator.fail_at = fail;
    {
      auto store = make(options_for(files), allocator);
      int failures = 0;
      live(*store, [&](const Status& status) {
        if (status.ok()) return false;
        EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.message();
        ++failures;
        expect_start(*store);
        return true;
      });
      ASSERT_LE(failures, 1);
      expect_start(*store);
      store->finish_prefetch();
      EXPECT_EQ(files.open_files, 1);
    }
    EXPECT_EQ(allocator.live_blocks, 0U);
    if (fail > allocator.calls) break;
    ASSERT_LT(fail, 1000U);
  }
}

}  // namespace
}  // namespace gen::cache
