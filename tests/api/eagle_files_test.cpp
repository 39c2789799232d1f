// SPDX-License-Identifier: Apache-2.0
// Files of heads that draft: each form changes no text, and one that does not fit is refused with a
// line that names the file and what is wrong in it.
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "support/eagle_file.h"
#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

#include "status_record.h"

namespace gen {
namespace {

using test::EagleFile;
using test::EagleKind;
using test::EagleSpec;

EagleSpec of(EagleKind kind) {
  EagleSpec spec;
  spec.kind = kind;
  return spec;
}

class EagleFiles : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/generate_eagle_" + std::to_string(getpid()) + ".gguf";
    const test::TinyModelSpec spec;
    test::TinyModel tiny(spec);
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
    const std::vector<std::byte> bytes = tiny.bytes();
    ASSERT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &model_, &error_), GEN_OK)
        << error_.message;
    ASSERT_EQ(gen_options_new(&options_, &error_), GEN_OK);
    ASSERT_EQ(gen_options_set(options_, "draft_policy", "always", &error_), GEN_OK);
    ASSERT_EQ(gen_options_set_eagle(options_, path_.c_str(), &error_), GEN_OK);
  }
  void TearDown() override {
    gen_options_free(options_);
    gen_model_free(model_);
    unlink(path_.c_str());
  }

  void write(const std::vector<std::byte>& bytes) const {
    ASSERT_TRUE(test::write_file(path_, bytes));
  }
  /// What a prompt's tokens go on with, at a temperature.
  std::vector<int32_t> said(gen_generator* generator, int64_t* drafted) {
    gen_sampling* sampling = nullptr;
    gen_request* request = nullptr;
    gen_result* result = nullptr;
    const int32_t prompt[] = {3, 14, 15, 9, 26};
    EXPECT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 40, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set_temperature(sampling, 0.7, &error_), GEN_OK);
    EXPECT_EQ(gen_request_new(&request, &error_), GEN_OK);
    EXPECT_EQ(gen_request_set_prompt_tokens(request, prompt, 5, &error_), GEN_OK);
    EXPECT_EQ(gen_request_set_sampling(request, sampling, &error_), GEN_OK);
    EXPECT_EQ(gen_batch_generate(generator, &request, 1, &result, &error_), GEN_OK);
    size_t n = 0;
    const int32_t* tokens = gen_result_tokens(result, &n);
    const std::vector<int32_t> all(tokens, tokens + n);
    EXPECT_EQ(gen_result_usage(result, "drafted", drafted, &error_), GEN_OK);
    gen_result_free(result);
    gen_request_free(request);
    gen_sampling_free(sampling);
    return all;
  }
  /// The text with the head is the text without.
  void expect_drafts(const EagleSpec& spec, const std::string& what) {
    SCOPED_TRACE(what);
    gen_generator* plain = nullptr;
    gen_generator* drafting = nullptr;
    int64_t none = -1;
    int64_t drafted = 0;
    write(EagleFile(spec).bytes());
    ASSERT_EQ(gen_create(model_, nullptr, &plain, &error_), GEN_OK) << error_.message;
    ASSERT_EQ(gen_create(model_, options_, &drafting, &error_), GEN_OK) << error_.message;
    EXPECT_EQ(gen_generator_eagle_enabled(drafting), 1);
    const std::vector<int32_t> want = said(plain, &none);
    EXPECT_EQ(want.size(), 40U);
    EXPECT_EQ(said(drafting, &drafted), want);
    EXPECT_EQ(none, 0);
    EXPECT_GT(drafted, 40);
    gen_free(plain);
    gen_free(drafting);
  }
  void expect_refused(gen_status status, const std::string& part) {
    SCOPED_TRACE(part);
    gen_generator* generator = nullptr;
    error_ = {};
    EXPECT_EQ(gen_create(model_, options_, &generator, &error_), status) << error_.message;
    EXPECT_EQ(generator, nullptr);
    gen_error same = {};
    gen_speculative* speculative = nullptr;
    EXPECT_EQ(gen_speculative_new(model_, model_, 4, options_, &speculative, &same), status);
    EXPECT_EQ(speculative, nullptr);
    EXPECT_STREQ(same.message, error_.message);
    gen_eagle* eagle = nullptr;
    EXPECT_EQ(gen_eagle_new(model_, path_.c_str(), 4, options_, &eagle, &same), status);
    EXPECT_EQ(eagle, nullptr);
    EXPECT_STREQ(same.message, error_.message);
    const std::string message = error_.message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find(path_), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  void expect_refused(const EagleSpec& spec, const std::string& part,
                      gen_status status = GEN_ERROR_FORMAT) {
    write(EagleFile(spec).bytes());
    expect_refused(status, part);
  }

  std::string path_;
  gen_model* model_ = nullptr;
  gen_options* options_ = nullptr;
  gen_error error_ = {};
};

