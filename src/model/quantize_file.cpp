// SPDX-License-Identifier: Apache-2.0
// See quantize_file.h.
#include "model/quantize_file.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/io_error.h"
#include "base/log.h"
#include "base/new_file.h"
#include "base/thread_pool.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/split_name.h"
#include "model/importance_file.h"
#include "model/out_path.h"
#include "model/quantize.h"

namespace gen::model {
namespace {

/// The first layer without a tensor of those that the model says it has; -1 if there is none.
int64_t missing_layer(const gguf::GgufFile& file, int64_t layers) {
  std::set<std::string_view> there;  // "blk.0."
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (name.starts_with("blk.")) there.insert(name.substr(0, name.find('.', 4) + 1));
  }
  if (there.empty()) return -1;  // layers have other names
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (!there.contains("blk." + std::to_string(layer) + ".")) return layer;
  }
  return -1;
}

/// A part that does not say so gives a model that nothing loads. Only a warning: files may be of
/// architectures that are not known here.
void warn_of_parts(const std::string& in, const gguf::GgufFile& file) {
  const auto name = gguf::parse_split_name(in);
  if (name && name->count > 1 && file.parts() == 1) {
    log(LogLevel::kWarning,
        "the file name says part %d of %d, the file that it is whole (split.count): no other part "
        "is read",
        name->number, name->count);
  }
  auto family = file.metadata().get_string("general.architecture");
  if (!family.ok()) return;
  const auto count = [&](const char* key) {
    auto value = file.metadata().get_u32(*family + key);
    return value.ok() ? int64_t{*value} : 0;
  };
  const int64_t layers = count(".block_count");
  // Blocks that draft may be left out.
  const int64_t missing = missing_layer(file, layers - count(".nextn_predict_layers"));
  if (missing < 0) return;
  log(LogLevel::kWarning, "the model has %lld layers, the file nothing of layer %lld: is it whole?",
      static_cast<long long>(layers), static_cast<long long>(missing));
}

}  // namespace

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
  warn_of_parts(in, **file);
  GEN_ASSIGN(const auto pool, ThreadPool::create(0));
  GEN_ASSIGN(NewFile made, NewFile::create(out));
  GEN_TRY(in_file(in, quantize(**file, recipe, options, *pool, progress, made)));
  GEN_TRY((*file)->check_unchanged());
  return made.finish();
}

}  // namespace gen::model
