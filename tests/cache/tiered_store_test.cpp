// SPDX-License-Identifier: Apache-2.0
// Proves what a tiered store promises beyond tensor_conformance_test: the rules by which layers
// move, that memory goes with them, what each warm form may be off by, that prefetched copies are
// never old, that a folder can be used again and holds nothing else afterwards, that no damaged or
// foreign file is read as data, and that no failing call loses anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cache/tiered_store.h"
#include "support/counting_allocator.h"
#include "support/failing_file_ops.h"
#include "support/sanitized.h"

namespace gen::cache {
namespace {

using test::CountingAllocator;
using test::FailingFiles;
using test::TestFolder;

constexpr int32_t kLayers = 3;
constexpr int32_t kMost = 32;
constexpr int32_t kBatch = 2;
constexpr int32_t kDim = 5;

std::vector<float> numbers(int32_t seq, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<size_t>(kBatch * seq * kDim));
  for (float& value : x) value = static_cast<float>(random()) / 0x1p32F - 0.4F;
  return x;
}

TierOptions options_for(FailingFiles& files, const std::string& folder = {}) {
  TierOptions options;
  options.num_layers = kLayers;
  options.max_seq_len = kMost;
  options.chunk_size = 4;
  options.cold_dir = folder;
  options.files = &files;
  return options;
}

std::unique_ptr<TieredStore> make(const TierOptions& options,
                                  Allocator& allocator = system_allocator()) {
  auto made = TieredStore::create(options, allocator);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

Status append(TieredStore& store, int32_t layer, int32_t seq, uint32_t seed) {
  return store.update(layer, numbers(seq, seed).data(), numbers(seq, seed + 1).data(),
                      {kBatch, seq, kDim});
}

/// A layer written by one append of `seq` and cut to `kept`.
void expect_layer(const TieredStore& store, int32_t layer, int32_t seq, uint32_t seed,
                  int32_t kept) {
  ASSERT_EQ(store.layer_seq_len(layer), kept);
  const size_t count = static_cast<size_t>(kBatch * kept * kDim);
  std::vector<float> k(count);
  std::vector<float> v(count);
  ASSERT_TRUE(store.get(layer, k.data(), v.data()).ok());
  const std::vector<float> keys = numbers(seq, seed);
  const std::vector<float> values = numbers(seq, seed + 1);
  for (size_t b = 0; b < kBatch; ++b) {
    const size_t lane = static_cast<size_t>(kept * kDim);
    const size_t whole = b * static_cast<size_t>(seq * kDim);
    for (size_t i = 0; i < lane; ++i) {
      ASSERT_EQ(k[b * lane + i], keys[whole + i]) << "layer " << layer << " element " << i;
      ASSERT_EQ(v[b * lane + i], values[whole + i]) << "layer " << layer << " element " << i;
    }
  }
}

std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void put_bytes(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(TieredStore, ChecksItsOptions) {
  FailingFiles files;
  TierOptions options = options_for(files);
  options.num_layers = 0;
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(),
            Code::kInvalidArgument);
  options = options_for(files);
  options.max_seq_len = 0;
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(),
            Code::kInvalidArgument);
  options = options_for(files);
  options.warm = "zip";
  const Status unknown = TieredStore::create(options, system_allocator()).status();
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_STREQ(unknown.message(), "unknown warm form zip, known are fp32, fp16, fp8, q4, q3, mean");
  options = options_for(files, "/nowhere/at/all");
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(), Code::kIo);
  options = options_for(files);
  options.store_id = "../x";
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(files.open_files, 0);
}

