// SPDX-License-Identifier: Apache-2.0
// See quantize.h. Tensors are divided into pieces of a million weights, each decoded, checked and
// encoded by all threads, then written.
#include "model/quantize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "model/gguf/gguf_writer.h"
#include "model/gguf/tensor_role.h"
#include "model/importance_check.h"
#include "model/importance_form.h"
#include "model/tensor_scale.h"
#include "quant/format.h"

namespace gen::model {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // weights; a multiple of every block
constexpr int64_t kGrain = 256;               // weights: the same
constexpr uint32_t kQuantizationVersion = 2;

bool says_split(std::string_view key) noexcept { return key.starts_with("split."); }
bool is_set_anew(std::string_view key) noexcept {
  return key == "general.file_type" || key == "general.quantization_version";
}

/// Size of `elements` weights, which are whole blocks.
size_t bytes_of(DType type, int64_t elements) noexcept {
  const DTypeInfo* info = dtype_info(type);
  return static_cast<size_t>(elements / info->block_elements) * info->block_bytes;
}

/// The largest magnitude that a changed weight may have. Blocks have scales in binary16, except
/// those of MXFP4: weights within its range never exceed them.
float largest_of(DType type) noexcept {
  const bool wide = type == DType::kF32 || type == DType::kBF16 || type == DType::kMXFP4;
  return wide ? std::numeric_limits<float>::max() : 65504.0F;
}

class Quantizer {
 public:
  /// `recipe` and `change` may be null.
  Quantizer(const gguf::GgufFile& file, const QuantRecipe* recipe, const QuantOptions& options,
            const WeightChange* change, ThreadPool& pool,
            const std::function<bool(double)>& progress, NewFile& out)
      : file_(file),
        recipe_(recipe),
        options_(options),
        change_(change),
        pool_(pool),
        progress_(progress),
        out_(out) {
    if (recipe != nullptr) chooser_.emplace(*recipe, options, file);
  }

  Status run() {
    if (chooser_) GEN_TRY(chooser_->check_patterns());
    if (options_.importance != nullptr) GEN_TRY(check_importance(*options_.importance, file_));
    GEN_ASSIGN(const uint32_t alignment,
               file_.metadata().get_u32("general.alignment", gguf::kDefaultAlignment));
    gguf::HeaderWriter header(alignment);
    for (const gguf::Value& entry : file_.metadata().entries()) {
      if (says_split(entry.key())) continue;
      if (recipe_ == nullptr || !is_set_anew(entry.key())) header.copy(entry);
    }
    if (recipe_ != nullptr) {
      header.set_u32("general.file_type", recipe_->file_type);
      header.set_u32("general.quantization_version", kQuantizationVersion);
    }
    std::vector<DType> types;
    for (const gguf::TensorInfo& tensor : file_.tensors()) {
      types.push_back(chooser_ ? chooser_->choose(tensor) : tensor.type);
      GEN_TRY(check_type(tensor, types.back()));
      total_ += tensor.data.size();
      if (may_be_scaled(file_, tensor, types.back())) total_ += tensor.data.size();
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const gguf::TensorInfo& tensor = file_.tensors()[i];
      GEN_ASSIGN(std::vector<float> scales, find_scales(tensor, types[i]));
      bool fits = header.add_tensor(tensor, types[i]);
      const gguf::TensorInfo* const known = known_scale(file_, tensor);
      if (!scales.empty() && known != nullptr) {
        rescaled_[known->name] = scales;
      } else if (!scales.empty()) {
        fits = fits && header.add_tensor(scale_info(tensor, scales.size()), DType::kF32);
      }
      if (!fits) return error(Code::kFormat, "tensor %s is too large", tensor.name.c_str());
      scales_.push_back(std::move(scales));
    }
    if (chooser_) warn(types);
    const std::string before_data = header.finish();
    GEN_TRY(out_.write(std::as_bytes(std::span(before_data))));
    GEN_TRY(report());
    for (size_t i = 0; i < types.size(); ++i) {
      const gguf::TensorInfo& tensor = file_.tensors()[i];
      size_t bytes = tensor.data.size();
      const auto rescaled = rescaled_.find(tensor.name);
      if (rescaled != rescaled_.end()) {
        GEN_TRY(rescale(tensor, rescaled->second));
      } else if (types[i] == tensor.type && !changes(tensor)) {
        GEN_TRY(copy(tensor));
      } else {
        GEN_TRY(encode(tensor, types[i], scales_[i]));
        bytes = bytes_of(types[i], tensor.elements());
      }
      GEN_TRY(pad(header, bytes));
      if (!scales_[i].empty() && known_scale(file_, tensor) == nullptr) {
        const auto factors = std::as_bytes(std::span(scales_[i]));
        GEN_TRY(out_.write(factors));
        GEN_TRY(pad(header, factors.size()));
      }
      file_.drop_pages(tensor);
    }
    return {};
  }

 private:
  [[nodiscard]] bool changes(const gguf::TensorInfo& tensor) const noexcept {
    return change_ != nullptr && change_->changes(tensor);
  }

