// SPDX-License-Identifier: Apache-2.0
// The published vectors of causal caches for many sequences, with values as they come and permuted,
// and what the vectors leave out: reserving, other element types, padding, masks of binary16, keys
// that were shifted, shared cells, quotas, moves, and that failing calls change nothing. Random
// operations are sequence_conformance_test.cpp.
#include "cache/batch/causal_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/counting_allocator.h"
#include "tensor/half.h"

namespace gen::cache {
namespace {

constexpr int32_t kAll = INT32_MAX;

/// A store of one head of one element, driven in a few words.
class Fixture : public ::testing::TestWithParam<bool> {
 protected:
  void make(const CausalRules& rules, const SequenceLimits& limits, int32_t padding = 1,
            DType mask = DType::kF32) {
    store_ = std::make_unique<CausalStore>("test", rules);
    permuted_ = GetParam();
    ASSERT_TRUE(store_->configure({padding, permuted_, mask}).ok());
    const Status status = store_->init(limits, allocator_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void shift_by_adding() {
    ASSERT_TRUE(store_
                    ->set_shift([this](int32_t, float* keys, int32_t dim, int32_t heads, int32_t n,
                                       const int32_t* offsets) -> Status {
                      max_rows_ = std::max(max_rows_, n);
                      for (int32_t i = 0; i < n * dim * heads; ++i) {
                        keys[i] += static_cast<float>(offsets[i / (dim * heads)]);
                      }
                      return {};
                    })
                    .ok());
  }
  Status start(const std::vector<int32_t>& sequences, const std::vector<int32_t>& positions) {
    n_ = static_cast<int32_t>(positions.size());
    return store_->start_forward({positions, sequences, {}, false});
  }
  Status put(const std::vector<float>& keys) {
    std::vector<float> values;
    for (const float key : keys) values.push_back(100 * key);
    return store_->put({keys.data(), 1, 1}, {values.data(), 1, 1}, n_);
  }
  /// Starts, puts and compares what get gives: keys, and a word of 0 and x for each token.
  void pass(const std::vector<int32_t>& sequences, const std::vector<int32_t>& positions,
            const std::vector<float>& written, const std::vector<float>& keys,
            const std::vector<std::string>& mask) {
    Status status = start(sequences, positions);
    ASSERT_TRUE(status.ok()) << status.message();
    status = put(written);
    ASSERT_TRUE(status.ok()) << status.message();
    expect(keys, mask);
  }
  void expect(const std::vector<float>& keys, const std::vector<std::string>& mask) {
    auto shape = store_->shape();
    ASSERT_TRUE(shape.ok()) << shape.status().message();
    const auto length = static_cast<int32_t>(mask[0].size());
    ASSERT_EQ(shape->k[2], length);
    ASSERT_EQ(shape->v[permuted_ ? 0 : 2], length);
    ASSERT_EQ(shape->mask[0], length);
    ASSERT_EQ(shape->mask[1], static_cast<int32_t>(mask.size()));
    std::vector<float> k(static_cast<size_t>(length));
    std::vector<float> v(k.size());
    std::vector<float> m(k.size() * mask.size());
    ASSERT_TRUE(store_->get(k.data(), v.data(), m.data()).ok());
    EXPECT_EQ(k, keys);
    std::vector<std::string> found;
    for (size_t i = 0; i < mask.size(); ++i) {
      found.emplace_back();
      for (size_t j = 0; j < k.size(); ++j) {
        const float x = m[i * k.size() + j];
        found.back() += x == 0.0F ? '0' : std::isinf(x) && x < 0 ? 'x' : '?';
      }
    }
    EXPECT_EQ(found, mask);
  }
  [[nodiscard]] std::string resumes(int32_t sequence, int32_t most) const {
    std::string out;
    for (int32_t p = 0; p <= most; ++p) out += store_->can_resume(sequence, p).value() ? '1' : '0';
    return out;
  }

  test::CountingAllocator allocator_;
  std::unique_ptr<CausalStore> store_;
  bool permuted_ = false;
  int32_t n_ = 0;
  int32_t max_rows_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Values, Fixture, ::testing::Bool(),
                         [](const auto& row) { return row.param ? "permuted" : "plain"; });

const SequenceLimits kOne = {DType::kF32, 1, 16, 16};
const SequenceLimits kTwo = {DType::kF32, 2, 16, 16};
const CausalRules kCausal = {};

CausalRules window(int32_t w, int32_t memory = 0) { return {w, memory == 0 ? w : memory, 0}; }

// --- The vectors --------------------------------------------------------------------------------

TEST_P(Fixture, SlidingWindow) {
  make(window(1), kOne);
  pass({0, 0, 0, 0}, {0, 1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4}, {"0xxx", "00xx", "x00x", "xx00"});
  pass({0, 0}, {4, 5}, {5, 6}, {5, 6, 3, 4}, {"0xx0", "00xx"});
}

TEST_P(Fixture, SlidingWindowWithMemory) {
  make(window(1, 3), kOne);
  pass({0, 0, 0, 0}, {0, 1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4}, {"0xxx", "00xx", "x00x", "xx00"});
  pass({0, 0}, {4, 5}, {5, 6}, {5, 2, 3, 4, 6}, {"0xx0x", "0xxx0"});
}

TEST_P(Fixture, Chunks) {
  make({kNoLimit, kNoLimit, 2}, kOne);
  pass({0, 0, 0, 0}, {0, 1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4}, {"0xxx", "00xx", "xx0x", "xx00"});
  pass({0, 0, 0}, {4, 5, 6}, {5, 6, 7}, {1, 2, 3, 4, 5, 6, 7}, {"xxxx0xx", "xxxx00x", "xxxxxx0"});
  pass({0, 0}, {7, 8}, {8, 9}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {"xxxxxx00x", "xxxxxxxx0"});
}

TEST_P(Fixture, TwoSequences) {
  make(kCausal, kTwo);
  pass({0, 0, 1, 1}, {0, 1, 0, 1}, {1, 2, 3, 4}, {1, 2, 3, 4}, {"0xxx", "00xx", "xx0x", "xx00"});
  pass({0, 1}, {2, 2}, {5, 6}, {1, 2, 3, 4, 5, 6}, {"00xx0x", "xx00x0"});
}

TEST_P(Fixture, Removal) {
  make(kCausal, kTwo);
  shift_by_adding();
  pass({0, 0, 1, 1}, {0, 1, 0, 1}, {1, 2, 3, 4}, {1, 2, 3, 4}, {"0xxx", "00xx", "xx0x", "xx00"});
  ASSERT_TRUE(store_->remove(0, 1, kAll).ok());
  pass({0, 1}, {1, 2}, {5, 6}, {1, 5, 3, 4, 6}, {"00xxx", "xx000"});
  ASSERT_TRUE(store_->remove(0, 0, 1).ok());
  pass({0, 0}, {1, 2}, {7, 8}, {7, 4, 3, 4, 6, 8}, {"00xxxx", "00xxx0"});
}

TEST_P(Fixture, PrefixCopy) {
  make(kCausal, kTwo);
  pass({0, 0, 0, 0}, {0, 1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4}, {"0xxx", "00xx", "000x", "0000"});
  ASSERT_TRUE(store_->copy_prefix(0, 1, 2).ok());
  pass({1, 1}, {3, 4}, {5, 6}, {1, 2, 3, 4, 5, 6}, {"00xx0x", "00xx00"});
}

TEST_P(Fixture, Resuming) {
  make(window(4), kOne);
  EXPECT_EQ(resumes(0, 2), "000");
  ASSERT_TRUE(start({0, 0, 0, 0, 0}, {0, 1, 2, 3, 4}).ok());
  EXPECT_EQ(resumes(0, 4), "11111");
  ASSERT_TRUE(start({0}, {5}).ok());
  EXPECT_EQ(resumes(0, 5), "000001");
  make(window(4, 5), kOne);
  ASSERT_TRUE(start({0, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6}).ok());
  ASSERT_TRUE(start({0}, {7}).ok());
  EXPECT_EQ(resumes(0, 7), "00000011");
  EXPECT_EQ(resumes(0, 9), "0000001110");
  EXPECT_FALSE(store_->can_resume(0, -1).value());
  make(kCausal, kOne);
  EXPECT_EQ(resumes(7, 3), "1111");
}

TEST_P(Fixture, SlidingWindowOfTwoSequences) {
  make(window(1), {DType::kF32, 2, 16, 2});
  pass({0, 0}, {0, 1}, {1, 2}, {1, 2}, {"0x", "00"});
  pass({0, 0}, {2, 3}, {3, 4}, {2, 3, 4}, {"00x", "x00"});
  pass({1, 1}, {0, 1}, {5, 6}, {5, 6}, {"0x", "00"});
  pass({1, 1}, {2, 3}, {7, 8}, {6, 3, 4, 7, 8}, {"0xx0x", "xxx00"});
  pass({0, 0}, {4, 5}, {9, 10}, {9, 10, 3, 4}, {"0xx0", "00xx"});
}

// --- What they leave out ------------------------------------------------------------------------

TEST_P(Fixture, ReservingChangesNothing) {
  make(window(2), {DType::kF32, 1, 16, 4});
  const std::vector<int32_t> four = {0, 1, 2, 3};
  ASSERT_TRUE(store_->start_forward({four, four, {}, true}).ok());
  n_ = 4;
  ASSERT_TRUE(put({9, 9, 9, 9}).ok());
  auto shape = store_->shape();
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->k[2], 6);
  EXPECT_EQ(shape->mask[1], 4);
  std::vector<float> k(6);
  std::vector<float> mask(24);
  ASSERT_TRUE(store_->get(k.data(), nullptr, mask.data()).ok());
  EXPECT_FALSE(store_->can_resume(0, 0).value());
  pass({0, 0}, {0, 1}, {1, 2}, {1, 2}, {"0x", "00"});
}

TEST_P(Fixture, PaddingRoundsOut) {
  make(kCausal, {DType::kF32, 1, 7, 4}, 4);
  pass({0, 0, 0}, {0, 1, 2}, {1, 2, 3}, {1, 2, 3, 0}, {"0xxx", "00xx", "000x"});
  pass({0, 0, 0}, {3, 4, 5}, {4, 5, 6}, {1, 2, 3, 4, 5, 6, 0, 0},
       {"0000xxxx", "00000xxx", "000000xx"});
  make(window(1), {DType::kF32, 1, 16, 4}, 4);
  pass({0, 0, 0, 0}, {0, 1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4}, {"0xxx", "00xx", "x00x", "xx00"});
  pass({0}, {4}, {5}, {5, 2, 3, 4}, {"0xx0"});
}

TEST_P(Fixture, MasksOfBinary16) {
  make(kCausal, kOne, 1, DType::kF16);
  ASSERT_TRUE(start({0, 0}, {0, 1}).ok());
  ASSERT_TRUE(put({1, 2}).ok());
  std::vector<uint16_t> mask(4, 77);
  ASSERT_TRUE(store_->get(nullptr, nullptr, mask.data()).ok());
  EXPECT_EQ(mask, (std::vector<uint16_t>{0, 0xFC00, 0, 0}));
}

TEST_P(Fixture, ExceptListsLiftTheCausalRuleAlone) {
  make(window(1), kTwo);
  ASSERT_TRUE(start({0, 0, 0, 1}, {0, 1, 2, 0}).ok());
  ASSERT_TRUE(put({1, 2, 3, 4}).ok());
  expect({1, 2, 3, 4}, {"0xxx", "00xx", "x00x", "xxx0"});
  const int32_t two[] = {0, 2};
  ASSERT_TRUE(store_->set_causal(two).ok());
  expect({1, 2, 3, 4}, {"000x", "00xx", "x00x", "xxx0"});
  const int32_t past[] = {4};
  EXPECT_EQ(store_->set_causal(past).code(), Code::kOutOfRange);
  expect({1, 2, 3, 4}, {"000x", "00xx", "x00x", "xxx0"});
  pass({0}, {3}, {5}, {5, 2, 3}, {"0x0"});  // the list is of one pass
}

TEST_P(Fixture, ExceptListsStayWithinAChunk) {
  make({kNoLimit, kNoLimit, 4}, kOne);
  ASSERT_TRUE(start({0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5}).ok());
  ASSERT_TRUE(put({1, 2, 3, 4, 5, 6}).ok());
  const int32_t some[] = {1, 4};
  ASSERT_TRUE(store_->set_causal(some).ok());
  expect({1, 2, 3, 4, 5, 6}, {"0xxxxx", "0000xx", "000xxx", "0000xx", "xxxx00", "xxxx00"});
}

TEST_P(Fixture, ElementTypes) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0, DType::kQ4_0}) {
    make(kCausal, {type, 1, 8, 4});
    // Rows of 2 heads of 20 do not fill their blocks.
    std::vector<float> k(2 * 40);
    std::vector<float> v(2 * 24);
    for (size_t i = 0; i < k.size(); ++i) k[i] = std::sin(static_cast<float>(i));
    for (size_t i = 0; i < v.size(); ++i) v[i] = std::cos(static_cast<float>(i));
    ASSERT_TRUE(start({0, 0}, {0, 1}).ok());
    ASSERT_TRUE(store_->put({k.data(), 2, 20}, {v.data(), 2, 12}, 2).ok());
    std::vector<float> got_k(k.size());
    std::vector<float> got_v(v.size());
    ASSERT_TRUE(store_->get(got_k.data(), got_v.data(), nullptr).ok());
    // Half a step of the format, whose largest element here is at most 1: with a scale rounded to
    // binary16 for the blocks.
    const float off = type == DType::kF32    ? 0.0F
                      : type == DType::kF16  ? 0x1p-12F
                      : type == DType::kQ8_0 ? 0.5F / 127 + 0x1p-10F
                                             : 1.0F / 8 + 0x1p-9F;
    bool differs = false;
    for (size_t i = 0; i < k.size(); ++i) {
      EXPECT_NEAR(got_k[i], k[i], off);
      differs = differs || got_k[i] != k[i];
    }
    EXPECT_EQ(differs, type != DType::kF32);
    for (size_t token = 0; token < 2; ++token) {
      for (size_t e = 0; e < 24; ++e) {
        EXPECT_NEAR(got_v[permuted_ ? e * 2 + token : token * 24 + e], v[token * 24 + e], off);
      }
    }
    k[3] = NAN;
    const Status status = store_->put({k.data(), 2, 20}, {v.data(), 2, 12}, 2);
    EXPECT_EQ(status.ok(), type == DType::kF32 || type == DType::kF16) << status.message();
  }
}

