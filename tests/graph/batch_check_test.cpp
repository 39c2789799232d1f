// SPDX-License-Identifier: Apache-2.0
// Proves that each clause of batch.h's contract is enforced with its code and a message that names
// the value and the limit, and that good batches of every form pass.
#include "graph/batch_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "engine/access.h"
#include "support/reference_cache.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

/// Two sequences, of 3 and 2 rows, for a model of two layers.
struct Fixture {
  Fixture() {
    layers = shapes();
    limits.vocab = 30;
    limits.hidden = 24;
    limits.logits = 30;
    limits.max_rows = 8;
    limits.max_seq_len = 16;
    limits.n_taps = 3;
    limits.layers = layers;
    EXPECT_TRUE(owned.add(first, std::vector<int32_t>{1, 2, 3}).ok());
    EXPECT_TRUE(owned.add(second, std::vector<int32_t>{4, 5}).ok());
    owned.finish(30);
  }
  static std::vector<cache::LayerShape> shapes(int32_t heads = 2, size_t n = 2) {
    cache::LayerShape shape;
    shape.kv_heads = heads;
    shape.k_dim = 6;
    shape.v_dim = 10;
    return std::vector<cache::LayerShape>(n, shape);
  }
  /// A cache whose second layer has another number.
  template <typename T>
  static test::ReferenceCache other(T cache::LayerShape::*number, T value) {
    std::vector<cache::LayerShape> layers = shapes();
    layers[1].*number = value;
    return {layers, 10};
  }

  test::ReferenceCache first{shapes(), 10};
  test::ReferenceCache second{shapes(), 10};
  test::ReferenceCache other_heads{shapes(1), 10};
  test::ReferenceCache other_layers{shapes(2, 3), 10};
  test::ReferenceCache other_keys = other(&cache::LayerShape::k_dim, 7);
  test::ReferenceCache other_values = other(&cache::LayerShape::v_dim, 9);
  test::ReferenceCache other_window = other(&cache::LayerShape::window, 3);
  test::ReferenceCache other_chunk = other(&cache::LayerShape::chunk, 4);
  test::ReferenceCache other_rope = other(&cache::LayerShape::rope, engine::RopeKind::kHalves);
  test::ReferenceCache other_turn = other(&cache::LayerShape::rope_dims, 2);
  std::vector<cache::LayerShape> layers;
  BatchLimits limits;
  test::OwnedBatch owned;
  /// Rows 1, 3 and 4.
  void want_best() {
    owned.wants = {1, 2, 1, 2, 2};
    owned.batch.wants = owned.wants;
    best_tokens.resize(3 * 30);
    best_logits.resize(3 * 30);
    owned.batch.best = {30, best_tokens.data(), best_logits.data(), 3};
    limits.best = true;
  }
  void mask(const std::vector<int32_t>& rows) {
    for (const int32_t row : rows) extras.push_back({.row = row, .mask = bits});
    owned.batch.extras = extras;
  }
  /// Tokens 0, `token` and 29 of each row.
  void aside(const std::vector<int32_t>& rows, int32_t token = 3) {
    tokens_aside = {0, token, 29};
    for (const int32_t row : rows) extras.push_back({.row = row, .aside = tokens_aside});
    owned.batch.extras = extras;
    owned.batch.best.aside_logits = &hidden;
  }

  std::vector<int32_t> best_tokens;
  std::vector<float> best_logits;
  void mass(std::vector<RowExtras> given) {
    extras = std::move(given);
    owned.batch.extras = extras;
    owned.batch.best.mass = masses_of_rows;
    owned.batch.best.mass_slices = 1;
  }

  std::vector<RowExtras> extras;
  const uint32_t bits[1] = {~uint32_t{0}};
  double masses_of_rows[3] = {};
  std::vector<int32_t> tokens_aside;
  std::vector<float> hidden_rows;
  float hidden = 0.0F;
  std::vector<Tap> taps;
};

struct Case {
  const char* name;
  std::function<void(Fixture&)> change;
  Code code;
  const char* says = "";
};

class BatchCheck : public testing::TestWithParam<Case> {};

