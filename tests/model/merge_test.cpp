// SPDX-License-Identifier: Apache-2.0
// Proves that merged weights are W + scale alpha / rank B A in double precision, rounded once; that
// nothing else of a file changes; that bytes depend on nothing but the files; and that a merged
// model is the base with its adapter, in every family of the library's table.
#include "model/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/arch/registry.h"
#include "model/quantize.h"
#include "quant/format.h"
#include "support/merged_file.h"

namespace gen::model {
namespace {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;
using test::AdapterWriter;
using test::bytes_of;
using test::difference;
using test::drawn;
using test::logits;
using test::merged;

Floats decoded(const gguf::TensorInfo& tensor) {
  Floats values(static_cast<size_t>(tensor.elements()));
  quant::find_format(tensor.type)->decode(tensor.data.data(), values.data(), tensor.elements());
  return values;
}

/// W + factor B A of the values that AdapterWriter draws.
std::vector<double> sum_of(const gguf::TensorInfo& tensor, int64_t rank, double factor) {
  const bool embedding = tensor.name == "token_embd.weight";
  const Floats w = decoded(tensor);
  const int64_t in = tensor.shape[0];
  const int64_t out = tensor.shape[1];
  const int64_t matrices = tensor.shape[2];
  const Floats a = drawn(tensor.name + ".lora_a", matrices * rank * (embedding ? out : in));
  const Floats b = drawn(tensor.name + ".lora_b", matrices * rank * (embedding ? in : out));
  std::vector<double> sums;
  for (int64_t n = 0; n < matrices * out; ++n) {
    for (int64_t i = 0; i < in; ++i) {
      double sum = 0.0;
      for (int64_t r = 0; r < rank; ++r) {
        const int64_t at_a = embedding ? n * rank + r : (n / out * rank + r) * in + i;
        const int64_t at_b = (embedding ? i : n) * rank + r;
        sum += double{a[static_cast<size_t>(at_a)]} * double{b[static_cast<size_t>(at_b)]};
      }
      sums.push_back(double{w[sums.size()]} + factor * sum);
    }
  }
  return sums;
}

void expect_rounded(const Floats& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    // Half a unit of the last place, and what sums in double precision may be off.
    ASSERT_LE(std::abs(double{got[i]} - want[i]), std::ldexp(std::abs(want[i]), -24) + 1e-13) << i;
  }
}

void expect_same_bytes(const gguf::TensorInfo& got, const gguf::TensorInfo& want) {
  EXPECT_EQ(got.type, want.type) << want.name;
  EXPECT_EQ(got.shape, want.shape) << want.name;
  EXPECT_TRUE(std::equal(got.data.begin(), got.data.end(), want.data.begin(), want.data.end()))
      << want.name;
}

/// Matrices of products by their names, in any family, and the embedding.
bool takes_adapters(const gguf::TensorInfo& tensor, bool tied) {
  const std::string& name = tensor.name;
  if (name.ends_with("gate_inp_shexp.weight")) return true;
  if (tensor.n_dims < 2 || tensor.shape[1] == 1) return false;
  if (!name.ends_with(".weight") || name.ends_with("_norm.weight")) return false;
  if (name == "token_embd.weight") return !tied;
  return name.find("token_embd") == std::string::npos && name.find("conv") == std::string::npos;
}

Bytes adapter_of(const gguf::GgufFile& file, const std::string& architecture, uint64_t rank,
                 float alpha) {
  AdapterWriter adapter(architecture, alpha);
  const bool tied = file.find_tensor("output.weight") == nullptr;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    if (takes_adapters(tensor, tied)) adapter.pair(tensor, rank);
  }
  return adapter.bytes();
}

