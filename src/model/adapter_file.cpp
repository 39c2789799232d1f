// SPDX-License-Identifier: Apache-2.0
// Reading adapters. See adapter_file.h.
#include "model/adapter_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "model/gguf/clean_name.h"
#include "model/shape_text.h"
#include "quant/format.h"

namespace gen::model {
namespace {

constexpr const char* kInvocation = "adapter.alora.invocation_tokens";

struct Halves {
  const gguf::TensorInfo* a = nullptr;
  const gguf::TensorInfo* b = nullptr;
};

/// By A.
int64_t rank_of(const gguf::TensorInfo& a, const AdapterTarget& of) {
  return a.shape[of.embedding ? 0 : 1];
}

/// A file's values as floats. The type has a codec.
Result<std::vector<float>> values_of(const gguf::TensorInfo& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  quant::find_format(tensor.type)->decode(tensor.data.data(), values.data(), tensor.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    return error(Code::kFormat, "adapter tensor %s: value %zu is not finite", tensor.name.c_str(),
                 i);
  }
  return values;
}

class AdapterReader {
 public:
  AdapterReader(const gguf::GgufFile& file, const AdapterTargets& targets)
      : metadata_(file.metadata()), file_(file), targets_(targets) {}

  Result<AdapterFile> run() {
    layers_ = metadata_.has("lora.rank") && !metadata_.has("adapter.type");
    GEN_TRY(layers_ ? read_layer_keys() : read_keys());
    GEN_TRY(read_invocation());
    for (const gguf::TensorInfo& tensor : file_.tensors()) GEN_TRY(sort_in(tensor));
    if (halves_.empty()) return error(Code::kFormat, "an adapter without tensors");
    for (const auto& [name, halves] : halves_) GEN_TRY(check(name, halves));
    for (const auto& [name, halves] : halves_) GEN_TRY(read(name, halves));
    add_invocation();
    made_.content = sum_.value();
    return std::move(made_);
  }

 private:
  Status check_architecture(std::string_view found) const {
    if (found == targets_.architecture) return {};
    return error(Code::kUnsupported, "an adapter of architecture \"%.*s\" for a model of \"%s\"",
                 gguf::shown_length(found), found.data(), targets_.architecture.c_str());
  }

  Status read_keys() {
    GEN_ASSIGN(const std::string type, metadata_.get_string("general.type", ""));
    if (type.empty()) {
      return error(Code::kFormat, "no adapter: general.type and lora.rank are absent");
    }
    if (type != "adapter") {
      return error(Code::kFormat,
                   "no adapter: general.type is \"%.*s\" in place of \"adapter\", and there is no "
                   "lora.rank",
                   gguf::shown_length(type), type.c_str());
    }
    GEN_ASSIGN(const std::string kind, metadata_.get_string("adapter.type"));
    if (kind != "lora") {
      return error(Code::kUnsupported, "adapter.type is \"%.*s\" in place of \"lora\"",
                   gguf::shown_length(kind), kind.c_str());
    }
    GEN_ASSIGN(const std::string found, metadata_.get_string("general.architecture"));
    GEN_TRY(check_architecture(found));
    GEN_ASSIGN(alpha_, metadata_.get_f32("adapter.lora.alpha", 0.0F));
    return {};
  }

  Status read_layer_keys() {
    if (metadata_.has("general.architecture")) {
      GEN_ASSIGN(const std::string found, metadata_.get_string("general.architecture"));
      GEN_TRY(check_architecture(found));
    }
    GEN_ASSIGN(rank_, metadata_.get_u32("lora.rank"));
    if (rank_ == 0) return error(Code::kFormat, "lora.rank is 0");
    GEN_ASSIGN(alpha_, metadata_.get_f32("lora.alpha"));
    return {};
  }

  Status read_invocation() {
    if (!metadata_.has(kInvocation)) return {};
    GEN_ASSIGN(const std::vector<uint32_t> tokens, metadata_.get_u32s(kInvocation));
    for (const uint32_t token : tokens) {
      if (std::cmp_greater_equal(token, targets_.vocab_size)) {
        return error(Code::kFormat, "%s: token %u, outside [0, %d)", kInvocation, token,
                     targets_.vocab_size);
      }
      made_.invocation_tokens.push_back(static_cast<int32_t>(token));
    }
    return {};
  }