TEST(TieredStore, LayersMoveByUse) {
  FailingFiles files;
  auto store = make(options_for(files));
  EXPECT_STREQ(store->traits().kind, "tiered");
  EXPECT_FALSE(store->traits().lossy);
  EXPECT_EQ(store->tier(0), Tier::kHot);
  EXPECT_EQ(store->tier(77), Tier::kHot);
  EXPECT_EQ(store->access_count(77), 0);
  ASSERT_TRUE(append(*store, 0, 3, 1).ok());
  EXPECT_EQ(store->access_count(0), 1);
  ASSERT_TRUE(append(*store, 1, 3, 3).ok());
  expect_layer(*store, 1, 3, 3, 3);
  expect_layer(*store, 1, 3, 3, 3);
  EXPECT_EQ(store->access_count(1), 3);
  ASSERT_TRUE(store->manage().ok());
  EXPECT_EQ(store->tier(0), Tier::kWarm);  // one use is below two
  EXPECT_EQ(store->tier(1), Tier::kHot);
  EXPECT_EQ(store->tier(2), Tier::kWarm);  // none, and empty
  EXPECT_EQ(store->access_count(1), 0);
  for (int i = 0; i < 5; ++i) expect_layer(*store, 0, 3, 1, 3);
  EXPECT_EQ(store->tier(0), Tier::kWarm);  // reading moves nothing
  ASSERT_TRUE(store->manage().ok());
  EXPECT_EQ(store->tier(0), Tier::kHot);
  EXPECT_EQ(store->tier(1), Tier::kWarm);
  EXPECT_EQ(store->tier(2), Tier::kCold);
  ASSERT_TRUE(store->demote(2).ok());  // at the end already
  ASSERT_TRUE(store->promote(0).ok());
  EXPECT_EQ(store->demote(kLayers).code(), Code::kOutOfRange);
  EXPECT_EQ(store->promote(-1).code(), Code::kOutOfRange);
  ASSERT_TRUE(append(*store, 2, 2, 9).ok());
  EXPECT_EQ(store->tier(2), Tier::kHot);
  expect_layer(*store, 2, 2, 9, 2);
}

TEST(TieredStore, MemoryGoesDownWithALayer) {
  FailingFiles files;
  CountingAllocator allocator;
  auto store = make(options_for(files), allocator);
  ASSERT_TRUE(append(*store, 0, 5, 1).ok());
  EXPECT_EQ(allocator.live_bytes, 2 * 1280U);  // [2, 32, 5] floats twice
  EXPECT_EQ(store->memory().resident, allocator.live_bytes);
  ASSERT_TRUE(store->demote(0).ok());
  EXPECT_EQ(allocator.live_bytes, 4 * 128U);  // four lanes of 25 floats to lines of 64
  EXPECT_EQ(store->memory().resident, allocator.live_bytes);
  ASSERT_TRUE(store->demote(0).ok());
  EXPECT_EQ(allocator.live_bytes, 0U);
  EXPECT_EQ(bytes_of(store->folder() + "/layer_0.bin").size(), 96U + 4 * 128U);
  ASSERT_TRUE(store->promote(0).ok());
  EXPECT_FALSE(std::filesystem::exists(store->folder() + "/layer_0.bin"));
  ASSERT_TRUE(store->promote(0).ok());
  expect_layer(*store, 0, 5, 1, 5);
}

TEST(TieredStore, WarmFormsAreOffByTheirFormula) {
  FailingFiles files;
  struct Row {
    const char* name;
    double (*bound)(double most, double x);
  };
  const Row rows[] = {
      {"fp32", [](double, double) { return 0.0; }},
      {"fp16", [](double, double x) { return std::max(x * 0x1p-11, 0x1p-25); }},
      {"fp8", [](double most, double x) { return std::max(x / 16, most / 448 / 1024) * 1.0001; }},
      {"q4", [](double most, double) { return most / 14 * 1.0001; }},
  };
  for (const Row& row : rows) {
    TierOptions options = options_for(files);
    options.warm = row.name;
    auto store = make(options);
    ASSERT_TRUE(append(*store, 1, 30, 5).ok());
    EXPECT_EQ(store->traits().lossy, std::string(row.name) != "fp32");
    EXPECT_FALSE(store->is_lossy(1));
    const std::vector<float> want = numbers(30, 5);
    double most = 0;
    for (const float x : want) most = std::max(most, std::fabs(static_cast<double>(x)));
    std::vector<float> first;
    for (int step = 0; step < 2; ++step) {  // warm, then cold: the same bytes
      ASSERT_TRUE(store->demote(1).ok());
      EXPECT_EQ(store->is_lossy(1), store->traits().lossy);
      std::vector<float> k(want.size());
      ASSERT_TRUE(store->get(1, k.data(), nullptr).ok());
      for (size_t i = 0; i < k.size(); ++i) {
        ASSERT_LE(std::fabs(static_cast<double>(k[i]) - static_cast<double>(want[i])),
                  row.bound(most, std::fabs(static_cast<double>(want[i]))))
            << row.name << " " << i;
      }
      if (step == 0) first = k;
      EXPECT_EQ(k, first);
    }
    ASSERT_TRUE(store->promote(1).ok());
    ASSERT_TRUE(store->promote(1).ok());
    std::vector<float> k(want.size());
    ASSERT_TRUE(store->get(1, k.data(), nullptr).ok());
    EXPECT_EQ(k, first);
    ASSERT_TRUE(store->truncate(0).ok());
    EXPECT_FALSE(store->is_lossy(1));
  }
}