TEST(Merge, WeightsAreSumsRoundedOnce) {
  const std::set<std::string> named = {"blk.0.attn_q.weight", "blk.1.ffn_down.weight",
                                       "output.weight"};
  test::TinyModelSpec spec;
  spec.biases = true;
  const Bytes base = test::TinyModel(spec).bytes();
  const auto before = gguf::GgufFile::parse(base).value();
  for (const auto& [rank, alpha, scale] :
       {std::tuple{3, 0.0F, 1.0F}, {1, -5.0F, 0.25F}, {16, 7.0F, -1.5F}, {70, 16.0F, 3.0F}}) {
    AdapterWriter adapter("llama", alpha);
    for (const std::string& name : named) {
      adapter.pair(*before->find_tensor(name), static_cast<uint64_t>(rank));
    }
    const auto bytes = merged(base, adapter.bytes(), {scale});
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto after = gguf::GgufFile::parse(bytes.value()).value();
    ASSERT_EQ(after->tensors().size(), before->tensors().size());
    const double factor = double{scale} * (alpha == 0.0F ? 1.0 : double{alpha} / rank);
    for (const gguf::TensorInfo& was : before->tensors()) {
      const gguf::TensorInfo& is = *after->find_tensor(was.name);
      if (!named.contains(was.name)) {
        expect_same_bytes(is, was);
        continue;
      }
      ASSERT_EQ(is.type, DType::kF32);
      expect_rounded(decoded(is), sum_of(was, rank, factor));
    }
  }
}

TEST(Merge, StacksAndEmbeddingsAreSumsRoundedOnce) {
  test::TinyModelSpec spec;
  spec.architecture = "qwen2moe";
  const Bytes base = test::TinyModel(spec).bytes();
  const auto before = gguf::GgufFile::parse(base).value();
  AdapterWriter adapter("qwen2moe", 6.0F);
  const std::set<std::string> named = {"token_embd.weight", "blk.0.ffn_up_exps.weight",
                                       "blk.1.ffn_down_exps.weight", "blk.1.ffn_gate_inp.weight",
                                       "blk.0.ffn_gate_inp_shexp.weight"};
  for (const std::string& name : named) adapter.pair(*before->find_tensor(name), 3);
  const auto bytes = merged(base, adapter.bytes(), {0.5F});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto after = gguf::GgufFile::parse(bytes.value()).value();
  for (const gguf::TensorInfo& was : before->tensors()) {
    SCOPED_TRACE(was.name);
    const gguf::TensorInfo& is = *after->find_tensor(was.name);
    if (named.contains(was.name)) {
      expect_rounded(decoded(is), sum_of(was, 3, 1.0));
    } else {
      expect_same_bytes(is, was);
    }
  }
}

TEST(Merge, TypesAreKept) {
  for (const auto& [type, hidden] : {std::pair{DType::kF16, 64},
                                     {DType::kBF16, 64},
                                     {DType::kQ8_0, 64},
                                     {DType::kQ4_0, 64},
                                     {DType::kMXFP4, 64},
                                     {DType::kQ4_K, 256},
                                     {DType::kQ6_K, 256},
                                     {DType::kIQ1_M, 256},
                                     {DType::kIQ2_XXS, 256},
                                     {DType::kIQ3_S, 256},
                                     {DType::kTQ2_0, 256},
                                     {DType::kQ1_0, 256},
                                     {DType::kNVFP4, 64}}) {
    SCOPED_TRACE(dtype_name(type));
    test::TinyModelSpec spec;
    spec.type = type;
    spec.hidden = hidden;
    spec.head_dim = hidden / spec.heads;
    spec.feed_forward = 256;
    const Bytes base = test::TinyModel(spec).bytes();
    const auto before = gguf::GgufFile::parse(base).value();
    const gguf::TensorInfo& was = *before->find_tensor("blk.1.ffn_up.weight");
    const auto bytes = merged(base, AdapterWriter("llama", 4.0F).pair(was, 2).bytes(), {0.5F});
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto after = gguf::GgufFile::parse(bytes.value()).value();
    for (const gguf::TensorInfo& other : before->tensors()) {
      if (other.name != was.name) expect_same_bytes(*after->find_tensor(other.name), other);
    }
    const gguf::TensorInfo& is = *after->find_tensor(was.name);
    ASSERT_EQ(is.type, type);
    Floats sums;
    for (const double sum : sum_of(was, 2, 1.0)) sums.push_back(static_cast<float>(sum));
    const Bytes want = bytes_of(sums, type);
    EXPECT_TRUE(std::equal(want.begin(), want.end(), is.data.begin(), is.data.end()));
    EXPECT_FALSE(std::equal(want.begin(), want.end(), was.data.begin(), was.data.end()));
  }
}

