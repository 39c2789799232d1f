// SPDX-License-Identifier: Apache-2.0
// The recipes, which follow those of llama.cpp. See quant_recipe.h.
#include "model/quant_recipe.h"

#include <algorithm>
#include <charconv>

#include "model/gguf/tensor_role.h"
#include "quant/format.h"

namespace gen::model {
namespace {

// The files of this room are compiled together, hence a namespace for short names.
namespace rows {

using enum gen::DType;
using Where = RuleLayers;

constexpr const char* kV = ".attn_v.";
constexpr const char* kK = ".attn_k.";
constexpr const char* kQ = ".attn_q.";
constexpr const char* kQkv = ".attn_qkv.";
constexpr const char* kOut = ".attn_output.";
constexpr const char* kDown = ".ffn_down";  // and those of experts, as the next two
constexpr const char* kUp = ".ffn_up";
constexpr const char* kGate = ".ffn_gate";
constexpr const char* kExperts = "_exps.";

constexpr RecipeRule kQ5KM[] = {
    {kV, Where::kMore, kQ6_K}, {kDown, Where::kMore, kQ6_K}, {kQkv, Where::kAll, kQ6_K}};
constexpr RecipeRule kQ4KM[] = {{kV, Where::kMore, kQ6_K},
                                {kDown, Where::kMore, kQ6_K},
                                {kOut, Where::kEight, kQ5_K},
                                {kQkv, Where::kAll, kQ5_K}};
constexpr RecipeRule kQ4KS[] = {{kV, Where::kFirstFour, kQ5_K},
                                {kDown, Where::kFirstEighth, kQ5_K},
                                {kOut, Where::kEight, kQ5_K}};
constexpr RecipeRule kQ50[] = {{kDown, Where::kKnownFirstEighth, kQ5_1}};
constexpr RecipeRule kQ40[] = {{kDown, Where::kKnownFirstEighth, kQ4_1}};
constexpr RecipeRule kIq4[] = {{kV, Where::kShared, kQ5_K},
                               {kDown, Where::kUnknownFirstEighth, kQ5_K},
                               {kOut, Where::kEight, kQ5_K}};
constexpr RecipeRule kMxfp4[] = {{kExperts, Where::kAll, kMXFP4}};
constexpr RecipeRule kQ3KL[] = {{kV, Where::kAll, kQ5_K},
                                {kDown, Where::kAll, kQ5_K},
                                {kOut, Where::kEight, kQ3_K},
                                {kOut, Where::kAll, kQ5_K},
                                {kQkv, Where::kAll, kQ4_K}};
constexpr RecipeRule kQ3KM[] = {{kV, Where::kFirstTwo, kQ5_K},
                                {kV, Where::kAll, kQ4_K},
                                {kDown, Where::kFirstSixteenth, kQ5_K},
                                {kDown, Where::kAll, kQ4_K},
                                {kOut, Where::kEight, kQ5_K},
                                {kOut, Where::kAll, kQ4_K},
                                {kQkv, Where::kAll, kQ4_K}};
constexpr RecipeRule kQ3KS[] = {{kOut, Where::kEight, kQ5_K}};
constexpr RecipeRule kIq3M[] = {
    {kV, Where::kAll, kQ4_K},          {kDown, Where::kFirstEighth, kQ4_K},
    {kDown, Where::kEightMore, kQ4_K}, {kOut, Where::kEight, kQ5_K},
    {kOut, Where::kAll, kQ4_K},        {kQkv, Where::kAll, kQ4_K}};
constexpr RecipeRule kIq3S[] = {{kV, Where::kShared, kQ4_K}, {kOut, Where::kEight, kQ5_K}};
constexpr RecipeRule kIq3Xs[] = {{kV, Where::kShared, kQ4_K},     {kK, Where::kAll, kIQ3_XXS},
                                 {kQ, Where::kAll, kIQ3_XXS},     {kGate, Where::kMiddle, kIQ3_XXS},
                                 {kUp, Where::kMiddle, kIQ3_XXS}, {kOut, Where::kEight, kQ5_K}};
constexpr RecipeRule kIq3Xxs[] = {
    {kV, Where::kShared, kQ4_K},         {kV, Where::kImportance, kIQ3_XXS},
    {kV, Where::kAll, kIQ3_S},           {kK, Where::kAll, kIQ2_S},
    {kQ, Where::kAll, kIQ2_S},           {kDown, Where::kImportance, kIQ3_XXS},
    {kDown, Where::kFirstEighth, kQ4_K}, {kDown, Where::kAll, kQ3_K},
    {kOut, Where::kEight, kQ5_K},        {kOut, Where::kAll, kIQ3_S}};
constexpr RecipeRule kQ2K[] = {{kV, Where::kShared, kQ4_K},
                               {kV, Where::kAll, kQ3_K},
                               {kDown, Where::kAll, kQ3_K},
                               {kOut, Where::kEight, kQ5_K},
                               {kOut, Where::kAll, kQ3_K}};
constexpr RecipeRule kQ2KS[] = {{kV, Where::kShared, kQ4_K}, {kDown, Where::kFirstEighth, kQ4_K}};
constexpr RecipeRule kIq2S[] = {
    {kV, Where::kShared, kQ4_K}, {kV, Where::kExperts, kQ4_K},         {kV, Where::kAll, kIQ3_S},
    {kK, Where::kEight, kQ4_K},  {kDown, Where::kFirstEighth, kIQ3_S}, {kOut, Where::kEight, kQ5_K},
    {kOut, Where::kAll, kIQ3_S}};
constexpr RecipeRule kIq2Xs[] = {{kV, Where::kShared, kQ4_K},  {kV, Where::kExperts, kQ4_K},
                                 {kV, Where::kAll, kQ2_K},     {kK, Where::kEight, kQ4_K},
                                 {kOut, Where::kEight, kQ5_K}, {kDown, Where::kFirstEighth, kQ2_K}};
constexpr RecipeRule kIq1[] = {
    {kV, Where::kShared, kQ4_K},  {kV, Where::kExperts, kQ4_K},        {kV, Where::kAll, kQ2_K},
    {kK, Where::kEight, kQ4_K},   {kDown, Where::kFirstEighth, kQ2_K}, {kOut, Where::kEight, kQ5_K},
    {kOut, Where::kAll, kIQ2_XXS}};

// Names and mixes are those of llama.cpp, IQ2_S included, which is mostly IQ2_XS.
constexpr QuantRecipe kRecipes[] = {
    {"F32", 0, kF32, kF32, kF32},
    {"F16", 1, kF16, kF16, kF16},
    {"BF16", 32, kBF16, kBF16, kBF16},
    {"Q8_0", 7, kQ8_0, kQ8_0, kQ8_0},
    {"Q6_K", 18, kQ6_K, kQ6_K, kQ6_K},
    {"Q5_K_M", 17, kQ5_K, kQ6_K, kQ5_K, kQ5KM},
    {"Q5_K_S", 16, kQ5_K, kQ6_K, kQ5_K},
    {"Q5_1", 9, kQ5_1, kQ6_K, kQ5_1},
    {"Q5_0", 8, kQ5_0, kQ6_K, kQ5_0, kQ50},
    {"Q4_K_M", 15, kQ4_K, kQ6_K, kQ4_K, kQ4KM},
    {"Q4_K_S", 14, kQ4_K, kQ6_K, kQ4_K, kQ4KS},
    {"Q4_1", 3, kQ4_1, kQ6_K, kQ4_1},
    {"Q4_0", 2, kQ4_0, kQ6_K, kQ4_0, kQ40},
    {"IQ4_NL", 25, kIQ4_NL, kQ6_K, kIQ4_NL, kIq4},
    {"IQ4_XS", 30, kIQ4_XS, kQ6_K, kIQ4_XS, kIq4},
    {"NVFP4", 39, kNVFP4, kQ8_0, kQ8_0},
    {"MXFP4_MOE", 38, kQ8_0, kQ8_0, kQ8_0, kMxfp4},
    {"Q3_K_L", 13, kQ3_K, kQ6_K, kQ3_K, kQ3KL},
    {"Q3_K_M", 12, kQ3_K, kQ6_K, kQ3_K, kQ3KM},
    {"Q3_K_S", 11, kQ3_K, kQ6_K, kQ3_K, kQ3KS},
    {"IQ3_M", 27, kIQ3_S, kQ6_K, kIQ3_S, kIq3M},
    {"IQ3_S", 26, kIQ3_S, kQ6_K, kIQ3_S, kIq3S},
    {"IQ3_XS", 22, kIQ3_S, kQ6_K, kIQ3_S, kIq3Xs},
    {"IQ3_XXS", 23, kIQ3_XXS, kQ5_K, kIQ3_S, kIq3Xxs},
    {"Q2_K", 10, kQ2_K, kQ6_K, kQ2_K, kQ2K},
    {"Q2_K_S", 21, kQ2_K, kQ6_K, kQ2_K, kQ2KS},
    {"IQ2_M", 29, kIQ2_S, kQ5_K, kIQ3_S, kIq2S},
    {"IQ2_S", 28, kIQ2_XS, kQ5_K, kIQ3_S, kIq2S},
    {"IQ2_XS", 20, kIQ2_XS, kQ5_K, kQ2_K, kIq2Xs},
    {"IQ2_XXS", 19, kIQ2_XXS, kQ5_K, kQ2_K, kIq2Xs},
    {"IQ1_M", 31, kIQ1_M, kQ5_K, kQ2_K, kIq1},
    {"IQ1_S", 24, kIQ1_S, kQ5_K, kQ2_K, kIq1},
    {"Q2_0", 41, kQ2_0, kQ6_K, kQ4_K},
    {"TQ2_0", 37, kTQ2_0, kQ6_K, kQ4_K},
    {"TQ1_0", 36, kTQ1_0, kQ6_K, kQ4_K},
    {"Q1_0", 40, kQ1_0, kQ6_K, kQ1_0},
};

/// Whether large models get more bits in attention than the rules say: the types that do not have
/// rules of their own for it.
bool gives_more(const QuantRecipe& recipe) noexcept {
  switch (recipe.base) {
    case kF32:
    case kF16:
    case kBF16:
    case kNVFP4:
    case kIQ2_S:
    case kIQ2_XS:
    case kIQ2_XXS:
    case kIQ1_M:
    case kIQ1_S:
      return false;
    default:
      return recipe.rules.data() != kMxfp4;
  }
}

}  // namespace rows

constexpr size_t kShownName = 200;  // bytes of a tensor's name in messages
constexpr int64_t kMostLayers = int64_t{1} << 20;

/// The N of "blk.N.…", or -1.
int64_t layer_of(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  int64_t layer = -1;
  const char* end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(name.data() + kPrefix.size(), end, layer);
  const bool whole = failure == std::errc() && stop != end && *stop == '.';
  return whole && layer <= kMostLayers ? layer : -1;
}

/// Small matrices, some of which are no weights of products. llama.cpp keeps their types, too, and
/// has no convolution of another type than F32.
bool keeps_type(std::string_view name) noexcept {
  constexpr std::string_view kKept[] = {"_norm.weight",
                                        "ffn_gate_inp.weight",
                                        "ssm_conv1d",
                                        "shortconv.conv.weight",
                                        "attn_rel_b.weight",
                                        "altup",
                                        "laurel",
                                        "per_layer_model_proj",
                                        "indexer.k_proj.weight",
                                        "indexer.q_proj.weight",
                                        "time_mix_first.weight",
                                        "time_mix_w0.weight",
                                        "time_mix_w1.weight",
                                        "time_mix_w2.weight",
                                        "time_mix_v0.weight",
                                        "time_mix_v1.weight",
                                        "time_mix_v2.weight",
                                        "time_mix_a0.weight",
                                        "time_mix_a1.weight",
                                        "time_mix_a2.weight",
                                        "time_mix_g1.weight",
                                        "time_mix_g2.weight",
                                        "time_mix_decay_w1.weight",
                                        "time_mix_decay_w2.weight",
                                        "time_mix_lerp_fused.weight"};
  const auto is_part = [name](std::string_view part) { return name.find(part) != name.npos; };
  return name == "position_embd.weight" || name == "token_types.weight" ||
         std::any_of(std::begin(kKept), std::end(kKept), is_part);
}

/// The first and last eighth of the layers, and every third between: errors there matter most.
bool matters_more(int64_t layer, int64_t layers) noexcept {
  const int64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

/// The substitute with blocks of 32 for a type with longer blocks; it has at least as many bits.
DType smaller_blocks(DType type) noexcept {
  switch (type) {
    case DType::kQ4_K:
      return DType::kQ5_0;
    case DType::kQ5_K:
      return DType::kQ5_1;
    case DType::kQ6_K:
    case DType::kQ8_0:
      return DType::kQ8_0;
    default:
      return dtype_info(type)->block_elements > 32 ? DType::kIQ4_NL : DType::kQ8_0;
  }
}

bool fits(DType type, int64_t row) noexcept {
  return row % static_cast<int64_t>(dtype_info(type)->block_elements) == 0;
}

bool is_float(DType type) noexcept { return quant::find_format(type) != nullptr; }

// Vectors are small and need their precision.
bool is_vector(const gguf::TensorInfo& tensor) noexcept {
  return tensor.elements() == tensor.shape[0];
}

bool is_matrix(const gguf::TensorInfo& tensor) noexcept {
  return is_float(tensor.type) && !is_vector(tensor) && tensor.name.ends_with(".weight");
}

}  // namespace

const QuantRecipe* find_recipe(std::string_view name) noexcept {
  for (const QuantRecipe& recipe : rows::kRecipes) {
    if (same_type_name(recipe.name, name)) return &recipe;
  }
  return nullptr;
}

std::string recipes_near(std::string_view name) {
  std::string names;
  for (const QuantRecipe& recipe : rows::kRecipes) {
    const std::string_view one = recipe.name;
    if (name.empty() || one.size() <= name.size() || one[name.size()] != '_' ||
        !same_type_name(one.substr(0, name.size()), name)) {
      continue;
    }
    names.append(names.empty() ? "" : " or ").append(one);
  }
  return names;
}

std::string recipe_names() {
  std::string names;
  for (const QuantRecipe& recipe : rows::kRecipes) {
    names += names.empty() ? "" : ", ";
    names += recipe.name;
  }
  return names;
}

TypeChooser::TypeChooser(const QuantRecipe& recipe, const QuantOptions& options,
                         const gguf::GgufFile& file)
    : recipe_(recipe),
      options_(options),
      file_(file),
      tied_(file.find_tensor("output.weight") == nullptr) {
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    layers_ = std::max(layers_, layer_of(tensor.name) + 1);
  }
  // A key that is missing or of another form (a number for each layer) says no.
  auto known = file.metadata().get_string("general.architecture");
  const std::string arch = known.ok() ? *known : std::string();
  const auto count = [&](const char* key) {
    auto value = file.metadata().get_u32(arch + key);
    return value.ok() ? *value : uint32_t{0};
  };
  const uint32_t heads = count(".attention.head_count");
  const uint32_t kv_heads = count(".attention.head_count_kv");
  shared_ = kv_heads > 0 && heads / kv_heads >= 4;
  experts_ = count(".expert_count");
  const bool shares = arch == "llama" && kv_heads > 0 && heads != kv_heads;
  seventy_ = (shares || arch == "qwen2") && count(".block_count") == 80;
}

DType TypeChooser::choose(const gguf::TensorInfo& tensor) const {
  DType type = wanted(tensor);
  if (!is_float(tensor.type)) return type;
  if (!fits(type, tensor.shape[0])) type = smaller_blocks(type);
  return fits(type, tensor.shape[0]) ? type : DType::kF16;
}

bool TypeChooser::is_weight(const gguf::TensorInfo& tensor) const {
  return is_matrix(tensor) && !keeps_type(tensor.name);
}

bool TypeChooser::applies(const RecipeRule& rule, std::string_view name) const {
  if (name.find(rule.part) == name.npos) return false;
  const int64_t layer = layer_of(name);
  switch (rule.where) {
    case RuleLayers::kAll:
      return true;
    case RuleLayers::kMore:
      return matters_more(layer, layers_);
    case RuleLayers::kFirstEighth:
      return layer >= 0 && layer < layers_ / 8;
    case RuleLayers::kFirstSixteenth:
      return layer >= 0 && layer < layers_ / 16;
    case RuleLayers::kMiddle:
      return layer >= layers_ / 8 && layer < 7 * layers_ / 8;
    case RuleLayers::kFirstTwo:
      return layer >= 0 && layer < 2;
    case RuleLayers::kFirstFour:
      return layer >= 0 && layer < 4;
    case RuleLayers::kShared:
      return shared_;
    case RuleLayers::kExperts:
      return experts_ >= 4;
    case RuleLayers::kEight:
      return experts_ == 8;
    case RuleLayers::kEightMore:
      return experts_ == 8 && matters_more(layer, layers_);
    case RuleLayers::kImportance:
      return options_.importance != nullptr;
    case RuleLayers::kKnownFirstEighth:
      return options_.importance != nullptr && layer >= 0 && layer < layers_ / 8;
    case RuleLayers::kUnknownFirstEighth:
      return options_.importance == nullptr && layer >= 0 && layer < layers_ / 8;
  }
  return false;
}

DType TypeChooser::wanted(const gguf::TensorInfo& tensor) const {
  if (!is_float(tensor.type)) return tensor.type;
  const std::string_view name = tensor.name;
  const bool is_media = gguf::is_media_tensor(name);
  if (!is_weight(tensor)) {
    const bool widens = is_vector(tensor) || recipe_.base == DType::kF32;
    return widens && !is_media ? DType::kF32 : tensor.type;
  }
  for (const TypePattern& pattern : options_.types) {
    if (matches_pattern(pattern.pattern, name)) return pattern.type;
  }
  if (is_media) return tensor.type;
  if (name == "output.weight" || (tied_ && name == "token_embd.weight")) return recipe_.head;
  if (name == "token_embd.weight") return recipe_.embedding;
  return of_recipe(name);
}

DType TypeChooser::of_recipe(std::string_view name) const {
  const bool is_v = name.find(rows::kV) != name.npos;
  const bool is_k = name.find(rows::kK) != name.npos;
  const bool more = rows::gives_more(recipe_);
  // Keys and values are shared by all experts, so more bits for them cost little.
  if (more && experts_ == 8 && (is_v || is_k)) return DType::kQ8_0;
  DType type = recipe_.base;
  for (const RecipeRule& rule : recipe_.rules) {
    if (!applies(rule, name)) continue;
    type = rule.type;
    break;
  }
  // Values are an eighth of the queries' size.
  const bool is_low = type == DType::kQ3_K || type == DType::kQ4_K;
  return more && seventy_ && is_v && is_low ? DType::kQ5_K : type;
}

Status TypeChooser::check_patterns() const {
  for (const TypePattern& pattern : options_.types) {
    const auto any = [&](const std::string& text) {
      const auto tensors = file_.tensors();
      return std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
        return is_weight(tensor) && matches_pattern(text, tensor.name);
      });
    };
    if (any(pattern.pattern)) continue;
    const auto kept = std::find_if(file_.tensors().begin(), file_.tensors().end(),
                                   [&](const gguf::TensorInfo& tensor) {
                                     return is_matrix(tensor) && keeps_type(tensor.name) &&
                                            matches_pattern(pattern.pattern, tensor.name);
                                   });
    if (kept != file_.tensors().end()) {
      return error(Code::kInvalidArgument,
                   "\"%.*s\" matches no matrix that may change: %s always keeps its type",
                   static_cast<int>(kShownName), pattern.pattern.c_str(), kept->name.c_str());
    }
    const char* hint = "";
    if (any(pattern.pattern + ".weight")) {
      hint = "; a pattern is a whole name: with .weight behind it, it matches";
    } else if (tied_ && pattern.pattern.starts_with("output")) {
      hint = "; its output is its embedding, token_embd.weight";
    }
    return error(Code::kInvalidArgument, "\"%.*s\" matches no matrix of the model%s",
                 static_cast<int>(kShownName), pattern.pattern.c_str(), hint);
  }
  return {};
}

