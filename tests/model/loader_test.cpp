// SPDX-License-Identifier: Apache-2.0
// Proves what loading refuses and how it says so, that it can be watched and stopped, and that the
// file is kept exactly as long as it is needed.
#include "engine/memory/host_memory.h"
#include "model/loader.h"

#include <gtest/gtest.h>

#include <limits>
#include <cstring>
#include <algorithm>
#include <functional>
#include <string>

#include "support/loaded_tiny.h"
#include "support/tiny_model.h"

namespace gen::model {
namespace {

using test::GgufWriter;
using test::TinyModel;
using test::TinyModelSpec;

Result<std::shared_ptr<const LoadedModel>> load(const std::vector<std::byte>& bytes,
                                                LoadOptions options = {}) {
  GEN_ASSIGN(auto file, gguf::GgufFile::parse(bytes));
  if (options.engine == nullptr) options.engine = test::cpu_engine();
  return load_model(std::move(file), options);
}

void expect(const Status& status, Code code, const std::string& says) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(std::string(status.message()).find(says), std::string::npos) << status.message();
}

TEST(Loader, LoadsWithoutTokenizer) {
  const auto loaded = load(TinyModel({}).bytes());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded.value()->tokenizer, nullptr);
  EXPECT_TRUE(loaded.value()->metadata->has("llama.block_count"));
}

TEST(Loader, RefusesOtherArchitectures) {
  TinyModelSpec spec;
  spec.architecture = "gpt2";
  expect(load(TinyModel(spec).bytes()).status(), Code::kUnsupported,
         "architecture \"gpt2\" is not supported: it is a decoder without experts of a family");
  struct Name {
    const char* name;
    const char* says;
  };
  for (const Name& row : {
           Name{"qwen3_5", "\"qwen3_5\" is not known: did you mean \"qwen35\"? (general.arch"},
           {"Qwen3ForCausalLM", "did you mean \"qwen3\"?"},
           {"Llama", "did you mean \"llama\"?"},
           {"gemma3_text", "did you mean \"gemma3\"?"},
           {"phi-3", "did you mean \"phi3\"?"},
           {"bert", "it is an encoder, which generates no text"},
           {"clip", "it is a model of pictures"},
           {"flux", "it is a model that makes pictures"},
           {"wavtokenizer-dec", "it is a model of sound"},
           {"llada", "it is a model of diffusion"},
           {"t5", "it is an encoder and a decoder"},
           {"dots1", "it is a decoder with experts"},
           {"rwkv6", "it is a recurrent or hybrid model"},
           {"glm4moelite", "made for ollama's own engine, and the model needs latent attention"},
           {"zzz", "architecture \"zzz\" is not known"},
       }) {
    spec.architecture = row.name;
    expect(load(TinyModel(spec).bytes()).status(), Code::kUnsupported, row.says);
  }
  spec.architecture = "llama";
  for (const auto& [type, what] : {std::pair{"adapter", "an adapter"},
                                   {"mmproj", "an encoder of pictures or sound"},
                                   {"imatrix", "an importance matrix"}}) {
    TinyModel tiny(spec);
    tiny.writer().set_string("general.type", type);
    expect(load(tiny.bytes()).status(), Code::kUnsupported,
           "the file is no model but " + std::string(what));
  }
  for (const auto& [name, needs] : {std::pair{"deepseek2", "latent attention"},
                                    {"llama4", "experts whose inputs have weights"}}) {
    spec.architecture = name;
    expect(load(TinyModel(spec).bytes()).status(), Code::kUnsupported,
           "architecture \"" + std::string(name) + "\" is not supported: it needs " + needs);
  }
  GgufWriter nameless;
  nameless.set_string("general.name", "x");
  expect(load(nameless.build().bytes).status(), Code::kFormat, "general.architecture");
  GgufWriter dirty;
  dirty.set_string("general.architecture", "a\nb");
  const Status status = load(dirty.build().bytes).status();
  expect(status, Code::kUnsupported, "architecture");
  EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos);
}

TEST(Loader, RefusesExpertsOfFamiliesWithout) {
  TinyModelSpec spec;
  spec.architecture = "qwen3";
  TinyModel tiny(spec);
  tiny.writer().set("qwen3.expert_count", uint32_t{8});
  expect(load(tiny.bytes()).status(), Code::kUnsupported, "qwen3.expert_count is 8");
}

TEST(Loader, StacksHaveAScaleForEachExpert) {
  const auto with = [](const std::string& name, uint64_t n) {
    TinyModelSpec spec;
    spec.architecture = "qwen3moe";
    spec.experts = 6;
    TinyModel tiny(spec);
    tiny.writer().tensor(name, 0, {n}, std::vector<std::byte>(n * 4, std::byte{0x40}));
    return load(tiny.bytes()).status();
  };
  EXPECT_TRUE(with("blk.1.ffn_down_exps.scale", 6).ok());
  expect(with("blk.1.ffn_down_exps.scale", 1), Code::kFormat,
         "tensor blk.1.ffn_down_exps.scale is 1 x 1, expected 6 x 1");
  expect(with("blk.1.ffn_down_exps.weight.scale", 6), Code::kUnsupported,
         "tensor blk.1.ffn_down_exps.weight.scale has no place");
}

