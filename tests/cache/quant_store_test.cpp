// SPDX-License-Identifier: Apache-2.0
// Proves that quantised tensors come in the groups that the format says, whatever the order of
// appends and truncates: against lanes that are encoded anew, group by group, for each read. The
// codecs themselves are proven in quant/kv_codec_test.cpp.
#include "cache/tensor/quant_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cache/guard_allocator.h"
#include "quant/kv_fp8.h"
#include "quant/kv_q3.h"
#include "quant/kv_q4.h"

namespace gen::cache {
namespace {

/// What a group is read as: the codec there and back.
std::vector<float> as_read(const GroupFormat& format, const std::vector<float>& x) {
  std::vector<float> back(x.size());
  std::vector<uint8_t> codes(x.size() + 8);
  if (&format == &kFp8Tensors) {
    const float scale = quant::kv_fp8_encode(x.data(), x.size(), codes.data());
    quant::kv_fp8_decode(codes.data(), x.size(), scale, back.data());
  } else if (&format == &kQ4Tensors) {
    const float scale = quant::kv_q4_encode(x.data(), x.size(), codes.data());
    quant::kv_q4_decode(codes.data(), x.size(), scale, back.data());
  } else {
    uint16_t centroids[8];
    quant::kv_q3_encode(x.data(), x.size(), centroids, codes.data());
    quant::kv_q3_decode(centroids, codes.data(), x.size(), back.data());
  }
  return back;
}

/// One lane as the format describes it: what is known of each element, in groups.
class ModelLane {
 public:
  ModelLane(const GroupFormat& format, size_t dim, size_t capacity)
      : format_(format), group_(&format == &kFp8Tensors ? dim : 128), capacity_(capacity) {}

  void append(const float* x, size_t n) { elements_.insert(elements_.end(), x, x + n); }
  void truncate(size_t n) {
    const size_t start = n / group_ * group_;
    const size_t end = std::min(start + group_, capacity_);
    if (n % group_ != 0 && elements_.size() >= end) {  // a full group is opened again
      const std::vector<float> decoded = as_read(format_, std::vector<float>(at(start), at(end)));
      std::copy(decoded.begin(), decoded.end(), at(start));
    }
    elements_.resize(n);
  }
  std::vector<float> read() {
    std::vector<float> out;
    for (size_t start = 0; start < elements_.size(); start += group_) {
      const size_t end = std::min(start + group_, elements_.size());
      const std::vector<float> back = as_read(format_, std::vector<float>(at(start), at(end)));
      out.insert(out.end(), back.begin(), back.end());
    }
    return out;
  }

 private:
  std::vector<float>::iterator at(size_t i) {
    return elements_.begin() + static_cast<std::ptrdiff_t>(i);
  }

  const GroupFormat& format_;
  size_t group_;
  size_t capacity_;
  std::vector<float> elements_;
};

class QuantStoreTest : public ::testing::TestWithParam<const GroupFormat*> {
 protected:
  std::unique_ptr<QuantStore> make(int32_t layers, int32_t max_seq_len) {
    auto made = QuantStore::create(*GetParam(), layers, max_seq_len, allocator_);
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }
  std::vector<float> draw(size_t n) {
    std::vector<float> x(n);
    for (float& value : x) value = static_cast<float>(random_() % 2001) / 1000.0F - 1.0F;
    return x;
  }

