// SPDX-License-Identifier: Apache-2.0
// Proves what an importance matrix holds: for every family the squares that a forward pass in
// double precision sums, expert by expert; float rows where products read int8; the same bytes for
// any threads and passes; and results that observing does not change.
#include "generate/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "engine/memory/host_memory.h"
#include "generate/forward.h"
#include "model/arch/registry.h"
#include "model/importance_file.h"
#include "model/importance_sums.h"
#include "quant/traits.h"
#include "support/far_engine.h"
#include "support/loaded_tiny.h"

namespace gen::generate {
namespace {

namespace fs = std::filesystem;
using test::LoadedTiny;
using test::TinyModel;
using test::TinyModelSpec;

const std::vector<int32_t> kTokens = {3,  14, 15, 9,  26, 5,  35, 8, 9, 7, 9,
                                      32, 38, 46, 26, 43, 38, 32, 7, 9, 5, 0};

/// The same model in passes of a few rows.
class ShortPasses final : public model::Model {
 public:
  ShortPasses(std::shared_ptr<const model::Model> inner, int32_t rows)
      : inner_(std::move(inner)), traits_(inner_->traits()) {
    traits_.prompt_rows = traits_.max_batch_rows = rows;
  }
  const model::ModelTraits& traits() const noexcept override { return traits_; }
  std::span<const cache::LayerShape> layer_shapes() const noexcept override {
    return inner_->layer_shapes();
  }
  Result<std::unique_ptr<cache::SequenceState>> new_sequence_state() const override {
    return inner_->new_sequence_state();
  }
  Status forward(const graph::Batch& batch) const override { return inner_->forward(batch); }
  Result<std::shared_ptr<const model::Model>> observable() const override {
    GEN_ASSIGN(auto observed, inner_->observable());
    return std::shared_ptr<const model::Model>(
        std::make_shared<ShortPasses>(std::move(observed), traits_.prompt_rows));
  }
  Result<size_t> memory(std::string_view key) const override { return inner_->memory(key); }