  /// Finds out which half of which tensor's pair it is.
  Status sort_in(const gguf::TensorInfo& tensor) {
    constexpr std::string_view kA = ".lora_a";
    constexpr std::string_view kB = ".lora_b";
    constexpr std::string_view kLayerA = "lora_a.";
    constexpr std::string_view kLayerB = "lora_b.";
    const std::string_view name = tensor.name;
    const bool a = layers_ ? name.starts_with(kLayerA) : name.ends_with(kA);
    const bool b = layers_ ? name.starts_with(kLayerB) : name.ends_with(kB);
    if (!a && !b) {
      if (targets_.tensors.find(name) != targets_.tensors.end()) {
        return error(Code::kUnsupported,
                     "adapter tensor %s would replace the model's, which is not supported",
                     tensor.name.c_str());
      }
      return error(Code::kUnsupported, "adapter tensor %s is neither %s nor %s",
                   tensor.name.c_str(), layers_ ? "lora_a.*" : "*.lora_a",
                   layers_ ? "lora_b.*" : "*.lora_b");
    }
    std::string of(layers_ ? name.substr(kLayerA.size()) : name.substr(0, name.size() - kA.size()));
    if (layers_ && targets_.tensors.find(of) == targets_.tensors.end() &&
        targets_.tensors.find(of + ".weight") != targets_.tensors.end()) {
      of += ".weight";
    }
    Halves& halves = halves_[std::move(of)];
    const gguf::TensorInfo*& half = a ? halves.a : halves.b;
    if (half != nullptr) {
      return error(Code::kFormat, "adapter tensors %s and %s are the same", half->name.c_str(),
                   tensor.name.c_str());
    }
    half = &tensor;
    return {};
  }

  Status check(const std::string& name, const Halves& of) const {
    const gguf::TensorInfo& one = of.a != nullptr ? *of.a : *of.b;
    if (of.a == nullptr || of.b == nullptr) {
      return error(Code::kFormat, "adapter tensor %s has no lora_%c beside it", one.name.c_str(),
                   of.a == nullptr ? 'a' : 'b');
    }
    const auto target = targets_.tensors.find(name);
    if (target == targets_.tensors.end()) {
      return error(Code::kUnsupported, "adapter tensor %s: the model has no tensor %s",
                   one.name.c_str(), name.c_str());
    }
    if (target->second.refusal != nullptr) {
      return error(Code::kUnsupported, "adapter tensor %s: an adapter cannot add to %s: %s",
                   one.name.c_str(), name.c_str(), target->second.refusal);
    }
    return check_shapes(*of.a, *of.b, target->second);
  }

  Status check_shapes(const gguf::TensorInfo& a, const gguf::TensorInfo& b,
                      const AdapterTarget& of) const {
    const int64_t rank = layers_ ? int64_t{rank_} : rank_of(a, of);
    using Shape = std::array<int64_t, 4>;
    const Shape wanted_a =
        of.embedding ? Shape{rank, of.out, 1, 1} : Shape{of.in, rank, of.matrices, 1};
    const Shape wanted_b =
        of.embedding ? Shape{rank, of.in, 1, 1} : Shape{rank, of.out, of.matrices, 1};
    if (of.embedding && (a.shape != wanted_a || b.shape != wanted_b)) {
      return error(Code::kFormat,
                   "adapter tensors %s and %s are %s and %s, expected rank x %lld and rank x %lld",
                   a.name.c_str(), b.name.c_str(), shape_text(a.shape).c_str(),
                   shape_text(b.shape).c_str(), static_cast<long long>(of.out),
                   static_cast<long long>(of.in));
    }
    if (a.shape != wanted_a || b.shape != wanted_b) {
      return error(Code::kFormat, "adapter tensors %s and %s are %s and %s, expected %s and %s",
                   a.name.c_str(), b.name.c_str(), shape_text(a.shape).c_str(),
                   shape_text(b.shape).c_str(), shape_text(wanted_a).c_str(),
                   shape_text(wanted_b).c_str());
    }
    if (rank > kMaxAdapterRank) {
      return error(Code::kUnsupported, "adapter tensor %s has rank %lld, above %d", a.name.c_str(),
                   static_cast<long long>(rank), kMaxAdapterRank);
    }
    for (const gguf::TensorInfo* half : {&a, &b}) {
      if (quant::find_format(half->type) != nullptr) continue;
      return error(Code::kUnsupported, "adapter tensor %s has type %s, which is not supported",
                   half->name.c_str(), dtype_name(half->type));
    }
    return {};
  }