  GuardAllocator allocator_;
  std::mt19937 random_{6};
};

INSTANTIATE_TEST_SUITE_P(Formats, QuantStoreTest,
                         ::testing::Values(&kFp8Tensors, &kQ4Tensors, &kQ3Tensors),
                         [](const auto& row) { return std::string(row.param->traits.kind); });

TEST_P(QuantStoreTest, GroupsAreThoseOfTheFormat) {
  struct Case {
    int32_t batch, dim, max_seq_len;
  };
  // Rows that are groups, parts of groups, several groups, and lanes with a shorter last group.
  for (const Case& shape : {Case{1, 128, 9}, Case{2, 5, 100}, Case{3, 200, 11}, Case{1, 1, 300},
                            Case{2, 256, 4}, Case{4, 64, 7}, Case{1, 127, 10}}) {
    const auto dim = static_cast<size_t>(shape.dim);
    const auto batch = static_cast<size_t>(shape.batch);
    const size_t capacity = dim * static_cast<size_t>(shape.max_seq_len);
    auto store = make(2, shape.max_seq_len);
    std::vector<ModelLane> lanes(2 * batch, ModelLane(*GetParam(), dim, capacity));
    int32_t length = 0;
    for (int step = 0; step < 120; ++step) {
      if (random_() % 3 == 0) {
        const auto n = static_cast<int32_t>(random_() % (static_cast<uint32_t>(length) + 2));
        ASSERT_TRUE(store->truncate(n).ok());
        if (n < length) {
          for (ModelLane& lane : lanes) lane.truncate(static_cast<size_t>(n) * dim);
          length = n;
        }
      } else {
        const auto most = static_cast<uint32_t>(shape.max_seq_len - length);
        const auto seq = static_cast<int32_t>(random_() % (most + 1));
        const size_t count = static_cast<size_t>(seq) * dim;
        const std::vector<float> k = draw(batch * count);
        const std::vector<float> v = draw(batch * count);
        ASSERT_TRUE(store->update(1, k.data(), v.data(), {shape.batch, seq, shape.dim}).ok());
        for (size_t b = 0; b < batch; ++b) {
          lanes[b].append(k.data() + b * count, count);
          lanes[batch + b].append(v.data() + b * count, count);
        }
        length += seq;
      }
      std::vector<float> want;
      for (ModelLane& lane : lanes) {
        const std::vector<float> part = lane.read();
        want.insert(want.end(), part.begin(), part.end());
      }
      std::vector<float> got(want.size());
      ASSERT_TRUE(store->get(1, got.data(), got.data() + want.size() / 2).ok());
      ASSERT_EQ(got, want) << "dim " << dim << ", step " << step;
    }
    EXPECT_EQ(store->layer_seq_len(0), 0);
  }
  EXPECT_FALSE(allocator_.bad_release());
}

TEST_P(QuantStoreTest, AppendsAtOnceAndOneByOneAreTheSame) {
  constexpr int32_t kDim = 48;
  constexpr int32_t kLength = 17;
  const std::vector<float> x = draw(static_cast<size_t>(2 * kLength * kDim));
  auto once = make(1, kLength);
  auto single = make(1, kLength);
  ASSERT_TRUE(once->update(0, x.data(), x.data(), {2, kLength, kDim}).ok());
  for (int32_t p = 0; p < kLength; ++p) {
    std::vector<float> row(x.begin() + p * kDim, x.begin() + (p + 1) * kDim);
    row.insert(row.end(), x.begin() + (kLength + p) * kDim, x.begin() + (kLength + p + 1) * kDim);
    ASSERT_TRUE(single->update(0, row.data(), row.data(), {2, 1, kDim}).ok());
  }
  std::vector<float> first(x.size());
  std::vector<float> second(x.size());
  ASSERT_TRUE(once->get(0, first.data(), nullptr).ok());
  ASSERT_TRUE(single->get(0, second.data(), nullptr).ok());
  EXPECT_EQ(first, second);
}

TEST_P(QuantStoreTest, ElementsThatAreNotFiniteAreRefused) {
  auto store = make(4, 8);
  const std::vector<float> good = draw(2 * 3 * 50);
  ASSERT_TRUE(store->update(3, good.data(), good.data(), {2, 3, 50}).ok());
  std::vector<float> before(good.size());
  ASSERT_TRUE(store->get(3, before.data(), nullptr).ok());
  const size_t resident = store->memory().resident;
  for (float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (size_t at : {size_t{0}, size_t{17}, good.size() - 1}) {
      std::vector<float> bad = good;
      bad[at] = value;
      const std::string index = std::string("[").append(std::to_string(at)).append("] is ");
      const Status key = store->update(3, bad.data(), good.data(), {2, 3, 50});
      EXPECT_EQ(key.code(), Code::kInvalidArgument);
      EXPECT_EQ(std::string(key.message()).find("layer 3: k" + index), 0u) << key.message();
      const Status row = store->update(3, good.data(), bad.data(), {2, 3, 50});
      EXPECT_EQ(std::string(row.message()).find("layer 3: v" + index), 0u) << row.message();
      // A layer without memory does not get any, and takes another shape later.
      EXPECT_EQ(store->update(2, bad.data(), good.data(), {2, 3, 50}).code(),
                Code::kInvalidArgument);
    }
  }
  EXPECT_EQ(store->memory().resident, resident);
  EXPECT_EQ(allocator_.live_bytes(), resident);
  EXPECT_EQ(store->layer_seq_len(3), 3);
  std::vector<float> after(good.size());
  ASSERT_TRUE(store->get(3, after.data(), nullptr).ok());
  EXPECT_EQ(after, before);
  ASSERT_TRUE(store->update(2, good.data(), good.data(), {3, 2, 50}).ok());
}

TEST_P(QuantStoreTest, StoresNoMoreThanItsBits) {
  constexpr int32_t kDim = 256;
  constexpr int32_t kPositions = 64;
  constexpr double kElements = 2.0 * 4 * kPositions * kDim;
  auto store = make(1, kPositions);
  const size_t bookkeeping = store->memory().metadata;
  const std::vector<float> x = draw(4 * kPositions * kDim);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {4, kPositions, kDim}).ok());
  const MemoryUse use = store->memory();
  // Bits of codes and of scales, section 4.6, with binary16 centroids.
  const bool is_fp8 = GetParam() == &kFp8Tensors;
  const bool is_q4 = GetParam() == &kQ4Tensors;
  const double codes = is_fp8 ? 8 : is_q4 ? 4 : 3;
  const double scales = is_fp8 ? 32.0 / kDim : is_q4 ? 32.0 / 128 : 128.0 / 128;
  EXPECT_EQ(static_cast<double>(use.payload) * 8, kElements * codes);
  EXPECT_EQ(static_cast<double>(use.metadata - bookkeeping) * 8, kElements * scales);
  EXPECT_EQ(static_cast<double>(use.resident) * 8, kElements * (codes + scales));
  EXPECT_EQ(use.resident, allocator_.live_bytes());
}