 private:
  std::shared_ptr<const model::Model> inner_;
  model::ModelTraits traits_;
};

class ImportanceTest : public testing::Test {
 protected:
  ImportanceTest() {
    std::string pattern = (fs::temp_directory_path() / "importance_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = (folder_ / "out").string();
  }
  ~ImportanceTest() override { fs::remove_all(folder_); }

  Status write(const model::Model& model, ImportanceRun run = {},
               const std::function<bool(double)>& progress = {}) {
    if (run.tokens.empty()) run.tokens = kTokens;
    if (run.window == 0) run.window = 8;
    return write_importance(model, engine::system_memory(), run, path_, progress);
  }
  std::vector<char> bytes(const model::Model& model, ImportanceRun run = {}) {
    const Status status = write(model, run);
    EXPECT_TRUE(status.ok()) << status.message();
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::map<std::string, std::vector<float>> means(const model::Model& model,
                                                  ImportanceRun run = {}) {
    const Status status = write(model, run);
    EXPECT_TRUE(status.ok()) << status.message();
    auto read = model::read_importance(path_);
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read.ok() ? read.value().all() : std::map<std::string, std::vector<float>>();
  }
  [[nodiscard]] bool left_nothing() const { return fs::is_empty(folder_); }

  fs::path folder_;
  std::string path_;
};

/// Compares with the reference's means; `off` relative to the value and to the tensor's mean.
void expect_near(const TinyModel& tiny, const std::map<std::string, std::vector<float>>& means,
                 double off) {
  for (const auto& [name, inputs] : tiny.inputs()) {
    const auto found = means.find(name);
    ASSERT_NE(found, means.end()) << name;
    ASSERT_EQ(found->second.size(), inputs.squares.size()) << name;
    const size_t cols = inputs.squares.size() / inputs.rows.size();
    for (size_t e = 0; e < inputs.rows.size(); ++e) {
      double mean = 0;
      for (size_t c = 0; c < cols; ++c) mean += inputs.squares[e * cols + c];
      mean /= static_cast<double>(cols * static_cast<size_t>(std::max<int64_t>(inputs.rows[e], 1)));
      for (size_t c = 0; c < cols; ++c) {
        const auto got = static_cast<double>(found->second[e * cols + c]);
        if (inputs.rows[e] == 0) {
          ASSERT_EQ(got, 1.0) << name << " expert " << e;
          continue;
        }
        const double wanted = inputs.squares[e * cols + c] / static_cast<double>(inputs.rows[e]);
        ASSERT_NEAR(got, wanted, off * (wanted + mean))
            << name << " expert " << e << " column " << c;
      }
    }
  }
  for (const auto& [name, ignored] : means) {
    EXPECT_EQ(tiny.inputs().count(name), 1U) << name << " is not multiplied";
  }
}

void run_reference(const TinyModel& tiny, size_t window) {
  for (size_t begin = 0; begin < kTokens.size(); begin += window) {
    const size_t end = std::min(begin + window, kTokens.size());
    static_cast<void>(tiny.logits({kTokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                   kTokens.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
}

TEST_F(ImportanceTest, OfEveryFamilyIsWhatTheReferenceSums) {
  for (const model::arch::Architecture* row : model::arch::architectures()) {
    for (const int32_t experts : {-1, 6}) {
      if (experts > 0 && row->style.experts.has != model::arch::Experts::kOptional) continue;
      SCOPED_TRACE(std::string(row->name) + (experts > 0 ? " with experts" : ""));
      TinyModelSpec spec;
      spec.architecture = row->name;
      spec.layers = 4;
      spec.window = 9;
      spec.biases = true;
      spec.experts = experts;
      const TinyModel tiny(spec);
      const LoadedTiny loaded(tiny);
      const auto made = means(loaded.model());
      run_reference(tiny, 8);
      expect_near(tiny, made, 1e-5);
    }
  }
}

TEST_F(ImportanceTest, CountsPiecesOfATensorOnceAndTheTiedOutput) {
  TinyModelSpec spec;
  spec.fused_qkv = true;
  spec.architecture = "phi3";
  const TinyModel fused(spec);
  EXPECT_EQ(means(LoadedTiny(fused).model()).count("blk.1.attn_qkv.weight"), 1U);
  auto file = gguf::GgufFile::open(path_).value();
  const gguf::TensorInfo* const counts = file->find_tensor("blk.1.attn_qkv.weight.counts");
  ASSERT_NE(counts, nullptr);
  float rows = 0;
  std::memcpy(&rows, counts->data.data(), sizeof rows);
  EXPECT_EQ(rows, static_cast<float>(kTokens.size()));

  TinyModelSpec tied;
  tied.tied = true;
  const TinyModel tiny(tied);
  const auto made = means(LoadedTiny(tiny).model());
  run_reference(tiny, 8);
  EXPECT_EQ(made.count("token_embd.weight"), 1U);
  expect_near(tiny, made, 1e-5);
}

std::vector<DType> quantised_types() {
  std::vector<DType> types = {DType::kF16, DType::kBF16};
  for (const quant::Traits& traits : quant::kTraits) types.push_back(traits.type);
  return types;
}

TinyModelSpec wide(DType type, const char* architecture = "llama") {
  TinyModelSpec spec;
  spec.architecture = architecture;
  spec.type = type;
  spec.layers = 1;
  spec.experts_used = 2;
  spec.hidden = 256;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 64;
  spec.feed_forward = 256;
  spec.expert_width = 256;
  if (std::string(architecture) == "qwen3moe") spec.experts = 3;
  return spec;
}

// Rounding to int8 would change sums by far more than the last bit.
TEST_F(ImportanceTest, SeesRowsBeforeTheyAreRounded) {
  for (const DType type : quantised_types()) {
    SCOPED_TRACE(dtype_name(type));
    const LoadedTiny loaded(TinyModel(wide(type)));
    ImportanceRun run;
    run.window = static_cast<int32_t>(kTokens.size());
    const auto made = means(loaded.model(), run);
    ASSERT_TRUE(made.contains("output.weight"));
    auto trial = try_sequence(loaded.model(), cache::CacheTrial(loaded.cache()), nullptr);
    ASSERT_TRUE(trial.ok());
    const std::vector<int32_t> layers = {graph::kNormedTap};
    const auto rows = forward_hidden(loaded.model(), kTokens, layers, *trial);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    for (size_t c = 0; c < 256; ++c) {
      double sum = 0;
      for (size_t t = 0; t < kTokens.size(); ++t) {
        const auto value = static_cast<double>(rows.value()[t * 256 + c]);
        sum += value * value;
      }
      const float mean = static_cast<float>(sum) / static_cast<float>(kTokens.size());
      ASSERT_EQ(made.at("output.weight")[c], mean) << c;
    }
  }
}

TEST_F(ImportanceTest, HasTheSameBytesForAnyThreadsAndPasses) {
  for (const char* architecture : {"llama", "qwen3moe", "qwen35", "phi3"}) {
    for (const DType type : {DType::kF32, DType::kQ4_0, DType::kQ4_K}) {
      SCOPED_TRACE(std::string(architecture) + " " + dtype_name(type));
      const TinyModel tiny(wide(type, architecture));
      test::TinyEngineOptions one;
      const LoadedTiny alone(tiny, one);
      const auto expected = bytes(alone.model());
      ASSERT_FALSE(expected.empty());
      test::TinyEngineOptions several;
      several.threads = 3;
      const LoadedTiny shared(tiny, several);
      EXPECT_EQ(bytes(shared.model()), expected);
      const std::shared_ptr<const model::Model> borrowed(std::shared_ptr<void>(), &alone.model());
      for (const int32_t rows : {1, 3, 7}) {
        EXPECT_EQ(bytes(ShortPasses(borrowed, rows)), expected) << rows;
      }
    }
  }
}

TEST_F(ImportanceTest, ObservingChangesNoResult) {
  for (const DType type : quantised_types()) {
    SCOPED_TRACE(dtype_name(type));
    const LoadedTiny loaded(TinyModel(wide(type, "qwen3moe")));
    const auto cache = loaded.cache();
    const auto expected = loaded.feed(*cache, kTokens);
    const auto observed = loaded.model().observable().value();
    model::ImportanceSums sums;
    test::OwnedBatch batch;
    const auto again = loaded.cache();
    ASSERT_TRUE(batch.add(*again, kTokens, true).ok());
    graph::Batch& with = batch.finish(loaded.vocab());
    with.observer = &sums;
    ASSERT_TRUE(observed->forward(with).ok());
    EXPECT_EQ(batch.results(loaded.vocab()), expected);
    EXPECT_EQ(loaded.model().forward(with).code(), Code::kInvalidArgument);
  }
}

TEST_F(ImportanceTest, PutsTheTokenBeforeEachWindow) {
  const TinyModel tiny{TinyModelSpec()};
  const LoadedTiny loaded(tiny);
  ImportanceRun run;
  run.bos = 1;
  run.window = 8;
  run.dataset = "a text";
  const auto made = means(loaded.model(), run);
  int64_t windows = 0;
  for (size_t begin = 0; begin < kTokens.size(); begin += 7, ++windows) {
    std::vector<int32_t> window = {1};
    for (size_t i = begin; i < std::min(begin + 7, kTokens.size()); ++i) {
      window.push_back(kTokens[i]);
    }
    static_cast<void>(tiny.logits(window));
  }
  expect_near(tiny, made, 1e-5);
  const auto file = gguf::GgufFile::open(path_).value();
  EXPECT_EQ(file->metadata().get_string("general.type").value(), "imatrix");
  EXPECT_EQ(file->metadata().get_u32("imatrix.chunk_count").value(), windows);
  EXPECT_EQ(file->metadata().get_u32("imatrix.chunk_size").value(), 8U);
  EXPECT_EQ(file->metadata().get_strings("imatrix.datasets").value(),
            std::vector<std::string_view>{"a text"});
}

TEST_F(ImportanceTest, RefusesAndLeavesNothing) {
  const LoadedTiny loaded{TinyModel(TinyModelSpec())};
  const auto fails = [&](ImportanceRun run, Code code, const char* part) {
    const Status status = write(loaded.model(), run);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status.message();
    EXPECT_TRUE(left_nothing());
  };
  ImportanceRun run;
  run.window = 129;
  fails(run, Code::kOutOfRange, "a window of 129 tokens outside [1, 128]");
  run.window = -1;
  fails(run, Code::kOutOfRange, "window of -1");
  run.window = 1;
  run.bos = 2;
  fails(run, Code::kOutOfRange, "outside [2, 128]");
  const std::vector<int32_t> beyond = {1, 50};
  run = {};
  run.tokens = beyond;
  fails(run, Code::kOutOfRange, "token 50 outside vocabulary of 50");

  test::FarMemory memory;
  test::TinyEngineOptions far;
  far.engine = std::make_shared<test::FarEngine>(memory);
  const LoadedTiny on_device(TinyModel(TinyModelSpec()), far);
  const Status refused = write(on_device.model());
  EXPECT_EQ(refused.code(), Code::kUnsupported) << refused.message();
  EXPECT_NE(std::string(refused.message()).find("on the CPU only, not on engine far"),
            std::string::npos)
      << refused.message();
  EXPECT_TRUE(left_nothing());

  int calls = 0;
  const Status cancelled = write(loaded.model(), {}, [&](double share) {
    EXPECT_GT(share, 0.0);
    return ++calls < 2;
  });
  EXPECT_EQ(cancelled.code(), Code::kCancelled) << cancelled.message();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(left_nothing());
}

}  // namespace
}  // namespace gen::generate