TEST_P(BatchCheck, Answers) {
  Fixture fixture;
  GetParam().change(fixture);
  const Status status = check_batch(fixture.owned.batch, fixture.limits);
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_NE(std::string(status.message()).find(GetParam().says), std::string::npos)
      << status.message();
}

using F = Fixture;
const Case kCases[] = {
    {"good", [](F&) {}, Code::kOk},
    {"good_tree",
     [](F& f) {
       f.owned.parents = {-1, 0, 0, -1, 3};
       f.owned.batch.parents = f.owned.parents;
     },
     Code::kOk},
    {"good_taps",
     [](F& f) {
       f.taps = {{0, &f.hidden}, {2, &f.hidden}};
       f.owned.batch.taps = f.taps;
     },
     Code::kOk},
    {"good_normed_tap",
     [](F& f) {
       f.limits.normed_tap = true;
       f.taps = {{kNormedTap, &f.hidden}, {2, &f.hidden}};
       f.owned.batch.taps = f.taps;
     },
     Code::kOk},
    {"good_features",
     [](F& f) {
       f.limits.features = 7;
       f.hidden_rows.resize(5 * 7);
       f.owned.batch.features = f.hidden_rows;
     },
     Code::kOk},
    {"no_features", [](F& f) { f.limits.features = 7; }, Code::kInvalidArgument,
     "0 numbers are no features of 5 rows of 7"},
    {"features_of_fewer_rows",
     [](F& f) {
       f.limits.features = 7;
       f.hidden_rows.resize(4 * 7);
       f.owned.batch.features = f.hidden_rows;
     },
     Code::kInvalidArgument, "28 numbers are no features of 5 rows of 7"},
    {"features_of_other_width",
     [](F& f) {
       f.limits.features = 7;
       f.hidden_rows.resize(5 * 14);
       f.owned.batch.features = f.hidden_rows;
     },
     Code::kInvalidArgument, "70 numbers are no features of 5 rows of 7"},
    {"features_for_none",
     [](F& f) {
       f.hidden_rows.resize(5);
       f.owned.batch.features = f.hidden_rows;
     },
     Code::kInvalidArgument, "5 numbers are no features of 5 rows of 0"},
    {"normed_tap_of_none",
     [](F& f) {
       f.taps = {{kNormedTap, &f.hidden}};
       f.owned.batch.taps = f.taps;
     },
     Code::kInvalidArgument, "tap 2147483647 of 3"},
    {"normed_tap_nowhere",
     [](F& f) {
       f.limits.normed_tap = true;
       f.taps = {{kNormedTap, nullptr}};
       f.owned.batch.taps = f.taps;
     },
     Code::kInvalidArgument, "not one place to put it"},
    {"good_embeddings",
     [](F& f) {
       f.owned.tokens[1] = -1;
       f.owned.tokens[4] = -2;
       f.hidden_rows.resize(2 * 24);
       f.owned.batch.embeddings = f.hidden_rows;
     },
     Code::kOk},
    {"good_best", [](F& f) { f.want_best(); }, Code::kOk},
    {"good_masks_and_tokens_aside",
     [](F& f) {
       f.want_best();
       f.mask({1, 3});
       f.extras[0].aside = f.tokens_aside = {0, 3, 29};
       f.aside({4});
     },
     Code::kOk},
    {"good_without_logits",
     [](F& f) {
       f.owned.wants.assign(5, 0);
       f.owned.batch.logits = nullptr;
       f.owned.batch.logits_rows = 0;
     },
     Code::kOk},
    {"no_rows", [](F& f) { f.owned.batch.positions = {}; }, Code::kInvalidArgument, "0 rows"},
    {"too_many_rows", [](F& f) { f.limits.max_rows = 4; }, Code::kInvalidArgument,
     "5 rows, the model takes 4"},
    {"too_few_tokens", [](F& f) { f.owned.batch.tokens = f.owned.batch.tokens.first(4); },
     Code::kInvalidArgument, "4 rows in a batch of 5"},
    {"half_an_embedding",
     [](F& f) {
       f.hidden_rows.resize(36);
       f.owned.batch.embeddings = f.hidden_rows;
     },
     Code::kInvalidArgument, "36 numbers are no embeddings of 24"},
    {"embedding_beyond",
     [](F& f) {
       f.owned.tokens[1] = -3;
       f.hidden_rows.resize(2 * 24);
       f.owned.batch.embeddings = f.hidden_rows;
     },
     Code::kOutOfRange, "token -3 outside 2 given embeddings"},
    {"lowest_token", [](F& f) { f.owned.tokens[1] = std::numeric_limits<int32_t>::min(); },
     Code::kOutOfRange, "vocabulary of 30"},
    {"negative_token", [](F& f) { f.owned.tokens[2] = -1; }, Code::kOutOfRange,
     "token -1 outside vocabulary of 30"},
    {"wants_nothing_known", [](F& f) { f.owned.wants[3] = 3; }, Code::kInvalidArgument,
     "row 3 wants 3"},
    {"nobody_finds_best",
     [](F& f) {
       f.want_best();
       f.limits.best = false;
     },
     Code::kUnsupported, "3 rows want their best"},
    {"no_room_for_best",
     [](F& f) {
       f.want_best();
       f.owned.batch.best.rows = 2;
     },
     Code::kInvalidArgument, "3 rows want best, there is room for 2"},
    {"best_tokens_nowhere",
     [](F& f) {
       f.want_best();
       f.owned.batch.best.tokens = nullptr;
     },
     Code::kInvalidArgument, "room for 0"},
    {"best_logits_nowhere",
     [](F& f) {
       f.want_best();
       f.owned.batch.best.logits = nullptr;
     },
     Code::kInvalidArgument, "room for 0"},
    {"best_of_none",
     [](F& f) {
       f.want_best();
       f.owned.batch.best.k = 0;
     },
     Code::kInvalidArgument, "best 0 tokens"},
    {"best_of_too_many",
     [](F& f) {
       f.want_best();
       f.owned.batch.best.k = 31;
     },
     Code::kInvalidArgument, "best 31 tokens of 30"},
    {"mask_of_a_row_with_logits",
     [](F& f) {
       f.want_best();
       f.mask({2});
     },
     Code::kInvalidArgument, "extras for row 2"},
    {"mask_of_no_row",
     [](F& f) {
       f.want_best();
       f.mask({5});
     },
     Code::kInvalidArgument, "extras for row 5"},
    {"mask_before_the_first_row",
     [](F& f) {
       f.want_best();
       f.mask({-1});
     },
     Code::kInvalidArgument, "extras for row -1"},
    {"two_masks_of_a_row",
     [](F& f) {
       f.want_best();
       f.mask({1, 1});
     },
     Code::kInvalidArgument, "extras for row 1"},
    {"chains_of_rows_that_want_logits",
     [](F& f) {
       f.limits.multi_step = true;
       f.owned.batch.multi_steps = 2;
     },
     Code::kInvalidArgument, "chains of 2 rows that want more than the best token"},
    {"chains_of_another_length",
     [](F& f) {
       f.want_best();
       f.limits.multi_step = true;
       f.owned.wants.assign(5, kWantsBest);
       f.owned.batch.wants = f.owned.wants;
       f.owned.batch.best = {1, f.best_tokens.data(), f.best_logits.data(), 5};
       f.owned.batch.multi_steps = 4;
     },
     Code::kInvalidArgument, "rows in chains of 4"},
    {"chains_where_rows_run_together", [](F& f) { f.owned.batch.multi_steps = 2; },
     Code::kUnsupported, "chains of 2 rows, the model runs rows together"},
    {"good_masses",
     [](F& f) {
       f.want_best();
       f.mass({{.row = 1, .temperature = 0.5}, {.row = 4, .temperature = 1.0}});
     },
     Code::kOk},
    {"mass_of_a_row_with_logits",
     [](F& f) {
       f.want_best();
       f.mass({{.row = 2, .temperature = 1.0}});
     },
     Code::kInvalidArgument, "extras for row 2"},
    {"mass_of_a_row_twice",
     [](F& f) {
       f.want_best();
       f.mass({{.row = 1, .temperature = 1.0}, {.row = 1, .temperature = 1.0}});
     },
     Code::kInvalidArgument, "extras for row 1"},
    {"mass_at_no_temperature",
     [](F& f) {
       f.want_best();
       f.mass({{.row = 1, .temperature = std::numeric_limits<double>::quiet_NaN()}});
     },
     Code::kInvalidArgument, "the mass of row 1 at temperature nan"},
    {"mass_of_another_vocabulary",
     [](F& f) {
       f.want_best();
       f.mass({{.row = 1, .temperature = 1.0}});
       f.owned.batch.best.mass_slices = 2;
     },
     Code::kInvalidArgument, "mass in 1 slices, there is room for 2"},
    {"slice_without_room",
     [](F& f) {
       f.want_best();
       f.mass({{.row = 1, .temperature = 1.0, .place = 0.5}});
     },
     Code::kInvalidArgument, "row 1 wants a slice"},
    {"mass_without_room",
     [](F& f) {
       f.want_best();
       f.mass({{.row = 1, .temperature = 1.0}});
       f.owned.batch.best.mass = nullptr;
     },
     Code::kInvalidArgument, "mass in 1 slices, there is room for 0"},
    {"tokens_aside_that_descend",
     [](F& f) {
       f.want_best();
       f.aside({3, 1});
     },
     Code::kInvalidArgument, "extras for row 1"},
    {"tokens_aside_of_a_row_twice",
     [](F& f) {
       f.want_best();
       f.aside({3, 3});
     },
     Code::kInvalidArgument, "extras for row 3"},
    {"aside_no_token",
     [](F& f) {
       f.want_best();
       f.aside({3}, 30);
     },
     Code::kOutOfRange, "token 30 aside outside 30"},
    {"aside_below_all_tokens",
     [](F& f) {
       f.want_best();
       f.aside({3}, -1);
     },
     Code::kOutOfRange, "token -1 aside outside 30"},
    {"aside_without_room",
     [](F& f) {
       f.want_best();
       f.aside({3});
       f.owned.batch.best.aside_logits = nullptr;
     },
     Code::kInvalidArgument, "no room for the logits of tokens aside of row 3"},
    {"tap_at_two_places",
     [](F& f) {
       f.taps = {{1, &f.hidden, engine::engine_ptr(&f.hidden)}};
       f.owned.batch.taps = f.taps;
     },
     Code::kInvalidArgument, "tap 1"},
    {"high_token", [](F& f) { f.owned.tokens[4] = 30; }, Code::kOutOfRange,
     "token 30 outside vocabulary of 30"},
    {"negative_position", [](F& f) { f.owned.positions[0] = -1; }, Code::kOutOfRange,
     "position -1 outside context of 16"},
    {"high_position", [](F& f) { f.owned.positions[1] = 16; }, Code::kOutOfRange,
     "position 16 outside context of 16"},
    {"too_few_flags", [](F& f) { f.owned.batch.wants = f.owned.batch.wants.first(4); },
     Code::kInvalidArgument, "wants for 4 rows"},
    {"no_room_for_logits", [](F& f) { f.owned.batch.logits_rows = 4; }, Code::kInvalidArgument,
     "5 rows want logits, there is room for 4"},
    {"logits_nowhere", [](F& f) { f.owned.batch.logits = nullptr; }, Code::kInvalidArgument,
     "room for 0"},
    {"high_tap",
     [](F& f) {
       f.taps = {{3, &f.hidden}};
       f.owned.batch.taps = f.taps;
     },
     Code::kInvalidArgument, "tap 3 of 3"},
    {"tap_nowhere",
     [](F& f) {
       f.taps = {{1, nullptr}};
       f.owned.batch.taps = f.taps;
     },
     Code::kInvalidArgument, "tap 1"},
    {"no_sequences", [](F& f) { f.owned.batch.sequences = {}; }, Code::kInvalidArgument,
     "cover 0 of 5"},
    {"gap", [](F& f) { f.owned.sequences[1].first_row = 4; }, Code::kInvalidArgument,
     "sequence 1 has rows 4 + 2, expected from row 3"},
    {"overlap", [](F& f) { f.owned.sequences[1].first_row = 2; }, Code::kInvalidArgument,
     "sequence 1"},
    {"empty_sequence", [](F& f) { f.owned.sequences[0].n_rows = 0; }, Code::kInvalidArgument,
     "sequence 0"},
    {"rows_beyond_batch", [](F& f) { f.owned.sequences[1].n_rows = 0x7FFFFFFF; },
     Code::kInvalidArgument, "sequence 1"},
    {"rows_not_covered",
     [](F& f) {
       f.owned.sequences[1].n_rows = 1;
       f.owned.sequences[1].plan.count = 1;
     },
     Code::kInvalidArgument, "cover 4 of 5"},
    {"adapter", [](F& f) { f.owned.sequences[0].adapter = 0; }, Code::kUnsupported, "adapter 0"},
    {"no_cache", [](F& f) { f.owned.sequences[1].cache = nullptr; }, Code::kInvalidArgument,
     "sequence 1 has no cache"},
    {"shared_cache", [](F& f) { f.owned.sequences[1].cache = &f.first; }, Code::kInvalidArgument,
     "0 and 1 share a cache"},
    {"cache_of_other_heads", [](F& f) { f.owned.sequences[0].cache = &f.other_heads; },
     Code::kInvalidArgument, "cache layer 0 has kv heads 1, the model needs 2"},
    {"cache_of_other_keys", [](F& f) { f.owned.sequences[1].cache = &f.other_keys; },
     Code::kInvalidArgument, "cache layer 1 has key elements 7, the model needs 6"},
    {"cache_of_other_values", [](F& f) { f.owned.sequences[1].cache = &f.other_values; },
     Code::kInvalidArgument, "cache layer 1 has value elements 9, the model needs 10"},
    {"cache_of_other_window", [](F& f) { f.owned.sequences[1].cache = &f.other_window; },
     Code::kInvalidArgument, "cache layer 1 has window 3, the model needs 0"},
    {"cache_of_other_chunk", [](F& f) { f.owned.sequences[1].cache = &f.other_chunk; },
     Code::kInvalidArgument, "cache layer 1 has chunk 4, the model needs 0"},
    {"cache_of_other_rope", [](F& f) { f.owned.sequences[1].cache = &f.other_rope; },
     Code::kInvalidArgument, "cache layer 1 has rope kind 2, the model needs 0"},
    {"cache_of_other_turn", [](F& f) { f.owned.sequences[1].cache = &f.other_turn; },
     Code::kInvalidArgument, "cache layer 1 has rope elements 2, the model needs 0"},
    {"cache_of_other_layers", [](F& f) { f.owned.sequences[0].cache = &f.other_layers; },
     Code::kInvalidArgument, "3 layers for a model of 2"},
    {"plan_count", [](F& f) { f.owned.sequences[0].plan.count = 2; }, Code::kInvalidArgument,
     "3 rows and a plan of 2"},
    {"plan_before_start", [](F& f) { f.owned.sequences[0].plan.start = -1; },
     Code::kInvalidArgument, "from -1"},
    {"plan_beyond_capacity", [](F& f) { f.owned.sequences[0].plan.start = 8; },
     Code::kInvalidArgument, "capacity 10"},
    {"too_few_parents",
     [](F& f) {
       f.owned.parents = {-1, -1};
       f.owned.batch.parents = f.owned.parents;
     },
     Code::kInvalidArgument, "parents for 2 rows"},
    {"parent_of_itself",
     [](F& f) {
       f.owned.parents = {-1, 1, -1, -1, -1};
       f.owned.batch.parents = f.owned.parents;
     },
     Code::kInvalidArgument, "row 1 looks back at row 1"},
    {"parent_in_other_sequence",
     [](F& f) {
       f.owned.parents = {-1, -1, -1, -1, 2};
       f.owned.batch.parents = f.owned.parents;
     },
     Code::kInvalidArgument, "row 4 looks back at row 2"},
    {"parent_below",
     [](F& f) {
       f.owned.parents = {-2, -1, -1, -1, -1};
       f.owned.batch.parents = f.owned.parents;
     },
     Code::kInvalidArgument, "row -2"},
};

INSTANTIATE_TEST_SUITE_P(All, BatchCheck, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace gen::graph
