// SPDX-License-Identifier: Apache-2.0
// Arguments of the instructions that do not use those of an operation.
#pragma once

#include "cuda/ops/activation_rows.h"
#include "cuda/ops/attention/attention_chunk.cuh"
#include "cuda/ops/logits/best.cuh"
#include "cuda/ops/context.h"
#include "cuda/ops/linear/linear_end.cuh"
#include "cuda/ops/norm/rms_norm.cuh"
#include "cuda/ops/sequence/rope_append.cuh"
#include "tensor/dtype.h"
#include "cuda/step/program.h"

namespace gen::cuda {

enum class ElementsOp : int32_t { kAdd, kGated, kActivate };
/// Columns of a tile of these and of kPack.
constexpr int32_t kStepColumns = kStepThreads;

struct ElementsStep {
  const float* a;
  const float* b;
  float* y;
  int32_t cols;
  int32_t run;  // columns for each of a
  ElementsOp op;
  engine::Activation activation;
};
struct SelectStep {
  ConstRowsView x;
  const int32_t* row;
  float* y;
};
struct PackStep {
  const float* x;
  PackedRows y;
};

/// How warps read weights: unit by unit, each aligned to 16 bytes. Warp w of a block takes units w,
/// w + kStepWarps, … of a tile of the first matrix, then of the second. A unit is a row of float
/// weights, or a step of a tile of quantised weights (ops/weight/weight_tiles.h). A tile is eight
/// outputs in both cases.
struct WeightUnits {
  const uint8_t* first;
  const uint8_t* second;
  size_t tile_bytes;
  int32_t unit_bytes;
  int32_t units;       // of a tile
  int32_t last_units;  // of the last tile
  int32_t n_matrices;  // 1 or 2
};
struct LinearStep {
  WeightUnits weights;
  PackedRows x;
  DType type;
  int32_t outputs;
  int32_t n_steps;   // of a tile of quantised weights
  int32_t n_blocks;  // of a row of them
  size_t terms_offset;
};
/// With the arguments that are loaded only after the sums, to save registers.
struct LinearTask {
  LinearStep step;
  LinearEnd end;
};

struct ChunksStep {
  SplitView view;
  int32_t batch;  // query heads of a tile
};

struct BestStep {
  RowsView x;
  const engine::BestRow* rows;
  BestParts parts;
  int32_t* tokens;
  float* values;
};

/// Elements of a row that a thread holds in kNorm.
constexpr int32_t kNormEach = 16;

}  // namespace gen::cuda
