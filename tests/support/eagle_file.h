// SPDX-License-Identifier: Apache-2.0
// Files of heads that draft for a TinyModel: random weights, and what tests have wrong in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/gguf_writer.h"

namespace gen::test {

enum class EagleKind { kEagle3, kEagle1, kMlp };

/// As TinyModelSpec's model has it, unless told otherwise.
struct EagleSpec {
  EagleKind kind = EagleKind::kEagle3;
  int32_t hidden = 64;
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t feed_forward = 96;
  int32_t blocks = 1;
  int32_t target_hidden = 64;
  std::vector<uint32_t> target_layers = {0, 1, 2};
  std::vector<float> embedding;   // token_embd of its own, [V, hidden]; empty: none
  std::vector<float> output;      // an output layer of its own, [V, hidden]; empty: none
  std::vector<int64_t> tokens;    // d2t; empty: none
  uint64_t token_columns = 1;     // of d2t
  std::string prefix = "eagle.";  // of the tensors of an MLP
  std::string without;            // a key or a tensor that is left out
  std::string misshapen;          // a tensor with another column
  std::string extra;              // one more tensor
};

/// The tensors of such a head.
class EagleFile {
 public:
  explicit EagleFile(const EagleSpec& spec) : spec_(spec) {
    constexpr const char* kNames[] = {"eagle3", "eagle", "eagle"};
    name_ = kNames[static_cast<size_t>(spec.kind)];
    if (spec.without != "general.architecture") writer_.set_string("general.architecture", name_);
    if (spec.kind == EagleKind::kMlp) {
      mlp();
    } else {
      layer();
    }
    if (!spec.extra.empty()) tensor(spec.extra, {4});
  }

  [[nodiscard]] std::vector<std::byte> bytes() const { return writer_.build().bytes; }
  [[nodiscard]] const std::vector<std::string>& tensors() const { return tensors_; }

 private:
  static constexpr uint32_t kFloat = 0;
  static constexpr uint32_t kLong = 27;  // int64

  void key(const std::string& name, uint32_t value) {
    const std::string full = name_ + "." + name;
    if (full != spec_.without) writer_.set<uint32_t>(full, value);
  }
  void tensor(const std::string& name, std::vector<int32_t> shape) {
    if (name == spec_.without) return;
    tensors_.push_back(name);
    if (name == spec_.misshapen) ++shape[0];
    std::vector<uint64_t> dims(shape.begin(), shape.end());
    size_t n = 1;
    for (const uint64_t dim : dims) n *= dim;
    std::vector<std::byte> data(n * sizeof(float));
    for (size_t i = 0; i < n; ++i) {
      const float value = (static_cast<float>(random_() % 2001) - 1000.0F) / 4000.0F +
                          (dims.size() == 1 ? 1.0F : 0.0F);
      std::memcpy(data.data() + i * sizeof value, &value, sizeof value);
    }
    writer_.tensor(name, kFloat, std::move(dims), std::move(data));
  }
  void own_weights() {
    if (!spec_.embedding.empty()) table("token_embd.weight", spec_.embedding);
    if (!spec_.output.empty()) table("output.weight", spec_.output);
  }
  void table(const std::string& name, const std::vector<float>& values) {
    if (name == spec_.without) return;
    tensors_.push_back(name);
    std::vector<std::byte> data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    const auto cols = static_cast<uint64_t>(spec_.hidden);
    writer_.tensor(name, kFloat, {cols, values.size() / cols}, std::move(data));
  }
  void mlp() {
    own_weights();
    tensor(spec_.prefix + "norm.weight", {spec_.hidden});
    tensor(spec_.prefix + "norm.bias", {spec_.hidden});
    tensor(spec_.prefix + "fc1.weight", {spec_.hidden, spec_.hidden});
    tensor(spec_.prefix + "fc2.weight", {spec_.hidden, spec_.hidden});
  }
  void layer() {
    own_weights();
    const bool mixes = spec_.kind == EagleKind::kEagle3;
    key("context_length", 128);
    key("embedding_length", static_cast<uint32_t>(spec_.hidden));
    key("block_count", static_cast<uint32_t>(spec_.blocks));
    key("feed_forward_length", static_cast<uint32_t>(spec_.feed_forward));
    key("attention.head_count", static_cast<uint32_t>(spec_.heads));
    key("attention.head_count_kv", static_cast<uint32_t>(spec_.kv_heads));
    writer_.set<float>(name_ + ".attention.layer_norm_rms_epsilon", 1e-5F);
    if (mixes) {
      key("target_hidden_size", static_cast<uint32_t>(spec_.target_hidden));
      if (spec_.without != "eagle3.target_layers") {
        writer_.set_array("eagle3.target_layers", spec_.target_layers);
      }
    }
    const int32_t in = mixes ? 2 * spec_.hidden : spec_.hidden;
    const int32_t head = spec_.hidden / spec_.heads;
    tensor("fc.weight", {mixes ? 3 * spec_.target_hidden : 2 * spec_.hidden, spec_.hidden});
    if (mixes) {
      tensor("blk.0.attn_norm.weight", {spec_.hidden});
      tensor("blk.0.attn_norm_2.weight", {spec_.hidden});
    }
    tensor("blk.0.attn_q.weight", {in, spec_.heads * head});
    tensor("blk.0.attn_k.weight", {in, spec_.kv_heads * head});
    tensor("blk.0.attn_v.weight", {in, spec_.kv_heads * head});
    tensor("blk.0.attn_output.weight", {spec_.heads * head, spec_.hidden});
    tensor("blk.0.ffn_norm.weight", {spec_.hidden});
    tensor("blk.0.ffn_gate.weight", {spec_.hidden, spec_.feed_forward});
    tensor("blk.0.ffn_up.weight", {spec_.hidden, spec_.feed_forward});
    tensor("blk.0.ffn_down.weight", {spec_.feed_forward, spec_.hidden});
    if (!mixes) return;
    tensor("output_norm.weight", {spec_.hidden});
    if (spec_.tokens.empty()) return;
    tensor("output.weight", {spec_.hidden, static_cast<int32_t>(spec_.tokens.size())});
    std::vector<std::byte> data(spec_.tokens.size() * sizeof(int64_t));
    std::memcpy(data.data(), spec_.tokens.data(), data.size());
    const std::vector<uint64_t> dims = {spec_.tokens.size() / spec_.token_columns,
                                        spec_.token_columns};
    writer_.tensor("d2t", kLong, dims, std::move(data));
  }

  EagleSpec spec_;
  std::string name_;
  std::mt19937 random_{1};
  GgufWriter writer_;
  std::vector<std::string> tensors_;
};

}  // namespace gen::test
