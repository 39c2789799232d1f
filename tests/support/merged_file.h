// SPDX-License-Identifier: Apache-2.0
// Merging files in memory, for tests: adapters of drawn values for tensors of a model, and what
// becomes of the model.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "model/adapter_targets.h"
#include "model/merge.h"
#include "support/adapter_files.h"
#include "support/gguf_writer.h"

namespace gen::test {

/// An adapter file of the converters' form.
class AdapterWriter {
 public:
  explicit AdapterWriter(std::string_view architecture, float alpha = 0.0F) {
    writer.set_string("general.type", "adapter")
        .set_string("general.architecture", architecture)
        .set_string("adapter.type", "lora")
        .set("adapter.lora.alpha", alpha);
  }

  AdapterWriter& pair(const std::string& tensor, std::vector<uint64_t> a, std::vector<uint64_t> b,
                      float gain = 1.0F) {
    half(tensor + ".lora_a", std::move(a), gain);
    half(tensor + ".lora_b", std::move(b), gain);
    return *this;
  }
  /// As the tensor wants it: of stacks by matrices, of the embedding by rows.
  AdapterWriter& pair(const gguf::TensorInfo& tensor, uint64_t rank) {
    const auto in = static_cast<uint64_t>(tensor.shape[0]);
    const auto out = static_cast<uint64_t>(tensor.shape[1]);
    const auto matrices = static_cast<uint64_t>(tensor.shape[2]);
    if (tensor.name == "token_embd.weight") return pair(tensor.name, {rank, out}, {rank, in});
    if (tensor.n_dims < 3) return pair(tensor.name, {in, rank}, {rank, out});
    return pair(tensor.name, {in, rank, matrices}, {rank, out, matrices});
  }
  [[nodiscard]] std::vector<std::byte> bytes() const { return writer.build().bytes; }

  GgufWriter writer;

 private:
  void half(const std::string& name, std::vector<uint64_t> shape, float gain) {
    int64_t count = 1;
    for (const uint64_t n : shape) count *= static_cast<int64_t>(n);
    std::vector<float> values = drawn(name, count);
    for (float& value : values) value *= gain;
    writer.tensor(name, 0, std::move(shape), bytes_of(values));
  }
};

struct MergeOptions {
  float scale = 1.0F;
  const char* type = nullptr;
  int32_t threads = 1;
};

/// What `write` writes to a NewFile, by way of a file that is removed.
template <typename Write>
Result<std::vector<std::byte>> written(const Write& write) {
  const std::string path = testing::TempDir() + "written_" + std::to_string(::getpid());
  {
    GEN_ASSIGN(NewFile out, NewFile::create(path));
    GEN_TRY(write(out));
    GEN_TRY(out.finish());
  }
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::remove(path.c_str());
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// The bytes of the merged file.
inline Result<std::vector<std::byte>> merged(const std::vector<std::byte>& model,
                                             const std::vector<std::byte>& adapter,
                                             const MergeOptions& options = {}) {
  GEN_ASSIGN(const auto file, gguf::GgufFile::parse(model));
  GEN_ASSIGN(const auto adapter_file, gguf::GgufFile::parse(adapter));
  GEN_ASSIGN(const auto targets, model::merge_targets(*file));
  GEN_ASSIGN(auto read, model::read_adapter(*adapter_file, targets));
  const auto pool = ThreadPool::create(options.threads).value();
  const model::QuantRecipe* const recipe =
      options.type != nullptr ? model::find_recipe(options.type) : nullptr;
  return written([&](NewFile& out) {
    return model::merge(*file, std::move(read), options.scale, recipe, *pool, {}, out);
  });
}

}  // namespace gen::test