  Status read(const std::string& name, const Halves& of) {
    const AdapterTarget& target = targets_.tensors.find(name)->second;
    AdapterPair pair;
    pair.tensor = name;
    pair.rank = static_cast<int32_t>(rank_of(*of.a, target));
    pair.matrices = target.matrices;
    pair.embedding = target.embedding;
    // Alpha 0 means none.
    if (alpha_ != 0.0F) pair.factor = double{alpha_} / pair.rank;
    GEN_ASSIGN(pair.a, values_of(*of.a));
    GEN_ASSIGN(pair.b, values_of(*of.b));
    sum_.add_number(name.size());
    sum_.add(std::as_bytes(std::span(name)));
    sum_.add_number(std::bit_cast<uint64_t>(pair.factor));
    for (const gguf::TensorInfo* half : {of.a, of.b}) {
      for (const int64_t n : {half->shape[0], half->shape[1], half->shape[2]}) {
        sum_.add_number(static_cast<uint64_t>(n));
      }
    }
    sum_.add(std::as_bytes(std::span(pair.a)));
    sum_.add(std::as_bytes(std::span(pair.b)));
    made_.pairs.push_back(std::move(pair));
    return {};
  }

  /// They decide which rows the adapter is for.
  void add_invocation() {
    sum_.add_number(made_.invocation_tokens.size());
    for (const int32_t token : made_.invocation_tokens) {
      sum_.add_number(static_cast<uint64_t>(token));
    }
  }

  const gguf::Metadata& metadata_;
  const gguf::GgufFile& file_;
  const AdapterTargets& targets_;
  bool layers_ = false;  // the form whose tensors are named by layer
  uint32_t rank_ = 0;    // of that form
  float alpha_ = 0.0F;
  std::map<std::string, Halves> halves_;  // by the model's tensor
  AdapterFile made_;
  Checksum sum_;
};

/// B's rows that are a product's, in its order, times the factor; those of each expert.
Result<std::vector<float>> rows_of(const AdapterPair& pair, const AdapterRows& of) {
  const int64_t each = of.rows / of.pieces;
  const int64_t total = std::ssize(pair.b) / pair.rank / pair.matrices;  // of a matrix
  const double factor = pair.factor / double{of.scale};
  std::vector<float> rows;
  rows.reserve(static_cast<size_t>(pair.matrices * of.rows * pair.rank));
  for (int64_t i = 0; i < pair.matrices * of.rows; ++i) {
    const int64_t within = i % of.rows;
    const int64_t row =
        i / of.rows * total + within / each * of.piece_rows + of.first_row + within % each;
    for (int64_t r = 0; r < pair.rank; ++r) {
      const double value = pair.b[static_cast<size_t>(row * pair.rank + r)] * factor;
      rows.push_back(static_cast<float>(value));
      if (std::isfinite(rows.back())) continue;
      return error(Code::kFormat, "adapter of tensor %s: %g times the factor %g is too large",
                   pair.tensor.c_str(), value / factor, factor);
    }
  }
  return rows;
}

}  // namespace

Result<AdapterFile> read_adapter(const gguf::GgufFile& file, const AdapterTargets& targets) {
  return AdapterReader(file, targets).run();
}

Result<std::shared_ptr<const graph::Adapter>> adapter_of(const AdapterFile& file,
                                                         const AdapterTargets& targets,
                                                         const graph::Engines& engines,
                                                         std::span<const graph::SiteShape> sites) {
  std::deque<std::vector<float>> cut;
  std::vector<graph::AdapterSite> parts;
  for (const AdapterPair& pair : file.pairs) {
    for (const AdapterRows& of : targets.tensors.find(pair.tensor)->second.products) {
      if (std::none_of(sites.begin(), sites.end(),
                       [&](const graph::SiteShape& shape) { return shape.site == of.site; })) {
        continue;
      }
      GEN_ASSIGN(cut.emplace_back(), rows_of(pair, of));
      parts.push_back({of.site, pair.rank, pair.a, cut.back()});
    }
  }
  return graph::Adapter::create(engines, sites, parts);
}

}  // namespace gen::model
