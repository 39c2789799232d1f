// SPDX-License-Identifier: Apache-2.0
// Proves that a model with an adapter from a file is the model whose weights were merged with it in
// double precision, in every family of the library's table and in both forms of the file.
#include "model/adapter_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/arch/registry.h"
#include "quant/format.h"
#include "support/adapter_files.h"

namespace gen::model {
namespace {

using Floats = std::vector<float>;
using test::bytes_of;
using test::difference;
using test::drawn;
using test::logits;
using test::make;

/// Matrices that are not multiplied by rows are none.
bool takes_adapters(const gguf::TensorInfo& tensor, bool tied) {
  // A router of one expert is stored as a vector.
  if (tensor.name.find("gate_inp_shexp") != std::string::npos) return true;
  if (tensor.n_dims < 2 || tensor.shape[1] == 1) return false;
  // Merged into a tied embedding, an adapter would change the head.
  if (tensor.name == "token_embd.weight") return !tied;
  for (const char* other : {"token_embd", "conv1d", "conv.weight", "ssm_a", "ssm_d.", "ssm_norm",
                            "_norm.weight", ".scale", ".bias"}) {
    const bool own =
        std::string_view(other) == "ssm_a" && tensor.name.find("ssm_alpha") != std::string::npos;
    if (!own && tensor.name.find(other) != std::string::npos) return false;
  }
  return tensor.name.find("ssm_d") == std::string::npos ||
         tensor.name.find("ssm_dt.weight") != std::string::npos;
}

enum class Form { kConverter, kLayers, kBareLayers };

struct Drawn {
  std::vector<std::byte> adapter;
  std::vector<std::byte> merged;  // the model
  int pairs = 0;
  int64_t outputs = 0;  // of all pairs
};

/// An adapter for all of a model's products, and the model merged with it.
Drawn draw(test::TinyModel& tiny, Form form, int64_t rank, float alpha, DType type = DType::kF32) {
  test::GgufWriter writer;
  if (form == Form::kConverter) {
    writer.set_string("general.type", "adapter")
        .set_string("general.architecture", tiny.spec().architecture)
        .set_string("adapter.type", "lora")
        .set("adapter.lora.alpha", alpha);
  } else {
    writer.set("lora.rank", static_cast<uint32_t>(rank)).set("lora.alpha", alpha);
  }
  const double factor = alpha == 0.0F ? 1.0 : double{alpha} / static_cast<double>(rank);
  test::GgufImage image = tiny.writer().build();
  const std::vector<std::byte> bytes = image.bytes;
  const auto file = gguf::GgufFile::parse(bytes).value();
  Drawn made;
  for (const gguf::TensorInfo& tensor : file->tensors()) {
    if (!takes_adapters(tensor, file->find_tensor("output.weight") == nullptr)) continue;
    const bool embedding = tensor.name == "token_embd.weight";
    // Of each of the matrices; A of an embedding is by rows.
    const int64_t in = tensor.shape[embedding ? 1 : 0];
    const int64_t out = tensor.shape[embedding ? 0 : 1];
    const int64_t matrices = tensor.shape[2];
    EXPECT_EQ(tensor.type, DType::kF32) << tensor.name;
    Floats a = drawn(tensor.name + "a", matrices * rank * in);
    Floats b = drawn(tensor.name + "b", matrices * rank * out);
    const DType type_a = in % 32 == 0 && !embedding ? type : DType::kF32;
    const auto stored_a = bytes_of(a, type_a);
    quant::find_format(type_a)->decode(stored_a.data(), a.data(), static_cast<int64_t>(a.size()));
    std::string name = tensor.name;
    if (form == Form::kBareLayers) name = name.substr(0, name.size() - std::strlen(".weight"));
    const auto u = [](int64_t n) { return static_cast<uint64_t>(n); };
    const auto put = [&](const char* half, DType as, std::vector<uint64_t> shape,
                         std::vector<std::byte> data) {
      const std::string named =
          form == Form::kConverter ? name + "." + half : std::string(half) + "." + name;
      writer.tensor(named, static_cast<uint32_t>(as), std::move(shape), std::move(data));
    };
    std::vector<uint64_t> shape_a = {u(in), u(rank)};
    std::vector<uint64_t> shape_b = {u(rank), u(out)};
    if (embedding) std::swap(shape_a[0], shape_a[1]);
    if (tensor.n_dims == 3) {
      shape_a.push_back(u(matrices));
      shape_b.push_back(u(matrices));
    }
    put("lora_a", type_a, std::move(shape_a), stored_a);
    put("lora_b", DType::kF32, std::move(shape_b), bytes_of(b));
    ++made.pairs;
    made.outputs += out;
    double scale = 1.0;  // of what the file holds
    const auto* beside = file->find_tensor(tensor.name + ".scale");
    if (beside != nullptr && tensor.n_dims == 2) {
      float value = 0.0F;
      std::memcpy(&value, beside->data.data(), sizeof value);
      scale = double{value};
    }
    std::byte* const at = image.bytes.data() + image.at(tensor.name + ".data");
    for (int64_t n = 0; n < matrices * out; ++n) {
      const int64_t first_a = n / out * rank * in;
      for (int64_t i = 0; i < in; ++i) {
        double sum = 0.0;
        for (int64_t r = 0; r < rank; ++r) {
          sum += double{b[static_cast<size_t>(n * rank + r)]} *
                 double{a[static_cast<size_t>(embedding ? i * rank + r : first_a + r * in + i)]};
        }
        float value = 0.0F;
        std::byte* const place =
            at + static_cast<size_t>(embedding ? i * out + n : n * in + i) * sizeof value;
        std::memcpy(&value, place, sizeof value);
        value = static_cast<float>(double{value} + factor * sum / scale);
        std::memcpy(place, &value, sizeof value);
      }
    }
  }
  made.adapter = writer.build().bytes;
  made.merged = std::move(image.bytes);
  return made;
}

void expect_merged(test::TinyModel& tiny, Form form, int64_t rank = 3, float alpha = 6.0F,
                   DType type = DType::kF32) {
  const Drawn made = draw(tiny, form, rank, alpha, type);
  const test::LoadedTiny base(tiny);
  const test::LoadedTiny merged(made.merged);
  const auto adapter = make(base, made.adapter);
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  EXPECT_GT(made.pairs, 3);
  EXPECT_GT(adapter.value()->bytes, 0U);
  int64_t outputs = 0;
  for (const graph::SiteShape& shape : test::plan_of(base).site_shapes()) outputs += shape.out;
  EXPECT_EQ(made.outputs, outputs);  // none is left out
  const std::vector<graph::AdapterUse> mixes[] = {{{adapter.value()->matrices, 1.0F}}};
  const auto table = base.model().adapter_table(mixes);
  ASSERT_TRUE(table.ok()) << table.status().message();
  const Floats with = logits(base, table.value().get());
  EXPECT_LT(difference(with, logits(merged, nullptr)), 1e-4);
  EXPECT_GT(difference(with, logits(base, nullptr)), 1e-2);
}

TEST(AdapterFile, IsTheMergedModel) {
  for (const arch::Architecture* row : arch::architectures()) {
    SCOPED_TRACE(row->name);
    test::TinyModelSpec spec;
    spec.architecture = row->name;
    spec.layers = 3;
    test::TinyModel tiny(spec);
    expect_merged(tiny, Form::kConverter);
  }
}

TEST(AdapterFile, OtherFormsOfModelsAndFiles) {
  for (const char* name : {"llama", "phi3", "gptneox", "falcon-h1", "qwen35", "qwen2"}) {
    SCOPED_TRACE(name);
    test::TinyModelSpec spec;
    spec.architecture = name;
    spec.biases = true;
    spec.fused_qkv = true;
    test::TinyModel fused(spec);
    expect_merged(fused, Form::kLayers, 1);
    expect_merged(fused, Form::kBareLayers, 5, -2.0F);
    expect_merged(fused, Form::kConverter, 2, 0.0F);
    expect_merged(fused, Form::kConverter, 7, 3.0F, DType::kF16);
    expect_merged(fused, Form::kConverter, 7, 3.0F, DType::kBF16);
    expect_merged(fused, Form::kConverter, 7, 3.0F, DType::kQ8_0);
  }
}

TEST(AdapterFile, ScalesOfTheBaseAreNotTheAdapters) {
  test::TinyModelSpec spec;
  spec.biases = true;
  test::TinyModel tiny(spec);
  for (const char* name : {"blk.0.attn_q.weight", "blk.1.ffn_up.weight", "blk.1.ffn_down.weight"}) {
    tiny.writer().tensor(std::string(name) + ".scale", 0, {1}, bytes_of({0.375F}));
  }
  expect_merged(tiny, Form::kConverter);
}

}  // namespace
}  // namespace gen::model
