// SPDX-License-Identifier: Apache-2.0
// See translate.h.
#include "model/gguf/compat/translate.h"

#include <string>

#include "base/log.h"
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

/// The first one that recognises a file is its family.
constexpr const Family* kFamilies[] = {
    &kGptOss,    &kOlmo3,    &kQwen25Vl,     &kQwen3Vl,       &kQwen3Next, &kQwen35,
    &kQwen35Moe, &kMistral3, &kLfm2,         &kLfm2Moe,       &kLaguna,    &kEmbeddingGemma,
    &kGemma3,    &kGemma4,   &kNemotronHMoe, &kNemotronHOmni, &kGlmOcr,    &kLlama3,
};

const Family* family_of(const Metadata& metadata, const std::vector<TensorInfo>& tensors) {
  const Source source = {metadata, tensors};
  const auto name = metadata.get_string("general.architecture", "");
  const auto kind = metadata.get_string("general.type", "");
  if (!name.ok() || !kind.ok()) return nullptr;
  // Adapters and projectors have the architecture of their model.
  if (!kind.value().empty() && kind.value() != "model") return nullptr;
  for (const Family* family : kFamilies) {
    if (name.value() != family->name) continue;
    if (family->recognise == nullptr || family->recognise(source)) return family;
  }
  return nullptr;
}

}  // namespace

Result<Translated> translate(std::shared_ptr<const Metadata> metadata,
                             std::vector<TensorInfo>& tensors) {
  Translated out;
  const Family* const family = family_of(*metadata, tensors);
  if (family == nullptr) {
    out.metadata = std::move(metadata);
    return out;
  }
  Edit edit(*metadata, tensors);
  if (family->target != nullptr) edit.set_architecture(family->target);
  for (const Change& change : family->keys) {
    if (change.to.empty()) {
      edit.drop_key(edit.key(change.from));
    } else {
      edit.rename_key(edit.key(change.from), edit.key(change.to));
    }
  }
  for (const Change& change : family->tensors) edit.rename_part(change.from, change.to);
  if (family->adjust != nullptr) GEN_TRY(family->adjust(edit));
  GEN_ASSIGN(out.metadata, edit.finish(&out.made));
  if (family->is_llama_cpps) {
    log(LogLevel::kInfo, "the file is one of the first of its family (%s): %zu of its keys are set",
        family->name, edit.changed_keys());
    return out;
  }
  out.changed = true;
  log(LogLevel::kInfo,
      "the file was made for ollama's own engine (%s): %zu of its keys and %zu names of tensors "
      "are translated to those of %s",
      family->name, edit.changed_keys(), edit.changed_tensors(), edit.architecture().c_str());
  return out;
}

}  // namespace gen::gguf::compat