  /// What is not copied is decoded.
  [[nodiscard]] Status check_type(const gguf::TensorInfo& tensor, DType type) const {
    const bool changed = changes(tensor);
    const bool stays =
        recipe_ == nullptr || (gguf::is_media_tensor(tensor.name) && type == tensor.type);
    if (stays && !changed) return {};
    switch (tensor.type) {
      case DType::kI8:
      case DType::kI16:
      case DType::kI32:
      case DType::kI64:
      case DType::kF64:
        if (!changed) return {};
        break;
      default:
        break;
    }
    if (quant::find_format(tensor.type) != nullptr) return {};
    return error(Code::kUnsupported, "tensor %s has type %s, which is not supported",
                 tensor.name.c_str(), dtype_name(tensor.type));
  }

  void warn(const std::vector<DType>& types) const {
    for (const std::string& line : chooser_->misfits()) log(LogLevel::kWarning, "%s", line.c_str());
    for (const std::string& line : importance_lines(options_.importance, file_, types)) {
      log(LogLevel::kWarning, "%s", line.c_str());
    }
    if (options_.importance != nullptr) {
      const UnusedImportance unused = unused_importance(*options_.importance, file_, types);
      const LogLevel level = unused.is_all ? LogLevel::kWarning : LogLevel::kInfo;
      if (!unused.line.empty()) log(level, "%s", unused.line.c_str());
    }
    tell_media(types);
  }

  /// A file of nothing else, a projector, is written as it was.
  void tell_media(const std::vector<DType>& types) const {
    size_t count = 0;
    const gguf::TensorInfo* first = nullptr;
    for (size_t i = 0; i < types.size(); ++i) {
      const gguf::TensorInfo& tensor = file_.tensors()[i];
      if (types[i] != tensor.type || !gguf::is_media_tensor(tensor.name)) continue;
      if (count++ == 0) first = &tensor;
    }
    if (count == 0) return;
    const bool is_all = count == types.size();
    log(is_all ? LogLevel::kWarning : LogLevel::kInfo,
        "%s%zu tensors of pictures and sound keep their types (%s%s)",
        is_all ? "nothing is quantised: " : "", count, first->name.c_str(),
        count > 1 ? ", ..." : "");
  }

  Status report() {
    const double share =
        total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 1.0;
    if (!progress_ || progress_(share)) return {};
    return error(Code::kCancelled, "cancelled while %s",
                 change_ != nullptr ? change_->doing() : "quantising");
  }

  Status advance(size_t bytes_read) {
    done_ += bytes_read;
    return report();
  }

  /// Encodes weights from `first` on, row by row with the importance of their columns.
  static void encode_rows(const quant::Format& to, const gguf::TensorInfo& tensor,
                          const std::vector<float>& importance, int64_t first,
                          std::span<const float> weights, std::byte* blocks) {
    const int64_t columns = tensor.shape[0];
    const int64_t matrix = columns * tensor.shape[1];
    while (!weights.empty()) {
      const int64_t column = first % columns;
      const int64_t n = std::min(columns - column, std::ssize(weights));
      to.encode_by(weights.data(), importance.data() + first / matrix * columns + column, blocks,
                   n);
      weights = weights.subspan(static_cast<size_t>(n));
      blocks += bytes_of(to.type, n);
      first += n;
    }
  }

  Status pad(const gguf::HeaderWriter& header, size_t bytes) {
    return out_.write(std::vector<std::byte>(static_cast<size_t>(header.padding(bytes))));
  }

  Status copy(const gguf::TensorInfo& tensor) {
    constexpr size_t kStep = size_t{1} << 22;
    for (size_t at = 0; at < tensor.data.size(); at += kStep) {
      const auto piece = tensor.data.subspan(at, std::min(kStep, tensor.data.size() - at));
      GEN_TRY(out_.write(piece));
      GEN_TRY(advance(piece.size()));
    }
    return {};
  }

  /// Decodes weights [first, first + count) and changes them.
  Status read(const gguf::TensorInfo& tensor, DType type, int64_t first, int64_t count) {
    const quant::Format& from = *quant::find_format(tensor.type);
    const WeightChange* const change = changes(tensor) ? change_ : nullptr;
    const float largest = change != nullptr ? largest_of(type) : std::numeric_limits<float>::max();
    weights_.resize(static_cast<size_t>(count));
    const std::byte* const source = tensor.data.data() + bytes_of(tensor.type, first);
    std::atomic<int64_t> bad{tensor.elements()};
    pool_.share([&](int32_t part, int32_t shares) {
      const IndexRange range = split_range(count, kGrain, shares, part);
      const int64_t n = range.end - range.begin;
      if (n <= 0) return;
      float* weights = weights_.data() + range.begin;
      from.decode(source + bytes_of(tensor.type, range.begin), weights, n);
      if (change != nullptr) {
        change->apply(tensor, first + range.begin, {weights, static_cast<size_t>(n)});
      }
      for (int64_t i = 0; i < n; ++i) {
        if (std::abs(weights[i]) <= largest) continue;  // no NaN is
        int64_t known = bad.load();
        const int64_t index = first + range.begin + i;
        while (index < known && !bad.compare_exchange_weak(known, index)) {
        }
        return;
      }
    });
    const int64_t index = bad.load();
    if (index == tensor.elements()) return {};
    const float value = weights_[static_cast<size_t>(index - first)];
    if (std::isfinite(value)) {
      return error(Code::kFormat, "tensor %s: weight %lld becomes %g by %s, too large for %s",
                   tensor.name.c_str(), static_cast<long long>(index), static_cast<double>(value),
                   change->doing(), dtype_name(type));
    }
    return error(Code::kFormat, "tensor %s: weight %lld is not finite%s%s", tensor.name.c_str(),
                 static_cast<long long>(index), change != nullptr ? " after " : "",
                 change != nullptr ? change->doing() : "");
  }

