// SPDX-License-Identifier: Apache-2.0
// From nodes to instructions: products that share an input become one, a gated pair becomes one
// gate-and-up product, norms and attention write what products read, and residuals are added where
// a product ends. None of this changes a bit of the result; tests compare with fusion off.
#pragma once

#include "graph/engine_split.h"
#include "graph/program.h"

namespace gen::graph {

struct FusionOptions {
  bool stack = true;         // Q, K and V as one product
  bool gate_up = true;       // act(x G^T) * (x U^T) as one product
  bool residual = true;      // x + product in the product's epilogue
  bool pack_early = true;    // norms and attention write packed rows
  bool select_early = true;  // rows without logits skip the end, see selection.h
  bool activate = true;      // act(product) in the product's epilogue
  bool adapters = false;     // float rows of what products read stay, for those of their adapters
};

Program fuse(const Graph& graph, const FusionOptions& options = {},
             const EngineOfBlock& engines = {});

/// Undoes a fused product that the engine has no kernel for: the parts of a stack as products of
/// their own, or a gated pair as a stack followed by kGated. Appends to program.instructions;
/// `instruction` is a kLinear whose product has more than one source.
void split_product(Program& program, const Instruction& instruction);

}  // namespace gen::graph
