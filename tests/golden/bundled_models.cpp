// SPDX-License-Identifier: Apache-2.0
// Reading a bundled model and writing it again with the reference decoders' values. See
// bundled_models.h.
#include "golden/bundled_models.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "model/gguf/gguf_file.h"
#include "quant/format.h"
#include "support/gguf_writer.h"
#include "tensor/dtype.h"

namespace gen::test {
namespace {

constexpr std::string_view kSuffix = "-f32";

/// Sets what a getter of the reader gave; false if it gave nothing.
template <typename T, typename Set>
bool take(Result<T> found, Set&& set) {
  if (!found.ok()) return false;
  set(std::move(found).value());
  return true;
}

bool copy_array(const gguf::Metadata& from, const gguf::Value& value, GgufWriter* to) {
  const std::string key(value.key());
  const auto set = [&](const auto& values) { to->set_array(key, values); };
  switch (value.element_type()) {
    case gguf::ValueType::kI32:
      return take(from.get_i32s(key), set);
    case gguf::ValueType::kU32:
      return take(from.get_u32s(key), set);
    case gguf::ValueType::kF32:
      return take(from.get_f32s(key), set);
    case gguf::ValueType::kString:
      return take(from.get_strings(key), [&](const std::vector<std::string_view>& texts) {
        to->set_strings(key, {texts.begin(), texts.end()});
      });
    default:
      return false;
  }
}

bool copy_value(const gguf::Metadata& from, const gguf::Value& value, GgufWriter* to) {
  const std::string key(value.key());
  const auto set = [&](auto found) { to->set(key, found); };
  switch (value.type()) {
    case gguf::ValueType::kU32:
      return take(from.get_u32(key), set);
    case gguf::ValueType::kI32:
      return take(from.get_i32(key), set);
    case gguf::ValueType::kU64:
      return take(from.get_u64(key), set);
    case gguf::ValueType::kF32:
      return take(from.get_f32(key), set);
    case gguf::ValueType::kBool:
      return take(from.get_bool(key), set);
    case gguf::ValueType::kString:
      return take(from.get_string(key),
                  [&](const std::string& text) { to->set_string(key, text); });
    case gguf::ValueType::kArray:
      return copy_array(from, value, to);
    default:
      return false;
  }
}

bool copy_tensor(const gguf::TensorInfo& tensor, GgufWriter* to) {
  const std::vector<uint64_t> dims(tensor.shape.begin(), tensor.shape.begin() + tensor.n_dims);
  if (dtype_info(tensor.type)->block_elements == 1) {
    to->tensor(tensor.name, static_cast<uint32_t>(tensor.type), dims,
               {tensor.data.begin(), tensor.data.end()});
    return true;
  }
  const quant::Format* format = quant::find_format(tensor.type);
  if (format == nullptr) return false;
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  format->decode(tensor.data.data(), values.data(), tensor.elements());
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  to->tensor(tensor.name, static_cast<uint32_t>(DType::kF32), dims, std::move(bytes));
  return true;
}

}  // namespace

std::vector<std::string> dequantised_model_names() { return {"story-f32", "draft-f32"}; }

std::vector<std::byte> read_bundled_model(std::string_view name) {
  std::ifstream file(GEN_TEST_SOURCE_DIR "/examples/demo_model/" + std::string(name) + ".gguf",
                     std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> make_dequantised_model(std::string_view name) {
  if (!name.ends_with(kSuffix)) return {};
  name.remove_suffix(kSuffix.size());
  const std::vector<std::byte> bytes = read_bundled_model(name);
  const auto opened = gguf::GgufFile::parse(bytes);
  if (!opened.ok()) return {};
  const gguf::GgufFile& file = *opened.value();
  GgufWriter writer;
  for (const gguf::Value& value : file.metadata().entries()) {
    if (!copy_value(file.metadata(), value, &writer)) return {};
  }
  const auto alignment = file.metadata().get_u32("general.alignment", 32);
  if (!alignment.ok()) return {};
  writer.alignment(alignment.value());
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    if (!copy_tensor(tensor, &writer)) return {};
  }
  return std::move(writer.build().bytes);
}

}  // namespace gen::test
