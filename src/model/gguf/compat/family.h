// SPDX-License-Identifier: Apache-2.0
// Family: how the files of one family that were made for ollama's own engine differ from those that
// this library reads, which are llama.cpp's. A new one is a file that defines one or more Families,
// declared here and listed in translate.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/gguf/compat/edit.h"

namespace gen::gguf::compat {

/// The file as it is.
struct Source {
  const Metadata& metadata;
  std::span<const TensorInfo> tensors;

  [[nodiscard]] bool has(const char* key) const noexcept { return metadata.has(key); }
  /// Of "" for a key that is missing or of another type.
  [[nodiscard]] std::string text(const char* key) const;
  /// Tensors whose names begin so, or end so.
  [[nodiscard]] bool begins(std::string_view prefix) const noexcept;
  [[nodiscard]] bool ends(std::string_view suffix) const noexcept;
  /// Tensors of pictures or sound beside those of the text.
  [[nodiscard]] bool has_media() const noexcept;
};

struct Change {
  std::string_view from;
  std::string_view to;  // of keys, "": dropped
};

struct Family {
  const char* name;              // general.architecture of the files
  const char* target = nullptr;  // what it becomes, with all keys below it; null: the same
  /// Whether a file of that architecture is one of ollama's; null: all are.
  bool (*recognise)(const Source& file) = nullptr;
  std::span<const Change> keys = {};     // below the architecture (Edit::rename_key)
  std::span<const Change> tensors = {};  // parts of names (Edit::rename_part)
  /// What is more than a name, after the changes above. kUnsupported for a file that cannot be
  /// translated.
  Status (*adjust)(Edit& file) = nullptr;
  bool is_llama_cpps = false;  // llama.cpp has written such files, too
};

extern const Family kGptOss;
extern const Family kOlmo3;
extern const Family kQwen25Vl;
extern const Family kQwen3Vl;
extern const Family kQwen3Next;
extern const Family kQwen35;
extern const Family kQwen35Moe;
extern const Family kMistral3;
extern const Family kLfm2;
extern const Family kLfm2Moe;
extern const Family kLaguna;
extern const Family kEmbeddingGemma;
extern const Family kGemma3;
extern const Family kGemma4;
extern const Family kNemotronHMoe;
extern const Family kNemotronHOmni;
extern const Family kGlmOcr;
extern const Family kLlama3;

// What several families share.

/// Rotation by positions of a picture: `from` becomes rope.dimension_sections, of four numbers.
Status sections_from(Edit& file, std::string_view from);
/// Entries of the vocabulary that token_embd.weight has no row for are dropped.
void cut_vocabulary(Edit& file);
/// kUnsupported: "made for ollama's own engine: " and `why`.
Status refuse(const char* why);

}  // namespace gen::gguf::compat
