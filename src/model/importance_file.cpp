// SPDX-License-Identifier: Apache-2.0
// See importance_file.h.
#include "model/importance_file.h"

#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io_error.h"
#include "base/mapped_file.h"
#include "base/to_size.h"
#include "model/gguf/byte_reader.h"
#include "model/gguf/clean_name.h"
#include "model/gguf/gguf_file.h"
#include "model/importance_form.h"

namespace gen::model {
namespace {

constexpr size_t kMaxEntryName = 64;  // of a tensor, as in GGUF files

using MeansByName = std::map<std::string, std::vector<float>>;

std::vector<float> as_floats(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Status check_sums(const std::string& name, std::span<const float> sums) {
  for (size_t i = 0; i < sums.size(); ++i) {
    if (std::isfinite(sums[i]) && sums[i] >= 0) continue;
    return error(Code::kFormat, "tensor %s: value %zu is %g, a sum of squares is not", name.c_str(),
                 i, static_cast<double>(sums[i]));
  }
  return {};
}

Result<std::vector<float>> floats_in(const gguf::TensorInfo& tensor) {
  if (tensor.type == DType::kF32) return as_floats(tensor.data);
  return error(Code::kFormat, "tensor %s has type %s, not F32", tensor.name.c_str(),
               dtype_name(tensor.type));
}

/// Turns sums into means.
Status divide(const std::string& name, std::span<const float> counts, std::vector<float>* sums) {
  if (counts.empty() || sums->empty() || sums->size() % counts.size() != 0) {
    return error(Code::kFormat, "tensor %s: %zu sums for %zu counts", name.c_str(), sums->size(),
                 counts.size());
  }
  GEN_TRY(check_sums(name, *sums));
  const size_t cols = sums->size() / counts.size();
  for (size_t i = 0; i < counts.size(); ++i) {
    const float count = counts[i];
    if (!std::isfinite(count) || count < 0 || count != std::floor(count)) {
      return error(Code::kFormat, "tensor %s: count %zu is %g, not a number of rows", name.c_str(),
                   i, static_cast<double>(count));
    }
    for (float& sum : std::span(*sums).subspan(i * cols, cols)) {
      sum = count > 0 ? sum / count : 1.0F;
    }
  }
  return {};
}

Result<Importance> from_gguf(const gguf::GgufFile& file) {
  GEN_ASSIGN(const std::string type, file.metadata().get_string("general.type", ""));
  if (type != kImportanceType && !file.metadata().has(kDatasetsKey)) {
    return Status(Code::kFormat, "not an importance matrix: general.type is not \"imatrix\"");
  }
  MeansByName means;
  for (const gguf::TensorInfo& squares : file.tensors()) {
    const std::string_view whole = squares.name;
    if (whole.ends_with(kCountsSuffix)) {
      const auto stem = whole.substr(0, whole.size() - kCountsSuffix.size());
      if (file.find_tensor(std::string(stem).append(kSquaresSuffix)) == nullptr) {
        return error(Code::kFormat, "tensor %s has no sums beside it", squares.name.c_str());
      }
    }
    if (!whole.ends_with(kSquaresSuffix)) continue;
    const std::string name(whole.substr(0, whole.size() - kSquaresSuffix.size()));
    const gguf::TensorInfo* const counts = file.find_tensor(name + std::string(kCountsSuffix));
    if (counts == nullptr) {
      return error(Code::kFormat, "tensor %s has no counts beside it", squares.name.c_str());
    }
    if (name.empty()) return Status(Code::kFormat, "sums of a tensor without a name");
    GEN_ASSIGN(const std::vector<float> rows, floats_in(*counts));
    GEN_ASSIGN(std::vector<float> sums, floats_in(squares));
    GEN_TRY(divide(name, rows, &sums));
    means.emplace(name, std::move(sums));
  }
  if (means.empty()) return Status(Code::kFormat, "the importance matrix is empty");
  return Importance(std::move(means));
}

/// The older form.
class EntryReader {
 public:
  explicit EntryReader(std::span<const std::byte> bytes) : in_(bytes) {}

  Result<Importance> read() {
    GEN_ASSIGN(const size_t n, number("the number of entries"));
    if (n == 0) return Status(Code::kFormat, "the importance matrix is empty");
    MeansByName means;
    for (size_t i = 0; i < n; ++i) GEN_TRY(read_entry(i, &means));
    if (in_.remaining() > 0) GEN_TRY(number("the number of windows").status());
    if (in_.remaining() > 0) GEN_TRY(text("the text's name").status());
    if (in_.remaining() > 0) {
      return error(Code::kFormat, "not an importance matrix: %llu bytes after its end",
                   static_cast<unsigned long long>(in_.remaining()));
    }
    return Importance(std::move(means));
  }

 private:
  Status read_entry(size_t i, MeansByName* means) {
    GEN_ASSIGN(std::string name, text("a name"));
    has_name_ = true;
    if (name.empty() || name.size() > kMaxEntryName || !gguf::is_clean_name(name)) {
      return error(Code::kFormat, "not an importance matrix: entry %zu has no name of a tensor", i);
    }
    GEN_ASSIGN(const size_t calls, number("a number of calls"));
    GEN_ASSIGN(const size_t n, number("a number of values"));
    if (n == 0 || n > in_.remaining() / sizeof(float)) {
      return error(Code::kFormat, "tensor %s: %zu values in %llu bytes", name.c_str(), n,
                   static_cast<unsigned long long>(in_.remaining()));
    }
    std::vector<float> values = as_floats({in_.cursor(), n * sizeof(float)});
    static_cast<void>(in_.skip(n * sizeof(float)));
    GEN_TRY(check_sums(name, values));
    if (calls > 0) {
      for (float& value : values) value /= static_cast<float>(calls);
    }
    if (!means->emplace(name, std::move(values)).second) {
      return error(Code::kFormat, "tensor %s comes twice", name.c_str());
    }
    return {};
  }

  Result<size_t> number(const char* what) {
    int32_t value = 0;
    if (!in_.take(&value)) {
      return error(Code::kFormat, "not an importance matrix: it ends before %s", what);
    }
    if (value >= 0) return to_size(value);
    return error(Code::kFormat, "not an importance matrix: %s is %d", what, value);
  }

  Result<std::string> text(const char* what) {
    GEN_ASSIGN(const size_t length, number(what));
    const auto* const at = reinterpret_cast<const char*>(in_.cursor());
    if (in_.skip(length)) return std::string(at, length);
    // Another file, as of text: its size and such a length tell nobody anything.
    if (!has_name_) return Status(Code::kFormat, "not an importance matrix");
    return error(Code::kFormat, "not an importance matrix: it ends within %s of %zu bytes", what,
                 length);
  }

  gguf::ByteReader in_;
  bool has_name_ = false;  // of the first entry
};

}  // namespace

Result<Importance> parse_importance(std::span<const std::byte> bytes) {
  if (!gguf::begins_as_gguf(bytes)) return EntryReader(bytes).read();
  GEN_ASSIGN(const auto file, gguf::GgufFile::parse(bytes));
  return from_gguf(*file);
}

Result<Importance> read_importance(const std::string& path) {
  GEN_ASSIGN(const MappedFile file, MappedFile::open(path));
  auto read = parse_importance(file.bytes());
  if (!read.ok()) return in_file(path, read.status());
  GEN_TRY(file.check_unchanged());
  return read;
}

}  // namespace gen::model