TEST_P(Fixture, SharedCellsAreCopiedBeforeTheyAreShifted) {
  make(kCausal, {DType::kF32, 2, 3, 4});
  ASSERT_TRUE(start({0, 0, 0, 0}, {0, 1, 2, 3}).ok());
  ASSERT_TRUE(put({1, 2, 3, 4}).ok());
  ASSERT_TRUE(store_->copy_prefix(0, 1, 4).ok());
  EXPECT_EQ(store_->remove(0, 0, 1).code(), Code::kUnsupported);  // no function
  shift_by_adding();
  EXPECT_EQ(store_->remove(0, 0, 1).code(), Code::kCacheFull);  // 3 copies, 2 cells
  ASSERT_TRUE(store_->remove(1, 3, kAll).ok());
  ASSERT_TRUE(store_->remove(0, 0, 1).ok());  // one is not shared any more
  // Sequence 0 is now cells 4, 5, 3; sequence 1 still cells 0, 1, 2.
  ASSERT_TRUE(store_->remove(0, 2, kAll).ok());
  pass({0}, {2}, {8}, {8, 1, 2}, {"000"});
  ASSERT_TRUE(store_->remove(0, 0, kAll).ok());
  pass({1}, {3}, {9}, {1, 2, 3, 9}, {"0000"});
}

