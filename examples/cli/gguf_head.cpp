// SPDX-License-Identifier: Apache-2.0
// See gguf_head.h. All integers are little-endian, as the machines are that the library runs on.
#include "gguf_head.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "gguf_types.h"
#include "text_format.h"

namespace cli {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kMostText = uint64_t{16} << 20;  // of a value; longer ones are left out
constexpr uint64_t kMostName = 65536;
constexpr uint32_t kMostDims = 16;

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
  uint64_t at() const { return size_ - left_; }

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
  /// Nothing of a longer one than `most`.
  std::string text(uint64_t most) {
    const auto size = number<uint64_t>();
    if (!take(size)) return {};
    if (size > most) {
      in_.ignore(static_cast<std::streamsize>(size));
      return {};
    }
    std::string bytes(size, '\0');
    in_.read(bytes.data(), static_cast<std::streamsize>(size));
    return bytes;
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

/// 1e-05, not the digits of the nearest double.
double shortest(float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  double out = static_cast<double>(value);
  std::from_chars(digits, end, out);
  return out;
}

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
      return shortest(in.number<float>());
    case 7:
      return in.number<uint8_t>() != 0;
    case kText:
      return in.text(kMostText);
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
  const uint64_t kept = count <= kGgufArray ? count : kGgufFirst;
  ordered_json list = ordered_json::array();
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    if (i < kept) {
      list.push_back(scalar(in, element));
    } else if (element == kText) {
      in.text(0);
    } else {
      scalar(in, element);
    }
  }
  if (kept == count) return list;
  ordered_json shown;
  shown["count"] = count;
  shown["first"] = std::move(list);
  return shown;
}

/// The reader says whether it was whole.
GgufHead::Tensor tensor_of(GgufStream& in) {
  GgufHead::Tensor tensor;
  tensor.name = in.text(kMostName);
  const auto dims = in.number<uint32_t>();
  if (dims > kMostDims) in.fail();
  tensor.elements = 1;
  for (uint32_t i = 0; i < dims && in.ok(); ++i) {
    tensor.dims.push_back(in.number<uint64_t>());
    if (__builtin_mul_overflow(tensor.elements, tensor.dims.back(), &tensor.elements)) {
      tensor.elements = 0;
    }
  }
  tensor.type = in.number<uint32_t>();
  tensor.offset = in.number<uint64_t>();
  return tensor;
}

/// Fills in the sizes of a part's tensors and where the last of them ends.
void measure(GgufHead* head, size_t first, uint64_t alignment) {
  GgufHead::Part& part = head->parts.back();
  part.data = (part.data + alignment - 1) / alignment * alignment;
  const uint64_t space = part.size > part.data ? part.size - part.data : 0;
  std::vector<uint64_t> offsets;
  for (size_t i = first; i < head->tensors.size(); ++i) offsets.push_back(head->tensors[i].offset);
  std::sort(offsets.begin(), offsets.end());
  for (size_t i = first; i < head->tensors.size(); ++i) {
    GgufHead::Tensor& tensor = head->tensors[i];
    const auto bytes = gguf_type_bytes(tensor.type, tensor.elements);
    const auto next = std::upper_bound(offsets.begin(), offsets.end(), tensor.offset);
    const uint64_t border = next != offsets.end() ? *next : std::max(space, tensor.offset);
    tensor.bytes = bytes.value_or(border - tensor.offset);
    uint64_t end = 0;
    if (__builtin_add_overflow(part.data, tensor.offset, &end) ||
        __builtin_add_overflow(end, tensor.bytes, &end)) {
      end = UINT64_MAX;
    }
    part.needed = std::max(part.needed, end);
  }
}