TEST_P(QuantStoreTest, AnOpenGroupIsAllThatIsKeptUnquantised) {
  auto store = make(1, 1000);
  const std::vector<float> x = draw(100 * 40);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {1, 100, 40}).ok());
  // 4000 elements: 31 groups and 32 elements.
  const size_t open = GetParam() == &kFp8Tensors ? 0 : 32;
  const size_t codes = GetParam() == &kFp8Tensors ? 4000 : GetParam() == &kQ4Tensors ? 1984 : 1488;
  EXPECT_EQ(store->memory().payload, 2 * (codes + open * sizeof(float)));
  ASSERT_TRUE(store->truncate(80).ok());  // 25 groups exactly
  const size_t left = GetParam() == &kFp8Tensors ? 3200 : GetParam() == &kQ4Tensors ? 1600 : 1200;
  EXPECT_EQ(store->memory().payload, 2 * left);
}

TEST_P(QuantStoreTest, ClonesAndFailuresLeaveTheOriginal) {
  auto store = make(3, 12);
  const std::vector<float> x = draw(2 * 7 * 50);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {2, 7, 50}).ok());
  ASSERT_TRUE(store->update(2, x.data(), x.data(), {1, 12, 11}).ok());  // a full lane
  for (int succeed = 0; succeed < 2; ++succeed) {
    allocator_.fail_after(succeed);
    EXPECT_EQ(store->clone().status().code(), Code::kOutOfMemory);
    EXPECT_EQ(allocator_.live_blocks(), 2u);
    allocator_.fail_after(0);
    EXPECT_EQ(store->update(1, x.data(), x.data(), {1, 1, 9}).code(), Code::kOutOfMemory);
  }
  EXPECT_EQ(store->update(1, nullptr, nullptr, {INT32_MAX, 1, INT32_MAX}).code(),
            Code::kOutOfMemory);
  allocator_.fail_after(-1);
  std::vector<float> want(2 * 7 * 50);
  std::vector<float> got(want.size());
  ASSERT_TRUE(store->get(0, want.data(), nullptr).ok());
  auto copy = store->clone();
  ASSERT_TRUE(copy.ok());
  ASSERT_TRUE(store->reset().ok());
  ASSERT_TRUE(store->update(0, x.data() + 5, x.data(), {2, 1, 50}).ok());
  ASSERT_TRUE(copy.value()->get(0, got.data(), nullptr).ok());
  EXPECT_EQ(got, want);
  EXPECT_EQ(copy.value()->layer_seq_len(2), 12);
  EXPECT_EQ(copy.value()->update(2, x.data(), x.data(), {1, 1, 11}).code(), Code::kCacheFull);
  ASSERT_TRUE(copy.value()->update(1, x.data(), x.data(), {1, 7, 3}).ok());
}

