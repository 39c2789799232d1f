// SPDX-License-Identifier: Apache-2.0
// A model some of whose blocks recur and some attend: that it computes what its definition says,
// and that a row's logits are bit for bit the same however the rows before it came: in steps of any
// size, beside other sequences, among drafts of which any number stayed, in a fork, after going
// back to a snapshot, after a pass that failed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cache/state/recurrent_state.h"
#include "support/drift_model.h"
#include "support/far_engine.h"

namespace gen::model {
namespace {

using cache::Keep;
using Floats = std::vector<float>;
using Tokens = std::vector<int32_t>;

const Tokens kTokens = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 46, 26, 43, 0, 1, 2, 48};

/// A sequence of a model: its cache and its state.
struct Lane {
  explicit Lane(const test::LoadedTiny& model)
      : tiny(model), cache(model.cache()), state(model.model().new_sequence_state().value()) {}
  Lane(const test::LoadedTiny& model, std::unique_ptr<cache::KvCache> kv,
       std::unique_ptr<cache::SequenceState> beside)
      : tiny(model), cache(std::move(kv)), state(std::move(beside)) {}

  /// Runs rows and keeps the first `n` of them; logits of all.
  Floats step(std::span<const int32_t> tokens, Keep keep, int32_t n) {
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, tokens, true, state.get(), keep).ok());
    const Status status = tiny.model().forward(batch.finish(tiny.vocab()));
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit(batch.sequences[0], n);
    return batch.results(tiny.vocab());
  }
  Floats take(std::span<const int32_t> tokens, Keep keep = Keep::kAll) {
    return step(tokens, keep, static_cast<int32_t>(tokens.size()));
  }
  /// kTokens [first, end) in steps of `n`.
  Floats feed(size_t first, size_t end, size_t n, Keep keep = Keep::kAll) {
    Floats all;
    for (size_t at = first; at < end; at += n) {
      const Floats part = take(std::span(kTokens).subspan(at, std::min(n, end - at)), keep);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  const test::LoadedTiny& tiny;
  std::unique_ptr<cache::KvCache> cache;
  std::unique_ptr<cache::SequenceState> state;
};

class Recurrent : public ::testing::Test {
 protected:
  /// Of rows [first, end) of the plain run.
  Floats want(size_t first, size_t end) const {
    const auto width = static_cast<ptrdiff_t>(model.vocab());
    return {plain.begin() + static_cast<ptrdiff_t>(first) * width,
            plain.begin() + static_cast<ptrdiff_t>(end) * width};
  }

  const test::TinyModel tiny{test::drift_spec()};
  const test::LoadedTiny model{tiny, test::with_drift()};
  const Floats plain = Lane(model).feed(0, kTokens.size(), 1);
};

TEST_F(Recurrent, ComputesWhatItsDefinitionSays) {
  const std::vector<double> exact = tiny.logits(kTokens);
  for (const CpuLevel level : {CpuLevel::kScalar, detect_cpu_level()}) {
    for (const int32_t threads : {1, 3}) {
      const test::LoadedTiny loaded(tiny, test::with_drift(level, threads));
      const Floats got = Lane(loaded).feed(0, kTokens.size(), 5);
      EXPECT_EQ(got, plain);
      ASSERT_EQ(got.size(), exact.size());
      double off = 0.0;
      double size = 0.0;
      for (size_t i = 0; i < exact.size(); ++i) {
        off += (static_cast<double>(got[i]) - exact[i]) * (static_cast<double>(got[i]) - exact[i]);
        size += exact[i] * exact[i];
      }
      EXPECT_LT(std::sqrt(off / size), 5e-5);
    }
  }
}

TEST_F(Recurrent, WhatItSaysOfItself) {
  EXPECT_EQ(model.model().layer_shapes().size(), 1U);
  EXPECT_FALSE(model.model().traits().can_branch);
  EXPECT_FALSE(model.model().traits().can_shift);
  EXPECT_TRUE(model.model().traits().can_truncate);
  const auto state = model.model().new_sequence_state().value();
  const std::vector<cache::StateShape> want(3, {40, 80});
  const auto shapes = state->shapes();
  EXPECT_EQ(std::vector<cache::StateShape>(shapes.begin(), shapes.end()), want);
  EXPECT_TRUE(state->keeps_some());
}

TEST_F(Recurrent, StepsDoNotShow) {
  for (const size_t n : {2U, 3U, 7U, 20U}) {
    EXPECT_EQ(Lane(model).feed(0, kTokens.size(), n), plain) << n;
    EXPECT_EQ(Lane(model).feed(0, kTokens.size(), n, Keep::kSome), plain) << n;
  }
}

TEST_F(Recurrent, OtherSequencesDoNotShow) {
  Lane lanes[] = {Lane(model), Lane(model), Lane(model)};
  size_t at[] = {0, 0, 0};
  Floats got[3];
  for (size_t round = 0; round < 6; ++round) {
    test::OwnedBatch batch;
    size_t counts[3];
    for (size_t i = 0; i < 3; ++i) {
      counts[i] = std::min(1 + (round + 2 * i) % 4, kTokens.size() - at[i]);
      const auto tokens = std::span(kTokens).subspan(at[i], counts[i]);
      const Keep keep = (round + i) % 3 == 0 ? Keep::kSome : Keep::kAll;
      ASSERT_TRUE(batch.add(*lanes[i].cache, tokens, true, lanes[i].state.get(), keep).ok());
    }
    ASSERT_TRUE(model.model().forward(batch.finish(model.vocab())).ok());
    batch.commit();
    const Floats all = batch.results(model.vocab());
    auto next = all.begin();
    for (size_t i = 0; i < 3; ++i) {
      const auto end = next + static_cast<ptrdiff_t>(counts[i]) * model.vocab();
      got[i].insert(got[i].end(), next, end);
      next = end;
      at[i] += counts[i];
    }
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(got[i], want(0, at[i])) << i;
}

// One step of drafts after another, of which this many are right.
TEST_F(Recurrent, RejectionsDoNotShow) {
  for (int32_t rows = 1; rows <= 6; ++rows) {
    for (int32_t right = 0; right <= rows; ++right) {
      SCOPED_TRACE(testing::Message() << right << " of " << rows);
      Lane lane(model);
      EXPECT_EQ(lane.feed(0, 5, 5), want(0, 5));
      size_t at = 5;
      for (int32_t round = 0; round < 2; ++round) {
        Tokens drafts;
        for (int32_t i = 0; i < rows; ++i) {
          const int32_t token = kTokens[at + static_cast<size_t>(i)];
          drafts.push_back(i < right ? token : (token + 1) % 50);
        }
        Floats got = lane.step(drafts, Keep::kSome, right);
        got.resize(static_cast<size_t>(right * model.vocab()));
        EXPECT_EQ(got, want(at, at + static_cast<size_t>(right)));
        at += static_cast<size_t>(right);
        EXPECT_EQ(lane.state->length(), static_cast<int32_t>(at));
      }
      EXPECT_EQ(lane.feed(at, kTokens.size(), 3), want(at, kTokens.size()));
    }
  }
}

TEST_F(Recurrent, ForksGoTheirOwnWays) {
  for (const Keep keep : {Keep::kAll, Keep::kSome}) {
    Lane lane(model);
    lane.feed(0, 8, 4, keep);
    ASSERT_NE(lane.state->copies(), nullptr);
    Lane fork(model, lane.cache->fork().value(), lane.state->copies()->fork().value());
    fork.take(Tokens{1, 2, 3, 4, 5});
    EXPECT_EQ(lane.feed(8, 12, 2, keep), want(8, 12));
    Lane late(model, lane.cache->fork().value(), lane.state->copies()->fork().value());
    lane.cache.reset();
    lane.state.reset();
    EXPECT_EQ(late.feed(12, kTokens.size(), 3, keep), want(12, kTokens.size()));
  }
}

TEST_F(Recurrent, GoesBackToSnapshots) {
  for (const Keep keep : {Keep::kAll, Keep::kSome}) {
    Lane lane(model);
    cache::StateSnapshots* const snapshots = lane.state->snapshots();
    ASSERT_NE(snapshots, nullptr);
    const auto back = [&](int32_t n) {
      const int32_t left = lane.state->rewind(n).value();
      EXPECT_TRUE(lane.cache->truncate(left).ok());
      EXPECT_EQ(lane.state->length(), left);
      return left;
    };
    lane.feed(0, 5, 5, keep);
    ASSERT_TRUE(snapshots->snapshot().ok());
    lane.feed(5, 9, 2, keep);
    const auto ninth = snapshots->snapshot().value();
    EXPECT_EQ(ninth->length(), 9);
    lane.feed(9, 15, 3, keep);
    EXPECT_EQ(back(15), 15);
    EXPECT_EQ(back(20), 15);
    EXPECT_EQ(back(11), 9);
    EXPECT_EQ(lane.feed(9, 12, 1, keep), want(9, 12));
    EXPECT_EQ(back(8), 5);
    lane.take(Tokens{40, 41, 42, 43, 44});  // another text
    EXPECT_EQ(back(9), 5);
    EXPECT_EQ(lane.feed(5, 14, 4, keep), want(5, 14));
    EXPECT_EQ(back(4), 0);
    EXPECT_EQ(lane.feed(0, 6, 4, keep), want(0, 6));

    // One that is held goes to another state, too.
    Lane other(model);
    other.feed(0, 9, 9);
    ASSERT_TRUE(other.state->snapshots()->restore(ninth).ok());
    EXPECT_EQ(other.feed(9, kTokens.size(), 4, keep), want(9, kTokens.size()));
    EXPECT_EQ(other.state->rewind(8).value(), 0);

    test::TinyModelSpec spec = test::drift_spec();
    spec.recurrent = {1, 0, 1, 0};
    const test::LoadedTiny stranger(test::TinyModel(spec), test::with_drift());
    const auto refuses = stranger.model().new_sequence_state().value();
    EXPECT_EQ(refuses->snapshots()->restore(ninth).code(), Code::kInvalidArgument);
  }
}

// For others, of whom rewind() knows nothing; and what was shared stays what it was.
TEST_F(Recurrent, SharesSnapshots) {
  for (const Keep keep : {Keep::kAll, Keep::kSome}) {
    Lane lane(model);
    cache::StateSnapshots* const snapshots = lane.state->snapshots();
    std::vector<std::shared_ptr<const cache::StateSnapshot>> shared;
    lane.feed(0, 4, 4, keep);
    ASSERT_TRUE(snapshots->snapshot().ok());
    for (size_t at = 4; at < 16; at += 2) {
      EXPECT_EQ(lane.feed(at, at + 2, 1 + at / 2 % 2, keep), want(at, at + 2));
      shared.push_back(snapshots->share().value());
      EXPECT_EQ(snapshots->share().value()->length(), static_cast<int32_t>(at) + 2);
    }
    for (const auto& snapshot : shared) {
      const auto at = static_cast<size_t>(snapshot->length());
      Lane other(model);
      other.feed(0, at, at);
      ASSERT_TRUE(other.state->snapshots()->restore(snapshot).ok());
      EXPECT_EQ(other.feed(at, kTokens.size(), 3, keep), want(at, kTokens.size()));
    }
    EXPECT_EQ(lane.state->rewind(15).value(), 4);
    ASSERT_TRUE(lane.cache->truncate(4).ok());
    EXPECT_EQ(lane.feed(4, kTokens.size(), 5), want(4, kTokens.size()));
  }
}

// Only rows that are not certain are kept, and only they are places to go back to.
TEST_F(Recurrent, CertainRowsAreNotKept) {
  // Three layers of 40 cells, which lie 48 apart, and 80 inputs of a row.
  for (const int32_t certain : {0, 18, 20}) {
    const auto state = model.model().new_sequence_state().value();
    const cache::StatePlan plan = state->plan(21, Keep::kSome, certain).value();
    state->commit(plan, cache::Kept{21});
    EXPECT_EQ(state->length(), 21);
    EXPECT_EQ(state->snapshots()->earliest(), certain);
    EXPECT_EQ(state->snapshots()->share().value()->bytes(),
              3 * (48 + static_cast<size_t>(21 - certain) * 80) * sizeof(float));
  }
}

/// Has no memory on demand.
class TightAllocator final : public Allocator {
 public:
  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    *out = nullptr;
    if (tight) return error(Code::kOutOfMemory, "no %zu bytes", bytes);
    return system_allocator().allocate(bytes, align, out);
  }
  void release(void* pointer, size_t bytes) noexcept override {
    system_allocator().release(pointer, bytes);
  }
  bool tight = false;
};

// All that a snapshot needs is taken when it is made: without memory then there is none, and
// without memory later no pass needs any because of it.
TEST_F(Recurrent, WithoutMemoryForASnapshotTheStateStays) {
  TightAllocator allocator;
  test::TinyEngineOptions options = test::with_drift();
  options.allocator = &allocator;
  const test::LoadedTiny tight(tiny, options);
  Lane warm(tight);  // workspaces are there from then on
  warm.feed(0, 6, 3);
  warm.feed(6, 10, 4);
  warm.feed(10, 18, 2);
  for (const bool shares : {false, true}) {
    Lane lane(tight);
    cache::StateSnapshots* const snapshots = lane.state->snapshots();
    const auto made = [&] { return shares ? snapshots->share() : snapshots->snapshot(); };
    EXPECT_EQ(lane.feed(0, 6, 3), want(0, 6));
    allocator.tight = true;
    EXPECT_EQ(made().status().code(), Code::kOutOfMemory);
    EXPECT_EQ(lane.feed(6, 10, 4), want(6, 10));  // as without
    allocator.tight = false;
    const auto snapshot = made().value();
    EXPECT_EQ(snapshot->length(), 10);
    allocator.tight = true;
    EXPECT_EQ(lane.feed(10, 18, 2), want(10, 18));
    EXPECT_EQ(lane.state->rewind(9).value(), 0);  // what failed is nothing to go back to
    allocator.tight = false;
  }
}

TEST_F(Recurrent, FailedPassesAreAborted) {
  // Cancels when the second recurrence begins: the first has run.
  struct Stop final : engine::Tracer {
    void record(const engine::TraceEvent& event) noexcept override {
      if (std::string(event.op) == "scan" && ++scans == 2) cancel.fire();
    }
    int32_t scans = 0;
    CancelFlag cancel;
  };
  for (const Keep keep : {Keep::kAll, Keep::kSome}) {
    Lane lane(model);
    lane.feed(0, 6, 3, keep);
    Stop stop;
    test::OwnedBatch batch;
    const auto tokens = std::span(kTokens).subspan(6, 4);
    ASSERT_TRUE(batch.add(*lane.cache, tokens, true, lane.state.get(), keep).ok());
    batch.finish(model.vocab());
    batch.batch.cancel = &stop.cancel;
    batch.batch.tracer = &stop;
    EXPECT_EQ(model.model().forward(batch.batch).code(), Code::kCancelled);
    lane.state->drop(batch.sequences[0].state_plan);
    EXPECT_EQ(lane.state->length(), 6);
    EXPECT_EQ(lane.feed(6, kTokens.size(), 4), want(6, kTokens.size()));
  }
}

TEST_F(Recurrent, OnAnEngineWhoseMemoryNobodyMayTouch) {
  test::FarMemory memory;
  test::TinyEngineOptions options = test::with_drift();
  options.engine = std::make_shared<test::FarEngine>(memory);
  const test::LoadedTiny far(tiny, options);
  Lane lane(far, cache::make_cache("fp32", far.model().layer_shapes(), 64, memory).value(),
            far.model().new_sequence_state().value());
  EXPECT_EQ(lane.feed(0, 6, 4), want(0, 6));
  ASSERT_TRUE(lane.state->snapshots()->snapshot().ok());
  lane.step(Tokens{35, 8, 1, 2}, Keep::kSome, 2);
  EXPECT_EQ(lane.feed(8, 13, 3, Keep::kSome), want(8, 13));
  ASSERT_EQ(lane.state->rewind(7).value(), 6);
  ASSERT_TRUE(lane.cache->truncate(6).ok());
  EXPECT_EQ(lane.feed(6, kTokens.size(), 5), want(6, kTokens.size()));
}

TEST_F(Recurrent, WhatItDoesNotTake) {
  Lane lane(model);
  const auto refused = [&](test::OwnedBatch& batch, Code code, const char* message) {
    const Status status = model.model().forward(batch.finish(model.vocab()));
    EXPECT_EQ(status.code(), code);
    EXPECT_STREQ(status.message(), message);
  };
  const Tokens three = {1, 2, 3};
  test::OwnedBatch tree;
  ASSERT_TRUE(tree.add(*lane.cache, three, true, lane.state.get(), Keep::kSome).ok());
  tree.parents = {-1, 0, 0};
  refused(tree, Code::kUnsupported,
          "row 2 looks back at row 0: a state takes rows one after another");
  tree.parents = {-1, 0, 1};
  EXPECT_TRUE(model.model().forward(tree.finish(model.vocab())).ok());

  test::OwnedBatch bare;
  ASSERT_TRUE(bare.add(*lane.cache, three).ok());
  refused(bare, Code::kUnsupported, "the model has a state of its own: it runs in sessions only");

  test::OwnedBatch late;
  ASSERT_TRUE(late.add(*lane.cache, three, true, lane.state.get()).ok());
  late.sequences[0].state_plan.start = 2;
  refused(late, Code::kInvalidArgument,
          "sequence 0 has 3 rows and a plan of 3 from 2, its state is after 0");

  Lane second(model);
  test::OwnedBatch twice;
  ASSERT_TRUE(twice.add(*lane.cache, three, true, lane.state.get()).ok());
  ASSERT_TRUE(twice.add(*second.cache, three, true, lane.state.get()).ok());
  refused(twice, Code::kInvalidArgument, "sequences 0 and 1 share a state");

  test::TinyModelSpec spec = test::drift_spec();
  spec.recurrent = {1, 0, 0, 0};
  const test::LoadedTiny stranger(test::TinyModel(spec), test::with_drift());
  const auto other = stranger.model().new_sequence_state().value();
  test::OwnedBatch foreign;
  ASSERT_TRUE(foreign.add(*lane.cache, three, true, other.get()).ok());
  refused(foreign, Code::kInvalidArgument, "sequence 0 has another model's state");
}

}  // namespace
}  // namespace gen::model