TEST_P(Fixture, ShiftsDoNotAddUp) {
  // Keys in 4 bits, shifted a hundred times: as far off as if they had been written once.
  make(kCausal, {DType::kQ4_0, 1, 200, 8});
  shift_by_adding();
  for (int32_t p = 0; p < 104; p += 8) {
    ASSERT_TRUE(
        start(std::vector<int32_t>(8, 0), {p, p + 1, p + 2, p + 3, p + 4, p + 5, p + 6, p + 7})
            .ok());
    ASSERT_TRUE(put({0, 1, 2, 3, 4, 5, 6, 7}).ok());
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(store_->remove(0, 0, 1).ok());
  ASSERT_TRUE(start({0}, {4}).ok());
  ASSERT_TRUE(put({-8}).ok());
  auto shape = store_->shape();
  std::vector<float> k(static_cast<size_t>(shape->k[2]));
  ASSERT_TRUE(store_->get(k.data(), nullptr, nullptr).ok());
  // A block whose elements are x, 0, 0, ... keeps x to binary16: -8 times a scale.
  for (size_t i = 100; i < 104; ++i) EXPECT_EQ(k[i], static_cast<float>(i - 96) - 100);
  EXPECT_LE(max_rows_, 8);
}

TEST_P(Fixture, RemovalInsideAWindowMayNeedDroppedPositions) {
  make(window(4), kOne);
  shift_by_adding();
  ASSERT_TRUE(start({0, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6, 7}).ok());
  ASSERT_TRUE(put({1, 2, 3, 4, 5, 6, 7, 8}).ok());
  ASSERT_TRUE(start({0}, {8}).ok());
  const Status status = store_->remove(0, 5, 7);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(std::string(status.message()).find("evaluate it again"), std::string::npos);
  EXPECT_EQ(resumes(0, 9), "0000000011");
  ASSERT_TRUE(store_->remove(0, 6, 7).ok());  // one entry more was held than the window
  EXPECT_EQ(resumes(0, 9), "0000000010");
  EXPECT_EQ(store_->remove(0, 6, 7).code(), Code::kUnsupported);
  ASSERT_TRUE(store_->remove(0, 0, kAll).ok());
  ASSERT_TRUE(start({0, 0, 0}, {0, 1, 2}).ok());
  EXPECT_TRUE(store_->remove(0, 0, 1).ok());  // nothing was dropped of the new one
}

TEST_P(Fixture, AFullCacheStaysAsItWas) {
  make(window(2), {DType::kF32, 2, 16, 4});  // 2 * 3 + 4 cells
  ASSERT_TRUE(start({0, 0, 0, 0}, {0, 1, 2, 3}).ok());
  ASSERT_TRUE(start({1, 1, 1, 1}, {0, 1, 2, 3}).ok());
  EXPECT_EQ(resumes(0, 5), "000110");                     // trimmed by the start of the other
  const Status full = start({0, 0, 1, 1}, {1, 1, 1, 1});  // drops nothing
  EXPECT_EQ(full.code(), Code::kCacheFull);
  EXPECT_NE(std::string(full.message()).find("batch of 4 in 10 cells, 3 are free"),
            std::string::npos)
      << full.message();
  EXPECT_EQ(start({2}, {0}).code(), Code::kCacheFull);  // a third sequence
  EXPECT_EQ(resumes(0, 5), "000110");
  EXPECT_EQ(resumes(1, 5), "111110");
  EXPECT_EQ(start({}, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(start({0, 0, 0, 0, 0}, {4, 5, 6, 7, 8}).code(), Code::kInvalidArgument);
  EXPECT_EQ(start({0}, {-1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(start({-1}, {0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(start({0, 1}, {0}).code(), Code::kInvalidArgument);
}

TEST_P(Fixture, QuotasHoldOneSequenceBack) {
  make(kCausal, {DType::kF32, 2, 8, 8});
  ASSERT_TRUE(store_->set_quota(5).ok());
  ASSERT_TRUE(start({0, 0, 0, 0}, {0, 1, 2, 3}).ok());
  const Status status = start({0, 0, 1}, {4, 5, 0});
  EXPECT_EQ(status.code(), Code::kCacheFull);
  EXPECT_NE(std::string(status.message()).find("sequence 0"), std::string::npos);
  EXPECT_TRUE(start({0, 1, 1}, {4, 0, 1}).ok());
  ASSERT_TRUE(store_->set_quota(0).ok());
  EXPECT_TRUE(start({0, 0}, {5, 6}).ok());
  EXPECT_EQ(store_->set_quota(-1).code(), Code::kInvalidArgument);
}

TEST_P(Fixture, CompactingChangesCellsAlone) {
  make(kCausal, {DType::kF32, 2, 8, 8});
  shift_by_adding();
  ASSERT_TRUE(start({0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 1, 2}).ok());
  ASSERT_TRUE(put({1, 2, 3, 4, 5, 6}).ok());
  ASSERT_TRUE(store_->copy_prefix(1, 0, 1).ok());  // cell 3 is shared, 0 to 2 are free
  ASSERT_TRUE(store_->remove(1, 0, 1).ok());       // cells 4 and 5 are shifted
  EXPECT_EQ(store_->compact(1).value(), 1);        // 5 to 0
  EXPECT_EQ(store_->compact(9).value(), 2);        // 4 to 1, 3 to 2
  EXPECT_EQ(store_->compact(9).value(), 0);
  EXPECT_EQ(store_->compact(-1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->shape().status().code(), Code::kState);
  pass({0, 1}, {1, 2}, {7, 8}, {5, 4, 4, 7, 8}, {"xx00x", "00xx0"});
}

TEST_P(Fixture, APrefixOfItselfIsARemoval) {
  make(kCausal, kTwo);
  ASSERT_TRUE(start({0, 0, 0}, {0, 1, 2}).ok());
  ASSERT_TRUE(put({1, 2, 3}).ok());
  ASSERT_TRUE(store_->copy_prefix(0, 0, 2).ok());
  pass({0}, {2}, {4}, {1, 2, 4}, {"000"});
  ASSERT_TRUE(store_->copy_prefix(5, 0, 2).ok());  // of nothing: the target is empty
  pass({0}, {0}, {5}, {5}, {"0"});
  EXPECT_EQ(store_->copy_prefix(0, -1, 2).code(), Code::kInvalidArgument);
  EXPECT_EQ(store_->copy_prefix(0, 1, -2).code(), Code::kInvalidArgument);
  ASSERT_TRUE(store_->copy_prefix(0, 1, 1).ok());
  EXPECT_EQ(store_->copy_prefix(0, 2, 1).code(), Code::kCacheFull);
}

TEST_P(Fixture, CallsComeInOrder) {
  CausalStore raw("causal", kCausal);
  EXPECT_EQ(raw.set_layer(0).code(), Code::kState);
  EXPECT_EQ(raw.remove(0, 0, 1).code(), Code::kState);
  EXPECT_EQ(raw.can_resume(0, 0).status().code(), Code::kState);
  EXPECT_EQ(raw.init({DType::kQ6_K, 1, 1, 1}, allocator_).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.init({DType::kF32, 0, 1, 1}, allocator_).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.init({DType::kF32, INT32_MAX, 2, 1}, allocator_).code(), Code::kInvalidArgument);
  EXPECT_TRUE(raw.configure({}).ok());
  EXPECT_EQ(raw.configure({}).code(), Code::kState);
  EXPECT_TRUE(raw.init(kOne, allocator_).ok());
  EXPECT_EQ(raw.init(kOne, allocator_).code(), Code::kState);
  EXPECT_EQ(raw.configure({}).code(), Code::kState);
  const float x[2] = {1, 2};
  EXPECT_EQ(raw.put({x, 1, 1}, {x, 1, 1}, 1).code(), Code::kState);
  EXPECT_EQ(raw.set_causal({}).code(), Code::kState);
  const int32_t zero[] = {0};
  ASSERT_TRUE(raw.start_forward({zero, zero, {}, false}).ok());
  EXPECT_EQ(raw.get(nullptr, nullptr, nullptr).code(), Code::kState);  // nothing put
  EXPECT_EQ(raw.put({x, 1, 1}, {x, 1, 1}, 2).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.put({nullptr, 1, 1}, {x, 1, 1}, 1).code(), Code::kInvalidArgument);
  EXPECT_TRUE(raw.put({x, 1, 1}, {x, 1, 2}, 1).ok());
  EXPECT_EQ(raw.put({x, 2, 1}, {x, 1, 2}, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.put({x, 1, 1}, {x, 1, 1}, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.set_layer(-1).code(), Code::kOutOfRange);
  EXPECT_EQ(raw.set_layer(65536).code(), Code::kOutOfRange);
  EXPECT_TRUE(raw.set_layer(3).ok());
  EXPECT_EQ(raw.shape().status().code(), Code::kState);
  EXPECT_EQ(raw.remove(0, 2, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(raw.memory().resident, allocator_.live_bytes);
  EXPECT_EQ(raw.memory().payload, 12u);
  EXPECT_EQ(raw.layer_types(), nullptr);
  EXPECT_EQ(raw.encoder_items(), nullptr);
  raw.close();
  raw.close();
  EXPECT_EQ(allocator_.live_bytes, 0u);
  EXPECT_EQ(raw.start_forward({zero, zero, {}, false}).code(), Code::kState);
  EXPECT_EQ(raw.init(kOne, allocator_).code(), Code::kState);
}

}  // namespace
}  // namespace gen::cache
