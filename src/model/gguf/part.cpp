// SPDX-License-Identifier: Apache-2.0
// Parsing of one GGUF file. The order is that of the file: magic, version, counts, metadata, tensor
// infos, padding, tensor data. A count is set against the bytes that are left before anything is
// reserved for it. See part.h; metadata_parser.cpp does the metadata.
#include "model/gguf/part.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <limits>
#include <memory>
#include <numeric>

#include "base/checked.h"
#include "model/gguf/byte_reader.h"
#include "model/gguf/clean_name.h"
#include "model/gguf/foreign_types.h"
#include "model/gguf/metadata_parser.h"

namespace gen::gguf {
namespace {

constexpr uint64_t kHeaderBytes = 4 + 4 + 8 + 8;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // a name of one byte, one dimension
constexpr uint64_t kMaxTensorName = 64;
constexpr uint32_t kMaxDims = 4;
constexpr uint32_t kMinAlignment = 8;
constexpr uint32_t kMaxAlignment = 1U << 20;
// Far above any number in use; a number above it is damage and not a later format.
constexpr uint32_t kTypeNumbers = 512;

struct Header {
  uint32_t version = 0;
  uint64_t tensors = 0;
  uint64_t metadata = 0;
};

Result<Header> parse_header(ByteReader& reader) {
  const uint64_t size = reader.remaining();
  const std::byte* const start = reader.cursor();
  if (!reader.skip(kMagic.size()) || !begins_as_gguf({start, kMagic.size()})) {
    GEN_TRY(check_no_other_file({start, static_cast<size_t>(size)}));
    return error(Code::kFormat, "magic: not a GGUF file (it must begin with the bytes GGUF)");
  }
  Header header;
  if (!reader.take(&header.version)) {
    return error(Code::kFormat,
                 "version: the file ends after %" PRIu64 " bytes; is the download complete?", size);
  }
  if (header.version != 2 && header.version != 3) {
    const uint32_t swapped = __builtin_bswap32(header.version);
    if (swapped >= 1 && swapped <= 3) {
      return error(Code::kUnsupported,
                   "version: a big-endian GGUF file of version %" PRIu32
                   "; only little-endian ones are supported",
                   swapped);
    }
    return error(Code::kUnsupported, "version: GGUF version %" PRIu32 " outside [2, 3]",
                 header.version);
  }
  if (!reader.take(&header.tensors) || !reader.take(&header.metadata)) {
    return error(Code::kFormat,
                 "header: the file ends after %" PRIu64 " bytes, the header takes %" PRIu64
                 "; is the download complete?",
                 size, kHeaderBytes);
  }
  return header;
}

Status check_tensor_count(uint64_t count, uint64_t remaining) noexcept {
  const uint64_t most =
      std::min<uint64_t>(remaining / kMinTensorBytes, std::numeric_limits<int32_t>::max());
  if (count <= most) return {};
  return error(Code::kFormat,
               "tensor count %" PRIu64 " above %" PRIu64
               ", the most that fit in the file; is the download complete?",
               count, most);
}

Result<uint32_t> read_alignment(const Metadata& metadata) {
  GEN_ASSIGN(const uint32_t alignment, metadata.get_u32("general.alignment", kDefaultAlignment));
  if (!std::has_single_bit(alignment) || alignment < kMinAlignment || alignment > kMaxAlignment) {
    return error(Code::kFormat,
                 "metadata 'general.alignment': %" PRIu32 " is not a power of two in [%" PRIu32
                 ", %" PRIu32 "]",
                 alignment, kMinAlignment, kMaxAlignment);
  }
  return alignment;
}

Status tensor_truncated(uint64_t index, const char* what) noexcept {
  return error(Code::kFormat,
               "tensor %" PRIu64 ": the file ends in its %s; is the download complete?", index,
               what);
}

Status parse_name(ByteReader& reader, uint64_t index, std::string* out) {
  uint64_t length = 0;
  if (!reader.take(&length)) return tensor_truncated(index, "name length");
  if (length == 0 || length > kMaxTensorName) {
    return error(Code::kFormat,
                 "tensor %" PRIu64 ": name length %" PRIu64 " outside [1, %" PRIu64 "]", index,
                 length, kMaxTensorName);
  }
  const auto* text = reinterpret_cast<const char*>(reader.cursor());
  if (!reader.skip(length)) return tensor_truncated(index, "name");
  const std::string_view name(text, static_cast<size_t>(length));
  if (!is_clean_name(name)) {
    return error(Code::kFormat, "tensor %" PRIu64 ": name is not UTF-8 without control characters",
                 index);
  }
  out->assign(name);
  return {};
}

Status parse_shape(ByteReader& reader, uint64_t index, TensorInfo* out) {
  uint32_t n_dims = 0;
  if (!reader.take(&n_dims)) return tensor_truncated(index, "number of dimensions");
  if (n_dims < 1 || n_dims > kMaxDims) {
    return error(Code::kFormat,
                 "tensor '%s': number of dimensions %" PRIu32 " outside [1, %" PRIu32 "]",
                 out->name.c_str(), n_dims, kMaxDims);
  }
  out->n_dims = static_cast<int>(n_dims);
  int64_t elements = 1;
  for (uint32_t i = 0; i < n_dims; ++i) {
    uint64_t length = 0;
    if (!reader.take(&length)) return tensor_truncated(index, "dimensions");
    if (length == 0 || length > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return error(Code::kFormat,
                   "tensor '%s': dimension %" PRIu32 " is %" PRIu64 ", outside [1, %" PRId64 "]",
                   out->name.c_str(), i, length, std::numeric_limits<int64_t>::max());
    }
    out->shape[i] = static_cast<int64_t>(length);
    if (!checked_mul(elements, out->shape[i], &elements)) {
      return error(Code::kFormat,
                   "tensor '%s': dimensions up to %" PRIu32 " have more than %" PRId64 " elements",
                   out->name.c_str(), i, std::numeric_limits<int64_t>::max());
    }
  }
  return {};
}

Status parse_type(ByteReader& reader, uint64_t index, TensorInfo* out, uint64_t* bytes) {
  uint32_t number = 0;
  if (!reader.take(&number)) return tensor_truncated(index, "type");
  if (number >= kTypeNumbers) {
    return error(Code::kFormat, "tensor '%s': type %" PRIu32 " outside [0, %" PRIu32 "]",
                 out->name.c_str(), number, kTypeNumbers - 1);
  }
  out->type = static_cast<DType>(number);
  const DTypeInfo* type = dtype_info(out->type);
  if (type == nullptr) {
    return error(Code::kUnsupported, "tensor '%s': type %s", out->name.c_str(),
                 describe_foreign_type(number).c_str());
  }
  if (out->shape[0] % type->block_elements != 0) {
    return error(Code::kFormat,
                 "tensor '%s': row length %" PRId64 " is no multiple of %" PRIu32
                 ", the block size of type %s",
                 out->name.c_str(), out->shape[0], type->block_elements, type->name);
  }
  const int64_t rows = out->elements() / out->shape[0];
  uint64_t row_bytes = 0;
  if (!dtype_row_bytes(out->type, static_cast<uint64_t>(out->shape[0]), &row_bytes) ||
      !checked_mul(row_bytes, rows, bytes)) {
    return error(Code::kFormat, "tensor '%s': size in bytes overflows", out->name.c_str());
  }
  return {};
}

/// `bytes` receives the size of the tensor's data, which is placed later, when the start of the
/// data section is known.
Status parse_tensor(ByteReader& reader, uint64_t index, TensorInfo* out, uint64_t* bytes) {
  GEN_TRY(parse_name(reader, index, &out->name));
  GEN_TRY(parse_shape(reader, index, out));
  GEN_TRY(parse_type(reader, index, out, bytes));
  if (!reader.take(&out->offset_in_file)) return tensor_truncated(index, "offset");
  return {};
}

/// Turns the offset inside the data section into the tensor's place in the file.
Status place_tensor(std::span<const std::byte> file, uint64_t data_start, uint32_t alignment,
                    uint64_t bytes, TensorInfo* tensor) noexcept {
  const uint64_t offset = tensor->offset_in_file;
  if (offset % alignment != 0) {
    return error(Code::kFormat,
                 "tensor '%s': offset %" PRIu64 " is no multiple of the alignment %" PRIu32,
                 tensor->name.c_str(), offset, alignment);
  }
  uint64_t begin = 0;
  uint64_t end = 0;
  if (!checked_add(data_start, offset, &begin) || !checked_add(begin, bytes, &end) ||
      end > file.size()) {
    return error(Code::kFormat,
                 "tensor '%s': offset %" PRIu64 " and size %" PRIu64
                 " reach beyond the end of the file, whose data section has %" PRIu64
                 " bytes; is the download complete?",
                 tensor->name.c_str(), offset, bytes,
                 file.size() > data_start ? file.size() - data_start : 0);
  }
  tensor->offset_in_file = begin;
  tensor->data = file.subspan(static_cast<size_t>(begin), static_cast<size_t>(bytes));
  return {};
}

Status check_overlap(std::span<const TensorInfo> tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return tensors[a].offset_in_file < tensors[b].offset_in_file;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& before = tensors[order[i - 1]];
    const TensorInfo& after = tensors[order[i]];
    if (after.offset_in_file - before.offset_in_file < before.data.size()) {
      return error(Code::kFormat, "tensor '%s': its data overlaps that of tensor '%s'",
                   after.name.c_str(), before.name.c_str());
    }
  }
  return {};
}

/// How many bytes stand in front of the tensors' data, padding not counted.
Result<size_t> head_size(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  GEN_ASSIGN(const Header header, parse_header(reader));
  GEN_TRY(check_tensor_count(header.tensors, reader.remaining()));
  GEN_TRY(MetadataParser::skip(reader, header.metadata));
  GEN_TRY(check_tensor_count(header.tensors, reader.remaining()));
  TensorInfo ignored;
  uint64_t size = 0;
  for (uint64_t i = 0; i < header.tensors; ++i) {
    ignored.shape = {1, 1, 1, 1};
    GEN_TRY(parse_tensor(reader, i, &ignored, &size));
  }
  return static_cast<size_t>(reader.offset());
}

}  // namespace

