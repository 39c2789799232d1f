// SPDX-License-Identifier: Apache-2.0
// Qwen3-Next, Qwen 3.5 and 3.6: the name of a bias of the delta net; of the latter two also the
// sections of the rotation, and the block that drafts, which has names of its own and norms without
// the one that is added to their weights elsewhere.
#include <algorithm>

#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {
namespace {

constexpr Change kNames[] = {{".ssm_dt", ".ssm_dt.bias"}};
constexpr std::string_view kDraft = "mtp.";
constexpr std::string_view kDraftLayer = "mtp.layers.";

// Behind "mtp.", and behind the block.
constexpr Change kDraftNames[] = {
    {"fc.weight", "nextn.eh_proj.weight"},
    {"pre_fc_norm_embedding.weight", "nextn.enorm.weight"},
    {"pre_fc_norm_hidden.weight", "nextn.hnorm.weight"},
    {"embed_tokens.weight", "nextn.embed_tokens.weight"},
    {"shared_head.head.weight", "nextn.shared_head_head.weight"},
    {"shared_head.norm.weight", "nextn.shared_head_norm.weight"},
    {"norm.weight", "nextn.shared_head_norm.weight"},
};

bool has_short_bias(const Source& file) { return file.ends(".ssm_dt"); }

bool is_ollamas_35(const Source& file, const std::string& architecture) {
  for (const char* name : {".vision.block_count", ".image_token_id", ".ssm.v_head_reordered",
                           ".rope.mrope_interleaved"}) {
    if (file.has((architecture + name).c_str())) return true;
  }
  return has_short_bias(file) || file.begins(kDraft) || file.has_media();
}
bool is_ollamas_dense(const Source& file) { return is_ollamas_35(file, "qwen35"); }
bool is_ollamas_moe(const Source& file) { return is_ollamas_35(file, "qwen35moe"); }

/// Of "mtp.layers.0.attn_q.weight" what follows the first block's number; "" of other names.
std::string_view in_first_layer(std::string_view name) {
  constexpr std::string_view kFirst = "mtp.layers.0.";
  return name.starts_with(kFirst) ? name.substr(kFirst.size()) : std::string_view();
}

/// The name in the block that drafts, behind "blk.N."; "" if there is none.
std::string_view draft_name(std::string_view name) {
  if (const std::string_view part = in_first_layer(name); !part.empty()) return part;
  for (const Change& each : kDraftNames) {
    if (name.substr(kDraft.size()) == each.from) return each.to;
  }
  return {};
}

bool is_shifted(std::string_view name) {
  return name.ends_with("_norm.weight") || name == "nextn.enorm.weight" ||
         name == "nextn.hnorm.weight";
}

/// A norm's weights, which are copied in memory.
bool can_be_shifted(const TensorInfo& norm) {
  constexpr int64_t kMostWidth = int64_t{1} << 24;
  return norm.type == DType::kF32 && norm.elements() <= kMostWidth;
}

/// One block that drafts becomes the last block. Heads of another form are left, and are then
/// skipped.
Status translate_draft(Edit& file) {
  size_t count = 0;
  for (const TensorInfo& each : file.tensors()) {
    const std::string_view name = each.name;
    if (name.find(".nextn.") != std::string_view::npos) return {};  // it has one already
    if (!name.starts_with(kDraft)) continue;
    ++count;
    const bool other = name.starts_with(kDraftLayer) && in_first_layer(name).empty();
    const std::string_view part = draft_name(name);
    // Experts one by one would have to be put together.
    if (other || part.starts_with("mlp.") || (is_shifted(part) && !can_be_shifted(each))) {
      return {};
    }
  }
  const std::string blocks = file.key("block_count");
  const std::string drafts = file.key("nextn_predict_layers");
  const bool whole = count > 0 && file.tensor("mtp.fc.weight") != nullptr;
  if (!whole || !file.has(blocks) || file.has(drafts)) return {};
  GEN_ASSIGN(const uint32_t n, file.u32(blocks, 0));
  constexpr uint32_t kMostBlocks = 4096;
  if (n >= kMostBlocks) return {};  // refused when it is read
  const std::string block = "blk." + std::to_string(n) + ".";
  for (TensorInfo& each : file.tensors()) {
    if (!std::string_view(each.name).starts_with(kDraft)) continue;
    const std::string part(draft_name(each.name));
    if (part.empty()) continue;
    if (is_shifted(part)) file.add_to(&each, 1.0F);
    file.rename(&each, block + part);
  }
  file.set_u32(blocks, n + 1);
  file.set_u32(drafts, 1);
  return {};
}

/// Blocks that do not attend have 0 heads of keys, which others know by full_attention_interval.
Status join_heads(Edit& file) {
  const std::string key = file.key("attention.head_count_kv");
  const Value* const heads = file.find(key);
  if (heads == nullptr || heads->type() != ValueType::kArray) return {};
  GEN_ASSIGN(const std::vector<int32_t> each, file.i32s(key));
  const auto most = std::max_element(each.begin(), each.end());
  if (most != each.end() && *most > 0) file.set_u32(key, static_cast<uint32_t>(*most));
  return {};
}

Status adjust_35(Edit& file) {
  const Value* const order = file.find(file.key("ssm.v_head_reordered"));
  if (order != nullptr && order->text() == "false") {
    return refuse("heads of values are in another order (ssm.v_head_reordered is false)");
  }
  for (const char* name : {"mrope_sections", "rope.mrope_section"}) {
    GEN_TRY(sections_from(file, name));
  }
  // Models of experts alone have no other width.
  const std::string width = file.key("feed_forward_length");
  const Value* const stated = file.find(width);
  if (stated != nullptr && stated->text() == "0") file.drop_key(width);
  GEN_TRY(join_heads(file));
  return translate_draft(file);
}

}  // namespace

constinit const Family kQwen3Next = {
    .name = "qwen3next", .recognise = has_short_bias, .tensors = kNames, .adjust = join_heads};
constinit const Family kQwen35 = {
    .name = "qwen35", .recognise = is_ollamas_dense, .tensors = kNames, .adjust = adjust_35};
constinit const Family kQwen35Moe = {
    .name = "qwen35moe", .recognise = is_ollamas_moe, .tensors = kNames, .adjust = adjust_35};

}  // namespace gen::gguf::compat