Bytes quantized(const Bytes& model, const char* type) {
  const auto file = gguf::GgufFile::parse(model).value();
  const auto pool = ThreadPool::create(1).value();
  return test::written(
             [&](NewFile& out) { return quantize(*file, *find_recipe(type), {}, *pool, {}, out); })
      .value();
}

TEST(Merge, WithATypeMergedWeightsAreEncodedOnce) {
  const Bytes base = test::TinyModel({}).bytes();
  const Bytes adapter = adapter_of(*gguf::GgufFile::parse(base).value(), "llama", 3, 6.0F);
  const Bytes floats = merged(base, adapter).value();
  for (const char* type : {"F32", "F16", "Q8_0", "Q4_0", "Q4_K_M"}) {
    const auto bytes = merged(base, adapter, {1.0F, type});
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_EQ(bytes.value(), quantized(floats, type)) << type;
    EXPECT_NE(bytes.value(), quantized(base, type)) << type;
  }
}

TEST(Merge, BytesDoNotDependOnThreads) {
  // More than one piece, rows that neither pieces nor shares begin with, and rows of several runs.
  for (const auto& [in, out] : {std::pair<uint64_t, uint64_t>{96, 11000}, {1600, 700}}) {
    test::GgufWriter writer;
    writer.set_string("general.architecture", "llama");
    const auto values = drawn("w", static_cast<int64_t>(in * out));
    writer.tensor("blk.0.attn_q.weight", static_cast<uint32_t>(DType::kQ8_0), {in, out},
                  bytes_of(values, DType::kQ8_0));
    const Bytes base = writer.build().bytes;
    const auto before = gguf::GgufFile::parse(base).value();
    const Bytes adapter = AdapterWriter("llama").pair(before->tensors()[0], 5).bytes();
    const Bytes alone = merged(base, adapter, {1.0F, "F32"}).value();
    const auto after = gguf::GgufFile::parse(alone).value();
    const std::vector<double> want = sum_of(before->tensors()[0], 5, 1.0);
    const Floats got = decoded(after->tensors()[0]);
    expect_rounded(got, want);
    for (const char* type : {"F32", static_cast<const char*>(nullptr)}) {
      const Bytes one = merged(base, adapter, {1.0F, type, 1}).value();
      for (const int32_t threads : {2, 3, 7}) {
        EXPECT_EQ(merged(base, adapter, {1.0F, type, threads}).value(), one) << threads;
      }
    }
  }
}

TEST(Merge, WithScaleZeroNothingChanges) {
  test::TinyModelSpec spec;
  spec.type = DType::kQ4_0;
  const Bytes base = test::TinyModel(spec).bytes();
  const auto before = gguf::GgufFile::parse(base).value();
  const auto bytes = merged(base, adapter_of(*before, "llama", 2, 1.0F), {0.0F});
  const auto after = gguf::GgufFile::parse(bytes.value()).value();
  for (const gguf::TensorInfo& was : before->tensors()) {
    expect_same_bytes(*after->find_tensor(was.name), was);
  }
}

