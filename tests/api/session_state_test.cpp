// SPDX-License-Identifier: Apache-2.0
// gen_session_ssm_state of models with recurrences: a layer's numbers are those of the tokens
// however they came to be evaluated, and those of the reference; sessions go back to snapshots and
// go on with the same bits; calls that fail change nothing.
#include "session_state_world.h"

#include <cmath>

namespace gen {
namespace {

// The rows of a short pass with places for snapshots are kept beside the state, a long one's are
// not.
TEST_P(SessionState, LayersDoNotDependOnThePasses) {
  constexpr size_t kLengths[] = {1, 9, 17, 120};
  for (size_t i = 0; i < 8; ++i) {
    const size_t n = kLengths[i / 2];
    SCOPED_TRACE(n);
    ASSERT_EQ(gen_options_set(options, "state_snapshot_every", i % 2 == 0 ? "1024" : "4", &error),
              GEN_OK);
    open();
    append(session, 0, n + 1);
    ASSERT_EQ(gen_ssm_state_position(view), static_cast<int32_t>(n));
    const std::vector<Floats> want = by_steps(n);
    EXPECT_EQ(all(view), want);
    EXPECT_EQ(gen_session_length(session), static_cast<int32_t>(n) + 1);
    // The session goes on as if nobody had looked.
    gen_session* const other = fresh();
    append(other, 0, n + 1);
    EXPECT_EQ(say(session), say(other));
    EXPECT_EQ(all(view), all(gen_session_ssm_state(other)));
    gen_session_free(other);
  }
}

TEST_P(SessionState, LayersSayWhatTheyAre) {
  std::map<std::string, int> kinds;
  int64_t bytes = 0;
  for (int32_t i = 0; i < gen_ssm_state_num_layers(view); ++i) {
    int32_t shape[3] = {};
    const std::string kind = gen_ssm_state_layer_kind(view, i);
    ++kinds[kind];
    const Floats h = layer(view, i, shape);
    EXPECT_EQ(h, Floats(h.size()));  // zeros at the beginning
    bytes += static_cast<int64_t>(h.size() * sizeof(float));
    EXPECT_EQ(kind == "convolution", shape[0] == 1 && shape[1] == 2) << kind;  // three taps
    if (kind == "delta net") {
      EXPECT_EQ(std::vector<int32_t>(shape, shape + 3), (std::vector<int32_t>{4, 16, 16}));
    }
    EXPECT_GE(gen_ssm_state_layer_index(view, i), 0);
    EXPECT_LT(gen_ssm_state_layer_index(view, i), 4);
    if (i > 0) {
      EXPECT_GE(gen_ssm_state_layer_index(view, i), gen_ssm_state_layer_index(view, i - 1));
    }
  }
  EXPECT_EQ(bytes, gen_ssm_state_memory_bytes(view));
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(kinds["convolution"] > 0, true);
  EXPECT_EQ(kinds["delta net"] > 0, std::string(GetParam()) == "qwen35");
  EXPECT_EQ(kinds["selective scan"] > 0, std::string(GetParam()).starts_with("mamba"));
  EXPECT_EQ(gen_ssm_state_layer_kind(view, 100), nullptr);
  EXPECT_EQ(gen_ssm_state_layer_index(view, 100), -1);
}

TEST_P(SessionState, TheLastSixteenStay) {
  int64_t snapshot = 0;
  for (size_t i = 0; i < 20; ++i) {
    append(session, i, 1);
    ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
    EXPECT_EQ(snapshot, static_cast<int64_t>(i) + 1);
  }
  for (const int64_t gone : {int64_t{0}, int64_t{4}, int64_t{21}, int64_t{-1}}) {
    EXPECT_EQ(gen_ssm_state_restore(view, gone, &error), GEN_ERROR_OUT_OF_RANGE);
  }
  ASSERT_EQ(gen_ssm_state_restore(view, 5, &error), GEN_OK);
  EXPECT_EQ(gen_session_length(session), 5);
  EXPECT_EQ(all(view), by_steps(4));
}

TEST_P(SessionState, AForkHasItsOwn) {
  append(session, 0, 30);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  gen_session* fork = nullptr;
  ASSERT_EQ(gen_session_fork(session, &fork, &error), GEN_OK);
  gen_ssm_state* const other = gen_session_ssm_state(fork);
  ASSERT_NE(other, view);
  EXPECT_EQ(gen_ssm_state_restore(other, snapshot, &error), GEN_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(all(other), all(view));
  append(fork, 100, 20);
  EXPECT_EQ(gen_ssm_state_position(view), 29);
  EXPECT_EQ(all(view), by_steps(29));
  gen_session_free(session);
  session = nullptr;
  EXPECT_EQ(gen_ssm_state_position(other), 49);
  EXPECT_EQ(all(other).size(), static_cast<size_t>(gen_ssm_state_num_layers(other)));
  gen_session_free(fork);
}

TEST_P(SessionState, IsBusyWhileTheSessionIs) {
  append(session, 0, 30);
  int64_t snapshot = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &snapshot, &error), GEN_OK);
  struct Seen {
    gen_ssm_state* view;
    int calls = 0;
  } seen = {view};
  const auto look = [](void* user, const gen_token*) -> int32_t {
    auto& into = *static_cast<Seen*>(user);
    ++into.calls;
    gen_error why = {};
    int64_t number = 0;
    const float h[1] = {};
    EXPECT_EQ(gen_ssm_state_get_layer(into.view, 0, nullptr, 0, nullptr, &why), GEN_ERROR_BUSY);
    EXPECT_EQ(gen_ssm_state_snapshot(into.view, &number, &why), GEN_ERROR_BUSY);
    EXPECT_EQ(gen_ssm_state_restore(into.view, 1, &why), GEN_ERROR_BUSY);
    EXPECT_EQ(gen_ssm_state_reset(into.view, &why), GEN_ERROR_BUSY);
    EXPECT_EQ(gen_ssm_state_set_layer(into.view, 0, h, 1, 1, 1, &why), GEN_ERROR_BUSY);
    EXPECT_GE(gen_ssm_state_position(into.view), 29);
    return 0;
  };
  gen_sampling* sampling = nullptr;
  ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_ignore_eos(sampling, 1, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling, 3, &error), GEN_OK);
  EXPECT_EQ(gen_session_generate_stream(session, "", 0, sampling, look, &seen, nullptr, &error),
            GEN_OK)
      << error.message;
  EXPECT_GT(seen.calls, 0);
  gen_sampling_free(sampling);
  EXPECT_EQ(gen_ssm_state_restore(view, snapshot, &error), GEN_OK);
}

