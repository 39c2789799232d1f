// SPDX-License-Identifier: Apache-2.0
// Edit: a parsed file's metadata and tensors on their way to their readers, to be renamed, dropped
// and completed. Nothing is lost silently: keys that collide are settled as rename_key says, and
// tensors that collide are refused by GgufFile afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/metadata.h"

namespace gen::gguf::compat {

/// Threads: one at a time.
class Edit {
 public:
  /// Both outlive it. `tensors` may be empty where only metadata is read.
  Edit(const Metadata& metadata, std::vector<TensorInfo>& tensors);

  // The file as it is by now. Values that were set here are there, but cannot be read.
  [[nodiscard]] const Value* find(std::string_view key) const noexcept;
  [[nodiscard]] bool has(std::string_view key) const noexcept { return index_of(key) >= 0; }
  /// As Metadata::get_u32, with `fallback` for a key that is missing.
  [[nodiscard]] Result<uint32_t> u32(std::string_view key, uint32_t fallback) const;
  [[nodiscard]] Result<std::vector<int32_t>> i32s(std::string_view key) const;
  /// "" for a key that is missing or of another type.
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::span<TensorInfo> tensors() noexcept { return tensors_; }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept { return tensors_; }
  [[nodiscard]] const TensorInfo* tensor(std::string_view name) const noexcept;

  /// general.architecture, which keys of families stand below.
  [[nodiscard]] const std::string& architecture() const noexcept { return architecture_; }
  [[nodiscard]] std::string key(std::string_view name) const {
    return architecture_ + "." + std::string(name);
  }
  /// Sets it, and moves all keys below it.
  void set_architecture(std::string_view name);

  // Keys, in full. A key that is missing is not renamed, dropped or cut.
  /// Where the file has both, the one of the new name stays.
  void rename_key(std::string_view from, std::string_view to);
  void drop_key(std::string_view key);
  void set_u32(std::string_view key, uint32_t value);
  void set_f32(std::string_view key, float value);
  void set_text(std::string_view key, std::string_view value);
  void set_i32s(std::string_view key, std::span<const int32_t> values);
  /// The first `count` elements of an array that is longer.
  void cut_array(std::string_view key, uint64_t count);

  // Tensors; those of pictures and sound are left alone.
  /// In every name the part `from`: one that ends with a dot anywhere, else the end of the name.
  void rename_part(std::string_view from, std::string_view to);
  void rename_tensor(std::string_view from, std::string to);
  void rename(TensorInfo* tensor, std::string to);
  /// The tensor's values plus `term`, in memory of the file's. F32 alone.
  void add_to(TensorInfo* tensor, float term);

  [[nodiscard]] size_t changed_keys() const noexcept { return changed_keys_; }
  [[nodiscard]] size_t changed_tensors() const noexcept { return changed_tensors_; }

  /// The metadata as it is by now, and what tensors refer to that is not in the file. kFormat if
  /// names have become too long.
  Result<std::shared_ptr<const Metadata>> finish(std::vector<std::vector<std::byte>>* made);

 private:
  struct Entry {
    std::string key;
    const Value* value;  // as in the file, or null:
    std::string made;    // type and value
  };

  [[nodiscard]] ptrdiff_t index_of(std::string_view key) const noexcept;
  void set(std::string_view key, std::string made);

  const Metadata& metadata_;
  std::vector<Entry> entries_;
  std::vector<TensorInfo>& tensors_;
  std::vector<std::vector<std::byte>> made_;
  std::string architecture_;
  size_t changed_keys_ = 0;
  size_t changed_tensors_ = 0;
};

}  // namespace gen::gguf::compat