TEST(Merge, MetadataAndWhatIsNoWeightAreKept) {
  test::GgufWriter writer;
  writer.set_string("general.architecture", "of no library")
      .set<uint32_t>("general.alignment", 64)
      .alignment(64)
      .set<uint32_t>("general.file_type", 19)
      .set<uint16_t>("split.count", 1)
      .set_strings("a.words", {"", "one", "two words"});
  writer.tensor("blk.0.attn_q.weight", 0, {64, 3}, bytes_of(drawn("w", 192)));
  writer.tensor("odd.weight", 19, {256, 1}, Bytes(50, std::byte{5}));  // IQ1_S
  writer.tensor("table", 26, {8, 4}, Bytes(128, std::byte{7}));        // I32
  const Bytes base = writer.build().bytes;
  const auto before = gguf::GgufFile::parse(base).value();
  const Bytes adapter = AdapterWriter("of no library").pair(before->tensors()[0], 2).bytes();
  const auto bytes = merged(base, adapter);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto after = gguf::GgufFile::parse(bytes.value()).value();
  EXPECT_EQ(after->metadata().entries().size(), before->metadata().entries().size() - 1);
  for (const gguf::Value& was : before->metadata().entries()) {
    const gguf::Value* const is = after->metadata().find(was.key());
    if (was.key() == "split.count") continue;
    ASSERT_NE(is, nullptr) << was.key();
    EXPECT_EQ(is->type_text(), was.type_text());
    EXPECT_TRUE(
        std::equal(is->bytes().begin(), is->bytes().end(), was.bytes().begin(), was.bytes().end()))
        << was.key();
  }
  for (const char* name : {"odd.weight", "table"}) {
    expect_same_bytes(*after->find_tensor(name), *before->find_tensor(name));
  }
}

void expect_like_loaded(test::TinyModel& tiny, const std::string& architecture) {
  const Bytes base = tiny.bytes();
  const auto file = gguf::GgufFile::parse(base).value();
  const Bytes adapter = adapter_of(*file, architecture, 3, 6.0F);
  const auto bytes = merged(base, adapter);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const test::LoadedTiny loaded(tiny);
  const test::LoadedTiny made(bytes.value());
  const auto with = test::make(loaded, adapter);
  ASSERT_TRUE(with.ok()) << with.status().message();
  const std::vector<graph::AdapterUse> mixes[] = {{{with.value()->matrices, 1.0F}}};
  const auto table = loaded.model().adapter_table(mixes);
  ASSERT_TRUE(table.ok()) << table.status().message();
  const Floats want = logits(loaded, table.value().get());
  EXPECT_LT(difference(logits(made, nullptr), want), 1e-4);
  EXPECT_GT(difference(logits(loaded, nullptr), want), 1e-2);
}

TEST(Merge, IsTheModelWithItsAdapter) {
  for (const arch::Architecture* row : arch::architectures()) {
    SCOPED_TRACE(row->name);
    test::TinyModelSpec spec;
    spec.architecture = row->name;
    test::TinyModel tiny(spec);
    expect_like_loaded(tiny, row->name);
  }
}

TEST(Merge, ScalesBesideMatricesAreDividedOut) {
  test::TinyModel tiny(test::TinyModelSpec{});
  tiny.writer().tensor("blk.0.attn_q.weight.scale", 0, {1}, bytes_of({0.375F}));
  tiny.writer().tensor("blk.0.ffn_up.scale", 0, {1}, bytes_of({2.5F}));
  tiny.writer().tensor("blk.0.ffn_up.weight.scale", 0, {1}, bytes_of({0.5F}));
  expect_like_loaded(tiny, "llama");
}

TEST(Merge, ScalesOfExpertsAreDividedOut) {
  for (const bool fused : {false, true}) {
    test::TinyModelSpec spec;
    spec.architecture = "gemma4";
    spec.experts = 6;
    spec.expert_scales = true;
    spec.fused_experts = fused;
    test::TinyModel tiny(spec);
    expect_like_loaded(tiny, "gemma4");
  }
}

}  // namespace
}  // namespace gen::model