TEST(TieredStore, MeansKeepTheCountAndAreMadeOnce) {
  FailingFiles files;
  TierOptions options = options_for(files);
  options.warm = "mean";
  options.chunk_size = 2;
  auto store = make(options);
  const float x[5] = {1, 3, 5, 9, 4};
  ASSERT_TRUE(store->update(0, x, x, {1, 5, 1}).ok());
  for (int round = 0; round < 2; ++round) {  // no mean of means
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(store->demote(0).ok());
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(store->promote(0).ok());
    ASSERT_EQ(store->layer_seq_len(0), 5);
    std::vector<float> k(5);
    ASSERT_TRUE(store->get(0, k.data(), nullptr).ok());
    EXPECT_EQ(k, (std::vector<float>{2, 2, 7, 7, 4}));
  }
  EXPECT_TRUE(store->is_lossy(0));
}

TEST(TieredStore, ElementsWithoutACodeStayWhereTheyAre) {
  FailingFiles files;
  TierOptions options = options_for(files);
  options.warm = "q4";
  auto store = make(options);
  const float x[2] = {1, std::numeric_limits<float>::infinity()};
  ASSERT_TRUE(store->update(0, x, x, {1, 2, 1}).ok());
  EXPECT_EQ(store->demote(0).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->tier(0), Tier::kHot);
  float got[2];
  ASSERT_TRUE(store->get(0, got, nullptr).ok());
  EXPECT_EQ(got[1], x[1]);
}