TEST_F(EagleFiles, EachFormChangesNoText) {
  expect_drafts(of(EagleKind::kEagle3), "EAGLE-3");
  expect_drafts(of(EagleKind::kEagle1), "EAGLE-1");
  expect_drafts(of(EagleKind::kMlp), "two products");
  EagleSpec spec = of(EagleKind::kMlp);
  spec.prefix = "";
  expect_drafts(spec, "two products without a prefix");
  spec = of(EagleKind::kEagle3);
  spec.tokens = {49, 0, 3, 14, 15, 9, 9, 26};
  expect_drafts(spec, "a vocabulary of its own");
  spec.target_layers = {2, 2, 0};
  expect_drafts(spec, "layers in another order");
}

/// What a model says alone, and with the head that gen_eagle_new finds.
void expect_eagle_drafts(const gen_model* model, const char* path) {
  gen_error error = {};
  gen_options* options = nullptr;
  gen_generator* plain = nullptr;
  gen_eagle* eagle = nullptr;
  gen_sampling* sampling = nullptr;
  ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  ASSERT_EQ(gen_options_set(options, "draft_heads", "off", &error), GEN_OK);
  ASSERT_EQ(gen_create(model, options, &plain, &error), GEN_OK) << error.message;
  ASSERT_EQ(gen_eagle_new(model, path, 3, options, &eagle, &error), GEN_OK) << error.message;
  ASSERT_EQ(gen_eagle_set_adaptive(eagle, 0, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling, 40, &error), GEN_OK);
  for (const double temperature : {0.0, 0.8}) {
    gen_result* want = nullptr;
    gen_result* got = nullptr;
    int64_t drafted = 0;
    ASSERT_EQ(gen_sampling_set_temperature(sampling, temperature, &error), GEN_OK);
    ASSERT_EQ(gen_generate(plain, "abbaab", 6, sampling, &want, &error), GEN_OK) << error.message;
    ASSERT_EQ(gen_eagle_generate(eagle, "abbaab", 6, sampling, &got, &error), GEN_OK)
        << error.message;
    EXPECT_STREQ(gen_result_text(got, nullptr), gen_result_text(want, nullptr));
    EXPECT_EQ(gen_result_usage(got, "drafted", &drafted, &error), GEN_OK);
    EXPECT_GT(drafted, 30);
    gen_result_free(want);
    gen_result_free(got);
  }
  double at_4 = -1;
  EXPECT_EQ(gen_eagle_stats(eagle, "acceptance_at_4", &at_4, &error), GEN_OK);
  EXPECT_EQ(at_4, 0);
  gen_sampling_free(sampling);
  gen_eagle_free(eagle);
  gen_free(plain);
  gen_options_free(options);
}

TEST_F(EagleFiles, TheModelsOwnFileMayHaveOne) {
  test::TinyModelSpec spec;
  spec.architecture = "exaone4";
  spec.draft_layers = 1;
  test::TinyModel tiny(spec);
  test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
  const std::vector<std::byte> bytes = tiny.bytes();
  gen_model* own = nullptr;
  ASSERT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &own, &error_), GEN_OK)
      << error_.message;
  expect_eagle_drafts(own, nullptr);
  // And in its place one of a file beside it.
  write(EagleFile(of(EagleKind::kEagle1)).bytes());
  expect_eagle_drafts(own, path_.c_str());
  gen_model_free(own);
}

gen_status flat_forward(void* user, const gen_forward_batch* batch, float* logits, float* features,
                        gen_error* /*error*/) {
  const auto hidden = static_cast<size_t>(*static_cast<const int32_t*>(user));
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    const auto at = static_cast<uint32_t>(batch->tokens[row] * 7 + batch->positions[row]);
    for (uint32_t i = 0; features != nullptr && i < hidden; ++i) {
      *features++ = static_cast<float>((at * 31 + i * i) % 17) - 8.0F;
    }
    if (batch->wants_logits[row] == 0) continue;
    for (uint32_t token = 0; token < 50; ++token) {
      *logits++ = static_cast<float>((at * 13 + token * token) % 23) / 4.0F;
    }
  }
  return GEN_OK;
}

// With the option and with an object of its own; the file has all of its weights.
TEST_F(EagleFiles, CustomModelsHaveHeadsOfFiles) {
  for (const EagleKind kind : {EagleKind::kEagle3, EagleKind::kEagle1, EagleKind::kMlp}) {
    int32_t hidden = kind == EagleKind::kEagle3 ? 3 * 64 : 64;
    gen_forward table = {};
    table.struct_size = sizeof table;
    table.user = &hidden;
    table.forward = flat_forward;
    gen_model_config* config = nullptr;
    gen_model* custom = nullptr;
    ASSERT_EQ(gen_model_config_new(&config, &error_), GEN_OK);
    ASSERT_EQ(gen_model_config_set_vocab_size(config, 50, &error_), GEN_OK);
    ASSERT_EQ(gen_model_config_set_max_seq_len(config, 128, &error_), GEN_OK);
    ASSERT_EQ(gen_model_config_set_hidden(config, hidden, &error_), GEN_OK);
    ASSERT_EQ(gen_model_new_custom(&table, config, gen_model_tokenizer(model_), &custom, &error_),
              GEN_OK);
    gen_model_config_free(config);
    gen_model* const of_file = std::exchange(model_, custom);
    EagleSpec spec = of(kind);
    spec.prefix = "";
    expect_refused(spec, kind == EagleKind::kMlp ? "output.weight" : "token_embd.weight");
    spec.output.assign(size_t{50} * 64, 0.125F);
    for (size_t i = 0; i < spec.output.size(); i += 7) spec.output[i] = -0.5F;
    if (kind != EagleKind::kMlp) {
      expect_refused(spec, "token_embd.weight");
      spec.embedding = spec.output;
    }
    expect_drafts(spec, "over a custom model");
    expect_eagle_drafts(model_, path_.c_str());
    model_ = of_file;
    gen_model_free(custom);
  }
}

