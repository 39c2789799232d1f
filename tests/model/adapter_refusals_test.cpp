// SPDX-License-Identifier: Apache-2.0
// Adapter files that are wrong, cut or damaged are refused with a line that says why, and what an
// adapter's content is.
#include "model/adapter_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "support/adapter_files.h"

namespace gen::model {
namespace {

using Floats = std::vector<float>;
using test::bytes_of;
using test::drawn;
using test::logits;
using test::make;

struct Parts {
  std::string type = "adapter";
  std::string architecture = "llama";
  std::string kind = "lora";
  float alpha = 4.0F;
  std::vector<uint32_t> invocation;
  struct Tensor {
    std::string name;
    std::vector<uint64_t> shape;
    DType type = DType::kF32;
    Floats values = {};
  };
  std::vector<Tensor> tensors = {{"blk.0.attn_q.weight.lora_a", {64, 2}},
                                 {"blk.0.attn_q.weight.lora_b", {2, 64}}};
};

test::GgufImage image_of(const Parts& of) {
  test::GgufWriter writer;
  writer.set_string("general.type", of.type)
      .set_string("general.architecture", of.architecture)
      .set_string("adapter.type", of.kind)
      .set("adapter.lora.alpha", of.alpha);
  if (!of.invocation.empty()) writer.set_array("adapter.alora.invocation_tokens", of.invocation);
  for (const Parts::Tensor& tensor : of.tensors) {
    int64_t count = 1;
    for (const uint64_t n : tensor.shape) count *= static_cast<int64_t>(n);
    const Floats values = tensor.values.empty() ? drawn(tensor.name, count) : tensor.values;
    writer.tensor(tensor.name, static_cast<uint32_t>(tensor.type), tensor.shape,
                  bytes_of(values, tensor.type));
  }
  return writer.build();
}

const test::LoadedTiny& llama() {
  static const test::LoadedTiny loaded{test::TinyModel(test::TinyModelSpec{})};
  return loaded;
}

void expect_refused(const test::LoadedTiny& model, const std::vector<std::byte>& bytes, Code code,
                    std::initializer_list<const char*> words) {
  const auto made = make(model, bytes);
  ASSERT_FALSE(made.ok()) << *words.begin();
  EXPECT_EQ(made.status().code(), code) << made.status().message();
  for (const char* word : words) {
    EXPECT_NE(std::string_view(made.status().message()).find(word), std::string_view::npos)
        << word << ": " << made.status().message();
  }
}

void expect_refused(const std::function<void(Parts&)>& change, Code code,
                    std::initializer_list<const char*> words) {
  Parts parts;
  change(parts);
  expect_refused(llama(), image_of(parts).bytes, code, words);
}

TEST(AdapterFile, Refusals) {
  constexpr Code kFormat = Code::kFormat;
  constexpr Code kUnsupported = Code::kUnsupported;
  const auto named = [](const char* a, const char* b) {
    return [=](Parts& p) {
      p.tensors[0].name = a;
      p.tensors[1].name = b;
    };
  };
  expect_refused([](Parts& p) { p.type = "model"; }, kFormat, {"general.type", "model"});
  expect_refused([](Parts& p) { p.kind = "ia3"; }, kUnsupported, {"adapter.type", "ia3"});
  expect_refused([](Parts& p) { p.architecture = "qwen2"; }, kUnsupported, {"qwen2", "llama"});
  expect_refused([](Parts& p) { p.architecture = "Llama"; }, kUnsupported, {"Llama", "llama"});
  expect_refused([](Parts& p) { p.alpha = std::numeric_limits<float>::infinity(); }, kFormat,
                 {"adapter.lora.alpha"});
  expect_refused(
      [](Parts& p) {
        p.invocation = {1, 50};
      },
      kFormat, {"invocation_tokens", "token 50", "[0, 50)"});
  expect_refused([](Parts& p) { p.tensors.clear(); }, kFormat, {"without tensors"});
  expect_refused([](Parts& p) { p.tensors.pop_back(); }, kFormat,
                 {"blk.0.attn_q.weight.lora_a", "no lora_b"});
  expect_refused([](Parts& p) { p.tensors.erase(p.tensors.begin()); }, kFormat,
                 {"blk.0.attn_q.weight.lora_b", "no lora_a"});
  expect_refused(
      [](Parts& p) {
        p.tensors[0].shape = {63, 2};
      },
      kFormat, {"63 x 2 and 2 x 64", "expected 64 x 2 and 2 x 64"});
  expect_refused([](Parts& p) { p.tensors[1].shape = {2, 65}; }, kFormat, {"2 x 65", "2 x 64"});
  expect_refused([](Parts& p) { p.tensors[1].shape = {3, 64}; }, kFormat, {"3 x 64", "2 x 64"});
  expect_refused([](Parts& p) { p.tensors[0].shape = {64, 2, 2}; }, kFormat, {"64 x 2 x 2"});
  expect_refused([](Parts& p) { p.tensors[0].shape = {2, 64}; }, kFormat, {"2 x 64"});
  expect_refused(
      [](Parts& p) {
        p.tensors[0].shape = {64, 4097};
        p.tensors[1].shape = {4097, 64};
      },
      kUnsupported, {"4097", "4096", "blk.0.attn_q.weight.lora_a"});
  expect_refused(named("blk.0.attn_norm.weight.lora_a", "blk.0.attn_norm.weight.lora_b"),
                 kUnsupported, {"blk.0.attn_norm.weight", "no product reads it"});
  expect_refused(named("token_embd.weight.lora_a", "token_embd.weight.lora_b"), kFormat,
                 {"token_embd.weight.lora_a", "expected rank x 50 and rank x 64"});
  expect_refused(named("blk.2.attn_q.weight.lora_a", "blk.2.attn_q.weight.lora_b"), kUnsupported,
                 {"the model has no tensor blk.2.attn_q.weight"});
  expect_refused(named("blk.0.attn_q.lora_a", "blk.0.attn_q.lora_b"), kUnsupported,
                 {"the model has no tensor blk.0.attn_q"});
  expect_refused(named("lora_a.blk.0.attn_q", "lora_b.blk.0.attn_q"), kUnsupported,
                 {"lora_a.blk.0.attn_q", "neither"});
  const auto beside = [](const char* name) {
    return [=](Parts& p) { p.tensors.push_back({name, {64}}); };
  };
  expect_refused(beside("blk.0.attn_norm.weight"), kUnsupported,
                 {"blk.0.attn_norm.weight", "replace"});
  expect_refused(beside("blk.0.attn_q.weight.lora_magnitude"), kUnsupported,
                 {"lora_magnitude", "neither"});
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const size_t half : {0U, 1U}) {
      expect_refused(
          [&](Parts& p) {
            p.tensors[half].values.assign(128, 0.5F);
            p.tensors[half].values[77] = value;
          },
          kFormat, {half == 0 ? "weight.lora_a" : "weight.lora_b", "value 77", "not finite"});
    }
  }
  expect_refused(
      [](Parts& p) {
        p.alpha = 1e38F;
        p.tensors[1].values.assign(128, 1e5F);
      },
      kFormat, {"blk.0.attn_q.weight", "too large"});
}