TEST(TieredStore, PrefetchedCopiesAreNeverOld) {
  FailingFiles files;
  auto store = make(options_for(files));
  TensorShape shape;
  std::vector<float> k(1000);
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    ASSERT_TRUE(append(*store, layer, 6, 10 * static_cast<uint32_t>(layer)).ok());
    for (int i = 0; i < layer; ++i) ASSERT_TRUE(store->demote(layer).ok());
  }
  const int32_t all[] = {0, 1, 2, 1, -4, 99};
  store->prefetch(all);
  store->finish_prefetch();
  ASSERT_TRUE(store->take_prefetched(0, k.data(), k.size(), nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);  // hot layers need none
  ASSERT_TRUE(store->take_prefetched(1, nullptr, 0, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 6);  // asking leaves it
  EXPECT_EQ(store->take_prefetched(1, k.data(), 59, nullptr, 0, &shape).code(), Code::kOutOfRange);
  ASSERT_TRUE(store->take_prefetched(1, k.data(), 60, nullptr, 0, &shape).ok());
  EXPECT_TRUE(std::equal(k.begin(), k.begin() + 60, numbers(6, 10).begin()));
  ASSERT_TRUE(store->take_prefetched(1, k.data(), 60, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);  // taken
  ASSERT_TRUE(store->take_prefetched(-1, nullptr, 0, nullptr, 0, &shape).ok());

  // A read takes the copy instead of the file.
  const size_t before = files.calls;
  expect_layer(*store, 2, 6, 20, 6);
  EXPECT_EQ(files.calls, before);
  expect_layer(*store, 2, 6, 20, 6);
  EXPECT_GT(files.calls, before);

  store->prefetch(all);
  store->finish_prefetch();
  ASSERT_TRUE(store->truncate(2).ok());
  ASSERT_TRUE(store->take_prefetched(2, nullptr, 0, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);
  expect_layer(*store, 2, 6, 20, 2);
  store->prefetch(all);
  store->finish_prefetch();
  ASSERT_TRUE(append(*store, 1, 1, 90).ok());
  ASSERT_TRUE(store->take_prefetched(1, nullptr, 0, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);
  ASSERT_TRUE(store->reset().ok());
  ASSERT_TRUE(store->take_prefetched(2, nullptr, 0, nullptr, 0, &shape).ok());
  EXPECT_EQ(shape.seq, 0);
}

TEST(TieredStore, ATemporaryFolderGoesWithTheStore) {
  FailingFiles files;
  auto store = make(options_for(files));
  const std::string folder = store->folder();
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    ASSERT_TRUE(append(*store, layer, 4, 1).ok());
    ASSERT_TRUE(store->demote(layer).ok());
    ASSERT_TRUE(store->demote(layer).ok());
  }
  EXPECT_TRUE(std::filesystem::exists(folder + "/layer_2.bin"));
  ASSERT_TRUE(store->reset().ok());
  EXPECT_FALSE(std::filesystem::exists(folder + "/layer_2.bin"));
  EXPECT_EQ(store->tier(2), Tier::kHot);
  ASSERT_TRUE(append(*store, 0, 4, 1).ok());
  ASSERT_TRUE(store->demote(0).ok());
  ASSERT_TRUE(store->demote(0).ok());
  ASSERT_TRUE(store->close().ok());
  ASSERT_TRUE(store->close().ok());
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_EQ(append(*store, 0, 1, 1).code(), Code::kState);
  float x[100];
  EXPECT_EQ(store->get(0, x, x).code(), Code::kState);
  EXPECT_EQ(store->demote(0).code(), Code::kState);
  EXPECT_EQ(store->promote(0).code(), Code::kState);
  EXPECT_EQ(store->manage().code(), Code::kState);
  EXPECT_EQ(store->truncate(0).code(), Code::kState);
  EXPECT_EQ(store->reset().code(), Code::kState);
  EXPECT_EQ(store->clone().status().code(), Code::kState);
  EXPECT_EQ(store->memory().resident, 0U);
  const int32_t all[] = {0, 1, 2};
  store->prefetch(all);  // nobody is there any more
  store.reset();
  EXPECT_EQ(files.open_files, 0);
}

TEST(TieredStore, AFolderThatWasGivenIsLeftAndUsedAgain) {
  FailingFiles files;
  const TestFolder folder;
  put_bytes(folder.path() + "/layer_0.bin", {'m', 'i', 'n', 'e'});
  TierOptions options = options_for(files, folder.path());
  options.store_id = "first";
  auto store = make(options);
  EXPECT_EQ(store->folder(), folder.path() + "/kv-first");
  EXPECT_EQ(TieredStore::create(options, system_allocator()).status().code(), Code::kIo);
  EXPECT_EQ(TieredStore::open(options, system_allocator()).status().code(), Code::kBusy);
  ASSERT_TRUE(append(*store, 0, 9, 1).ok());
  ASSERT_TRUE(append(*store, 1, 8, 3).ok());
  ASSERT_TRUE(append(*store, 2, 7, 5).ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(store->demote(0).ok());
    ASSERT_TRUE(store->demote(2).ok());
  }
  ASSERT_TRUE(store->truncate(6).ok());
  ASSERT_TRUE(store->close().ok());
  store.reset();

  options.store_id.clear();  // there is but one
  options.num_layers = kLayers + 1;
  EXPECT_EQ(TieredStore::open(options, system_allocator()).status().code(), Code::kFormat);
  options.num_layers = kLayers;
  options.max_seq_len = 5;
  EXPECT_EQ(TieredStore::open(options, system_allocator()).status().code(), Code::kFormat);
  options.max_seq_len = kMost;
  auto again = TieredStore::open(options, system_allocator());
  ASSERT_TRUE(again.ok()) << again.status().message();
  store = std::move(again).value();
  EXPECT_EQ(store->tier(0), Tier::kCold);
  EXPECT_EQ(store->tier(1), Tier::kHot);
  EXPECT_EQ(store->layer_seq_len(1), 0);
  expect_layer(*store, 0, 9, 1, 6);
  expect_layer(*store, 2, 7, 5, 6);
  ASSERT_TRUE(append(*store, 1, 6, 8).ok());
  EXPECT_EQ(store->seq_len(), 6);
  ASSERT_TRUE(store->reset().ok());  // of all files only its own go
  ASSERT_TRUE(store->close().ok());
  EXPECT_EQ(folder.all(), std::vector<std::string>{folder.path() + "/layer_0.bin"});
  EXPECT_EQ(TieredStore::open(options, system_allocator()).status().code(), Code::kIo);
}

TEST(TieredStore, StoresInOneFolderDoNotMeet) {
  FailingFiles files;
  const TestFolder folder;
  std::vector<std::unique_ptr<TieredStore>> stores;
  for (uint32_t i = 0; i < 8; ++i) {
    stores.push_back(make(options_for(files, folder.path())));
    ASSERT_TRUE(append(*stores[i], 0, 5, 2 * i).ok());
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(stores[i]->demote(0).ok());
  }
  for (uint32_t i = 0; i < 8; ++i) expect_layer(*stores[i], 0, 5, 2 * i, 5);
  const Status which =
      TieredStore::open(options_for(files, folder.path()), system_allocator()).status();
  EXPECT_EQ(which.code(), Code::kIo);
  EXPECT_NE(std::string(which.message()).find("8 stores"), std::string::npos);
}

TEST(TieredStore, NoBadFileIsReadAsData) {
  FailingFiles files;
  const TestFolder folder;
  TierOptions options = options_for(files, folder.path());
  auto store = make(options);
  auto other = make(options);
  for (auto* each : {store.get(), other.get()}) {
    ASSERT_TRUE(append(*each, 0, 5, each == store.get() ? 1 : 7).ok());
    ASSERT_TRUE(append(*each, 1, 5, each == store.get() ? 1 : 7).ok());
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(each->demote(0).ok());
      ASSERT_TRUE(each->demote(1).ok());
    }
  }
  const std::string path = store->folder() + "/layer_0.bin";
  const std::vector<char> good = bytes_of(path);
  std::vector<float> k(1000, 7.0F);
  const auto refused = [&](const std::vector<char>& bytes, Code code, const char* why) {
    put_bytes(path, bytes);
    const Status status = store->get(0, k.data(), nullptr);
    EXPECT_EQ(status.code(), code) << why;
    EXPECT_NE(std::string(status.message()).find("layer_0.bin"), std::string::npos);
    EXPECT_NE(std::string(status.message()).find(why), std::string::npos) << status.message();
    EXPECT_EQ(store->promote(0).code(), code);
    EXPECT_EQ(append(*store, 0, 1, 5).code(), code);
    EXPECT_EQ(store->tier(0), Tier::kCold);
    EXPECT_EQ(store->layer_seq_len(0), 5);
  };
  for (size_t at = 0; at < good.size(); ++at) {  // every byte counts
    std::vector<char> bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    refused(bad, Code::kFormat, "layer_0.bin");
  }
  std::vector<char> torn = good;
  torn.resize(good.size() - 1);
  refused(torn, Code::kFormat, "torn");
  refused({}, Code::kFormat, "0 bytes");
  std::fill(torn.begin() + 300, torn.end(), '\0');
  torn.resize(good.size());
  refused(torn, Code::kFormat, "damaged");
  refused(bytes_of(other->folder() + "/layer_0.bin"), Code::kFormat, "another cache");
  refused(bytes_of(store->folder() + "/layer_1.bin"), Code::kFormat, "something else");
  std::vector<char> version = good;
  version[8] = 9;
  refused(version, Code::kFormat, "version 9");
  std::filesystem::remove(path);
  EXPECT_EQ(store->get(0, k.data(), nullptr).code(), Code::kIo);
  EXPECT_EQ(*std::max_element(k.begin(), k.end()), 7.0F);  // nothing of all that came out
  // A file of an earlier time is not the one that was put there last.
  put_bytes(path, good);
  expect_layer(*store, 0, 5, 1, 5);
  ASSERT_TRUE(append(*store, 0, 1, 3).ok());
  ASSERT_TRUE(store->truncate(5).ok());
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(store->demote(0).ok());
  const std::vector<char> later = bytes_of(path);
  ASSERT_EQ(later.size(), good.size());
  refused(good, Code::kFormat, "something else");
  put_bytes(path, later);
  expect_layer(*store, 0, 5, 1, 5);

  // The manifest, when a folder is used again.
  const std::string own = store->folder();
  options.store_id = own.substr(own.rfind("kv-") + 3);
  store.reset();
  const std::string manifest = own + "/manifest.bin";
  const std::vector<char> written = bytes_of(manifest);
  for (size_t at = 0; at < written.size(); ++at) {
    std::vector<char> bad = written;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    put_bytes(manifest, bad);
    const Status status = TieredStore::open(options, system_allocator()).status();
    ASSERT_EQ(status.code(), Code::kFormat) << at;
    ASSERT_NE(std::string(status.message()).find("manifest.bin"), std::string::npos);
  }
  for (size_t size = 0; size < written.size(); size += 13) {
    put_bytes(manifest, {written.begin(), written.begin() + static_cast<std::ptrdiff_t>(size)});
    ASSERT_EQ(TieredStore::open(options, system_allocator()).status().code(), Code::kFormat);
  }
  std::filesystem::remove(manifest);
  EXPECT_EQ(TieredStore::open(options, system_allocator()).status().code(), Code::kIo);
  put_bytes(manifest, written);
  auto back = TieredStore::open(options, system_allocator());
  ASSERT_TRUE(back.ok()) << back.status().message();
  expect_layer(**back, 0, 5, 1, 5);
}

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
  store.prefetch(all);
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

TEST(TieredStore, ManyThreadsSeeWholeLayers) {
  // Each layer belongs to a writer, whose rows all hold one number; readers must never see two.
  FailingFiles files;
  auto store = make(options_for(files));
  const int steps = test::kSanitized ? 500 : 5000;
  std::atomic<int> reading = 3;
  std::atomic<int> bad = 0;
  std::vector<std::thread> threads;
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    threads.emplace_back([&, layer] {
      const std::vector<float> x(static_cast<size_t>(kBatch * kDim), static_cast<float>(layer));
      for (int32_t i = 0; reading > 0; ++i) {
        if (store->layer_seq_len(layer) == kMost) bad += !store->truncate(i % kMost).ok();
        const Status status = store->update(layer, x.data(), x.data(), {kBatch, 1, kDim});
        bad += !status.ok();
        std::this_thread::yield();
      }
    });
  }
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      std::vector<float> k(static_cast<size_t>(kBatch * kMost * kDim));
      for (int i = 0; i < steps; ++i) {
        const auto layer = static_cast<int32_t>(random() % kLayers);
        const int32_t all[] = {0, 1, 2};
        std::fill(k.begin(), k.end(), static_cast<float>(layer));
        TensorShape shape;
        switch (random() % 8) {
          case 0:
            bad += !store->demote(layer).ok();
            break;
          case 1:
            bad += !store->promote(layer).ok();
            break;
          case 2:
            bad += !store->manage().ok();
            break;
          case 3:
            store->prefetch(all);
            break;
          case 4:
            bad += !store->take_prefetched(layer, k.data(), k.size(), nullptr, 0, &shape).ok();
            break;
          case 5:
            bad += store->memory().metadata == 0;
            break;
          case 6:
            bad += store->seq_len() > kMost || store->shape(layer).seq > kMost;
            break;
          default:
            bad += !store->get(layer, k.data(), nullptr).ok();
        }
        for (const float x : k) bad += x != static_cast<float>(layer);
      }
      --reading;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  // Closing may come at any time.
  std::thread reader([&] {
    std::vector<float> k(static_cast<size_t>(kBatch * kMost * kDim));
    for (;;) {
      if (store->get(0, k.data(), nullptr).code() == Code::kState) return;
    }
  });
  EXPECT_TRUE(store->close().ok());
  reader.join();
  store.reset();
  EXPECT_EQ(files.open_files, 0);
}

}  // namespace
}  // namespace gen::cache
