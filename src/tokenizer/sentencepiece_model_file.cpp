// SPDX-License-Identifier: Apache-2.0
// Wire format of ModelProto, see sentencepiece_model_file.h. A message is a sequence of fields: a
// key (number * 8 + wire type) and a value; wire types: 0 varint, 1 eight bytes, 2 length and
// bytes, 5 four bytes.
#include "tokenizer/sentencepiece_model_file.h"

#include <bit>
#include <string_view>

#include "tokenizer/vocab_check.h"

namespace gen::tokenizer {
namespace {

enum class Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t value = 0;      // of a varint or four bytes
  std::string_view bytes;  // of kBytes
};

class Reader {
 public:
  Reader(std::string_view text, const char* what) : text_(text), what_(what) {}

  [[nodiscard]] bool at_end() const noexcept { return offset_ == text_.size(); }

  Status next(Field* field) {
    const size_t begin = offset_;
    uint64_t key = 0;
    if (!varint(&key) || key > UINT32_MAX || (key >> 3) == 0) return broken(begin);
    *field = Field{static_cast<uint32_t>(key >> 3), static_cast<Wire>(key & 7), 0, {}};
    uint64_t length = 0;
    switch (field->wire) {
      case Wire::kVarint:
        return varint(&field->value) ? Status() : broken(begin);
      case Wire::kFixed64:
        return take(8, &field->bytes) ? Status() : broken(begin);
      case Wire::kFixed32: {
        if (!take(4, &field->bytes)) return broken(begin);
        for (size_t i = 4; i-- > 0;) {
          field->value = (field->value << 8) | static_cast<unsigned char>(field->bytes[i]);
        }
        return {};
      }
      case Wire::kBytes:
        return varint(&length) && take(length, &field->bytes) ? Status() : broken(begin);
    }
    return broken(begin);
  }

  Status wrong_type(const Field& field) const {
    return error(Code::kFormat, "sentencepiece %s: field %u has wire type %u", what_, field.number,
                 static_cast<unsigned>(field.wire));
  }

 private:
  Status broken(size_t offset) const {
    return error(Code::kFormat, "sentencepiece %s: broken field at byte %zu of %zu", what_, offset,
                 text_.size());
  }
  bool varint(uint64_t* value) noexcept {
    *value = 0;
    for (uint32_t shift = 0; shift < 64 && offset_ < text_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(text_[offset_++]);
      *value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(uint64_t length, std::string_view* bytes) noexcept {
    if (length > text_.size() - offset_) return false;
    *bytes = text_.substr(offset_, static_cast<size_t>(length));
    offset_ += static_cast<size_t>(length);
    return true;
  }

  std::string_view text_;
  const char* what_;
  size_t offset_ = 0;
};

// A field that is set if its number and wire type are the right ones.
Status read_int(const Reader& reader, const Field& field, int32_t* out) {
  if (field.wire != Wire::kVarint) return reader.wrong_type(field);
  *out = static_cast<int32_t>(static_cast<uint32_t>(field.value));
  return {};
}

Status read_bool(const Reader& reader, const Field& field, bool* out) {
  if (field.wire != Wire::kVarint) return reader.wrong_type(field);
  *out = field.value != 0;
  return {};
}

Status read_bytes(const Reader& reader, const Field& field, std::string_view* out) {
  if (field.wire != Wire::kBytes) return reader.wrong_type(field);
  *out = field.bytes;
  return {};
}

Status parse_piece(std::string_view text, SpModel* model) {
  Reader reader(text, "piece");
  std::string_view piece;
  float score = 0;
  int32_t type = 1;
  Field field;
  while (!reader.at_end()) {
    GEN_TRY(reader.next(&field));
    if (field.number == 1) GEN_TRY(read_bytes(reader, field, &piece));
    if (field.number == 2) {
      if (field.wire != Wire::kFixed32) return reader.wrong_type(field);
      score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    }
    if (field.number == 3) GEN_TRY(read_int(reader, field, &type));
  }
  model->pieces.emplace_back(piece);
  model->scores.push_back(score);
  model->types.push_back(static_cast<TokenType>(type));
  return {};
}

Status parse_trainer(std::string_view text, SpModel* model) {
  Reader reader(text, "trainer spec");
  Field field;
  while (!reader.at_end()) {
    GEN_TRY(reader.next(&field));
    int32_t type = 0;
    switch (field.number) {
      case 3:
        GEN_TRY(read_int(reader, field, &type));
        model->model_type = static_cast<SpModelType>(type);
        break;
      case 24:
        GEN_TRY(read_bool(reader, field, &model->treat_whitespace_as_suffix));
        break;
      case 35:
        GEN_TRY(read_bool(reader, field, &model->byte_fallback));
        break;
      case 40:
        GEN_TRY(read_int(reader, field, &model->unk_id));
        break;
      case 41:
        GEN_TRY(read_int(reader, field, &model->bos_id));
        break;
      case 42:
        GEN_TRY(read_int(reader, field, &model->eos_id));
        break;
      case 43:
        GEN_TRY(read_int(reader, field, &model->pad_id));
        break;
      default:
        break;
    }
  }
  return {};
}

Status parse_normalizer(std::string_view text, SpModel* model) {
  Reader reader(text, "normalizer spec");
  Field field;
  std::string_view charsmap;
  while (!reader.at_end()) {
    GEN_TRY(reader.next(&field));
    if (field.number == 2) GEN_TRY(read_bytes(reader, field, &charsmap));
    if (field.number == 3) GEN_TRY(read_bool(reader, field, &model->add_dummy_prefix));
    if (field.number == 4) GEN_TRY(read_bool(reader, field, &model->remove_extra_whitespaces));
    if (field.number == 5) GEN_TRY(read_bool(reader, field, &model->escape_whitespaces));
  }
  model->charsmap.assign(charsmap);
  return {};
}

Status parse_denormalizer(std::string_view text, SpModel* model) {
  Reader reader(text, "denormalizer spec");
  Field field;
  while (!reader.at_end()) {
    GEN_TRY(reader.next(&field));
    if (field.number == 2) model->has_denormalizer = !field.bytes.empty();
  }
  return {};
}

}  // namespace

Result<SpModel> parse_sp_model(std::span<const std::byte> file) {
  SpModel model;
  Reader reader({reinterpret_cast<const char*>(file.data()), file.size()}, "model");
  Field field;
  while (!reader.at_end()) {
    GEN_TRY(reader.next(&field));
    if (field.number < 1 || field.number > 5) continue;
    if (field.wire != Wire::kBytes) return reader.wrong_type(field);
    if (field.number == 1) {
      if (model.pieces.size() == kMaxTokens) {
        return error(Code::kFormat, "sentencepiece model: more than %zu pieces", kMaxTokens);
      }
      GEN_TRY(parse_piece(field.bytes, &model));
    }
    if (field.number == 2) GEN_TRY(parse_trainer(field.bytes, &model));
    if (field.number == 3) GEN_TRY(parse_normalizer(field.bytes, &model));
    if (field.number == 5) GEN_TRY(parse_denormalizer(field.bytes, &model));
  }
  return model;
}

}  // namespace gen::tokenizer
