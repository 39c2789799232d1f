// SPDX-License-Identifier: Apache-2.0
// Proves what a tiered store does in its folder: that one can be used again and holds nothing else
// afterwards, that stores in one do not meet, and that no damaged or foreign file is read as data.
#include <algorithm>

#include "cache/tiered_store_fixture.h"

namespace gen::cache {
namespace {

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
  EXPECT_EQ(store->prefetch(all).code(), Code::kState);
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

}  // namespace
}  // namespace gen::cache