TEST(AdapterFile, RefusalsOfTheFormByLayer) {
  const auto with = [](const std::function<void(test::GgufWriter&)>& keys,
                       const std::vector<std::string>& names) {
    test::GgufWriter writer;
    keys(writer);
    for (const std::string& name : names) {
      const bool a = name[5] == 'a';
      writer.tensor(name, 0, a ? std::vector<uint64_t>{64, 2} : std::vector<uint64_t>{2, 64},
                    bytes_of(drawn(name, 128)));
    }
    return writer.build().bytes;
  };
  const std::vector<std::string> good = {"lora_a.blk.0.attn_q", "lora_b.blk.0.attn_q.weight"};
  const auto keys = [](uint32_t rank, float alpha) {
    return [=](test::GgufWriter& w) { w.set("lora.rank", rank).set("lora.alpha", alpha); };
  };
  EXPECT_TRUE(make(llama(), with(keys(2, 1.0F), good)).ok());
  expect_refused(llama(), with(keys(0, 1.0F), good), Code::kFormat, {"lora.rank is 0"});
  expect_refused(llama(), with(keys(3, 1.0F), good), Code::kFormat, {"64 x 2", "64 x 3"});
  expect_refused(llama(), with([](test::GgufWriter& w) { w.set("lora.rank", 2U); }, good),
                 Code::kFormat, {"lora.alpha"});
  expect_refused(llama(), with([](test::GgufWriter& w) { w.set("lora.alpha", 1.0F); }, good),
                 Code::kFormat, {"no adapter", "lora.rank"});
  expect_refused(llama(),
                 with(keys(2, 1.0F), {"lora_a.blk.0.attn_q", "lora_a.blk.0.attn_q.weight"}),
                 Code::kFormat, {"are the same"});
  expect_refused(llama(),
                 with(
                     [&](test::GgufWriter& w) {
                       keys(2, 1.0F)(w);
                       w.set_string("general.architecture", "gemma");
                     },
                     good),
                 Code::kUnsupported, {"gemma", "llama"});
}

TEST(AdapterFile, Experts) {
  test::TinyModelSpec spec;
  spec.architecture = "qwen2moe";
  const test::LoadedTiny experts{test::TinyModel(spec)};
  Parts parts;
  parts.architecture = "qwen2moe";
  const std::string ups = "blk.0.ffn_up_exps.weight.lora_";
  parts.tensors[0] = {ups + "a", {64, 2}};
  parts.tensors[1] = {ups + "b", {2, 64, 6}};
  expect_refused(experts, image_of(parts).bytes, Code::kFormat,
                 {"blk.0.ffn_up_exps.weight", "are 64 x 2 and"});
  parts.tensors[0] = {ups + "a", {64, 2, 6}};
  parts.tensors[1] = {ups + "b", {2, 64, 5}};
  expect_refused(experts, image_of(parts).bytes, Code::kFormat, {"blk.0.ffn_up_exps.weight"});
  parts.tensors[0] = {"blk.0.ffn_gate_inp.weight.lora_a", {64, 2}};
  parts.tensors[1] = {"blk.0.ffn_gate_inp.weight.lora_b", {2, 7}};
  expect_refused(experts, image_of(parts).bytes, Code::kFormat, {"blk.0.ffn_gate_inp.weight"});
}

