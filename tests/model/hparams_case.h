// SPDX-License-Identifier: Apache-2.0
// Hyperparameters of a llama's metadata with changes made to it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "model/arch/registry.h"
#include "model/gguf/gguf_file.h"
#include "model/hparams.h"
#include "support/gguf_writer.h"

namespace gen::model {

using test::GgufWriter;
using Change = std::function<void(GgufWriter&)>;

inline Status read_llama(KeyReader& keys, HParams* h) {
  return arch::read_dense_decoder(arch::kLlama.style, keys, h);
}

/// A complete set of keys, except those that `change` writes itself.
inline Result<HParams> read(const Change& change, const std::string& without = "",
                            const ReadHParams& hook = read_llama) {
  GgufWriter writer;
  const auto set = [&](const char* key, uint32_t value) {
    if (without != key) writer.set(std::string("llama.") + key, value);
  };
  writer.set_string("general.architecture", "llama");
  set("context_length", 2048);
  set("block_count", 3);
  set("embedding_length", 64);
  set("feed_forward_length", 160);
  set("attention.head_count", 4);
  if (without != "attention.layer_norm_rms_epsilon") {
    writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  }
  change(writer);
  const std::vector<std::byte> bytes = writer.build().bytes;
  auto file = gguf::GgufFile::parse(bytes);
  if (!file.ok()) return file.status();
  return read_hparams(file.value()->metadata(), hook);
}

inline Change u32(const char* key, uint32_t value) {
  return [=](GgufWriter& w) { w.set(std::string("llama.") + key, value); };
}
inline Change f32(const char* key, float value) {
  return [=](GgufWriter& w) { w.set(std::string("llama.") + key, value); };
}
inline Change text(const char* key, const char* value) {
  return [=](GgufWriter& w) { w.set_string(std::string("llama.") + key, value); };
}
inline Change nothing() {
  return [](GgufWriter&) {};
}

/// `used` of `count` experts, and more.
inline Change experts(uint32_t count, uint32_t used, const Change& more = nothing()) {
  return [=](GgufWriter& w) {
    u32("expert_count", count)(w);
    u32("expert_used_count", used)(w);
    more(w);
  };
}

using Numbers = std::vector<int32_t>;

/// What `member` is in each layer.
template <typename T>
std::vector<T> each(const HParams& h, T graph::AttentionSpec::*member) {
  std::vector<T> values;
  for (const LayerParams& layer : h.layers) values.push_back(layer.attention.*member);
  return values;
}

}  // namespace gen::model
