// SPDX-License-Identifier: Apache-2.0
// What a tensor is for, by its name, where a model of text has no use for it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace gen::gguf {

/// Of "blk.12.attn_q.weight" 12; -1 for a tensor of no block.
inline int64_t block_of(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  int64_t block = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), block);
  return block;
}

/// Whether it belongs to an encoder of pictures or sound, or to what joins one to the model.
inline bool is_media_tensor(std::string_view name) noexcept {
  constexpr std::string_view kPrefixes[] = {"v.",
                                            "a.",
                                            "mm.",
                                            "s.",
                                            "clip.",
                                            "vision.",
                                            "vision_",
                                            "visual.",
                                            "audio.",
                                            "audio_",
                                            "resampler.",
                                            "multi_modal_projector.",
                                            "model.vision",
                                            "model.visual",
                                            "model.audio",
                                            "model.multi_modal_projector.",
                                            "model.embed_vision.",
                                            "model.embed_audio.",
                                            "model.image_newline",
                                            "image_newline"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Whether it belongs to a head that drafts, of a model of so many blocks; those behind them, up to
/// `end`, only draft, and so does what is named so behind them.
inline bool is_draft_tensor(std::string_view name, int64_t blocks, int64_t end) noexcept {
  constexpr std::string_view kPrefixes[] = {"mtp.", "model.mtp.", "nextn.", "eagle.", "medusa"};
  const int64_t block = block_of(name);
  return (block >= blocks && (block < end || name.find(".nextn.") != name.npos)) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Whether it is of the text model itself: of one of its blocks, or before or after them. A model
/// that has no use for such a tensor would compute something else than the file says.
inline bool is_body_tensor(std::string_view name) noexcept {
  constexpr std::string_view kPrefixes[] = {"blk.",       "token_", "output", "position_", "rope_",
                                            "per_layer_", "cls",    "dense",  "enc.",      "dec."};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace gen::gguf
