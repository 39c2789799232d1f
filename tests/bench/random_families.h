// SPDX-License-Identifier: Apache-2.0
// The families of random_model: tensors and keys of each.
#pragma once

#include <string>

#include "bench/random_file.h"

namespace gen::test {

class LlamaFile final : public RandomFile {
 public:
  using RandomFile::RandomFile;

 private:
  [[nodiscard]] const char* family() const override { return "llama"; }
  void list() override {
    const uint64_t width = shape_.width;
    matrix("token_embd.weight", type_, width, shape_.vocab, 1.0);
    for (uint64_t layer = 0; layer < shape_.layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const DType finer = mixed_ && finer_layer(layer, shape_.layers) ? DType::kQ6_K : type_;
      norm(prefix + "attn_norm.weight");
      attention(prefix, finer, width);
      norm(prefix + "ffn_norm.weight");
      if (shape_.experts > 0) {
        product(prefix + "ffn_gate_inp.weight", DType::kF32, width, shape_.experts, 1.5);
        stack(prefix + "ffn_gate_exps.weight", type_, width, shape_.ffn, 1.2);
        stack(prefix + "ffn_up_exps.weight", type_, width, shape_.ffn, 1.0);
        stack(prefix + "ffn_down_exps.weight", finer, shape_.ffn, width, 0.8);
        continue;
      }
      feed_forward(prefix, finer);
    }
    norm("output_norm.weight");
    product("output.weight", mixed_ ? DType::kQ6_K : type_, width, shape_.vocab, 1.0);
  }
  void hyperparameters() override {
    common_keys();
    number("block_count", shape_.layers);
    number("rope.dimension_count", shape_.head_width());
    if (shape_.experts > 0) {
      number("expert_count", shape_.experts);
      number("expert_used_count", shape_.used);
    }
  }
};

/// An EAGLE-3 head for a llama of the shape, with an output layer of its own.
class Eagle3File final : public RandomFile {
 public:
  using RandomFile::RandomFile;

 private:
  [[nodiscard]] const char* family() const override { return "eagle3"; }
  [[nodiscard]] bool has_tokenizer() const override { return false; }
  void list() override {
    const DType finer = mixed_ ? DType::kQ6_K : type_;
    product("fc.weight", type_, 3 * shape_.width, shape_.width, 1.0);
    norm("blk.0.attn_norm.weight");
    norm("blk.0.attn_norm_2.weight");
    attention("blk.0.", finer, 2 * shape_.width);
    norm("blk.0.ffn_norm.weight");
    feed_forward("blk.0.", finer);
    norm("output_norm.weight");
    product("output.weight", finer, shape_.width, shape_.vocab, 1.0);
  }
  void hyperparameters() override {
    common_keys();
    number("block_count", 1);
    number("rope.dimension_count", shape_.head_width());
    number("target_hidden_size", shape_.width);
    const auto layers = static_cast<uint32_t>(shape_.layers);
    gguf_.set_array<uint32_t>("eagle3.target_layers", {2, layers / 2, layers - 3});
  }
};

/// Three of four blocks have a gated delta net of as many heads of 128 as are two for each of
/// attention's; the embedding is the output layer; the last block drafts.
class Qwen35File final : public RandomFile {
 public:
  using RandomFile::RandomFile;

 private:
  static constexpr uint64_t kState = 128;
  static constexpr uint64_t kTaps = 4;
  [[nodiscard]] uint64_t state_heads() const { return 2 * shape_.heads; }

  [[nodiscard]] const char* family() const override { return "qwen35"; }
  void list() override {
    matrix("token_embd.weight", type_, shape_.width, shape_.vocab, 1.0);
    for (uint64_t layer = 0; layer <= shape_.layers; ++layer) block(layer);
    const std::string draft = "blk." + std::to_string(shape_.layers) + ".nextn.";
    product(draft + "eh_proj.weight", type_, 2 * shape_.width, shape_.width, 1.0);
    norm(draft + "enorm.weight");
    norm(draft + "hnorm.weight");
    norm("output_norm.weight");
  }
  void block(uint64_t layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const DType finer = mixed_ && finer_layer(layer, shape_.layers) ? DType::kQ6_K : type_;
    norm(prefix + "attn_norm.weight");
    if (layer % 4 == 3 || layer == shape_.layers) {
      attention(prefix, finer, shape_.width, 2);
      vector(prefix + "attn_q_norm.weight", shape_.head_width(), 1.0, 0.2);
      vector(prefix + "attn_k_norm.weight", shape_.head_width(), 1.0, 0.2);
    } else {
      delta_net(prefix);
    }
    norm(prefix + "post_attention_norm.weight");
    feed_forward(prefix, finer);
  }
  void delta_net(const std::string& prefix) {
    const uint64_t inner = state_heads() * kState;
    product(prefix + "attn_qkv.weight", type_, shape_.width, 3 * inner, 1.2);
    product(prefix + "attn_gate.weight", type_, shape_.width, inner, 1.2);
    product(prefix + "ssm_alpha.weight", type_, shape_.width, state_heads(), 1.0);
    product(prefix + "ssm_beta.weight", type_, shape_.width, state_heads(), 1.0);
    matrix(prefix + "ssm_conv1d.weight", DType::kF32, kTaps, 3 * inner, 0.5);
    vector(prefix + "ssm_dt.bias", state_heads(), -1.0, 0.5);
    vector(prefix + "ssm_a", state_heads(), -0.5, 0.2);
    vector(prefix + "ssm_norm.weight", kState, 1.0, 0.2);
    product(prefix + "ssm_out.weight", type_, inner, shape_.width, 0.8);
  }
  void hyperparameters() override {
    common_keys();
    number("block_count", shape_.layers + 1);
    number("nextn_predict_layers", 1);
    number("attention.key_length", shape_.head_width());
    number("attention.value_length", shape_.head_width());
    number("rope.dimension_count", shape_.head_width() / 4);
    number("full_attention_interval", 4);
    number("ssm.conv_kernel", kTaps);
    number("ssm.inner_size", state_heads() * kState);
    number("ssm.state_size", kState);
    number("ssm.time_step_rank", state_heads());
    number("ssm.group_count", state_heads());
  }
};

}  // namespace gen::test
