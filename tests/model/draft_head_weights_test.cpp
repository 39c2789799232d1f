// SPDX-License-Identifier: Apache-2.0
// Proves that the head in a model's file shares the model's table and head, takes memory only while
// it is used, and lives without a file that must be closed; and that a model can be used, and has
// its head later, whatever that could not have.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "support/counting_allocator.h"
#include "support/tiny_head.h"

namespace gen::model {
namespace {

using test::features_of;
using test::Floats;
using test::head_spec;
using test::is_draft_block;
using test::kHeadText;
using test::relative_error;
using test::run_head;
using test::TinyModel;
using test::TinyModelSpec;
using test::trunk_of;

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::vector<std::byte>& bytes)
      : path_(testing::TempDir() + "draft_head_" + std::to_string(getpid()) + "_" +
              std::to_string(reinterpret_cast<uintptr_t>(this)) + ".gguf") {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TinyModelSpec wide_spec(bool tied, DType type = DType::kF32) {
  TinyModelSpec spec = head_spec("qwen35");
  spec.vocab = 2000;
  spec.tied = tied;
  spec.type = type;
  return spec;
}

size_t bytes_of_block(const gguf::GgufFile& file, const TinyModelSpec& spec) {
  size_t bytes = 0;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    if (is_draft_block(std::string(tensor.name), spec)) bytes += tensor.data.size();
  }
  return bytes;
}

TEST(DraftHeadWeights, SharesTheModelsTableAndHead) {
  for (const bool tied : {false, true}) {
    for (const bool mapped : {false, true}) {
      for (const DType type : {DType::kF32, DType::kQ8_0}) {
        const TinyModelSpec spec = wide_spec(tied, type);
        const TemporaryFile on_disk(TinyModel(spec).bytes());
        auto file = gguf::GgufFile::open(on_disk.path(),
                                         mapped ? MappedFile::Mode::kMap : MappedFile::Mode::kRead)
                        .value();
        const size_t block = bytes_of_block(*file, spec);
        const size_t table = file->find_tensor("token_embd.weight")->data.size();
        LoadOptions options;
        options.engine = test::cpu_engine();
        const auto model = load_model(std::move(file), options).value()->model;
        const size_t trunk = load_model(gguf::GgufFile::parse(trunk_of(spec)).value(), options)
                                 .value()
                                 ->model->memory("weights")
                                 .value();
        const size_t before = model->memory("weights").value();
        if (mapped) {
          EXPECT_EQ(before, trunk);  // a head takes memory only while it is used
        }
        auto head = model->draft_head().value();
        EXPECT_EQ(model->draft_head().value(), head);
        const size_t with = model->memory("weights").value();
        EXPECT_LT(with, trunk + block + block / 2);  // tiles may be padded
        EXPECT_GT(with, trunk + block / 2);
        EXPECT_LT(block + block / 2, table);
        head.reset();
        EXPECT_EQ(model->memory("weights").value(), before);
        EXPECT_NE(model->draft_head().value(), nullptr);
      }
    }
  }
}

// Later blocks take the table and the output layer of the model, or in a file beside it those of
// the first block.
TEST(DraftHeadWeights, OfLaterBlocksAreSharedAndCounted) {
  TinyModelSpec spec = wide_spec(false, DType::kQ8_0);
  spec.draft_layers = 3;
  const TemporaryFile on_disk(TinyModel(spec).bytes());
  LoadOptions options;
  options.engine = test::cpu_engine();
  const auto model =
      load_model(gguf::GgufFile::open(on_disk.path()).value(), options).value()->model;
  const size_t before = model->memory("weights").value();
  const size_t output =
      gguf::GgufFile::open(on_disk.path()).value()->find_tensor("output.weight")->data.size();
  for (const bool beside : {false, true}) {
    auto head = beside ? load_draft_head(gguf::GgufFile::open(on_disk.path()).value(),
                                         model->head_target().value(), false, true)
                             .value()
                       : model->draft_head().value();
    ASSERT_EQ(head->later.size(), 2U);
    const size_t first = head->first->memory("weights").value();
    size_t all = first;
    for (const auto& later : head->later) {
      const size_t own = later->memory("weights").value();
      EXPECT_EQ(first > own + output / 2, beside);
      all += own;
    }
    EXPECT_EQ(model->memory("weights").value(), before + (beside ? 0 : all));
  }
}

// A model that copies all of its weights lets go of its file.
TEST(DraftHeadWeights, NeedsNoFileThatMustBeClosed) {
  for (const bool repack : {false, true}) {
    const TinyModelSpec spec = head_spec("qwen35");
    std::vector<std::byte> bytes = TinyModel(spec).bytes();
    LoadOptions options;
    options.engine = test::cpu_engine({.repack = repack});
    options.lasting = false;
    auto file = gguf::GgufFile::parse(bytes).value();
    const std::weak_ptr<const gguf::GgufFile> kept = file;
    const auto model = load_model(std::move(file), options).value()->model;
    EXPECT_TRUE(kept.expired());
    std::fill(bytes.begin(), bytes.end(), std::byte{0x5A});
    bytes = {};
    const Floats features = features_of(kHeadText.size(), spec.hidden);
    const auto want = TinyModel(spec).drafted(kHeadText, features).logits;
    const auto head = model->draft_head().value();
    ASSERT_NE(head, nullptr);
    EXPECT_LT(relative_error(run_head(*head, features).logits, want), 2e-5);
  }
}

TEST(DraftHeadWeights, OfAFileThatChangedIsRefused) {
  const TinyModelSpec spec = head_spec("qwen35");
  const TemporaryFile on_disk(TinyModel(spec).bytes());
  LoadOptions options;
  options.engine = test::cpu_engine();
  const auto model =
      load_model(gguf::GgufFile::open(on_disk.path()).value(), options).value()->model;
  std::ofstream(on_disk.path(), std::ios::binary | std::ios::app) << "more";
  EXPECT_EQ(model->draft_head().status().code(), Code::kIo);
}

TEST(DraftHeadWeights, WithoutMemoryLeavesTheModelUsable) {
  const TinyModelSpec spec = head_spec("glm4");
  const TinyModel tiny(spec);
  const TemporaryFile on_disk(tiny.bytes());
  test::CountingAllocator allocator;
  LoadOptions options;
  options.engine = test::cpu_engine({.allocator = &allocator});
  const auto model =
      load_model(gguf::GgufFile::open(on_disk.path()).value(), options).value()->model;
  const auto answer = [&] {
    const auto cache =
        cache::make_cache("fp32", model->layer_shapes(), 64, engine::system_memory()).value();
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, kHeadText).ok());
    EXPECT_TRUE(model->forward(batch.finish(spec.vocab)).ok());
    return batch.results(spec.vocab);
  };
  const Floats want = answer();
  const size_t weights = model->memory("weights").value();
  const size_t live = allocator.live_bytes;
  size_t failures = 0;
  for (size_t n = 0;; ++n) {
    allocator.fail_at = allocator.calls + n;
    auto head = model->draft_head();
    allocator.fail_at = ~size_t{0};
    if (head.ok()) {
      EXPECT_NE(*head, nullptr);
      break;
    }
    ++failures;
    EXPECT_EQ(head.status().code(), Code::kOutOfMemory);
    EXPECT_EQ(allocator.live_bytes, live);
    EXPECT_EQ(model->memory("weights").value(), weights);
    EXPECT_EQ(answer(), want);
    ASSERT_LT(n, 1000U);
  }
  EXPECT_GE(failures, 2U);
  EXPECT_EQ(allocator.live_bytes, live);
  const Floats features = features_of(kHeadText.size(), spec.hidden);
  EXPECT_LT(relative_error(run_head(*model->draft_head().value(), features).logits,
                           tiny.drafted(kHeadText, features).logits),
            2e-5);
}

}  // namespace
}  // namespace gen::model
