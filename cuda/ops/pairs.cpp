// SPDX-License-Identifier: Apache-2.0
// See pairs.h.
#include "cuda/ops/pairs.h"

#include <variant>

#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

/// Enqueues the first operation of a list, or the first two; returns how many.
Result<size_t> run_first(const OpContext& context, std::span<const engine::OpArgs> list) {
  if (context.pairs && list.size() > 1) {
    const auto* const norm = std::get_if<engine::RmsNormArgs>(&list[0]);
    const auto* const linear = std::get_if<engine::LinearArgs>(&list[1]);
    if (norm != nullptr && linear != nullptr && norm_pairs(context, *norm, *linear)) {
      GEN_TRY(run_pair(context, *norm, *linear));
      return size_t{2};
    }
    const auto* const append = std::get_if<engine::RopeAppendArgs>(&list[0]);
    const auto* const attention = std::get_if<engine::AttentionArgs>(&list[1]);
    if (append != nullptr && attention != nullptr && append_pairs(context, *append, *attention)) {
      GEN_TRY(run_pair(context, *append, *attention));
      return size_t{2};
    }
  }
  GEN_TRY(std::visit([&](const auto& of) { return run(context, of); }, list[0]));
  return size_t{1};
}

}  // namespace

Status run_list(const OpContext& context, std::span<const engine::OpArgs> list) {
  while (!list.empty()) {
    GEN_ASSIGN(const size_t n, run_first(context, list));
    list = list.subspan(n);
  }
  return {};
}

}  // namespace gen::cuda
