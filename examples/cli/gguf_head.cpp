// SPDX-License-Identifier: Apache-2.0
// See gguf_head.h. All integers are little-endian, as the machines are that the library runs on.
#include "gguf_head.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace cli {
namespace {

using nlohmann::ordered_json;

/// Reads in order, and never more than the file has.
class GgufStream {
 public:
  explicit GgufStream(const std::string& path) : in_(path, std::ios::binary | std::ios::ate) {
    const std::streamoff size = in_ ? static_cast<std::streamoff>(in_.tellg()) : 0;
    size_ = left_ = size > 0 ? static_cast<uint64_t>(size) : 0;
    in_.seekg(0);
  }

  /// False, now and from now on, if the file is shorter.
  bool ok() const { return ok_ && in_.good(); }
  uint64_t size() const { return size_; }

  template <typename T>
  T number() {
    T value = {};
    char bytes[sizeof(T)] = {};
    if (take(sizeof bytes)) {
      in_.read(bytes, sizeof bytes);
      std::memcpy(&value, bytes, sizeof bytes);
    }
    return value;
  }
  std::string text() {
    const auto size = number<uint64_t>();
    if (!take(size)) return {};
    std::string bytes(size, '\0');
    in_.read(bytes.data(), static_cast<std::streamsize>(size));
    return bytes;
  }
  void skip_text() {
    const auto size = number<uint64_t>();
    if (take(size)) in_.ignore(static_cast<std::streamsize>(size));
  }
  void fail() { ok_ = false; }

 private:
  bool take(uint64_t bytes) {
    ok_ = ok() && bytes <= left_;
    if (ok_) left_ -= bytes;
    return ok_;
  }

  std::ifstream in_;
  uint64_t size_ = 0;
  uint64_t left_ = 0;
  bool ok_ = true;
};

constexpr uint32_t kText = 8;
constexpr uint32_t kArray = 9;

/// A value that is no array.
ordered_json scalar(GgufStream& in, uint32_t type) {
  switch (type) {
    case 0:
      return in.number<uint8_t>();
    case 1:
      return in.number<int8_t>();
    case 2:
      return in.number<uint16_t>();
    case 3:
      return in.number<int16_t>();
    case 4:
      return in.number<uint32_t>();
    case 5:
      return in.number<int32_t>();
    case 6:
      return in.number<float>();
    case 7:
      return in.number<uint8_t>() != 0;
    case kText:
      return in.text();
    case 10:
      return in.number<uint64_t>();
    case 11:
      return in.number<int64_t>();
    case 12:
      return in.number<double>();
    default:
      in.fail();
      return nullptr;
  }
}

ordered_json value_of(GgufStream& in) {
  const auto type = in.number<uint32_t>();
  if (type != kArray) return scalar(in, type);
  const auto element = in.number<uint32_t>();
  const auto count = in.number<uint64_t>();
  const bool kept = count <= kGgufArray;
  ordered_json list = kept ? ordered_json::array() : ordered_json();
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    if (kept) {
      list.push_back(scalar(in, element));
    } else if (element == kText) {
      in.skip_text();
    } else {
      scalar(in, element);
    }
  }
  return list;
}

GgufHead::Tensor tensor_of(GgufStream& in) {
  GgufHead::Tensor tensor{in.text(), {}};
  const auto dims = in.number<uint32_t>();
  for (uint32_t i = 0; i < dims && in.ok(); ++i) tensor.dims.push_back(in.number<uint64_t>());
  in.number<uint32_t>();  // its type
  in.number<uint64_t>();  // where it lies
  return tensor;
}

}  // namespace

std::optional<GgufHead> read_gguf_head(const std::string& path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) return std::nullopt;
  GgufStream in(path);
  const auto magic = in.number<uint32_t>();
  const auto version = in.number<uint32_t>();
  if (magic != 0x46554747 || version < 2 || version > 3) return std::nullopt;
  const auto tensors = in.number<uint64_t>();
  const auto entries = in.number<uint64_t>();
  if (entries > kGgufEntries) return std::nullopt;
  GgufHead head;
  head.metadata = ordered_json::object();
  head.size = in.size();
  for (uint64_t i = 0; i < entries && in.ok(); ++i) {
    const std::string key = in.text();
    head.metadata[key] = value_of(in);
  }
  for (uint64_t i = 0; i < tensors && in.ok(); ++i) head.tensors.push_back(tensor_of(in));
  if (!in.ok()) return std::nullopt;
  return head;
}

}  // namespace cli
