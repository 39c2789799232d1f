// SPDX-License-Identifier: Apache-2.0
// Files with random weights in a shape that is asked for. A few rows are encoded for each kind of
// matrix and written over and over: speed does not depend on the values, and a file takes as long
// as the disk takes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "quant/format.h"
#include "support/gguf_writer.h"
#include "tensor/dtype.h"
#include "support/weight_blocks.h"

namespace gen::test {

/// Rows that differ. A prime, so that heads are not copies of each other.
inline constexpr uint64_t kRows = 61;
inline constexpr uint64_t kAlignment = 32;
inline constexpr size_t kBytePieces = 256;

struct Shape {
  std::string path;
  std::string type = "Q8_0";
  uint64_t layers = 22;
  uint64_t width = 2048;
  uint64_t heads = 32;
  uint64_t kv_heads = 4;
  uint64_t ffn = 5632;
  uint64_t vocab = 32000;
  uint64_t context = 16384;
  uint64_t experts = 0;
  uint64_t used = 2;
  uint64_t head_dim = 0;  // 0: width / heads

  [[nodiscard]] uint64_t head_width() const { return head_dim > 0 ? head_dim : width / heads; }
};

/// A type's place in GGUF's general.file_type, by which programs name a file. Types that are not
/// here leave the key out.
struct FileType {
  const char* type;
  uint32_t number;
};
inline constexpr FileType kFileTypes[] = {
    {"F32", 0},     {"F16", 1},     {"Q4_0", 2},    {"Q4_1", 3},  {"Q8_0", 7},   {"Q5_0", 8},
    {"Q5_1", 9},    {"Q2_K", 10},   {"Q3_K", 11},   {"Q4_K", 14}, {"Q5_K", 16},  {"Q6_K", 18},
    {"Q4_K_M", 15}, {"IQ4_NL", 25}, {"IQ4_XS", 30}, {"BF16", 32}, {"MXFP4", 38},
};

inline bool find_type(const std::string& name, DType* type) {
  for (int32_t number = 0; number < 64; ++number) {
    const auto candidate = static_cast<DType>(number);
    if (quant::find_format(candidate) != nullptr && name == dtype_name(candidate)) {
      *type = candidate;
      return true;
    }
  }
  return false;
}

/// In the Q4_K_M mixture the value and down projections of these layers are Q6_K: the first and the
/// last eighth, and every third between them.
inline bool finer_layer(uint64_t layer, uint64_t layers) {
  const uint64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/// A file in the making; a family says which tensors and keys it has.
class RandomFile {
 public:
  virtual ~RandomFile() = default;
  explicit RandomFile(const Shape& shape) : shape_(shape) {}

  /// False after saying why.
  bool write() {
    mixed_ = shape_.type == "Q4_K_M";
    if (!find_type(mixed_ ? "Q4_K" : shape_.type, &type_)) {
      return fail("unknown type " + shape_.type);
    }
    list();
    for (const Tensor& tensor : tensors_) {
      const DTypeInfo* info = dtype_info(tensor.type);
      if (tensor.cols % info->block_elements != 0) {
        return fail(tensor.name + " has rows of " + std::to_string(tensor.cols) + ", not whole " +
                    info->name + " blocks of " + std::to_string(info->block_elements));
      }
    }
    hyperparameters();
    if (has_tokenizer()) vocabulary();
    for (const Tensor& tensor : tensors_) {
      std::vector<uint64_t> dims = {tensor.cols, tensor.rows / tensor.count};
      if (tensor.vector) dims.pop_back();
      if (tensor.count > 1) dims.push_back(tensor.count);
      gguf_.tensor_elsewhere(tensor.name, static_cast<uint32_t>(tensor.type), dims,
                             tensor.rows * row_bytes(tensor));
    }
    out_.open(shape_.path, std::ios::binary);
    put(gguf_.head().bytes);
    for (const Tensor& tensor : tensors_) put_rows(tensor);
    if (!out_.flush()) return fail("cannot write " + shape_.path);
    std::printf("%s: %s, %.0f million weights, %.1f MB\n", shape_.path.c_str(), shape_.type.c_str(),
                weights_ * 1e-6, static_cast<double>(written_) * 1e-6);
    return true;
  }

 protected:
  struct Tensor {
    std::string name;
    DType type;
    uint64_t cols;
    uint64_t rows;
    double mean;
    double deviation;
    bool vector;
    uint64_t count = 1;  // matrices, which have so many of the rows each
  };

  static bool fail(const std::string& why) {
    std::fprintf(stderr, "random_model: %s\n", why.c_str());
    return false;
  }

  static uint64_t row_bytes(const Tensor& tensor) {
    const DTypeInfo* info = dtype_info(tensor.type);
    return tensor.cols / info->block_elements * info->block_bytes;
  }

  virtual void list() = 0;
  virtual void hyperparameters() = 0;
  /// The family, which keys begin with.
  [[nodiscard]] virtual const char* family() const = 0;
  [[nodiscard]] virtual bool has_tokenizer() const { return true; }

  /// Turns inputs of deviation 1 into outputs of deviation `gain`.
  void product(const std::string& name, DType type, uint64_t cols, uint64_t rows, double gain) {
    matrix(name, type, cols, rows, gain / std::sqrt(static_cast<double>(cols)));
  }
  void stack(const std::string& name, DType type, uint64_t cols, uint64_t rows, double gain) {
    product(name, type, cols, rows * shape_.experts, gain);
    tensors_.back().count = shape_.experts;
  }
  void matrix(const std::string& name, DType type, uint64_t cols, uint64_t rows, double deviation) {
    tensors_.push_back({name, type, cols, rows, 0.0, deviation, false});
    weights_ += static_cast<double>(cols) * static_cast<double>(rows);
  }
  void norm(const std::string& name) { vector(name, shape_.width, 1.0, 0.2); }
  void vector(const std::string& name, uint64_t n, double mean, double deviation) {
    tensors_.push_back({name, DType::kF32, n, 1, mean, deviation, true});
  }
  /// Attention of a block, with `inputs` for its projections and `gates` times as many queries.
  void attention(const std::string& prefix, DType finer, uint64_t inputs, uint64_t gates = 1) {
    const uint64_t kv = shape_.head_width() * shape_.kv_heads;
    const uint64_t q = shape_.head_width() * shape_.heads;
    product(prefix + "attn_q.weight", type_, inputs, gates * q, 1.2);
    product(prefix + "attn_k.weight", type_, inputs, kv, 1.2);
    product(prefix + "attn_v.weight", finer, inputs, kv, 1.0);
    product(prefix + "attn_output.weight", type_, q, shape_.width, 0.8);
  }
  void feed_forward(const std::string& prefix, DType finer) {
    product(prefix + "ffn_gate.weight", type_, shape_.width, shape_.ffn, 1.2);
    product(prefix + "ffn_up.weight", type_, shape_.width, shape_.ffn, 1.0);
    product(prefix + "ffn_down.weight", finer, shape_.ffn, shape_.width, 0.8);
  }

  void number(const char* key, uint64_t value) {
    gguf_.set(std::string(family()) + "." + key, static_cast<uint32_t>(value));
  }
  /// What all families have.
  void common_keys() {
    gguf_.set_string("general.architecture", family());
    gguf_.set_string("general.name", "random " + shape_.type);
    for (const FileType& file : kFileTypes) {
      if (shape_.type == file.type) gguf_.set("general.file_type", file.number);
    }
    gguf_.set<uint32_t>("general.quantization_version", 2);
    gguf_.set("general.alignment", static_cast<uint32_t>(kAlignment));
    number("vocab_size", shape_.vocab);
    number("context_length", shape_.context);
    number("embedding_length", shape_.width);
    number("feed_forward_length", shape_.ffn);
    number("attention.head_count", shape_.heads);
    number("attention.head_count_kv", shape_.kv_heads);
    gguf_.set(std::string(family()) + ".attention.layer_norm_rms_epsilon", 1e-5F);
    gguf_.set(std::string(family()) + ".rope.freq_base", 10000.0F);
  }

  /// SentencePiece: bytes, the space, letters, then made-up words until the vocabulary is full.
  void vocabulary() {
    const std::string space = "\xE2\x96\x81";
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<int32_t> types = {2, 3, 3};
    for (size_t byte = 0; byte < kBytePieces; ++byte) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
      tokens.emplace_back(text);
      types.push_back(6);
    }
    tokens.push_back(space);
    for (char c = '!'; c <= '~'; ++c) tokens.emplace_back(1, c);
    for (uint64_t word = 0; tokens.size() < shape_.vocab; ++word) {
      // Words of three letters and more, so that none is a letter from above.
      std::string text = space;
      for (uint64_t rest = word + 26 * 26; rest > 0; rest /= 26) {
        text += static_cast<char>('a' + rest % 26);
      }
      tokens.push_back(text);
    }
    tokens.resize(shape_.vocab);
    types.resize(tokens.size(), 1);
    std::vector<float> scores(tokens.size(), 0.0F);
    const size_t first = 3 + kBytePieces;
    for (size_t i = first; i < scores.size(); ++i) scores[i] = -static_cast<float>(i - first + 1);
    gguf_.set_string("tokenizer.ggml.model", "llama");
    gguf_.set_strings("tokenizer.ggml.tokens", tokens);
    gguf_.set_array("tokenizer.ggml.scores", scores);
    gguf_.set_array("tokenizer.ggml.token_type", types);
    gguf_.set<uint32_t>("tokenizer.ggml.bos_token_id", 1);
    gguf_.set<uint32_t>("tokenizer.ggml.eos_token_id", 2);
    gguf_.set<uint32_t>("tokenizer.ggml.unknown_token_id", 0);
    gguf_.set<bool>("tokenizer.ggml.add_bos_token", true);
  }

  /// Encoded rows of a kind, made once.
  const std::vector<std::byte>& rows_like(const Tensor& tensor) {
    const auto key = std::make_tuple(tensor.type, tensor.cols, tensor.mean, tensor.deviation);
    std::vector<std::byte>& encoded = rows_[key];
    if (!encoded.empty()) return encoded;
    const uint64_t rows = tensor.vector ? 1 : kRows;
    std::vector<float> values(rows * tensor.cols);
    constexpr double kSqrt3 = 1.7320508075688772;
    const auto stream = static_cast<uint64_t>(rows_.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(tensor.mean + tensor.deviation * kSqrt3 *
                                                       (2 * uniform_double(1, stream, i) - 1));
    }
    encoded.resize(rows * row_bytes(tensor));
    write_weights(tensor.type, values.data(), encoded.data(), static_cast<int64_t>(values.size()));
    return encoded;
  }

  void put_rows(const Tensor& tensor) {
    const std::vector<std::byte>& encoded = rows_like(tensor);
    uint64_t left = tensor.rows * row_bytes(tensor);
    while (left > 0) {
      const uint64_t bytes = std::min<uint64_t>(left, encoded.size());
      put(std::span(encoded).first(bytes));
      left -= bytes;
    }
    const std::array<std::byte, kAlignment> zeros = {};
    put(std::span(zeros).first((kAlignment - written_ % kAlignment) % kAlignment));
  }

  void put(std::span<const std::byte> bytes) {
    out_.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    written_ += bytes.size();
  }

  const Shape& shape_;
  std::ofstream out_;
  bool mixed_ = false;
  DType type_ = DType::kF32;
  GgufWriter gguf_;
  std::vector<Tensor> tensors_;
  std::map<std::tuple<DType, uint64_t, double, double>, std::vector<std::byte>> rows_;
  double weights_ = 0;
  uint64_t written_ = 0;
};

}  // namespace gen::test