TEST_P(QuantStoreTest, ResetKeepsTheMemoryAndTakesAnotherShape) {
  auto store = make(1, 20);
  const std::vector<float> x = draw(4 * 20 * 64);
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {4, 20, 64}).ok());
  ASSERT_TRUE(store->reset().ok());
  const int allocations = allocator_.total();
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {4, 20, 64}).ok());
  ASSERT_TRUE(store->reset().ok());
  ASSERT_TRUE(store->update(0, x.data(), x.data(), {2, 3, 13}).ok());
  EXPECT_EQ(allocator_.total(), allocations);
  ModelLane lane(*GetParam(), 13, 20 * 13);
  lane.append(x.data() + 39, 39);
  std::vector<float> got(78);
  ASSERT_TRUE(store->get(0, got.data(), nullptr).ok());
  EXPECT_EQ(std::vector<float>(got.begin() + 39, got.end()), lane.read());
}

TEST(QuantStore, ChecksItsCreation) {
  EXPECT_STREQ(QuantStore::create(kQ4Tensors, -1, 4, system_allocator()).status().message(),
               "-1 layers are outside [0, 65536]");
  EXPECT_STREQ(QuantStore::create(kQ4Tensors, 1, 0, system_allocator()).status().message(),
               "max_seq_len 0 is below 1");
}

// What an open group is read as is found once for each of its contents, and the bits are those of
// finding it each time, which the tests above prove.
TEST(QuantStore, AnOpenGroupIsFittedOnce) {
  static int fits = 0;
  GroupFormat counting = kQ3Tensors;
  counting.encode = [](const float* x, size_t n, std::byte* scale, uint8_t* codes) noexcept {
    ++fits;
    kQ3Tensors.encode(x, n, scale, codes);
  };
  auto store = QuantStore::create(counting, 1, 100, system_allocator()).value();
  std::mt19937 random(5);
  std::vector<float> rows(2 * 5 * 40);
  for (float& x : rows) x = static_cast<float>(random() % 1000) / 100 - 5;
  const auto fits_of = [&](auto&& call) {
    const int before = fits;
    call();
    return fits - before;
  };
  std::vector<float> k(2 * 100 * 40);
  std::vector<float> v(k.size());
  const auto read = [&](bool keys, bool values) {
    EXPECT_TRUE(store->get(0, keys ? k.data() : nullptr, values ? v.data() : nullptr).ok());
  };
  ASSERT_TRUE(store->update(0, rows.data(), rows.data(), {2, 5, 40}).ok());  // 200 elements a lane
  EXPECT_EQ(fits_of([&] { read(true, false); }), 2);  // the open group of each lane
  const std::vector<float> first = k;
  EXPECT_EQ(fits_of([&] { read(true, true); }), 2);  // those of the values
  EXPECT_EQ(fits_of([&] { read(true, true); }), 0);
  EXPECT_EQ(k, first);
  EXPECT_EQ(v, first);
  auto copy = store->clone().value();
  EXPECT_EQ(fits_of([&] { EXPECT_TRUE(copy->get(0, k.data(), nullptr).ok()); }), 2);
  EXPECT_EQ(k, first);
  ASSERT_TRUE(store->update(0, rows.data(), rows.data(), {2, 1, 40}).ok());
  EXPECT_EQ(fits_of([&] { read(true, true); }), 4);
  ASSERT_TRUE(store->truncate(5).ok());
  EXPECT_EQ(fits_of([&] { read(true, true); }), 4);
  EXPECT_TRUE(std::equal(k.begin(), k.begin() + 2 * 200, first.begin()));
  EXPECT_EQ(fits_of([&] { read(true, true); }), 0);
}

}  // namespace
}  // namespace gen::cache