TEST(Loader, RefusesStacksThatDoNotFit) {
  TinyModelSpec spec;
  spec.architecture = "qwen3moe";
  const auto status_with = [&](const char* key, uint32_t value) {
    auto image = TinyModel(spec).writer().build();
    image.poke(std::string("qwen3moe.") + key + ".value", value);
    return load(image.bytes).status();
  };
  expect(status_with("expert_count", 5), Code::kFormat,
         "tensor blk.0.ffn_gate_inp.weight is 64 x 6, expected 64 x 5");
  expect(status_with("expert_feed_forward_length", 32), Code::kFormat,
         "tensor blk.0.ffn_gate_exps.weight is 64 x 64 x 6, expected 64 x 32 x 6");
  spec.fused_experts = true;
  expect(status_with("expert_feed_forward_length", 96), Code::kFormat,
         "tensor blk.0.ffn_gate_up_exps.weight is 64 x 128 x 6, expected 64 x 192 x 6");
  // A stack where a matrix belongs, and a matrix where a stack does.
  TinyModelSpec llama;
  TinyModel dense(llama);
  dense.writer().set("llama.expert_count", uint32_t{2}).set("llama.expert_used_count", uint32_t{1});
  expect(load(dense.bytes()).status(), Code::kFormat,
         "tensor blk.0.ffn_gate_inp.weight is missing");
  llama.experts = 4;
  auto image = TinyModel(llama).writer().build();
  image.poke("llama.expert_count.value", uint32_t{0});
  expect(load(image.bytes).status(), Code::kFormat, "tensor blk.0.ffn_gate.weight is missing");
}

TEST(Loader, ChecksItsOptions) {
  const std::vector<std::byte> bytes = TinyModel({}).bytes();
  LoadOptions options;
  EXPECT_EQ(load_model(nullptr, options).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(load_model(gguf::GgufFile::parse(bytes).value(), options).status().code(),
            Code::kInvalidArgument);
  options.max_seq_len = -1;
  expect(load(bytes, options).status(), Code::kInvalidArgument, "-1");
  options.max_seq_len = 0;
  options.max_batch_rows = 0;
  expect(load(bytes, options).status(), Code::kInvalidArgument, "batches of 0 rows");
  options.max_batch_rows = 1 << 20;
  expect(load(bytes, options).status(), Code::kInvalidArgument, "1048576");
}

TEST(Loader, CapsTheContext) {
  const std::vector<std::byte> bytes = TinyModel({}).bytes();
  LoadOptions options;
  options.max_seq_len = 20;
  options.max_batch_rows = 7;
  const auto capped = load(bytes, options);
  ASSERT_TRUE(capped.ok());
  EXPECT_EQ(capped.value()->model->traits().max_seq_len, 20);
  EXPECT_EQ(capped.value()->model->traits().max_batch_rows, 7);
  options.max_seq_len = 100000;
  const auto more = load(bytes, options);
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more.value()->model->traits().max_seq_len, 128);
}

TEST(Loader, NamesMissingTensors) {
  // More layers than there are tensors for.
  TinyModelSpec spec;
  const TinyModel tiny(spec);
  auto image = TinyModel(spec).writer().build();
  image.poke("llama.block_count.value", uint32_t{3});
  expect(load(image.bytes).status(), Code::kFormat, "tensor blk.2.attn_norm.weight is missing");

  GgufWriter empty;
  empty.set_string("general.architecture", "llama")
      .set("llama.context_length", uint32_t{8})
      .set("llama.block_count", uint32_t{4096})
      .set("llama.embedding_length", uint32_t{64})
      .set("llama.feed_forward_length", uint32_t{64})
      .set("llama.attention.head_count", uint32_t{4})
      .set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  expect(load(empty.build().bytes).status(), Code::kFormat, "tensor token_embd.weight is missing");
}

TEST(Loader, NeedsTheBiasesAndNormsOfTheArchitecture) {
  TinyModelSpec llama;
  const auto as = [&](const char* architecture) {
    // A llama file under another name: only the keys' prefix and what is missing differ.
    TinyModelSpec spec = llama;
    spec.architecture = "llama";
    TinyModel tiny(spec);
    const std::string a = std::string(architecture) + ".";
    tiny.writer()
        .set(a + "context_length", uint32_t{128})
        .set(a + "block_count", uint32_t{2})
        .set(a + "embedding_length", uint32_t{64})
        .set(a + "feed_forward_length", uint32_t{96})
        .set(a + "attention.head_count", uint32_t{4})
        .set(a + "attention.head_count_kv", uint32_t{2})
        .set(a + "attention.layer_norm_rms_epsilon", 1e-5F);
    auto image = tiny.writer().build();
    const size_t at = image.at("general.architecture.value") + sizeof(uint64_t);
    std::memcpy(image.bytes.data() + at, architecture, 5);
    return load(image.bytes).status();
  };
  expect(as("qwen2"), Code::kFormat, "tensor blk.0.attn_q.bias is missing");
  expect(as("qwen3"), Code::kFormat, "tensor blk.0.attn_q_norm.weight is missing");
}

