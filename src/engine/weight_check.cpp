// SPDX-License-Identifier: Apache-2.0
// See weight_check.h.
#include "engine/weight_check.h"

#include <cinttypes>
#include <string>

#include "base/checked.h"
#include "quant/format.h"

namespace gen::engine {
namespace {

Status check_source(const WeightSource& source) {
  if (quant::find_format(source.type) == nullptr) {
    return error(Code::kUnsupported, "type %s (%d) of tensor %s has no kernel",
                 dtype_name(source.type), static_cast<int>(source.type), source.name);
  }
  if (source.rows <= 0 || source.cols <= 0) {
    return error(Code::kFormat, "tensor %s of %" PRId64 " by %" PRId64 " is empty", source.name,
                 source.rows, source.cols);
  }
  uint64_t row_bytes = 0;
  if (!dtype_row_bytes(source.type, static_cast<uint64_t>(source.cols), &row_bytes)) {
    return error(Code::kFormat,
                 "rows of tensor %s have %" PRId64 " elements, not whole blocks of %s", source.name,
                 source.cols, dtype_name(source.type));
  }
  if (source.count <= 0 || source.count > INT32_MAX) {
    return error(Code::kFormat, "tensor %s has %" PRId64 " matrices", source.name, source.count);
  }
  uint64_t bytes = 0;
  uint64_t others = 0;  // of a stack
  if (!checked_mul(row_bytes, static_cast<uint64_t>(source.rows), &bytes) ||
      (source.count > 1 && source.pitch < bytes) ||
      !checked_mul(static_cast<uint64_t>(source.count - 1), static_cast<uint64_t>(source.pitch),
                   &others) ||
      !checked_add(bytes, others, &bytes) || bytes != source.data.size()) {
    const std::string stack = source.count > 1 ? std::to_string(source.count) + " of " : "";
    return error(Code::kFormat,
                 "tensor %s has %zu bytes, but %s%" PRId64 " by %" PRId64 " of %s do not",
                 source.name, source.data.size(), stack.c_str(), source.rows, source.cols,
                 dtype_name(source.type));
  }
  return {};
}

}  // namespace

Status check_sources(WeightRole role, std::span<const WeightSource> sources) {
  const size_t expected = role == WeightRole::kGated ? 2 : 1;
  if (sources.empty() || (role != WeightRole::kLinear && sources.size() != expected)) {
    return error(Code::kInternal, "%zu weight sources where %zu belong", sources.size(), expected);
  }
  for (const WeightSource& source : sources) {
    GEN_TRY(check_source(source));
    if (source.count != sources[0].count || (role == WeightRole::kEmbedding && source.count > 1)) {
      return error(Code::kFormat,
                   "tensor %s of %" PRId64 " matrices does not fit tensor %s of %" PRId64,
                   source.name, source.count, sources[0].name,
                   role == WeightRole::kEmbedding ? int64_t{1} : sources[0].count);
    }
    if (source.cols != sources[0].cols ||
        (role == WeightRole::kGated && source.rows != sources[0].rows)) {
      return error(Code::kFormat,
                   "tensor %s of %" PRId64 " by %" PRId64 " does not fit tensor %s of %" PRId64
                   " by %" PRId64,
                   source.name, source.rows, source.cols, sources[0].name, sources[0].rows,
                   sources[0].cols);
    }
  }
  return {};
}

}  // namespace gen::engine
