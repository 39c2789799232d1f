// SPDX-License-Identifier: Apache-2.0
// LoRA adapters in GGUF files. The file is assumed to be hostile. Two forms are read:
//  - the converters': general.type "adapter", general.architecture of the model, adapter.type
//    "lora", adapter.lora.alpha (f32; absent or 0: factor 1, else alpha / rank of each pair),
//    perhaps adapter.alora.invocation_tokens; tensors "<tensor>.lora_a" and "<tensor>.lora_b".
//  - the older one: lora.rank (u32, of all pairs) and lora.alpha (f32, required), the same factor;
//    tensors "lora_a.<layer>" and "lora_b.<layer>". A layer is a tensor's name with
//    or without ".weight", since writers that name modules leave the suffix out; the whole name
//    comes first, so no name means two tensors. general.architecture must fit if it is there. A
//    file with lora.rank and without adapter.type is of this form.
// A is [rank, in] (GGUF's dimensions in, rank), B is [out, rank]; out are all rows of the tensor as
// the model's file has it, however many products it is. Those of a stack of experts are [E, rank,
// in] and [E, out, rank]. Of token_embd.weight, A is [vocabulary, rank] and B [hidden, rank].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "graph/adapter_table.h"
#include "model/adapter_targets.h"
#include "model/gguf/gguf_file.h"

namespace gen::model {

inline constexpr int32_t kMaxAdapterRank = 4096;

/// What an adapter adds to one tensor: factor B (A x).
struct AdapterPair {
  std::string tensor;  // as the model has it
  int32_t rank = 0;
  int64_t matrices = 1;    // E
  bool embedding = false;  // A has a row for each row of the tensor, B for each column
  double factor = 1.0;
  std::vector<float> a;  // [E, rank, in], or [rows, rank]
  std::vector<float> b;  // [E, out, rank], or [columns, rank]
};

struct AdapterFile {
  std::vector<AdapterPair> pairs;  // at least one, ascending by name
  std::vector<int32_t> invocation_tokens;
  uint64_t content = 0;  // of all of the above, whatever the form and element types
};

/// Errors: kFormat for metadata and tensors that contradict each other or the model's shapes, a
/// missing half and values that are not finite; kUnsupported for another architecture, other kinds
/// of adapters and tensors, ranks above kMaxAdapterRank, tensors that the model has not or that
/// take no adapters, element types without a codec.
Result<AdapterFile> read_adapter(const gguf::GgufFile& file, const AdapterTargets& targets);

/// The same in the memory of a plan's engines. Products that are not among `sites` are left out:
/// `targets` may be of the whole of a model that was cut. kFormat if a value times the factor is
/// too large.
Result<std::shared_ptr<const graph::Adapter>> adapter_of(const AdapterFile& file,
                                                         const AdapterTargets& targets,
                                                         const graph::Engines& engines,
                                                         std::span<const graph::SiteShape> sites);

}  // namespace gen::model