TEST(Loader, RefusesShapesThatDoNotFit) {
  auto image = TinyModel({}).writer().build();
  // 160 of feed-forward where the file has 96.
  image.poke("llama.feed_forward_length.value", uint32_t{160});
  expect(load(image.bytes).status(), Code::kFormat,
         "tensor blk.0.ffn_gate.weight is 64 x 96, expected 64 x 160");
}

TEST(Loader, RefusesTensorsWithoutAPlace) {
  TinyModel tiny({});
  tiny.writer().tensor("blk.0.attn_sinks.weight", 0, {4}, std::vector<std::byte>(16));
  expect(load(tiny.bytes()).status(), Code::kUnsupported,
         "tensor blk.0.attn_sinks.weight has no place");
}

TEST(Loader, NamesATypeWithoutACodec) {
  TinyModelSpec spec;
  // I32: as large as F32.
  auto image = TinyModel(spec).writer().build();
  image.poke("output.weight.type", uint32_t{26});
  expect(load(image.bytes).status(), Code::kUnsupported,
         "tensor output.weight has type I32, which is not supported");
}

TEST(Loader, ChecksTheVocabularyAgainstTheEmbedding) {
  TinyModel tiny({});
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<float> scores(3, 0.0F);
  std::vector<int32_t> types = {2, 3, 3};
  for (char c = 'a'; c <= 'z'; ++c) {
    tokens.emplace_back(1, c);
    scores.push_back(-1.0F);
    types.push_back(1);
  }
  tiny.writer()
      .set_string("tokenizer.ggml.model", "llama")
      .set_strings("tokenizer.ggml.tokens", tokens)
      .set_array("tokenizer.ggml.scores", scores)
      .set_array("tokenizer.ggml.token_type", types);
  const Status status = load(tiny.bytes()).status();
  EXPECT_FALSE(status.ok());
  expect(status, Code::kFormat, "token_embd.weight has 50 rows for a vocabulary of 29");
}

TEST(Loader, ReportsProgressAndStops) {
  const std::vector<std::byte> bytes = TinyModel({}).bytes();
  for (const bool check : {false, true}) {
    std::vector<double> fractions;
    LoadOptions options;
    options.check_tensors = check;
    options.progress = [&](double fraction) {
      fractions.push_back(fraction);
      return true;
    };
    ASSERT_TRUE(load(bytes, options).ok());
    EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
    EXPECT_EQ(fractions.back(), 1.0);
    EXPECT_GT(fractions.size(), 8U);
    // Stopping at any report stops.
    for (size_t stop = 0; stop < fractions.size(); ++stop) {
      size_t calls = 0;
      options.progress = [&](double) { return calls++ != stop; };
      EXPECT_EQ(load(bytes, options).status().code(), Code::kCancelled);
      EXPECT_EQ(calls, stop + 1);
    }
    options.progress = nullptr;
    CancelFlag cancel;
    cancel.fire();
    options.cancel = &cancel;
    EXPECT_EQ(load(bytes, options).status().code(), Code::kCancelled);
  }
}

TEST(Loader, WeightsThatAreNotFiniteAreAnErrorOfTheFormat) {
  const TinyModel tiny({});
  std::vector<std::byte> bytes = tiny.bytes();
  auto file = gguf::GgufFile::parse(bytes).value();
  const gguf::TensorInfo* norm = file->find_tensor("output_norm.weight");
  ASSERT_NE(norm, nullptr);
  const float bad = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(norm->type, DType::kF32);
  std::memcpy(bytes.data() + norm->offset_in_file, &bad, sizeof bad);
  LoadOptions options;
  options.check_tensors = true;
  expect(load(bytes, options).status(), Code::kFormat,
         "output_norm.weight: weight 0 is not finite");
}

TEST(Loader, KeepsTheFileOnlyWhenToldThatItLasts) {
  for (const bool lasting : {false, true}) {
    for (const DType type : {DType::kF32, DType::kQ8_0}) {
      TinyModelSpec spec;
      spec.type = type;
      const TinyModel tiny(spec);
      auto bytes = std::make_unique<std::vector<std::byte>>(tiny.bytes());
      auto file = gguf::GgufFile::parse(*bytes).value();
      const std::weak_ptr<const gguf::GgufFile> watched = file;
      LoadOptions options;
      options.engine = test::cpu_engine();
      options.lasting = lasting;
      const auto loaded = load_model(std::move(file), options);
      ASSERT_TRUE(loaded.ok());
      const Model& model = *loaded.value()->model;
      const bool mapped = model.memory("mapped").value() > 0;
      EXPECT_EQ(watched.expired(), !mapped);
      if (!lasting) {
        EXPECT_FALSE(mapped);
        bytes.reset();  // the sanitizers watch that nobody reads it any more
      }
      auto cache =
          cache::make_cache("fp32", model.layer_shapes(), 8, engine::system_memory()).value();
      test::OwnedBatch batch;
      ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{1, 2, 3}).ok());
      EXPECT_TRUE(model.forward(batch.finish(50)).ok());
    }
  }
}

}  // namespace
}  // namespace gen::model
