// SPDX-License-Identifier: Apache-2.0
// GgufFile: an opened GGUF model, version 2 or 3, of one or several parts. The file is assumed to
// be hostile: when open or parse succeeds, every tensor's name is unique, its shape and size are
// free of overflow and its bytes are aligned and unshared inside the file. The model room checks
// whether these are the tensors that an architecture needs. Typed metadata: metadata.h. A file that
// was made for ollama's own engine is translated (compat/translate.h): metadata and tensors are as
// if it had been made for llama.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "model/gguf/metadata.h"
#include "tensor/dtype.h"

namespace gen::gguf {

struct TensorInfo {
  std::string name;  // 1 to 64 bytes of UTF-8 without control characters
  DType type = DType::kF32;
  std::array<int64_t, 4> shape = {1, 1, 1, 1};  // innermost (the row's length) first; unused are 1
  int n_dims = 0;                               // 1 to 4, as the file says
  std::span<const std::byte> data;              // aligned in the file, not always in memory
  int part = 0;  // index of the part that holds it; -1: its data was made while it was translated
  uint64_t offset_in_file = 0;  // from the start of that part

  [[nodiscard]] int64_t elements() const noexcept {  // was checked not to overflow
    return shape[0] * shape[1] * shape[2] * shape[3];
  }
};

inline constexpr std::string_view kMagic = "GGUF";  // a file's first bytes
inline constexpr uint32_t kDefaultAlignment = 32;   // of tensors, where a file names no other

/// Whether this may be a GGUF file, of any version.
bool begins_as_gguf(std::span<const std::byte> bytes) noexcept;

/// Threads: immutable.
class GgufFile {
 public:
  /// Opens a file and, if it is a part of a split model ("name-00001-of-00003.gguf"), all other
  /// parts beside it; any part may be given. Errors: kIo for a missing file or a directory; kFormat
  /// naming the field; kUnsupported for another version, byte order or an element type that is not
  /// known.
  static Result<std::shared_ptr<const GgufFile>> open(
      const std::string& path, MappedFile::Mode mode = MappedFile::Mode::kMap);

  /// The same for a whole model in memory. Tensor data refers to `bytes`, which must stay as long
  /// as it is used; metadata is copied. A split model is kFormat.
  static Result<std::shared_ptr<const GgufFile>> parse(std::span<const std::byte> bytes);

  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  [[nodiscard]] uint32_t version() const noexcept { return version_; }
  /// The metadata of the first part.
  [[nodiscard]] const Metadata& metadata() const noexcept { return *metadata_; }
  /// The same as a shared pointer, to keep the metadata after the file is closed.
  [[nodiscard]] std::shared_ptr<const Metadata> shared_metadata() const noexcept {
    return metadata_;
  }
  /// In file order, part after part.
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept { return tensors_; }
  /// nullptr if there is no such tensor.
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept;
  [[nodiscard]] int parts() const noexcept { return parts_; }
  /// It was made for ollama's own engine, and is not as it stands.
  [[nodiscard]] bool is_translated() const noexcept { return translated_; }
  /// Size of all parts.
  [[nodiscard]] uint64_t total_bytes() const noexcept { return total_bytes_; }
  /// The bytes are those of mapped files, so that keeping them takes no memory.
  [[nodiscard]] bool is_mapped() const noexcept;
  /// kIo naming a part that was written to or shortened since it was opened, as far as its size and
  /// time tell.
  [[nodiscard]] Status check_unchanged() const;
  /// A hint that the tensor's bytes will not be read again; they stay readable.
  void drop_pages(const TensorInfo& tensor) const noexcept;

 private:
  friend class Reader;
  GgufFile() = default;

  uint32_t version_ = 0;
  int parts_ = 1;
  bool translated_ = false;
  uint64_t total_bytes_ = 0;
  std::shared_ptr<const Metadata> metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> by_name_;             // indexes of tensors_, ascending by name
  std::vector<MappedFile> files_;             // empty after parse
  std::vector<std::vector<std::byte>> made_;  // data of tensors that is in none of them
};

}  // namespace gen::gguf