TEST(AdapterFile, TiedHeads) {
  test::TinyModelSpec spec;
  spec.tied = true;
  const test::LoadedTiny tied{test::TinyModel(spec)};
  Parts parts;
  // The embedding's own pair is the other way round.
  parts.tensors[0] = {"token_embd.weight.lora_a", {64, 2}};
  parts.tensors[1] = {"token_embd.weight.lora_b", {2, 50}};
  expect_refused(tied, image_of(parts).bytes, Code::kFormat,
                 {"token_embd.weight", "expected rank x 50 and rank x 64"});
  parts.tensors[0] = {"output.weight.lora_a", {64, 2}};
  parts.tensors[1] = {"output.weight.lora_b", {2, 50}};
  const auto made = make(tied, image_of(parts).bytes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const std::vector<graph::AdapterUse> mixes[] = {{{made.value()->matrices, 1.0F}}};
  const auto table = tied.model().adapter_table(mixes).value();
  EXPECT_NE(logits(tied, table.get()), logits(tied, nullptr));
}

TEST(AdapterFile, OfAModelThatWasCut) {
  Parts parts;
  parts.tensors.push_back({"blk.1.attn_q.weight.lora_a", {64, 2}});
  parts.tensors.push_back({"blk.1.attn_q.weight.lora_b", {2, 64}});
  const auto bytes = image_of(parts).bytes;
  const auto file = gguf::GgufFile::parse(bytes).value();
  const auto cut = llama().model().first_layers(1).value();
  const auto whole = llama().model().make_adapter(*file);
  const auto part = cut->make_adapter(*file);
  ASSERT_TRUE(whole.ok() && part.ok()) << part.status().message();
  EXPECT_EQ(whole.value()->content, part.value()->content);
  EXPECT_EQ(whole.value()->bytes, 2 * part.value()->bytes);
}

TEST(AdapterFile, ContentIsWhatItDoes) {
  const auto content = [](const std::function<void(Parts&)>& change) {
    Parts parts;
    change(parts);
    const auto made = make(llama(), image_of(parts).bytes);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.value()->content;
  };
  const uint64_t same = content([](Parts&) {});
  EXPECT_EQ(content([](Parts& p) { std::swap(p.tensors[0], p.tensors[1]); }), same);
  EXPECT_NE(content([](Parts& p) { p.alpha = 5.0F; }), same);
  EXPECT_NE(content([](Parts& p) { p.invocation = {4, 5}; }), same);
  EXPECT_NE(content([](Parts& p) { p.tensors[1].values.assign(128, 0.5F); }), same);
  EXPECT_NE(content([](Parts& p) {
              const Floats a = drawn(p.tensors[0].name, 128);
              const Floats b = drawn(p.tensors[1].name, 128);
              p.tensors[0] = {"blk.1.attn_q.weight.lora_a", {64, 2}, DType::kF32, a};
              p.tensors[1] = {"blk.1.attn_q.weight.lora_b", {2, 64}, DType::kF32, b};
            }),
            same);
  Parts parts;
  parts.invocation = {4, 5};
  EXPECT_EQ(make(llama(), image_of(parts).bytes).value()->invocation_tokens,
            (std::vector<int32_t>{4, 5}));
}

TEST(AdapterFile, CutAndDamagedFiles) {
  const test::GgufImage image = image_of({});
  ASSERT_TRUE(make(llama(), image.bytes).ok());
  const auto expect_line = [](const std::vector<std::byte>& bytes, size_t at) {
    const auto made = make(llama(), bytes);
    if (made.ok()) return true;
    const Code code = made.status().code();
    EXPECT_TRUE(code == Code::kFormat || code == Code::kUnsupported) << at;
    EXPECT_NE(std::string_view(made.status().message()), "") << at;
    return false;
  };
  for (size_t size = 0; size < image.bytes.size(); ++size) {
    const std::vector<std::byte> cut(image.bytes.begin(),
                                     image.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(expect_line(cut, size)) << size;
  }
  for (size_t at = 0; at < image.at("data"); ++at) {
    for (const int change : {0x01, 0x20, 0x80, 0xFF}) {
      std::vector<std::byte> damaged = image.bytes;
      damaged[at] ^= static_cast<std::byte>(change);
      expect_line(damaged, at);
    }
  }
}

}  // namespace
}  // namespace gen::model