TEST_F(EagleFiles, NamesTheKeyThatDoesNotFit) {
  EagleSpec spec;
  spec.target_hidden = 32;
  expect_refused(spec, "eagle3.target_hidden_size is 32");
  for (const std::vector<uint32_t>& layers :
       {std::vector<uint32_t>{}, {0, 1}, {0, 1, 2, 2}, {0, 1, 3}, {0, 1, 0xFFFFFFFF}}) {
    spec = {};
    spec.target_layers = layers;
    expect_refused(spec, "eagle3.target_layers");
  }
  for (const char* name :
       {"eagle3.target_layers", "eagle3.embedding_length", "eagle3.block_count",
        "eagle3.feed_forward_length", "eagle3.attention.head_count", "general.architecture"}) {
    spec = {};
    spec.without = name;
    expect_refused(spec, name);
  }
  spec = {};
  spec.blocks = 2;
  expect_refused(spec, "eagle3.block_count is 2", GEN_ERROR_UNSUPPORTED);
  spec = of(EagleKind::kEagle1);
  spec.hidden = 32;
  expect_refused(spec, "eagle.embedding_length is 32");
}

TEST_F(EagleFiles, NamesTheFileWhoseCacheDoesNotFit) {
  ASSERT_EQ(gen_options_set(options_, "kv_key_form", "hadamard", &error_), GEN_OK);
  EagleSpec spec;
  spec.heads = 8;  // of 8 elements
  expect_refused(spec, "keys of 8 elements cannot be turned", GEN_ERROR_INVALID_ARGUMENT);
  spec.heads = 4;
  expect_drafts(spec, "keys of 16 elements");
}

TEST_F(EagleFiles, NamesTheTensorThatIsMissingOrDoesNotFit) {
  for (const EagleKind kind : {EagleKind::kEagle3, EagleKind::kMlp}) {
    EagleSpec whole = of(kind);
    if (kind == EagleKind::kEagle3) whole.tokens = {1, 2, 3, 4};
    const EagleFile file(whole);
    for (const std::string& name : file.tensors()) {
      EagleSpec spec = whole;
      spec.without = name;
      expect_refused(spec, name);
      spec = whole;
      spec.misshapen = name;
      expect_refused(spec, name);
    }
  }
  const EagleFile file(of(EagleKind::kEagle1));
  for (const std::string& name : file.tensors()) {
    EagleSpec spec = of(EagleKind::kEagle1);
    spec.misshapen = name;
    expect_refused(spec, name);
    spec = of(EagleKind::kEagle1);
    spec.without = name;
    // Without it a file of that name is a head of two products.
    expect_refused(spec, name == "fc.weight" ? "norm.weight" : name);
  }
  for (const EagleKind kind : {EagleKind::kEagle3, EagleKind::kEagle1, EagleKind::kMlp}) {
    EagleSpec spec = of(kind);
    // A head of two products may lie among a model's tensors, which have other names.
    spec.extra = kind == EagleKind::kMlp ? "eagle.fc3.weight" : "blk.1.attn_q.weight";
    expect_refused(spec, spec.extra, GEN_ERROR_UNSUPPORTED);
  }
}

TEST_F(EagleFiles, TokensAreThoseOfTheModel) {
  EagleSpec spec;
  for (const int64_t token : {int64_t{50}, int64_t{-1}, int64_t{1} << 32, INT64_MIN}) {
    spec.tokens = {0, token};
    expect_refused(spec, "d2t: token " + std::to_string(token) + " of entry 1");
  }
  spec.tokens = {1, 2, 3, 4};
  spec.token_columns = 2;
  expect_refused(spec, "d2t");
}

TEST_F(EagleFiles, FilesThatAreNone) {
  const std::vector<std::byte> whole = EagleFile(EagleSpec()).bytes();
  for (const size_t size : {size_t{0}, size_t{10}, whole.size() / 2, whole.size() - 1}) {
    write(std::vector<std::byte>(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)));
    expect_refused(GEN_ERROR_FORMAT, "");
  }
  // After a failure the same objects are as good as new.
  expect_drafts(EagleSpec(), "after failures");
  // A folder is there, and is no file.
  const std::string file = path_;
  path_ = testing::TempDir();
  ASSERT_EQ(gen_options_set_eagle(options_, path_.c_str(), &error_), GEN_OK);
  expect_refused(GEN_ERROR_IO, "");
  path_ = file;
}

}  // namespace
}  // namespace gen