/// False if the file is no GGUF file or ends in its metadata, which counts for the first part only.
bool read_part(const std::string& path, GgufHead* head) {
  std::error_code failure;
  GgufHead::Part& part = head->parts.emplace_back();
  part.path = path;
  if (!std::filesystem::is_regular_file(path, failure)) return false;
  GgufStream in(path);
  part.size = in.size();
  const auto magic = in.number<uint32_t>();
  const auto version = in.number<uint32_t>();
  if (magic != 0x46554747 || version < 2 || version > 3) return false;
  part.tensors = in.number<uint64_t>();
  const auto entries = in.number<uint64_t>();
  if (entries > kGgufEntries) return false;
  ordered_json metadata = ordered_json::object();
  for (uint64_t i = 0; i < entries && in.ok(); ++i) {
    std::string key = in.text(kMostName);
    ordered_json value = value_of(in);
    // Appended, as a search for each of many keys would take long; only damaged files repeat one.
    metadata.get_ref<ordered_json::object_t&>().emplace_back(std::move(key), std::move(value));
  }
  if (!in.ok()) return false;
  const size_t first = head->tensors.size();
  while (part.listed < part.tensors) {
    part.data = in.at();
    GgufHead::Tensor tensor = tensor_of(in);
    if (!in.ok()) break;
    tensor.part = head->parts.size() - 1;
    head->tensors.push_back(std::move(tensor));
    ++part.listed;
    part.data = in.at();
  }
  if (part.tensors == 0) part.data = in.at();
  uint64_t alignment = 32;
  for (const auto& [key, value] : metadata.items()) {
    if (key == "general.alignment" && is_count(value)) alignment = value.get<uint64_t>();
  }
  if (alignment < 1 || alignment > (uint64_t{1} << 20)) alignment = 32;
  measure(head, first, alignment);
  if (head->parts.size() == 1) {
    head->version = version;
    head->metadata = std::move(metadata);
  }
  return true;
}

/// llama.cpp writes a count of 0 into a file that it has put together.
bool is_part(const ordered_json& metadata) {
  const ordered_json count = metadata.value("split.count", ordered_json());
  return is_count(count) && count.get<uint64_t>() > 1;
}

}  // namespace

std::vector<std::string> parts_of(const std::string& path) {
  constexpr size_t kTail = 20;  // "-00001-of-00003.gguf"
  constexpr unsigned kMostParts = 999;
  unsigned number = 0;
  unsigned count = 0;
  const std::string tail = path.size() > kTail ? path.substr(path.size() - kTail) : "";
  const auto read = [&](size_t at, unsigned* out) {
    return std::from_chars(&tail[at], &tail[at] + 5, *out).ptr == &tail[at] + 5;
  };
  if (tail.empty() || !read(1, &number) || !read(10, &count) || number < 1 || number > count ||
      count > kMostParts || tail != format("-%05u-of-%05u.gguf", number, count)) {
    return {path};
  }
  std::vector<std::string> paths;
  for (unsigned i = 1; i <= count; ++i) {
    paths.push_back(path.substr(0, path.size() - kTail) + format("-%05u-of-%05u.gguf", i, count));
  }
  return paths;
}

uint64_t GgufHead::size() const {
  uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.size;
  return bytes;
}

bool GgufHead::is_there(const Tensor& tensor) const {
  const Part& part = parts[tensor.part];
  return part.size >= part.data && tensor.offset <= part.size - part.data &&
         tensor.bytes <= part.size - part.data - tensor.offset;
}

bool GgufHead::is_whole() const {
  return std::all_of(parts.begin(), parts.end(), [](const Part& part) {
    return part.size > 0 && part.listed == part.tensors && part.needed <= part.size;
  });
}

std::optional<GgufHead> read_gguf_head(const std::string& path) {
  GgufHead given;
  const bool is_read = read_part(path, &given);
  const std::vector<std::string> paths = parts_of(path);
  // The loader goes by the file, too. One that cannot be read may be a part, as its name says.
  if (paths.size() == 1 || (is_read && !is_part(given.metadata))) {
    return is_read ? std::optional(std::move(given)) : std::nullopt;
  }
  GgufHead head;
  for (const std::string& one : paths) {
    if (read_part(one, &head)) continue;
    if (head.parts.size() == 1) return std::nullopt;
    head.parts.back() = {};
    head.parts.back().path = one;
  }
  return head;
}

}  // namespace cli
