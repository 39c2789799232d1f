// SPDX-License-Identifier: Apache-2.0
// What cannot be merged is refused by name, with the reason; so are results that a type cannot
// hold.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "support/merged_file.h"

namespace gen::model {
namespace {

using Bytes = std::vector<std::byte>;
using test::AdapterWriter;
using test::bytes_of;
using test::merged;
using test::MergeOptions;

void expect_refused(const Bytes& model, const Bytes& adapter, Code code,
                    std::initializer_list<const char*> words, const MergeOptions& options = {}) {
  const auto made = merged(model, adapter, options);
  ASSERT_FALSE(made.ok()) << *words.begin();
  EXPECT_EQ(made.status().code(), code) << made.status().message();
  for (const char* word : words) {
    EXPECT_NE(std::string_view(made.status().message()).find(word), std::string_view::npos)
        << word << ": " << made.status().message();
  }
}

Bytes llama(bool tied = false) {
  test::TinyModelSpec spec;
  spec.tied = tied;
  return test::TinyModel(spec).bytes();
}

Bytes pair_of(const char* tensor, std::vector<uint64_t> a, std::vector<uint64_t> b) {
  return AdapterWriter("llama").pair(tensor, std::move(a), std::move(b)).bytes();
}

TEST(MergeRefusals, TensorsThatAreNoMatricesOfProducts) {
  const Bytes model = llama();
  expect_refused(model, pair_of("blk.0.attn_norm.weight", {64, 2}, {2, 1}), Code::kUnsupported,
                 {"blk.0.attn_norm.weight", "one dimension"});
  expect_refused(model, pair_of("token_embd.weight", {64, 2}, {2, 50}), Code::kFormat,
                 {"token_embd.weight", "expected rank x 50 and rank x 64"});
  expect_refused(llama(true), pair_of("token_embd.weight", {2, 50}, {2, 64}), Code::kUnsupported,
                 {"token_embd.weight", "the model's head, too"});
  expect_refused(model, pair_of("blk.2.attn_q.weight", {64, 2}, {2, 64}), Code::kUnsupported,
                 {"the model has no tensor blk.2.attn_q.weight"});
  expect_refused(llama(true), pair_of("output.weight", {64, 2}, {2, 50}), Code::kUnsupported,
                 {"output.weight", "its embedding, token_embd.weight", "would change"});

  test::GgufWriter odd;
  odd.set_string("general.architecture", "llama");
  odd.tensor("blk.0.some_norm.weight", 0, {64, 2}, bytes_of(std::vector<float>(128)));
  odd.tensor("blk.0.ssm_a", 0, {64, 2}, bytes_of(std::vector<float>(128)));
  odd.tensor("blk.0.deep.weight", 0, {64, 2, 1, 2}, bytes_of(std::vector<float>(256)));
  odd.tensor("per_layer_token_embd.weight", 0, {64, 2}, bytes_of(std::vector<float>(128)));
  odd.tensor("blk.0.table.weight", 26, {64, 2}, Bytes(512));
  const Bytes of_odd = odd.build().bytes;
  for (const auto& [name, reason] : {std::pair{"blk.0.some_norm.weight", "no product"},
                                     {"blk.0.ssm_a", "no product"},
                                     {"blk.0.deep.weight", "dimensions"},
                                     {"per_layer_token_embd.weight", "tokens alone"},
                                     {"blk.0.table.weight", "element type"}}) {
    expect_refused(of_odd, pair_of(name, {64, 2}, {2, 2}), Code::kUnsupported, {name, reason});
  }
}

TEST(MergeRefusals, AdaptersThatDoNotFit) {
  const Bytes model = llama();
  const char* const query = "blk.0.attn_q.weight";
  expect_refused(model, AdapterWriter("qwen2").pair(query, {64, 2}, {2, 64}).bytes(),
                 Code::kUnsupported, {"qwen2", "llama"});
  expect_refused(model, pair_of(query, {63, 2}, {2, 64}), Code::kFormat,
                 {"63 x 2 and 2 x 64", "expected 64 x 2 and 2 x 64"});
  expect_refused(model, pair_of(query, {64, 2, 2}, {2, 64, 2}), Code::kFormat, {"64 x 2 x 2"});
  expect_refused(model, model, Code::kFormat, {"general.type"});
  AdapterWriter invoked("llama");
  invoked.writer.set_array<uint32_t>("adapter.alora.invocation_tokens", {3, 4});
  invoked.pair(query, {64, 2}, {2, 64});
  expect_refused(model, invoked.bytes(), Code::kUnsupported, {"invocation tokens"});
  test::GgufWriter nameless;
  nameless.tensor(query, 0, {64, 64}, bytes_of(std::vector<float>(64 * 64)));
  expect_refused(nameless.build().bytes, pair_of(query, {64, 2}, {2, 64}), Code::kFormat,
                 {"general.architecture"});
}

/// A model of one matrix of these values, 64 x 2.
Bytes model_of(DType type, float value, size_t at = 0, float beside = 0.0F) {
  test::GgufWriter writer;
  writer.set_string("general.architecture", "llama");
  std::vector<float> values(128);
  values[at] = value;
  writer.tensor("w.weight", static_cast<uint32_t>(type), {64, 2}, bytes_of(values, type));
  if (beside != 0.0F) writer.tensor("w.scale", 0, {1}, bytes_of({beside}));
  return writer.build().bytes;
}

TEST(MergeRefusals, WeightsThatATypeCannotHold) {
  const Bytes adapter = pair_of("w.weight", {64, 2}, {2, 2});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    expect_refused(model_of(DType::kF32, value, 70), adapter, Code::kFormat,
                   {"w.weight", "weight 70", "not finite"});
  }
  const Bytes zeros = model_of(DType::kF32, 0.0F);
  const Bytes large = AdapterWriter("llama").pair("w.weight", {64, 2}, {2, 2}, 1e22F).bytes();
  expect_refused(zeros, large, Code::kFormat, {"w.weight", "weight 0", "not finite"});
  const Bytes some = AdapterWriter("llama").pair("w.weight", {64, 2}, {2, 2}, 1e4F).bytes();
  EXPECT_TRUE(merged(zeros, some).ok());
  EXPECT_TRUE(merged(zeros, some, {1.0F, "BF16"}).ok());
  for (const char* type : {"F16", "Q8_0"}) {
    expect_refused(zeros, some, Code::kFormat, {"w.weight", "too large", type}, {1.0F, type});
  }
  expect_refused(model_of(DType::kF16, 1.0F), some, Code::kFormat, {"w.weight", "too large"});
  // The base alone may be what its type saturates at.
  EXPECT_TRUE(merged(model_of(DType::kF16, 65504.0F), adapter, {0.0F}).ok());
  expect_refused(model_of(DType::kF32, 1.0F, 0, 1e-45F), adapter, Code::kFormat,
                 {"w.scale", "scales nothing"});
}

TEST(MergeRefusals, ScalesOfExperts) {
  const Bytes adapter = pair_of("w_exps.weight", {64, 2, 3}, {2, 2, 3});
  for (const auto& [scales, code] : {std::pair{std::vector<float>{1, 2, 4}, Code::kOk},
                                     {std::vector<float>{1, 2}, Code::kUnsupported},
                                     {std::vector<float>{1, 0, 2}, Code::kFormat}}) {
    test::GgufWriter writer;
    writer.set_string("general.architecture", "llama");
    writer.tensor("w_exps.weight", 0, {64, 2, 3}, bytes_of(std::vector<float>(384)));
    writer.tensor("w_exps.scale", 0, {scales.size()}, bytes_of(scales));
    const Bytes model = writer.build().bytes;
    if (code != Code::kOk) {
      expect_refused(model, adapter, code, {"w_exps.scale"});
    } else {
      EXPECT_TRUE(merged(model, adapter).ok());
    }
  }
  expect_refused(model_of(DType::kF32, 1.0F), pair_of("w.weight", {64, 2, 3}, {2, 2, 3}),
                 Code::kFormat, {"w.weight"});
}

TEST(MergeRefusals, TypesWithoutACodecWhereAllAreConverted) {
  test::GgufWriter writer;
  writer.set_string("general.architecture", "llama");
  writer.tensor("w.weight", 0, {64, 2}, bytes_of(std::vector<float>(128)));
  writer.tensor("odd.weight", 15, {256, 1}, Bytes(292));  // Q8_K
  const Bytes model = writer.build().bytes;
  const Bytes adapter = pair_of("w.weight", {64, 2}, {2, 2});
  EXPECT_TRUE(merged(model, adapter).ok());
  expect_refused(model, adapter, Code::kUnsupported, {"odd.weight", "Q8_K"}, {1.0F, "Q8_0"});
}

TEST(MergeRefusals, CutAndDamagedFiles) {
  const Bytes model = model_of(DType::kF32, 1.0F);
  const test::GgufImage image =
      AdapterWriter("llama").pair("w.weight", {64, 2}, {2, 2}).writer.build();
  ASSERT_TRUE(merged(model, image.bytes).ok());
  const auto expect_line = [&](const Bytes& bytes, size_t at) {
    const auto made = merged(model, bytes);
    if (made.ok()) return true;
    const Code code = made.status().code();
    EXPECT_TRUE(code == Code::kFormat || code == Code::kUnsupported) << at;
    return false;
  };
  for (size_t size = 0; size < image.bytes.size(); size += 7) {
    EXPECT_FALSE(expect_line(
        {image.bytes.begin(), image.bytes.begin() + static_cast<std::ptrdiff_t>(size)}, size));
  }
  for (size_t at = 0; at < image.at("data"); ++at) {
    Bytes damaged = image.bytes;
    damaged[at] ^= std::byte{0x20};
    expect_line(damaged, at);
  }
}

}  // namespace
}  // namespace gen::model
