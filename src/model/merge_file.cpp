// SPDX-License-Identifier: Apache-2.0
// See merge_file.h.
#include "model/merge_file.h"

#include <cmath>
#include <utility>

#include "base/io_error.h"
#include "base/new_file.h"
#include "base/thread_pool.h"
#include "model/adapter_file.h"
#include "model/adapter_targets.h"
#include "model/gguf/gguf_file.h"
#include "model/merge.h"
#include "model/out_path.h"

namespace gen::model {
namespace {

/// The adapter's file is open only here.
Result<AdapterFile> read(const std::string& path, const AdapterTargets& targets) {
  auto file = gguf::GgufFile::open(path);
  if (!file.ok()) return in_file(path, file.status());
  auto adapter = read_adapter(**file, targets);
  if (!adapter.ok()) return in_file(path, adapter.status());
  if (!adapter->invocation_tokens.empty()) {
    return in_file(path, error(Code::kUnsupported,
                               "adapter.alora.invocation_tokens activate it, so it cannot be "
                               "merged"));
  }
  GEN_TRY((*file)->check_unchanged());
  return adapter;
}

}  // namespace

Status merge_file(const std::string& model, const std::string& adapter, float scale,
                  const std::string& out, const QuantRecipe* recipe,
                  const std::function<bool(double)>& progress) {
  if (!std::isfinite(scale)) {
    return error(Code::kInvalidArgument, "scale %g is not finite", static_cast<double>(scale));
  }
  GEN_TRY(check_apart(model, out));
  GEN_TRY(check_apart(adapter, out));
  auto file = gguf::GgufFile::open(model);
  if (!file.ok()) return in_file(model, file.status());
  auto targets = merge_targets(**file);
  if (!targets.ok()) return in_file(model, targets.status());
  GEN_ASSIGN(AdapterFile read_in, read(adapter, *targets));
  GEN_ASSIGN(const auto pool, ThreadPool::create(0));
  GEN_ASSIGN(NewFile made, NewFile::create(out));
  GEN_TRY(in_file(model, merge(**file, std::move(read_in), scale, recipe, *pool, progress, made)));
  GEN_TRY((*file)->check_unchanged());
  return made.finish();
}

}  // namespace gen::model
