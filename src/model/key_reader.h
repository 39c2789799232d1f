// SPDX-License-Identifier: Apache-2.0
// Reads hyperparameters from metadata below "<architecture>.": each call has a key, its range and
// the target. It records the keys that were read, so that a key which changes the computation and
// is unknown to an architecture is refused instead of ignored.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/gguf/metadata.h"

namespace gen::model {

/// All failures are kFormat and name the key, the value and the limit. Threads: one user at a time.
class KeyReader {
 public:
  /// `metadata` must outlive it.
  KeyReader(const gguf::Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  /// A reader of keys that are not below an architecture.
  [[nodiscard]] KeyReader outside() const { return KeyReader(metadata_); }
  /// The last `n` layers are blocks that draft. Lists may end before them: they then have the last
  /// value of the list.
  void set_draft_layers(int32_t n) noexcept { draft_layers_ = static_cast<size_t>(n); }
  /// The whole key, for messages.
  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  [[nodiscard]] bool has(std::string_view name) { return find(name) != nullptr; }
  [[nodiscard]] bool is_array(std::string_view name);

  /// A whole number in [least, most].
  Status integer(std::string_view name, int64_t least, int64_t most, int32_t* out);
  Status integer_or(std::string_view name, int64_t fallback, int64_t least, int64_t most,
                    int32_t* out);
  /// A finite number in [least, most].
  Status number(std::string_view name, double least, double most, double* out);
  Status number_or(std::string_view name, double fallback, double least, double most, double* out);
  Status flag_or(std::string_view name, bool fallback, bool* out);
  Status text_or(std::string_view name, std::string_view fallback, std::string* out);
  /// For each of out's elements a whole number in [least, most]: the same for all, or a list, which
  /// may be longer.
  Status per_layer(std::string_view name, int64_t least, int64_t most, std::vector<int32_t>* out);
  /// The same of finite numbers in [least, most].
  Status numbers_per_layer(std::string_view name, double least, double most,
                           std::vector<double>* out);
  /// A list of truth values, or numbers, one for each of out's elements; it may be longer.
  Status flags(std::string_view name, std::vector<uint8_t>* out);

  /// A list of whole numbers; empty without the key.
  Status list(std::string_view name, std::vector<uint32_t>* out);

  /// kUnsupported naming a key that changes the computation, has a value that does, and was never
  /// asked for.
  Status refuse_unread() const;

 private:
  explicit KeyReader(const gguf::Metadata& metadata) : metadata_(metadata) {}
  const gguf::Value* find(std::string_view name);
  Status in_range(const std::string& shown, int64_t least, int64_t most, uint64_t value,
                  int32_t* out) const;
  /// The values of layers, for those that draft the last one if there are no more.
  template <typename T>
  Status fill_drafts(std::string_view name, size_t layers, std::vector<T>* values) const;

  const gguf::Metadata& metadata_;
  std::string prefix_;
  size_t draft_layers_ = 0;
  std::set<std::string, std::less<>> asked_;  // names without the prefix
};

}  // namespace gen::model
