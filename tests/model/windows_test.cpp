// SPDX-License-Identifier: Apache-2.0
// What happens where a sequence reaches the window of its layers, over lanes, which let go what the
// window has left: the numbers are those of the definition without any cache, in whatever steps the
// tokens come, and a state taken there goes on as if nothing had been saved.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cache/sequence/cache_state.h"
#include "cache/sequence/lane_store.h"
#include "cache/state/state_file.h"
#include "engine/memory/host_memory.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

constexpr int32_t kWindow = 6;
constexpr int32_t kLengths[] = {kWindow - 1, kWindow,         kWindow + 1,
                                2 * kWindow, 2 * kWindow + 1, 3 * kWindow + 2};

class Windows : public testing::TestWithParam<const char*> {
 protected:
  Windows() : tiny_(spec()), model_(tiny_) {
    for (uint32_t i = 0; i < 40; ++i) tokens_.push_back(static_cast<int32_t>(i * i * 7 % 50));
  }
  static test::TinyModelSpec spec() {
    test::TinyModelSpec spec;
    spec.layers = 3;
    spec.window = kWindow;
    spec.local = {1, 0, 1};
    return spec;
  }
  /// A lane with cells for the window and one batch, so that it must let entries go.
  std::unique_ptr<cache::KvCache> lane(int32_t max_batch) {
    auto store = cache::LaneStore::create(GetParam(), model_.model().layer_shapes(),
                                          {1, 64, max_batch, 0, 0}, engine::system_memory())
                     .value();
    EXPECT_EQ(store->cells(0), kWindow - 1 + max_batch);
    return store->lane(0).value();
  }
  [[nodiscard]] std::span<const int32_t> some(int32_t first, int32_t n) const {
    return std::span(tokens_).subspan(static_cast<size_t>(first), static_cast<size_t>(n));
  }
  /// Logits of the first n tokens, which come in steps of `step`.
  std::vector<float> feed(cache::KvCache& cache, int32_t first, int32_t n, int32_t step) {
    std::vector<float> all;
    for (int32_t at = 0; at < n; at += step) {
      const auto some_of_them = some(first + at, std::min(step, n - at));
      const std::vector<float> part = model_.feed(cache, some_of_them);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  static std::vector<std::byte> save(cache::KvCache& cache) {
    const auto contents = [&cache](cache::StateWriter& to) { return cache.save(to); };
    std::vector<std::byte> state(cache::state_size(contents).value());
    EXPECT_TRUE(cache::save_state(cache::StateKind::kModelCache, contents, state).ok());
    return state;
  }
  static Status restore(cache::KvCache& cache, const std::vector<std::byte>& state) {
    GEN_ASSIGN(cache::StateReader reader, cache::StateReader::open(state));
    return cache.restore(reader);
  }

  test::TinyModel tiny_;
  test::LoadedTiny model_;
  std::vector<int32_t> tokens_;
};

INSTANTIATE_TEST_SUITE_P(Formats, Windows, testing::Values("fp32", "fp16", "fp8", "q4", "q3"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(Windows, DoNotShowInHowTokensCame) {
  for (const int32_t n : kLengths) {
    SCOPED_TRACE(n);
    const auto whole_lane = lane(n);
    const std::vector<float> whole = feed(*whole_lane, 0, n, n);
    for (const int32_t step : {1, 2, kWindow - 1, kWindow, kWindow + 1}) {
      const auto parts = lane(step);
      EXPECT_EQ(feed(*parts, 0, n, step), whole) << "in steps of " << step;
    }
    if (std::string(GetParam()) != "fp32") continue;
    const std::vector<double> want = tiny_.logits({tokens_.begin(), tokens_.begin() + n});
    ASSERT_EQ(want.size(), whole.size());
    double size = 0;
    double off = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      size += want[i] * want[i];
      off += (whole[i] - want[i]) * (whole[i] - want[i]);
    }
    EXPECT_LT(std::sqrt(off / size), 2e-5);  // as plan_model_test, of float arithmetic
  }
}

TEST_P(Windows, StatesGoOn) {
  for (const int32_t n : kLengths) {
    SCOPED_TRACE(n);
    const auto roomy = lane(64);  // lets nothing go
    feed(*roomy, 0, n, 4);
    const std::vector<std::byte> state = save(*roomy);
    const std::vector<float> want = feed(*roomy, n, 15, 3);
    const auto loaded = lane(n);
    const auto plain = model_.cache(GetParam());
    for (cache::KvCache* target : {loaded.get(), plain.get()}) {
      ASSERT_TRUE(restore(*target, state).ok());
      ASSERT_EQ(target->length(), n);
      EXPECT_EQ(feed(*target, n, 15, 5), want);
    }
    // What no longer holds everything has no state, says so, and goes on.
    const auto tight = lane(2);
    feed(*tight, 0, n, 2);
    if (n <= kWindow - 1 + 2) {
      EXPECT_EQ(save(*tight), state);
    } else {
      const auto contents = [&](cache::StateWriter& to) { return tight->save(to); };
      EXPECT_EQ(cache::state_size(contents).status().code(), Code::kUnsupported);
    }
    EXPECT_EQ(feed(*tight, n, 15, 2), want);
  }
}

TEST_P(Windows, CutsAreExactOrRefused) {
  for (const int32_t n : kLengths) {
    SCOPED_TRACE(n);
    const auto cut = lane(2);
    feed(*cut, 0, n, 2);
    for (int32_t keep = n - 1; keep > 0; --keep) {
      const int32_t length = cut->length();
      const Status status = cut->truncate(keep);
      if (!status.ok()) {
        EXPECT_EQ(status.code(), Code::kUnsupported) << status.message();
        EXPECT_EQ(cut->length(), length);
        EXPECT_GT(n, kWindow);
        break;
      }
      const auto fresh = lane(5);
      feed(*fresh, 0, keep, 5);
      const std::vector<float> next = feed(*fresh, keep, 1, 1);
      EXPECT_EQ(feed(*cut, keep, 1, 1), next) << "cut to " << keep;
    }
  }
}

TEST_P(Windows, TheSamePromptHasTheSameAnswer) {
  auto store = cache::LaneStore::create(GetParam(), model_.model().layer_shapes(), {2, 64, 7, 0, 0},
                                        engine::system_memory())
                   .value();
  std::vector<float> first;
  for (int32_t time = 0; time < 4; ++time) {
    const auto other = store->lane(100 + time).value();  // leaves its entries in what is used next
    feed(*other, 20 - 5 * time, 10 + 3 * time, 7);
    const auto lane = store->lane(time).value();
    const std::vector<float> got = feed(*lane, 0, 25, 4 + time);
    if (time == 0) first = got;
    EXPECT_EQ(got, first) << time;
  }
}

}  // namespace
}  // namespace gen::model