  /// What its matrices are to be divided by; empty for nothing.
  Result<std::vector<float>> find_scales(const gguf::TensorInfo& tensor, DType type) {
    if (!may_be_scaled(file_, tensor, type)) return std::vector<float>();
    WeightSizes sizes(tensor);
    for (int64_t first = 0; first < tensor.elements(); first += kPiece) {
      const int64_t count = std::min(kPiece, tensor.elements() - first);
      GEN_TRY(read(tensor, type, first, count));
      sizes.add(first, weights_);
      GEN_TRY(advance(bytes_of(tensor.type, count)));
    }
    file_.drop_pages(tensor);
    return sizes.scales();
  }

  /// A scale that the file has already, times that of its matrix.
  Status rescale(const gguf::TensorInfo& tensor, const std::vector<float>& scales) {
    GEN_TRY(read(tensor, DType::kF32, 0, tensor.elements()));
    for (size_t i = 0; i < scales.size(); ++i) weights_[i] *= scales[i];
    GEN_TRY(out_.write(std::as_bytes(std::span(weights_))));
    return advance(tensor.data.size());
  }

  Status encode(const gguf::TensorInfo& tensor, DType type, const std::vector<float>& scales) {
    const quant::Format& to = *quant::find_format(type);
    const int64_t elements = tensor.elements();
    const int64_t matrix = tensor.shape[0] * tensor.shape[1];
    const std::vector<float>* const importance =
        options_.importance != nullptr ? options_.importance->find(tensor.name) : nullptr;
    for (int64_t first = 0; first < elements; first += kPiece) {
      const int64_t count = std::min(kPiece, elements - first);
      GEN_TRY(read(tensor, type, first, count));
      blocks_.resize(bytes_of(type, count));
      pool_.share([&](int32_t part, int32_t shares) {
        const IndexRange range = split_range(count, kGrain, shares, part);
        const int64_t n = range.end - range.begin;
        if (n <= 0) return;
        float* const weights = weights_.data() + range.begin;
        for (int64_t i = 0; i < n && !scales.empty(); ++i) {
          weights[i] /= scales[static_cast<size_t>((first + range.begin + i) / matrix)];
        }
        std::byte* const blocks = blocks_.data() + bytes_of(type, range.begin);
        if (importance == nullptr) {
          to.encode(weights, blocks, n);
        } else {
          encode_rows(to, tensor, *importance, first + range.begin,
                      {weights, static_cast<size_t>(n)}, blocks);
        }
      });
      GEN_TRY(out_.write(blocks_));
      GEN_TRY(advance(bytes_of(tensor.type, count)));
    }
    return {};
  }

  const gguf::GgufFile& file_;
  const QuantRecipe* recipe_;  // null: tensors keep their types
  const QuantOptions& options_;
  const WeightChange* change_;          // null: and their weights
  std::optional<TypeChooser> chooser_;  // of the recipe
  ThreadPool& pool_;
  const std::function<bool(double)>& progress_;
  NewFile& out_;
  uint64_t total_ = 0;  // size of all tensors in the source file
  uint64_t done_ = 0;
  std::vector<float> weights_;
  std::vector<std::byte> blocks_;
  std::vector<std::vector<float>> scales_;                           // [tensors], see find_scales()
  std::map<std::string, std::vector<float>, std::less<>> rescaled_;  // by the name of a scale
};

}  // namespace

Status quantize(const gguf::GgufFile& file, const QuantRecipe& recipe, const QuantOptions& options,
                ThreadPool& pool, const std::function<bool(double)>& progress, NewFile& out) {
  const auto read = file.metadata().get_string("general.type", "");
  const std::string kind = read.ok() ? read.value() : std::string();
  if (kind == "adapter" || kind == kImportanceType) {
    return error(Code::kUnsupported,
                 "metadata 'general.type': \"%s\"; the weights of models are quantised",
                 kind.c_str());
  }
  return Quantizer(file, &recipe, options, nullptr, pool, progress, out).run();
}

Status write_changed(const gguf::GgufFile& file, const QuantRecipe* recipe,
                     const WeightChange& change, ThreadPool& pool,
                     const std::function<bool(double)>& progress, NewFile& out) {
  const QuantOptions options;
  return Quantizer(file, recipe, options, &change, pool, progress, out).run();
}

}  // namespace gen::model