// Each allocation fails in turn; what is asked for again then succeeds.
TEST_P(SessionState, FailingMemoryChangesNothing) {
  ASSERT_EQ(gen_options_set(options, "state_snapshot_every", "4", &error), GEN_OK);
  open();
  append(session, 0, 20);
  int64_t early = 0;
  ASSERT_EQ(gen_ssm_state_snapshot(view, &early, &error), GEN_OK);
  append(session, 20, 10);
  int refused = 0;
  const auto refuse = [&](const auto& call) {
    for (memory.left = 0;; ++memory.left) {
      const int granted = memory.left;
      const gen_status status = call();
      memory.left = granted;
      if (status == GEN_OK) break;
      ASSERT_EQ(status, GEN_ERROR_OUT_OF_MEMORY) << error.message;
      ++refused;
      EXPECT_EQ(gen_session_length(session), 30);
      EXPECT_EQ(gen_ssm_state_position(view), 29);
    }
    memory.left = -1;
  };
  const std::vector<Floats> want = by_steps(29);
  Floats h(want[0].size(), 7.0F);
  refuse([&] {
    EXPECT_EQ(h, Floats(h.size(), 7.0F));
    return gen_ssm_state_get_layer(view, 0, h.data(), h.size(), nullptr, &error);
  });
  EXPECT_EQ(h, want[0]);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(all(view), want);
  refuse([&] {
    int64_t late = 0;
    return gen_ssm_state_snapshot(view, &late, &error);
  });
  refuse([&] { return gen_ssm_state_restore(view, early, &error); });
  EXPECT_EQ(gen_session_length(session), 20);
  EXPECT_EQ(all(view), by_steps(19));
}

TEST_P(SessionState, CannotBeSet) {
  append(session, 0, 30);
  const std::vector<Floats> before = all(view);
  int32_t shape[3] = {};
  const Floats h = layer(view, 0, shape);
  EXPECT_EQ(gen_ssm_state_set_layer(view, 0, h.data(), shape[0], shape[1], shape[2], &error),
            GEN_ERROR_UNSUPPORTED);
  EXPECT_EQ(gen_ssm_state_reset(view, &error), GEN_ERROR_UNSUPPORTED);
  gen_ssm_state_free(view);
  EXPECT_EQ(all(view), before);
  EXPECT_EQ(gen_ssm_state_snapshot(view, nullptr, &error), GEN_ERROR_INVALID_ARGUMENT);
}

INSTANTIATE_TEST_SUITE_P(Families, SessionState,
                         ::testing::Values("qwen35", "mamba", "mamba2", "lfm2"));

using DeltaState = SessionState;

TEST_P(DeltaState, IsTheReference) {
  const test::TinyModel tiny(spec_of("qwen35"));
  for (const size_t n : {size_t{5}, size_t{40}}) {
    EXPECT_EQ(gen_session_reset(session, &error), GEN_OK);
    append(session, 0, n + 1);
    (void)tiny.logits({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)});
    int compared = 0;
    for (int32_t i = 0; i < gen_ssm_state_num_layers(view); ++i) {
      if (gen_ssm_state_layer_kind(view, i) != std::string("delta net")) continue;
      const std::vector<double>& want = tiny.delta_state(gen_ssm_state_layer_index(view, i));
      const Floats h = layer(view, i);
      ASSERT_EQ(h.size(), want.size());
      double largest = 0.0;
      for (const double value : want) largest = std::max(largest, std::abs(value));
      for (size_t j = 0; j < h.size(); ++j) EXPECT_NEAR(h[j], want[j], 1e-4 * largest);
      ++compared;
    }
    EXPECT_EQ(compared, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DeltaState, ::testing::Values("qwen35"));

}  // namespace
}  // namespace gen
