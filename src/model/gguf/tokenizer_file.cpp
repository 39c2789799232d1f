// SPDX-License-Identifier: Apache-2.0
// See tokenizer_file.h.
#include "model/gguf/tokenizer_file.h"

#include <cinttypes>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "model/gguf/compat/translate.h"
#include "model/gguf/part.h"
#include "model/gguf/split_name.h"
#include "model/gguf/vocab.h"

namespace gen::gguf {

namespace {

/// The path of the first part where `path` is another one of a split model; else "".
Result<std::string> first_part(const std::string& path, const Metadata& metadata) {
  GEN_ASSIGN(const uint32_t number, metadata.get_u32("split.no", 0));
  const std::optional<SplitName> name = parse_split_name(path);
  if (number == 0 || !name.has_value()) return std::string();
  std::string first = split_path(name->prefix, 1, name->count);
  std::error_code ignored;
  if (std::filesystem::exists(first, ignored)) return first;
  return error(Code::kFormat,
               "metadata 'split.no': %" PRIu32
               " (from 0), but part 1, which has the tokenizer, is missing: no file '%.600s'",
               number, first.c_str());
}

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_sentencepiece(
    const std::string& path, std::string_view pre_tokenizer) {
  // Read, not mapped: the checked bytes must be the used ones, even if another process writes to
  // the file meanwhile.
  GEN_ASSIGN(const MappedFile file, MappedFile::open(path, MappedFile::Mode::kRead));
  GEN_TRY(check_no_other_file(file.bytes()));
  auto made = tokenizer::load_sentencepiece_model(file.bytes());
  if (made.ok() && !pre_tokenizer.empty()) return no_pre_tokenizer(pre_tokenizer, "SentencePiece");
  // Such a file begins with its first piece.
  constexpr auto kFirstField = std::byte{0x0A};
  if (made.ok() || file.bytes()[0] == kFirstField) return made;
  return error(Code::kFormat, "magic: neither a GGUF file nor a SentencePiece model");
}

/// Of a file that was made for another engine the metadata is as translated. Some of these files
/// are known by their tensors alone, which may be damaged and of types that nobody knows; what
/// cannot be translated may still have a vocabulary.
Result<std::shared_ptr<const Metadata>> translated_metadata(std::span<const std::byte> bytes) {
  GEN_ASSIGN(const auto metadata, parse_metadata(bytes));
  if (auto part = parse_part(bytes); part.ok()) {
    auto translated = compat::translate(metadata, part.value().tensors);
    if (translated.ok()) return translated.value().metadata;
  }
  std::vector<TensorInfo> none;
  auto translated = compat::translate(metadata, none);
  if (translated.ok()) return translated.value().metadata;
  if (translated.status().code() == Code::kUnsupported) return metadata;
  return translated.status();
}

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_from_gguf(std::span<const std::byte> bytes,
                                                                   std::string_view pre_tokenizer) {
  GEN_ASSIGN(const auto metadata, translated_metadata(bytes));
  GEN_ASSIGN(auto spec, read_vocab(*metadata, pre_tokenizer));
  return tokenizer::create_tokenizer(std::move(spec));
}

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_from_first(
    const std::string& path, std::string_view pre_tokenizer) {
  GEN_ASSIGN(const MappedFile file, MappedFile::open(path));
  GEN_ASSIGN(const auto metadata, parse_metadata(file.bytes()));
  GEN_ASSIGN(const uint32_t number, metadata->get_u32("split.no", 0));
  if (number != 0) {
    return error(Code::kFormat,
                 "metadata 'split.no': %" PRIu32 " (from 0), but the file name says part 1",
                 number);
  }
  return load_from_gguf(file.bytes(), pre_tokenizer);
}

}  // namespace

Result<std::shared_ptr<const tokenizer::Tokenizer>> load_tokenizer_file(
    const std::string& path, std::string_view pre_tokenizer) {
  GEN_ASSIGN(const MappedFile file, MappedFile::open(path));
  if (!begins_as_gguf(file.bytes())) return load_sentencepiece(path, pre_tokenizer);
  GEN_ASSIGN(const auto metadata, parse_metadata(file.bytes()));
  GEN_ASSIGN(const std::string first, first_part(path, *metadata));
  if (first.empty()) return load_from_gguf(file.bytes(), pre_tokenizer);
  auto made = load_from_first(first, pre_tokenizer);
  if (made.ok() || made.status().code() == Code::kIo || first == path) return made;
  return in_part(made.status(), first);
}

}  // namespace gen::gguf
