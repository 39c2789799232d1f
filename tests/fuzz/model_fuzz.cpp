// SPDX-License-Identifier: Apache-2.0
// Fuzzes the loading of models from untrusted GGUF files and what they compute: whatever the reader
// of hyperparameters lets through must compile and run, to logits or to an error. Seeds:
// model_seeds.py, a small model of every family.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cache/sequence/registry.h"
#include "engine/memory/host_memory.h"
#include "model/loader.h"
#include "support/cpu_engine.h"
#include "support/tiny_graph.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void require_line(const gen::Status& status) {
  require(status.message()[0] != '\0');
  for (const char* at = status.message(); *at != '\0'; ++at) require(*at != '\n');
}

void run(const gen::model::Model& model) {
  const int32_t vocab = model.traits().vocab_size;
  auto cache =
      gen::cache::make_cache("fp32", model.layer_shapes(), 16, gen::engine::system_memory());
  if (!cache.ok()) return require_line(cache.status());
  for (const int32_t rows : {5, 1}) {
    const int32_t n = std::min(rows, model.traits().max_seq_len - cache.value()->length());
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < n; ++i) tokens.push_back((7 * i + rows) % vocab);
    if (tokens.empty()) return;
    gen::test::OwnedBatch batch;
    require(batch.add(*cache.value(), tokens).ok());
    const gen::Status status = model.forward(batch.finish(vocab));
    if (!status.ok()) return require_line(status);
    batch.commit();
    for (const float logit : batch.results(vocab)) require(std::isfinite(logit));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<gen::engine::Engine> engine = gen::test::cpu_engine();
  auto file = gen::gguf::GgufFile::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) return 0;
  gen::model::LoadOptions options;
  options.engine = engine;
  const auto loaded = gen::model::load_model(std::move(file).value(), options);
  if (loaded.ok()) {
    run(*loaded.value()->model);
  } else {
    require_line(loaded.status());
  }
  return 0;
}