std::vector<std::string> TypeChooser::misfits() const {
  struct Pair {
    DType wanted;
    DType got;
    const gguf::TensorInfo* first;
    size_t more = 0;
  };
  std::vector<Pair> pairs;
  for (const gguf::TensorInfo& tensor : file_.tensors()) {
    const DType wanted = this->wanted(tensor);
    const DType got = choose(tensor);
    if (wanted == got) continue;
    const auto same = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& pair) {
      return pair.wanted == wanted && pair.got == got;
    });
    if (same == pairs.end()) {
      pairs.push_back({wanted, got, &tensor});
    } else {
      ++same->more;
    }
  }
  std::vector<std::string> lines;
  for (const Pair& pair : pairs) {
    const DType next = smaller_blocks(pair.wanted);
    const uint32_t block = dtype_info(pair.wanted)->block_elements;
    const uint32_t smaller = dtype_info(next)->block_elements;
    std::string line = pair.first->name.substr(0, kShownName);
    line += pair.more == 0   ? " becomes "
            : pair.more == 1 ? " and 1 more tensor become "
                             : " and " + std::to_string(pair.more) + " more tensors become ";
    line.append(dtype_name(pair.got)).append(", not ").append(dtype_name(pair.wanted));
    line += ": rows of " + std::to_string(pair.first->shape[0]) + " are no multiple of " +
            std::to_string(block);
    if (pair.got != next && smaller != block) line += ", nor of " + std::to_string(smaller);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gen::model
