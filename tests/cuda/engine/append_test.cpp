// SPDX-License-Identifier: Apache-2.0
// Proves rope_append of the CUDA engine: q and every byte of a cache's blocks are the CPU engine's,
// for all formats of keys and values, head sizes that divide nothing, both rotations, head norms,
// Hadamard-turned keys, cells, several sequences in a step; and rows that store nothing.
#include <bit>
#include <limits>

#include "cuda/engine/kv_bench.h"

namespace gen::test {
namespace {

using engine::KeyForm;
using engine::KvFormat;
using engine::RopeKind;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Two sequences of 17 and 3 rows.
std::vector<float> append(OpBench& bench, const KvShape& shape, const AppendOptions& options) {
  KvBench kv(bench, {shape}, 5);
  std::vector<engine::KvRows> sequences = {kv.rows(0, 17, 5), kv.rows(17, 3, 0, 3)};
  sequences[1].first_cell = 0;
  sequences[1].cells = bench.put(std::vector<int32_t>{shape.block_size - 1, 2, 5});
  auto seen =
      append_rows(bench, shape, kv.layers[0], sequences, 21, options);  // one row is nobody's
  const auto bytes = kv.bytes_as_floats();
  seen.insert(seen.end(), bytes.begin(), bytes.end());
  return seen;
}

TEST(CudaRopeAppend, EveryFormatByteForByte) {
  for (const KvFormat format : kEveryFormat) {
    for (const auto& [k_dim, v_dim, kv_heads] : {std::tuple(20, 12, 2), std::tuple(33, 7, 3),
                                                 std::tuple(128, 64, 3), std::tuple(300, 257, 1)}) {
      SCOPED_TRACE(testing::Message()
                   << "format " << static_cast<int>(format) << " heads " << k_dim << ", " << v_dim);
      KvShape shape;
      shape.k_format = shape.v_format = format;
      shape.k_dim = k_dim;
      shape.v_dim = v_dim;
      shape.kv_heads = kv_heads;
      AppendOptions options;
      options.n_heads = 2 * kv_heads;
      options.norms = k_dim != 20;
      options.norm_last = k_dim != 33;
      options.rope = k_dim == 33 ? RopeKind::kHalves : RopeKind::kAdjacent;
      options.rope_dims = k_dim == 20 ? 20 : 8;
      expect_same([&](OpBench& bench) { return append(bench, shape, options); });
    }
  }
}

TEST(CudaRopeAppend, FormatsMixedAndTurnedKeys) {
  for (const KeyForm form : {KeyForm::kRotated, KeyForm::kHadamard}) {
    for (const RopeKind rope : {RopeKind::kNone, RopeKind::kAdjacent, RopeKind::kHalves}) {
      KvShape shape;
      shape.k_format = KvFormat::kQ4;
      shape.v_format = KvFormat::kFp8;
      shape.k_dim = 48;
      shape.v_dim = 40;
      shape.block_size = 21;
      shape.key_form = form;
      AppendOptions options;
      options.rope = rope;
      expect_same([&](OpBench& bench) { return append(bench, shape, options); });
    }
  }
}

TEST(CudaRopeAppend, WhatIsNoOrdinaryNumber) {
  for (const KvFormat format : kEveryFormat) {
    SCOPED_TRACE(static_cast<int>(format));
    KvShape shape;
    shape.k_format = shape.v_format = format;
    shape.k_dim = shape.v_dim = 32;
    for (const std::vector<float>& ends :
         {std::vector<float>(70, 0.0F), std::vector<float>(64, -0.0F), std::vector<float>(64, 3.5F),
          std::vector<float>{1e-40F, -1e-40F, 1e-44F}, std::vector<float>{1e30F, -7e4F, 65504.0F},
          std::vector<float>{kInfinity, 1.0F}, std::vector<float>{1.0F, -kInfinity},
          std::vector<float>{0.0F, 1.0F, NAN, 2.0F},
          std::vector<float>{0.0F, std::bit_cast<float>(0xFFC54321U)}}) {
      AppendOptions options;
      options.norms = false;
      options.rope = RopeKind::kNone;
      options.rope_dims = 0;
      options.k_ends = ends;
      expect_same([&](OpBench& bench) { return append(bench, shape, options); });
    }
  }
}

TEST(CudaRopeAppend, ManySeedsOfQ3) {
  for (uint32_t seed = 2; seed < 12; ++seed) {
    KvShape shape;
    shape.k_format = shape.v_format = KvFormat::kQ3;
    shape.k_dim = 64;
    shape.v_dim = 24;
    shape.kv_heads = 5;
    AppendOptions options;
    options.n_heads = 5;
    options.seed = seed;
    options.scale = seed % 2 == 0 ? 100.0F : 1e-3F;
    expect_same([&](OpBench& bench) { return append(bench, shape, options); });
  }
}

TEST(CudaRopeAppend, NothingIsStoredWithoutKeys) {
  KvShape shape;
  AppendOptions options;
  options.store = false;
  expect_same([&](OpBench& bench) { return append(bench, shape, options); });
}

}  // namespace
}  // namespace gen::test