bool begins_as_gguf(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Status check_no_other_file(std::span<const std::byte> bytes) noexcept {
  struct Row {
    std::string_view begins;  // in lower case
    const char* what;
  };
  constexpr Row kRows[] = {
      {"version https://git-lfs",
       "a pointer of git-lfs, which stands for the file; git lfs pull gets it"},
      {"<!doctype", "a web page; was the address that of the file itself?"},
      {"<html", "a web page; was the address that of the file itself?"},
  };
  if (bytes.empty()) return error(Code::kFormat, "magic: not a GGUF file but an empty one");
  for (const Row& row : kRows) {
    const bool same = bytes.size() >= row.begins.size() &&
                      std::equal(row.begins.begin(), row.begins.end(), bytes.begin(),
                                 [](char wanted, std::byte byte) {
                                   const char c = static_cast<char>(byte);
                                   return wanted == (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
                                 });
    if (same) return error(Code::kFormat, "magic: not a GGUF file but %s", row.what);
  }
  return {};
}

// Another process may write to a mapped file at any time, so its own bytes only tell how much to
// copy; all checks are made on the copy.
Result<Part> parse_part(std::span<const std::byte> bytes) {
  GEN_ASSIGN(const size_t size, head_size(bytes));
  const auto copied = bytes.first(size);
  const auto head = std::make_shared<std::vector<std::byte>>(copied.begin(), copied.end());
  ByteReader reader(*head);
  GEN_ASSIGN(const Header header, parse_header(reader));
  GEN_TRY(check_tensor_count(header.tensors, reader.remaining()));
  Part part;
  part.version = header.version;
  GEN_ASSIGN(part.metadata, MetadataParser::parse(reader, header.metadata, head));
  GEN_ASSIGN(const uint32_t alignment, read_alignment(*part.metadata));
  GEN_TRY(check_tensor_count(header.tensors, reader.remaining()));
  part.tensors.resize(static_cast<size_t>(header.tensors));
  std::vector<uint64_t> sizes(part.tensors.size());
  for (size_t i = 0; i < part.tensors.size(); ++i) {
    GEN_TRY(parse_tensor(reader, i, &part.tensors[i], &sizes[i]));
  }
  uint64_t data_start = 0;
  if (!checked_align_up(reader.offset(), uint64_t{alignment}, &data_start)) {
    return error(Code::kFormat, "data section: its offset overflows");
  }
  for (size_t i = 0; i < part.tensors.size(); ++i) {
    GEN_TRY(place_tensor(bytes, data_start, alignment, sizes[i], &part.tensors[i]));
  }
  GEN_TRY(check_overlap(part.tensors));
  return part;
}

Result<std::shared_ptr<const Metadata>> parse_metadata(std::span<const std::byte> bytes) {
  ByteReader whole(bytes);
  {
    GEN_ASSIGN(const Header header, parse_header(whole));
    GEN_TRY(MetadataParser::skip(whole, header.metadata));
  }
  const auto copied = bytes.first(static_cast<size_t>(whole.offset()));
  const auto head = std::make_shared<std::vector<std::byte>>(copied.begin(), copied.end());
  ByteReader reader(*head);
  GEN_ASSIGN(const Header header, parse_header(reader));
  return MetadataParser::parse(reader, header.metadata, head);
}

}  // namespace gen::gguf
