// SPDX-License-Identifier: Apache-2.0
// Looking tensors up. See weights.h.
#include "model/weights.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "model/gguf/tensor_role.h"
#include "model/shape_text.h"
#include "quant/format.h"
#include "tensor/dtype.h"

namespace gen::model {
namespace {

/// "w" of "w.weight", or nothing.
std::string stem_of(const std::string& name) {
  constexpr std::string_view kSuffix = ".weight";
  return name.ends_with(kSuffix) ? name.substr(0, name.size() - kSuffix.size()) : std::string();
}

/// Only a single number is a scale. Several are something else, such as scales of experts, and are
/// read by name.
const gguf::TensorInfo* scale_tensor(const gguf::GgufFile& file, const std::string& part) {
  const gguf::TensorInfo* const tensor = file.find_tensor(part + ".scale");
  return tensor != nullptr && tensor->elements() == 1 ? tensor : nullptr;
}

/// Tensors of one kind that nobody asked for.
struct Skipped {
  uint64_t count = 0;
  uint64_t bytes = 0;
  const char* first = nullptr;

  void add(const gguf::TensorInfo& tensor) noexcept {
    if (count++ == 0) first = tensor.name.c_str();
    bytes += tensor.data.size();
  }
  void report(LogLevel level, const char* kind) const noexcept {
    if (count == 0) return;
    log(level, "skipped: %" PRIu64 " %s %s, %" PRIu64 " bytes (%s%s)", count,
        count > 1 ? "tensors" : "tensor", kind, bytes, first, count > 1 ? ", ..." : "");
  }
};

}  // namespace

void Weights::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

bool Weights::has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

int64_t Weights::outputs(std::string_view name) const {
  const gguf::TensorInfo* const tensor = file_.find_tensor(name);
  return tensor != nullptr ? tensor->shape[1] : 0;
}

const gguf::TensorInfo* Weights::take(const std::string& name, int64_t cols, int64_t rows,
                                      int64_t count) {
  const gguf::TensorInfo* tensor = file_.find_tensor(name);
  if (tensor == nullptr) {
    fail(error(Code::kFormat, "tensor %s is missing", name.c_str()));
    return nullptr;
  }
  used_.insert(name);
  const std::array<int64_t, 4> wanted = {cols, rows, count, 1};
  if (tensor->shape != wanted) {
    fail(error(Code::kFormat, "tensor %s is %s, expected %s", name.c_str(),
               shape_text(tensor->shape).c_str(), shape_text(wanted).c_str()));
    return nullptr;
  }
  if (quant::find_format(tensor->type) == nullptr) {
    fail(error(Code::kUnsupported, "tensor %s has type %s, which is not supported", name.c_str(),
               dtype_name(tensor->type)));
    return nullptr;
  }
  return tensor;
}

engine::WeightSource Weights::matrix(const std::string& name, int64_t rows, int64_t cols) {
  engine::WeightSource source = stack(name, 1, rows, cols);
  if (!source.data.empty()) source.scale = scale_of(name);
  return source;
}

engine::WeightSource Weights::stack(const std::string& name, int64_t count, int64_t rows,
                                    int64_t cols) {
  engine::WeightSource source;
  source.rows = rows;
  source.cols = cols;
  source.count = count;
  const gguf::TensorInfo* tensor = take(name, cols, rows, count);
  if (tensor == nullptr) return source;
  if (count > 1) source.pitch = tensor->data.size() / static_cast<size_t>(count);
  source.name = tensor->name.c_str();
  source.type = tensor->type;
  source.data = tensor->data;
  source.lasting = lasting_;
  return source;
}

float Weights::scale_of(const std::string& name) {
  const std::string stem = stem_of(name);
  if (stem.empty()) return 1.0F;
  for (const std::string& part : {stem, name}) {
    ignore(part + ".input_scale");
    if (scale_tensor(file_, part) != nullptr) used_.insert(part + ".scale");
  }
  auto scale = scale_beside(file_, name);
  if (scale.ok()) return scale.value();
  fail(scale.status());
  return 1.0F;
}

engine::WeightSource Weights::rows(const std::string& name, int64_t total, int64_t first, int64_t n,
                                   int64_t cols) {
  engine::WeightSource source = stack_rows(name, 1, total, first, n, cols);
  if (!source.data.empty()) source.scale = scale_of(name);
  source.piece_rows = total;
  source.first_row = first;
  return source;
}

engine::WeightSource Weights::rows_of_each(const std::string& name, int64_t count, int64_t total,
                                           int64_t first, int64_t n, int64_t cols) {
  engine::WeightSource source = matrix(name, count * total, cols);
  source.rows = count * n;
  source.pieces = count;
  source.piece_rows = total;
  source.first_row = first;
  if (source.data.empty()) return source;
  const size_t row_bytes = source.data.size() / static_cast<size_t>(count * total);
  std::vector<std::byte>& copy = copies_.emplace_back();
  copy.reserve(static_cast<size_t>(source.rows) * row_bytes);
  for (int64_t i = 0; i < count; ++i) {
    const auto piece = source.data.subspan(static_cast<size_t>(i * total + first) * row_bytes,
                                           static_cast<size_t>(n) * row_bytes);
    copy.insert(copy.end(), piece.begin(), piece.end());
  }
  source.data = copy;
  source.lasting = false;
  return source;
}

engine::WeightSource Weights::stack_rows(const std::string& name, int64_t count, int64_t total,
                                         int64_t first, int64_t n, int64_t cols) {
  engine::WeightSource source = stack(name, count, total, cols);
  source.rows = n;
  source.first_row = first;
  const size_t row_bytes = source.data.size() / static_cast<size_t>(count * total);
  source.data = source.data.subspan(static_cast<size_t>(first) * row_bytes,
                                    static_cast<size_t>((count - 1) * total + n) * row_bytes);
  if (source.data.empty()) source.pitch = 0;
  return source;
}

engine::WeightSource Weights::transposed(const std::string& name, int64_t n) {
  engine::WeightSource source = matrix(name, n, n);
  const std::vector<float> values = table(name, n, n);
  if (values.empty()) return source;
  const std::vector<float> turned = transpose(values, static_cast<size_t>(n));
  const auto bytes = std::as_bytes(std::span(turned));
  source.type = DType::kF32;
  source.data = copies_.emplace_back(bytes.begin(), bytes.end());
  source.lasting = false;
  return source;
}

std::vector<float> Weights::vector(const std::string& name, int64_t size) {
  return table(name, 1, size);
}

std::vector<float> Weights::table(const std::string& name, int64_t rows, int64_t cols) {
  const gguf::TensorInfo* tensor = take(name, cols, rows);
  // After an error, do not allocate memory by the file's sizes.
  if (tensor == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(rows * cols));
  quant::find_format(tensor->type)->decode(tensor->data.data(), values.data(), rows * cols);
  return values;
}

std::vector<float> Weights::optional_vector(const std::string& name, int64_t size, int64_t count) {
  return has(name) ? table(name, count, size) : std::vector<float>();
}

std::vector<float> Weights::optional_finite_vector(const std::string& name, int64_t size) {
  std::vector<float> values = optional_vector(name, size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    fail(error(Code::kFormat, "tensor %s: value %zu is not finite", name.c_str(), i));
    break;
  }
  return values;
}

void Weights::ignore_all(std::string_view prefix) {
  for (const gguf::TensorInfo& tensor : file_.tensors()) {
    if (std::string_view(tensor.name).starts_with(prefix)) ignore(tensor.name);
  }
}

void Weights::ignore_others(std::string_view prefix) {
  for (const gguf::TensorInfo& tensor : file_.tensors()) {
    if (!std::string_view(tensor.name).starts_with(prefix)) ignore(tensor.name);
  }
}

Status Weights::finish(bool may_skip, int64_t blocks, int64_t end) {
  if (!status_.ok()) return status_;
  Skipped media;
  Skipped drafts;
  Skipped unknown;
  for (const gguf::TensorInfo& tensor : file_.tensors()) {
    if (used_.contains(tensor.name) || ignored_.contains(tensor.name)) continue;
    // What stands beside a tensor changes it.
    const std::string stem = tensor.name.substr(0, tensor.name.rfind('.'));
    const bool of_ignored = ignored_.contains(stem) || ignored_.contains(stem + ".weight");
    if (of_ignored && tensor.name.ends_with("scale")) continue;
    const bool own = !may_skip || used_.contains(stem) || used_.contains(stem + ".weight");
    if (!own && gguf::is_media_tensor(tensor.name)) {
      media.add(tensor);
    } else if (!own && gguf::is_draft_tensor(tensor.name, blocks, end)) {
      drafts.add(tensor);
    } else if (own || gguf::is_body_tensor(tensor.name)) {
      return error(Code::kUnsupported, "tensor %s has no place in this architecture",
                   tensor.name.c_str());
    } else {
      unknown.add(tensor);
    }
  }
  media.report(LogLevel::kInfo, "of pictures and sound");
  drafts.report(LogLevel::kInfo, "of a head that drafts, which is not used");
  unknown.report(LogLevel::kWarning, "that no model of this architecture has");
  skipped_bytes_ = media.bytes + drafts.bytes + unknown.bytes;
  return {};
}

Status Weights::finish_model(int64_t blocks, int64_t end) {
  Status status = finish(true, blocks, end);
  if (status.ok() || !file_.is_translated()) return status;
  return error(status.code(), "made for ollama's own engine: %s", status.message());
}

std::vector<std::string> Weights::unused() const {
  std::vector<std::string> names;
  for (const gguf::TensorInfo& tensor : file_.tensors()) {
    if (!used_.contains(tensor.name)) names.push_back(tensor.name);
  }
  return names;
}

Result<float> scale_beside(const gguf::GgufFile& file, const std::string& name) {
  const std::string stem = stem_of(name);
  if (stem.empty()) return 1.0F;
  float scale = 1.0F;
  for (const std::string& part : {stem, name}) {
    const gguf::TensorInfo* const tensor = scale_tensor(file, part);
    if (tensor == nullptr) continue;
    const quant::Format* const format = quant::find_format(tensor->type);
    if (format == nullptr) {
      return error(Code::kUnsupported, "tensor %s has type %s, which is not supported",
                   tensor->name.c_str(), dtype_name(tensor->type));
    }
    float value = 0.0F;
    format->decode(tensor->data.data(), &value, 1);
    if (!std::isnormal(value)) {
      return error(Code::kFormat, "tensor %s is %g, which scales nothing", tensor->name.c_str(),
                   static_cast<double>(value));
    }
    scale *= value;
  }
  return scale;
}

std::vector<float> transpose(std::span<const float> values, size_t n) {
  std::vector<float> turned(values.size());
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) turned[j * n + i] = values[i * n + j];
  }
  return turned;
}

Status check_finite(const gguf::TensorInfo& tensor) {
  const quant::Format* format = quant::find_format(tensor.type);
  const DTypeInfo* info = dtype_info(tensor.type);
  if (format == nullptr || info == nullptr) {
    return error(Code::kUnsupported, "tensor %s has type %s, which is not supported",
                 tensor.name.c_str(), dtype_name(tensor.type));
  }
  // If a scale is not finite, no weight of its block is.
  constexpr int64_t kStep = 4096;
  std::array<float, kStep> values;
  for (int64_t first = 0; first < tensor.elements(); first += kStep) {
    const int64_t count = std::min(kStep, tensor.elements() - first);
    const std::byte* blocks =
        tensor.data.data() + static_cast<size_t>(first / info->block_elements) * info->block_bytes;
    format->decode(blocks, values.data(), count);
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(values[static_cast<size_t>(i)])) {
        return error(Code::kFormat, "tensor %s: weight %lld is not finite", tensor.name.c_str(),
                     static_cast<long long>(first + i));
      }
    }
  }
  return {};
}

}  // namespace gen::model
