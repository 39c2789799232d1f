// SPDX-License-Identifier: Apache-2.0
// Fuzzes the path of an untrusted GGUF file: header, metadata, tensor infos, and the tokenizer that
// its vocabulary makes. Whatever the reader lets through must be readable in full. Seeds:
// gguf_seeds.py.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/gguf/gguf_file.h"
#include "model/gguf/vocab.h"
#include "tokenizer/tokenizer.h"

namespace {

using gen::gguf::GgufFile;
using gen::gguf::Metadata;
using gen::gguf::Value;

void require(bool condition) {
  if (!condition) std::abort();
}

void read_everything(const Metadata& metadata) {
  for (const Value& value : metadata.entries()) {
    require(metadata.find(value.key()) == &value);
    require(value.key().data()[value.key().size()] == '\0');
    (void)value.text(4);
    (void)metadata.get_u32(value.key());
    (void)metadata.get_f32(value.key());
    (void)metadata.get_string(value.key());
    (void)metadata.get_i32s(value.key());
    (void)metadata.get_f32s(value.key());
    (void)metadata.get_bools(value.key());
    (void)metadata.get_strings(value.key());
  }
}

void make_tokenizer(const Metadata& metadata) {
  auto vocab = gen::gguf::read_vocab(metadata);
  if (!vocab.ok()) return;
  const auto tokenizer = gen::tokenizer::create_tokenizer(std::move(vocab).value());
  if (!tokenizer.ok()) return;
  std::vector<int32_t> ids;
  std::string text;
  if (!tokenizer.value()->encode("a b\n<s>\xC3\xA9", gen::tokenizer::kParseSpecial, &ids).ok())
    return;
  for (const int32_t id : ids) require(id >= 0 && id < tokenizer.value()->vocab_size());
  require(tokenizer.value()->decode(ids, true, &text).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto parsed = GgufFile::parse(bytes);
  if (!parsed.ok()) {
    require(parsed.status().message()[0] != '\0');
    return 0;
  }
  const GgufFile& file = *parsed.value();
  unsigned sum = 0;
  for (const auto& tensor : file.tensors()) {
    require(file.find_tensor(tensor.name) == &tensor);
    require(tensor.elements() > 0);
    for (const std::byte byte : tensor.data) sum += static_cast<unsigned>(byte);
  }
  require(sum < 0xFFFFFFFF);  // so that the bytes are really read
  read_everything(file.metadata());
  make_tokenizer(file.metadata());
  return 0;
}
