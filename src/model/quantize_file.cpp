// SPDX-License-Identifier: Apache-2.0
// See quantize_file.h.
#include "model/quantize_file.h"

#include <optional>
#include <utility>

#include "base/io_error.h"
#include "base/new_file.h"
#include "base/thread_pool.h"
#include "model/gguf/gguf_file.h"
#include "model/importance_file.h"
#include "model/out_path.h"
#include "model/quantize.h"

namespace gen::model {

Status quantize_file(const std::string& in, const std::string& out, const QuantRecipe& recipe,
                     const std::string& importance, std::vector<TypePattern> types,
                     const std::function<bool(double)>& progress) {
  GEN_TRY(check_apart(in, out));
  std::optional<Importance> known;
  if (!importance.empty()) {
    GEN_TRY(check_apart(importance, out));
    GEN_ASSIGN(known, read_importance(importance));
  }
  const QuantOptions options = {known ? &*known : nullptr, std::move(types)};
  auto file = gguf::GgufFile::open(in);
  if (!file.ok()) return in_file(in, file.status());
  GEN_ASSIGN(const auto pool, ThreadPool::create(0));
  GEN_ASSIGN(NewFile made, NewFile::create(out));
  GEN_TRY(in_file(in, quantize(**file, recipe, options, *pool, progress, made)));
  GEN_TRY((*file)->check_unchanged());
  return made.finish();
}

}  // namespace gen::model
