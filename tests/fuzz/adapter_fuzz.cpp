// SPDX-License-Identifier: Apache-2.0
// Fuzzes the path of an untrusted adapter: its GGUF file, its pairs for a small model of a plain
// matrix, a part of one, a stack of experts and an embedding, and their copies in an engine. Seeds:
// adapter_seeds.py.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "graph/adapter_table.h"
#include "model/adapter_file.h"
#include "model/adapter_targets.h"
#include "model/gguf/gguf_file.h"
#include "support/cpu_engine.h"

namespace {

using gen::graph::SiteShape;
using gen::model::AdapterTargets;

void require(bool condition) {
  if (!condition) std::abort();
}

const AdapterTargets& targets() {
  static const AdapterTargets made = [] {
    AdapterTargets of;
    of.architecture = "llama";
    of.vocab_size = 9;
    // Two products that read the rows of one tensor in turn, three of each at a time.
    of.tensors["blk.0.attn_qkv.weight"] = {
        8, 12, 1, false, {{0, 6, 2, 6, 0, 1.0F}, {1, 6, 2, 6, 3, 2.0F}}, nullptr};
    of.tensors["blk.0.ffn_down_exps.weight"] = {8, 4, 3, false, {{2, 4, 1, 0, 0, 1.0F}}, nullptr};
    of.tensors["token_embd.weight"] = {8, 9, 1, true, {{3, 8, 1, 0, 0, 1.0F}}, nullptr};
    of.tensors["blk.0.attn_norm.weight"] = {8, 1, 1, false, {}, "no product reads it"};
    return of;
  }();
  return made;
}

constexpr SiteShape kSites[] = {{0, 8, 6, 1}, {1, 8, 6, 1}, {2, 8, 4, 3}, {3, 9, 8, 1}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto engine = gen::test::cpu_engine();
  const auto file = gen::gguf::GgufFile::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) return 0;
  const auto read = gen::model::read_adapter(*file.value(), targets());
  if (!read.ok()) {
    require(read.status().message()[0] != '\0');
    return 0;
  }
  require(!read.value().pairs.empty());
  for (const int32_t token : read.value().invocation_tokens) require(token >= 0 && token < 9);
  for (const gen::model::AdapterPair& pair : read.value().pairs) {
    const auto& of = targets().tensors.at(pair.tensor);
    const auto rank = static_cast<size_t>(pair.rank);
    const auto a = static_cast<size_t>(of.matrices * (of.embedding ? of.out : of.in));
    const auto b = static_cast<size_t>(of.matrices * (of.embedding ? of.in : of.out));
    require(rank > 0 && pair.a.size() == rank * a && pair.b.size() == rank * b);
    for (const float value : pair.a) require(std::isfinite(value));
    for (const float value : pair.b) require(std::isfinite(value));
  }
  const auto made = gen::model::adapter_of(read.value(), targets(), {engine}, kSites);
  require(made.ok() ? made.value()->bytes() > 0 : made.status().message()[0] != '\0');
  return 0;
}
