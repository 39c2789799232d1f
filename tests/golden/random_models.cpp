// SPDX-License-Identifier: Apache-2.0
// Weights and metadata of the random models. Spreads are chosen so that each layer
// matters and the best token has a probability of some 0.02 to 0.3: with flat or saturated
// probabilities a comparison would show nothing. See random_models.h.
#include "golden/random_models.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>

#include "base/rng.h"
#include "golden/random_vocabulary.h"
#include "model/arch/registry.h"
#include "quant/format.h"
#include "support/gguf_writer.h"
#include "tensor/dtype.h"
#include "support/weight_blocks.h"

namespace gen::test {
namespace {

using model::arch::AttentionGate;
using model::arch::Bias;
using model::arch::Experts;
using model::arch::FeedForward;
using model::arch::HeadNorms;
using model::arch::NormStyle;
using model::arch::Parallel;
using model::arch::Recurrence;
using model::arch::Recurs;
using model::arch::SharedExpert;

constexpr uint64_t kWidth = 256;
constexpr uint64_t kFeedForward = 512;
constexpr uint64_t kHeads = 4;
constexpr uint64_t kKvHeads = 2;
constexpr uint64_t kContext = 2048;
constexpr uint64_t kExpertWidth = 256;
constexpr uint64_t kExpertsUsed = 2;
constexpr uint64_t kLatent = 128;
// Of assistants.
constexpr uint64_t kAssistantWidth = 128;
constexpr uint64_t kAssistantLayers = 4;
// Of recurrences: heads of values, keys that some of them share, rows of a convolution.
constexpr uint64_t kStateHeads = 4;
constexpr uint64_t kStateGroups = 2;
constexpr uint64_t kStateSize = 32;
constexpr uint64_t kTaps = 4;
// Of Mamba; in most families the other program takes only twice the width.
constexpr uint64_t kMambaInner = 2 * kWidth;
constexpr uint64_t kMambaHeads = 8;
constexpr uint64_t kDtRank = 16;

struct Spec {
  std::string name;
  std::string arch;
  DType format = DType::kF32;
  uint64_t layers = 2;
  uint64_t head_dim = 64;
  bool tied = false;
  std::string rope_scaling;       // "", "linear", "yarn", or "llama3" for a tensor of factors
  uint64_t original_context = 0;  // 0: the file does not say
  bool parallel = true;           // what a file may say of blocks
  uint64_t window = 0;            // of the layers that the family has such for
  uint64_t local_head_dim = 0;    // of layers with a window; 0: head_dim
  uint64_t shared_layers = 0;     // the last layers, which have no keys and values of their own
  uint64_t layer_input = 0;       // width of each layer's own embeddings
  uint64_t experts = 0;
  uint64_t expert_width = kExpertWidth;
  uint64_t dense_layers = 0;  // the first ones, which have no experts
  bool rms_norms = false;     // of families whose norms may be of either kind
  bool gate_by_head = false;  // attn_gate has a row for each head
  bool shared = true;         // of families that may have a shared expert
  uint64_t draft_layers = 0;  // behind the others
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<Spec> specs() {
  std::vector<Spec> out;
  for (const char* arch : {"llama", "qwen2", "qwen3"}) {
    for (const DType format : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                               DType::kQ4_K, DType::kQ6_K}) {
      Spec spec;
      spec.arch = arch;
      spec.format = format;
      spec.name = spec.arch + "-" + lower(dtype_name(format));
      // Heads of qwen3 are wider together than the model.
      if (spec.arch == "qwen3") spec.head_dim = 128;
      out.push_back(spec);
    }
  }
  // Architectures differ in what they multiply, not in how; once is enough for the other formats.
  for (const DType format :
       {DType::kQ4_1,   DType::kQ5_0,   DType::kQ5_1,    DType::kQ2_K,  DType::kQ3_K,
        DType::kQ5_K,   DType::kIQ4_NL, DType::kIQ4_XS,  DType::kMXFP4, DType::kIQ2_XXS,
        DType::kIQ2_XS, DType::kIQ2_S,  DType::kIQ3_XXS, DType::kIQ3_S, DType::kIQ1_S,
        DType::kIQ1_M,  DType::kTQ1_0,  DType::kTQ2_0,   DType::kQ1_0,  DType::kQ2_0,
        DType::kNVFP4}) {
    Spec spec;
    spec.arch = "llama";
    spec.format = format;
    spec.name = "llama-" + lower(dtype_name(format));
    out.push_back(spec);
  }
  Spec variant;
  variant.arch = "llama";
  variant.layers = 3;
  for (const char* scaling : {"linear", "yarn", "llama3"}) {
    variant.rope_scaling = scaling;
    variant.name = std::string("llama-") + scaling;
    out.push_back(variant);
  }
  variant.rope_scaling.clear();
  variant.tied = true;
  variant.name = "llama-tied";
  out.push_back(variant);
  variant.format = DType::kQ8_0;
  variant.name = "llama-tied-q8_0";
  out.push_back(variant);
  // What sets these families apart is beside the products.
  constexpr std::string_view kAbove[] = {"llama", "qwen2", "qwen3"};
  for (const model::arch::Architecture* row : model::arch::architectures()) {
    if (row->style.experts.has == Experts::kRequired) continue;
    if (std::find(std::begin(kAbove), std::end(kAbove), row->name) != std::end(kAbove)) continue;
    Spec spec;
    spec.arch = row->name;
    spec.layers = 4;
    spec.tied = spec.arch.starts_with("gemma");  // these have no output matrix
    if (spec.arch == "command-r" || spec.arch == "cohere2") spec.tied = true;
    if (spec.arch == "gemma2" || spec.arch == "gemma3" || spec.arch == "cohere2") spec.window = 7;
    if (spec.arch == "muse-glimmer") spec.window = 7;
    if (spec.arch == "gemma3") {
      spec.layers = 7;
      spec.rope_scaling = "linear";
    }
    if (spec.arch == "mistral3") {
      spec.rope_scaling = "yarn";
      spec.original_context = 16;
    }
    if (spec.arch == "gemma4") {
      spec.layers = 6;
      spec.window = 7;
      spec.head_dim = 96;
      spec.local_head_dim = 64;
      spec.rope_scaling = "llama3";
      spec.name = "gemma4-large";
      out.push_back(spec);
      spec.shared_layers = 3;
      spec.layer_input = 32;
    }
    if (spec.arch == "qwen35") {
      spec.layers = 5;
      spec.draft_layers = 1;
    }
    if (spec.arch == "lfm2") spec.tied = true;
    spec.name = spec.arch + "-f32";
    out.push_back(spec);
    if (spec.arch == "phi3") {
      spec.original_context = 512;
      spec.name = "phi3-long";
      out.push_back(spec);
    }
    if (spec.arch == "gptneox") {
      spec.parallel = false;
      spec.name = "gptneox-sequential";
      out.push_back(spec);
    }
    if (spec.arch != "olmo2") continue;
    spec.layers = 5;
    spec.window = 7;
    spec.rope_scaling = "yarn";
    spec.name = "olmo2-windows";
    out.push_back(spec);
  }
  for (const char* arch : {"qwen3moe", "qwen2moe", "olmoe", "llama", "granitehybrid", "jamba",
                           "nemotron_h_moe", "gpt-oss", "gemma4"}) {
    Spec spec;
    spec.arch = arch;
    spec.experts = 8;
    if (spec.arch == "gpt-oss") {
      spec.layers = 3;
      spec.window = 7;
      spec.rope_scaling = "yarn";
      spec.original_context = 16;
    }
    if (spec.arch == "gemma4") {
      spec.tied = true;
      spec.layers = 3;
      spec.window = 7;
      spec.head_dim = 96;
      spec.local_head_dim = 64;
      spec.rope_scaling = "llama3";
    }
    if (spec.arch == "nemotron_h_moe") spec.layers = 4;
    const bool optional = spec.arch == "llama" || spec.arch == "granitehybrid" ||
                          spec.arch == "jamba" || spec.arch == "gemma4";
    const std::string name = spec.arch + (optional ? "-experts" : "");
    for (const DType format : {DType::kF32, DType::kQ8_0, DType::kQ4_K}) {
      if (format != DType::kF32 && spec.arch != "qwen3moe") continue;
      spec.format = format;
      spec.name = name + "-" + lower(dtype_name(format));
      out.push_back(spec);
    }
  }
  for (const char* arch : {"qwen35moe", "qwen3next", "glm4moe", "lfm2moe", "granitemoe",
                           "ernie4_5-moe", "minimax-m2", "deepseek"}) {
    Spec spec;
    spec.arch = arch;
    spec.experts = 8;
    spec.expert_width = 64;
    const bool delta = spec.arch == "qwen35moe" || spec.arch == "qwen3next";
    if (delta) spec.layers = 4;
    if (delta || spec.arch == "glm4moe") spec.draft_layers = 1;
    for (const char* first : {"glm4moe", "ernie4_5-moe", "deepseek"}) {
      if (spec.arch == first) spec.dense_layers = 1;
    }
    if (spec.arch == "lfm2moe") {
      spec.layers = 4;
      spec.dense_layers = 2;
      spec.tied = true;
    }
    spec.name = spec.arch + "-f32";
    out.push_back(spec);
    if (spec.arch != "granitemoe" && spec.arch != "ernie4_5-moe") continue;
    spec.shared = false;
    spec.name = spec.arch + "-unshared";
    out.push_back(spec);
  }
  for (const char* arch : {"cohere2moe", "laguna", "step35"}) {
    Spec spec;
    spec.arch = arch;
    spec.layers = 5;
    spec.window = 7;
    spec.experts = 8;
    spec.expert_width = 64;
    if (spec.arch != "step35") spec.dense_layers = 1;
    if (spec.arch != "laguna") spec.draft_layers = 1;
    if (spec.arch == "cohere2moe") {
      spec.window = 5;
      spec.tied = true;
    }
    if (spec.arch == "laguna") spec.rope_scaling = "yarn";
    if (spec.arch == "step35") spec.rope_scaling = "llama3";
    spec.gate_by_head = true;
    spec.name = spec.arch + "-f32";
    out.push_back(spec);
    if (spec.arch == "step35") continue;
    spec.layers = 3;
    spec.rms_norms = true;
    spec.gate_by_head = false;
    if (spec.arch == "laguna") spec.window = 0;
    spec.name = spec.arch + (spec.arch == "laguna" ? "-elements" : "-rms");
    out.push_back(spec);
  }
  return out;
}

/// `n` numbers, uniform around `mean` with standard deviation `deviation`; a function of the
/// model's shape and the tensor's name only, so that formats can be compared with each other.
std::vector<float> random_values(const Spec& spec, std::string_view tensor, uint64_t n, double mean,
                                 double deviation) {
  const uint64_t seed = fingerprint(std::as_bytes(std::span(spec.arch.data(), spec.arch.size())));
  const uint64_t stream = fingerprint(std::as_bytes(std::span(tensor.data(), tensor.size())));
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32)};
  constexpr double kSqrt3 = 1.7320508075688772;
  const double scale = deviation * kSqrt3 * 0x1p-31;
  std::vector<float> out(n);
  for (uint64_t i = 0; i < n; i += 4) {
    const auto words = philox4x32({static_cast<uint32_t>(i / 4), 0, static_cast<uint32_t>(stream),
                                   static_cast<uint32_t>(stream >> 32)},
                                  key);
    for (uint64_t j = 0; j < 4 && i + j < n; ++j) {
      out[i + j] = static_cast<float>(mean + scale * (static_cast<double>(words[j]) - 0x1p31));
    }
  }
  return out;
}

class ModelWriter {
 public:
  explicit ModelWriter(const Spec& spec)
      : spec_(spec),
        style_((*model::arch::find_architecture(model::arch::architectures(), spec.arch).value())
                   .style) {
    if (style_.norms.kind == NormStyle::Kind::kEither) {
      style_.norms.kind = spec.rms_norms ? NormStyle::Kind::kRms : NormStyle::Kind::kLayer;
    }
  }

  std::vector<std::byte> write() {
    hyperparameters();
    vocab_ = set_random_vocabulary(spec_.arch, &gguf_);
    // Products with rounded inputs are noisy, in the other program as well: by 0.3 % a product,
    // which flatter probabilities show less. Tied, the embeddings must suit the logits as well.
    const bool quantised = dtype_info(spec_.format)->block_elements > 1;
    const bool uncapped = spec_.arch == "gemma" || spec_.arch == "gemma3";
    const double tied = uncapped ? 0.035 : quantised ? 0.055 : 0.08;
    matrix("token_embd.weight", kWidth, vocab_, spec_.tied ? tied : 1.0);
    norm(style_.last_norm);
    if (!spec_.tied) matrix("output.weight", kWidth, vocab_, quantised ? 0.06 : 0.085);
    if (spec_.layer_input > 0) {
      const uint64_t all = spec_.layer_input * spec_.layers;
      matrix("per_layer_token_embd.weight", all, vocab_, 0.3);
      product("per_layer_model_proj.weight", kWidth, all, 1.0);
      vector("per_layer_proj_norm.weight", spec_.layer_input, 1.0, 0.2);
    }
    if (style_.head_bias == Bias::kRequired) vector("output.bias", vocab_, 0.0, 0.3);
    if (spec_.rope_scaling == "llama3") rope_factors("rope_freqs.weight", 7.0F);
    if (style_.rope.long_factors && spec_.rope_scaling.empty()) {
      rope_factors("rope_factors_long.weight", 5.0F);
      rope_factors("rope_factors_short.weight", 0.5F);
    }
    for (uint64_t layer = 0; layer < spec_.layers; ++layer) block(layer);
    for (uint64_t i = 0; i < spec_.draft_layers; ++i) draft_block(spec_.layers + i);
    return std::move(gguf_.build().bytes);
  }

  /// What drafts for a model of gemma4.
  std::vector<std::byte> write_assistant() {
    const auto number = [this](const char* name, uint64_t value) {
      gguf_.set(std::string("gemma4-assistant.") + name, static_cast<uint32_t>(value));
    };
    GgufWriter other;
    vocab_ = set_random_vocabulary(spec_.arch, &other);
    gguf_.set_string("general.architecture", "gemma4-assistant");
    gguf_.set_string("general.name", "random assistant of " + spec_.name);
    number("context_length", kContext);
    number("embedding_length", kAssistantWidth);
    number("embedding_length_out", kWidth);
    number("embedding_length_per_layer_input", 0);
    number("block_count", kAssistantLayers);
    number("nextn_predict_layers", kAssistantLayers);
    number("feed_forward_length", kFeedForward);
    number("attention.head_count", kHeads);
    number("attention.head_count_kv", kKvHeads);
    number("attention.key_length", spec_.head_dim);
    number("attention.value_length", spec_.head_dim);
    number("attention.key_length_swa", spec_.local_head_dim);
    number("attention.value_length_swa", spec_.local_head_dim);
    number("attention.sliding_window", spec_.window);
    number("attention.shared_kv_layers", kAssistantLayers);
    number("rope.dimension_count", spec_.head_dim);
    number("rope.dimension_count_swa", spec_.local_head_dim);
    gguf_.set("gemma4-assistant.rope.freq_base", 10000.0F);
    gguf_.set("gemma4-assistant.rope.freq_base_swa", 2000.0F);
    gguf_.set("gemma4-assistant.attention.layer_norm_rms_epsilon", 1e-5F);
    gguf_.set_array<bool>("gemma4-assistant.attention.sliding_window_pattern",
                          {true, true, true, false});
    matrix("token_embd.weight", kAssistantWidth, vocab_, 0.08);
    product("nextn.pre_projection.weight", 2 * kWidth, kAssistantWidth, 1.0);
    product("nextn.post_projection.weight", kAssistantWidth, kWidth, 1.0);
    vector("output_norm.weight", kAssistantWidth, 1.0, 0.2);
    rope_factors("rope_freqs.weight", 7.0F);
    for (uint64_t layer = 0; layer < kAssistantLayers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const uint64_t head_dim =
          layer + 1 < kAssistantLayers ? spec_.local_head_dim : spec_.head_dim;
      for (const char* name : {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"}) {
        vector(prefix + name + ".weight", kAssistantWidth, 1.0, 0.2);
      }
      product(prefix + "attn_q.weight", kAssistantWidth, kHeads * head_dim, 1.2);
      vector(prefix + "attn_q_norm.weight", head_dim, 0.45, 0.3);
      product(prefix + "attn_output.weight", kHeads * head_dim, kAssistantWidth, 0.8);
      product(prefix + "ffn_gate.weight", kAssistantWidth, kFeedForward, 1.2);
      product(prefix + "ffn_up.weight", kAssistantWidth, kFeedForward, 1.0);
      product(prefix + "ffn_down.weight", kFeedForward, kAssistantWidth, 0.8);
      vector(prefix + "layer_output_scale.weight", 1, 0.8, 0.2);
    }
    return std::move(gguf_.build().bytes);
  }

 private:
  void hyperparameters() {
    const auto key = [this](const char* name) { return spec_.arch + "." + name; };
    const auto number = [&](const char* name, uint64_t value) {
      gguf_.set(key(name), static_cast<uint32_t>(value));
    };
    gguf_.set_string("general.architecture", spec_.arch);
    gguf_.set_string("general.name", "random " + spec_.name);
    number("context_length", kContext);
    number("embedding_length", kWidth);
    number("block_count", spec_.layers + spec_.draft_layers);
    if (style_.recurs == Recurs::kAlone) {
      std::vector<uint32_t> each;
      for (uint64_t i = 0; i < spec_.layers; ++i) {
        each.push_back(has_feed_forward(i) ? static_cast<uint32_t>(kFeedForward) : 0);
      }
      gguf_.set_array(key("feed_forward_length"), each);
    } else {
      number("feed_forward_length", style_.recurs == Recurs::kOnly ? 0 : kFeedForward);
    }
    if (spec_.arch == "laguna") {
      std::vector<uint32_t> each;
      for (uint64_t i = 0; i < spec_.layers; ++i) each.push_back(static_cast<uint32_t>(heads(i)));
      gguf_.set_array(key("attention.head_count"), each);
    } else {
      number("attention.head_count", style_.recurs == Recurs::kOnly ? 0 : kHeads);
    }
    recurrence_keys();
    bool part = false;  // of a head is rotated
    for (const char* arch : {"glm4", "nemotron", "stablelm", "phi2", "gptneox", "qwen35",
                             "qwen35moe", "qwen3next", "glm4moe", "minimax-m2", "laguna"})
      part |= spec_.arch == arch;
    number("rope.dimension_count", part ? spec_.head_dim / 2 : spec_.head_dim);
    const bool layer = style_.norms.kind == NormStyle::Kind::kLayer;
    gguf_.set(key(layer ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
              1e-5F);
    if (style_.logit_factor) gguf_.set(key("logit_scale"), 0.8F);
    if (spec_.arch == "stablelm" || spec_.arch == "gptneox") {
      gguf_.set(key("use_parallel_residual"), spec_.parallel);
    }
    if (style_.activation == engine::Act::kXielu) {
      const auto each = [&](const char* name, float first, float step) {
        std::vector<float> values;
        for (uint64_t i = 0; i < spec_.layers; ++i) {
          values.push_back(first + step * static_cast<float>(i));
        }
        gguf_.set_array(name, values);
      };
      each("xielu.alpha_n", 0.3F, -0.2F);
      each("xielu.alpha_p", -0.4F, 0.3F);
      each("xielu.beta", 0.5F, -0.05F);
      each("xielu.eps", -1e-6F, 0.0F);
    }
    gguf_.set(key("rope.freq_base"),
              spec_.arch == "qwen3" || spec_.arch == "gemma3" ? 1000000.0F : 10000.0F);
    if (spec_.head_dim * kHeads != kWidth || spec_.arch == "laguna") {
      number("attention.key_length", spec_.head_dim);
      number("attention.value_length", spec_.head_dim);
    }
    if (spec_.rope_scaling == "linear" || spec_.rope_scaling == "yarn") {
      gguf_.set_string(key("rope.scaling.type"), spec_.rope_scaling);
      gguf_.set(key("rope.scaling.factor"), 4.0F);
    }
    if (style_.rope_sections && !spec_.arch.starts_with("glm4")) {
      // Those of qwen3vl take turns. The other program does not rotate pairs that are left over,
      // which are of time in the model's own code.
      gguf_.set_array<uint32_t>(key("rope.dimension_sections"), {11, 11, 10, 0});
    }
    if (spec_.arch == "minicpm") gguf_.set_string(key("rope.scaling.type"), "longrope");
    if (style_.query_temperature) {
      gguf_.set(key("attention.temperature_scale"), 0.6F);
      gguf_.set(key("rope.scaling.yarn_log_multiplier"), 0.7F);
    }
    if (spec_.original_context > 0) {
      number("rope.scaling.original_context_length", spec_.original_context);
      if (style_.rope.long_factors) gguf_.set(key("rope.scaling.attn_factor"), 1.19F);
    } else if (spec_.rope_scaling == "yarn") {
      number("rope.scaling.original_context_length", 512);
    }
    if (spec_.arch == "gemma4") {
      std::vector<bool> local;
      for (uint64_t i = 0; i < spec_.layers; ++i) local.push_back(has_window(i));
      gguf_.set_array(key("attention.sliding_window_pattern"), local);
      gguf_.set(key("rope.freq_base_swa"), 2000.0F);
      number("rope.dimension_count_swa", spec_.local_head_dim);
      number("attention.key_length_swa", spec_.local_head_dim);
      number("attention.value_length_swa", spec_.local_head_dim);
      number("attention.shared_kv_layers", spec_.shared_layers);
      number("embedding_length_per_layer_input", spec_.layer_input);
    }
    if (spec_.arch == "cohere2moe") number("attention.sliding_window_pattern", 4);
    if (spec_.arch == "laguna" || spec_.arch == "step35") {
      gguf_.set(key("rope.freq_base_swa"), 2000.0F);
      number("rope.dimension_count_swa", spec_.head_dim);
    }
    if (spec_.arch == "step35") {
      gguf_.set_array<bool>(key("attention.sliding_window_pattern"),
                            {false, true, true, true, false, false});
      gguf_.set_array<float>(key("swiglu_clamp_exp"), {0.0F, 0.5F, 0.0F, 0.7F, 0.0F, 0.0F});
      gguf_.set_array<float>(key("swiglu_clamp_shexp"), {0.5F, 0.0F, 0.0F, 0.6F, 0.4F, 0.0F});
    }
    if (spec_.window > 0) number("attention.sliding_window", spec_.window);
    if (style_.factors) {
      gguf_.set(key("embedding_scale"), 1.5F);
      gguf_.set(key("residual_scale"), 0.6F);
      if (spec_.arch == "granite") gguf_.set(key("attention.scale"), 0.2F);
      gguf_.set(key("logit_scale"), 0.9F);
    }
    if (spec_.experts > 0) {
      number("expert_count", spec_.experts);
      // A choice between two that rounding makes almost equal is no error, but shows as one.
      const bool quantised = dtype_info(spec_.format)->block_elements > 1;
      number("expert_used_count", quantised ? spec_.experts : kExpertsUsed);
      number("expert_feed_forward_length", expert_width());
      if (style_.experts.shared != SharedExpert::kNone && spec_.shared) {
        number("expert_shared_feed_forward_length", kFeedForward);
      }
      if (spec_.dense_layers > 0) number("leading_dense_block_count", spec_.dense_layers);
      if (spec_.arch == "ernie4_5-moe") number("interleave_moe_layer_step", 1);
      if (has_choice_bias())
        number("expert_gating_func", 1 + static_cast<uint64_t>(style_.experts.gating));
      if (spec_.arch == "cohere2moe") number("expert_shared_count", 1);
      if (spec_.arch == "step35" || spec_.arch == "cohere2moe") {
        number("nextn_predict_layers", spec_.draft_layers);
      }
      if (style_.global_first) {
        gguf_.set(key("expert_weights_norm"), true);
        gguf_.set(key("expert_weights_scale"), 1.5F);
      }
      if (spec_.arch == "deepseek") {
        number("expert_shared_count", kFeedForward / spec_.expert_width);
        gguf_.set(key("expert_weights_scale"), 1.5F);
      }
      if (spec_.arch == "glm4moe") {
        number("nextn_predict_layers", spec_.draft_layers);
        number("expert_shared_count", kFeedForward / spec_.expert_width);
        gguf_.set(key("expert_weights_norm"), true);
        gguf_.set(key("expert_weights_scale"), 2.5F);
      }
      if (style_.experts.latent) {
        number("moe_latent_size", kLatent);
        gguf_.set(key("expert_weights_norm"), true);
        gguf_.set(key("expert_weights_scale"), 2.5F);
      }
    }
    if (style_.score_cap >= 0.0F) gguf_.set(key("attn_logit_softcapping"), 2.5F);
    if (style_.logit_cap >= 0.0F && spec_.arch != "gemma3")
      gguf_.set(key("final_logit_softcapping"), 5.0F);
  }

  void recurrence_keys() {
    const auto number = [&](const char* name, uint64_t value) {
      gguf_.set(spec_.arch + "." + name, static_cast<uint32_t>(value));
    };
    const char* const heads = "attention.head_count_kv";
    if (style_.recurrence == Recurrence::kNone || style_.attention_every > 0) {
      number(heads, kv_heads());
    } else {
      std::vector<uint32_t> each;
      for (uint64_t i = 0; i < spec_.layers; ++i) {
        each.push_back(attends(i) ? static_cast<uint32_t>(kv_heads()) : 0);
      }
      gguf_.set_array(spec_.arch + "." + heads, each);
    }
    if (style_.recurrence == Recurrence::kShortConvolution) number("shortconv.l_cache", kTaps - 1);
    if (is_mamba()) {
      const bool first = style_.recurrence == Recurrence::kMamba;
      number("ssm.conv_kernel", kTaps);
      number("ssm.inner_size", kMambaInner);
      number("ssm.state_size", mamba_size());
      number("ssm.time_step_rank", first ? kDtRank : kMambaHeads);
      if (!first) number("ssm.group_count", kStateGroups);
    }
    // The other program asks for it and does not use it.
    if (spec_.arch.starts_with("nemotron_h")) {
      gguf_.set(spec_.arch + ".attention.layer_norm_epsilon", 1e-5F);
    }
    if (style_.recurrence != Recurrence::kDeltaNet) return;
    number("nextn_predict_layers", spec_.draft_layers);
    number("full_attention_interval", 2);
    number("ssm.conv_kernel", kTaps);
    number("ssm.inner_size", kStateHeads * kStateSize);
    number("ssm.state_size", kStateSize);
    number("ssm.time_step_rank", kStateHeads);
    number("ssm.group_count", kStateGroups);
  }
  /// Every other block attends, of blocks that are one thing each every third from the second.
  [[nodiscard]] bool recurs(uint64_t layer) const {
    if (style_.recurrence == Recurrence::kNone || layer >= spec_.layers) return false;
    if (style_.recurs == Recurs::kAlone) return layer % 3 == 0;
    return style_.recurs != Recurs::kInstead || layer % 2 == 0;
  }
  [[nodiscard]] bool attends(uint64_t layer) const {
    if (style_.recurs == Recurs::kAlone) return layer % 3 == 1;
    return style_.recurs == Recurs::kBeside || !recurs(layer);
  }
  [[nodiscard]] bool has_feed_forward(uint64_t layer) const {
    if (style_.recurs == Recurs::kAlone) return layer % 3 == 2;
    return style_.recurs != Recurs::kOnly;
  }
  [[nodiscard]] bool is_mamba() const {
    return style_.recurrence == Recurrence::kMamba || style_.recurrence == Recurrence::kMamba2;
  }
  [[nodiscard]] uint64_t mamba_size() const {
    return style_.recurrence == Recurrence::kMamba ? 16 : 128;
  }

  void mamba(const std::string& prefix) {
    const bool first = style_.recurrence == Recurrence::kMamba;
    const uint64_t n = mamba_size();
    const uint64_t channels = first ? kMambaInner : kMambaInner + 2 * kStateGroups * n;
    const uint64_t heads = first ? kMambaInner : kMambaHeads;
    product(prefix + "ssm_in.weight", kWidth, kMambaInner + channels + (first ? 0 : kMambaHeads),
            1.2);
    convolution(prefix + "ssm_conv1d.weight", channels, kTaps);
    vector(prefix + "ssm_conv1d.bias", channels, 0.0, 0.3);
    if (first) {
      product(prefix + "ssm_x.weight", kMambaInner, kDtRank + 2 * n, 2.0);
      product(prefix + "ssm_dt.weight", kDtRank, kMambaInner, 1.0);
    }
    if (style_.recurrent_norms) {
      vector(prefix + "ssm_dt_norm.weight", kDtRank, 1.0, 0.2);
      vector(prefix + "ssm_b_norm.weight", n, 1.0, 0.2);
      vector(prefix + "ssm_c_norm.weight", n, 1.0, 0.2);
    }
    vector(prefix + "ssm_dt.bias", heads, -1.0, 0.7);
    table(prefix + "ssm_a", first ? n : 1, heads, -1.0, 0.4);
    if (first) {
      vector(prefix + "ssm_d", heads, 1.0, 0.3);
    } else {
      table(prefix + "ssm_d", 1, heads, 1.0, 0.3);
      table(prefix + "ssm_norm.weight", kMambaInner / kStateGroups, kStateGroups, 1.0, 0.2);
    }
    product(prefix + "ssm_out.weight", kMambaInner, kWidth, first ? 2.0 : 0.8);
  }

  void recurrence(const std::string& prefix) {
    if (is_mamba()) {
      mamba(prefix);
      return;
    }
    if (style_.recurrence == Recurrence::kShortConvolution) {
      product(prefix + "shortconv.in_proj.weight", kWidth, 3 * kWidth, 1.2);
      convolution(prefix + "shortconv.conv.weight", kWidth, kTaps - 1);
      product(prefix + "shortconv.out_proj.weight", kWidth, kWidth, 0.8);
      return;
    }
    const uint64_t inner = kStateHeads * kStateSize;
    const uint64_t channels = 2 * kStateGroups * kStateSize + inner;
    product(prefix + "attn_qkv.weight", kWidth, channels, 1.2);
    product(prefix + "attn_gate.weight", kWidth, inner, 1.2);
    if (spec_.arch == "qwen3next") {
      product(prefix + "ssm_ba.weight", kWidth, 2 * kStateHeads, 1.0);
    } else {
      product(prefix + "ssm_alpha.weight", kWidth, kStateHeads, 1.0);
      product(prefix + "ssm_beta.weight", kWidth, kStateHeads, 1.0);
    }
    convolution(prefix + "ssm_conv1d.weight", channels, kTaps);
    vector(prefix + "ssm_dt.bias", kStateHeads, -1.0, 0.5);
    vector(prefix + "ssm_a", kStateHeads, -0.5, 0.2);
    vector(prefix + "ssm_norm.weight", kStateSize, 1.0, 0.2);
    product(prefix + "ssm_out.weight", inner, kWidth, 0.8);
  }
  void convolution(const std::string& name, uint64_t channels, uint64_t taps) {
    add(name, DType::kF32, {taps, channels}, random_values(spec_, name, channels * taps, 0.2, 0.5));
  }

  /// A block that attends, with what makes its input of the next token and the last hidden state.
  void draft_block(uint64_t layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".nextn.";
    block(layer);
    product(prefix + "eh_proj.weight", 2 * kWidth, kWidth, 1.0);
    norm(prefix + "enorm");
    norm(prefix + "hnorm");
  }

  void block(uint64_t layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const bool shares = spec_.shared_layers > 0 && layer + spec_.shared_layers >= spec_.layers;
    if (style_.norm_before && (recurs(layer) || attends(layer))) norm(prefix + "attn_norm");
    if (recurs(layer)) recurrence(prefix);
    if (attends(layer)) attention(prefix, layer, shares);
    if (style_.norm_after) norm(prefix + "post_attention_norm");
    // Of blocks that are parallel only in some models every other one is.
    const bool one_norm = style_.parallel == Parallel::kOneNorm ||
                          (style_.parallel == Parallel::kWithoutNorm && layer % 2 == 1);
    if (!has_feed_forward(layer)) return;
    if (spec_.arch == "falcon-h1") {
      vector(prefix + style_.ffn_norm, kWidth, 1.0, 0.2);
    } else if (style_.norm_before && !one_norm) {
      norm(prefix + style_.ffn_norm);
    }
    const bool beside = spec_.experts > 0 && style_.experts.beside;
    if (beside) experts_beside(prefix);
    if (spec_.experts > 0 && !beside && !(style_.experts.some_blocks && layer % 2 == 0) &&
        layer >= spec_.dense_layers) {
      experts(prefix);
      return;
    }
    const bool fused = style_.feed_forward == FeedForward::kFused;
    if (style_.feed_forward == FeedForward::kGated) {
      product(prefix + "ffn_gate.weight", kWidth, kFeedForward, 1.2);
    }
    product(prefix + "ffn_up.weight", kWidth, fused ? 2 * kFeedForward : kFeedForward, 1.0);
    product(prefix + "ffn_down.weight", kFeedForward, kWidth, 0.8);
    if (style_.norm_after) norm(prefix + "post_ffw_norm");
    if (style_.layer_scale) vector(prefix + "layer_output_scale.weight", 1, 0.8, 0.2);
    if (spec_.layer_input > 0) {
      product(prefix + "inp_gate.weight", kWidth, spec_.layer_input, 1.2);
      product(prefix + "proj.weight", spec_.layer_input, kWidth, 1.0);
      norm(prefix + "post_norm");
    }
    // Where norms have biases, all has.
    if (style_.norms.bias != Bias::kRequired) return;
    vector(prefix + "attn_output.bias", kWidth, 0.0, 0.2);
    vector(prefix + "ffn_up.bias", kFeedForward, 0.0, 0.2);
    vector(prefix + "ffn_down.bias", kWidth, 0.0, 0.2);
  }

  void attention(const std::string& prefix, uint64_t layer, bool shares) {
    const uint64_t head_dim =
        spec_.local_head_dim > 0 && has_window(layer) ? spec_.local_head_dim : spec_.head_dim;
    const uint64_t q_size = head_dim * heads(layer);
    const uint64_t kv_size = head_dim * kv_heads();
    const bool gates = style_.attention_gate == AttentionGate::kInQ;  // among the rows of attn_q
    if (spec_.arch == "phi3" || spec_.arch == "gptneox") {
      product(prefix + "attn_qkv.weight", kWidth, q_size + 2 * kv_size, 1.2);
    } else {
      product(prefix + "attn_q.weight", kWidth, gates ? 2 * q_size : q_size, 1.2);
      if (!shares) product(prefix + "attn_k.weight", kWidth, kv_size, 1.2);
      // Values of global layers of gemma4 are its keys.
      if (!shares && (!style_.value_norm || has_window(layer))) {
        product(prefix + "attn_v.weight", kWidth, kv_size, 1.0);
      }
    }
    // Where norms have biases, all has.
    const bool biases = style_.norms.bias == Bias::kRequired || spec_.arch == "gpt-oss";
    if (biases && spec_.arch == "gptneox") {
      vector(prefix + "attn_qkv.bias", q_size + 2 * kv_size, 0.0, 0.4);
    } else if (style_.input_bias == Bias::kRequired || biases) {
      vector(prefix + "attn_q.bias", q_size, 0.0, 0.4);
      vector(prefix + "attn_k.bias", kv_size, 0.0, 0.4);
      vector(prefix + "attn_v.bias", kv_size, 0.0, 0.4);
    }
    if (style_.head_norms == HeadNorms::kOwnOfEach && spec_.arch == "stablelm") {
      own_norms(prefix + "attn_q_norm.weight", kHeads);
      own_norms(prefix + "attn_k_norm.weight", kKvHeads);
    }
    if (style_.head_norms != HeadNorms::kNone && style_.head_norms != HeadNorms::kOwnOfEach) {
      const bool all = style_.head_norms == HeadNorms::kAllHeads;
      // Without a divisor of the scores, queries and keys are smaller.
      const double mean = style_.undivided_scores ? 0.45 : 1.2;
      vector(prefix + "attn_q_norm.weight", all ? q_size : head_dim, mean, 0.3);
      if (!shares) vector(prefix + "attn_k_norm.weight", all ? kv_size : head_dim, mean, 0.3);
    }
    if (style_.attention_gate == AttentionGate::kOwn ||
        style_.attention_gate == AttentionGate::kMayBeOwn) {
      product(prefix + "attn_gate.weight", kWidth, spec_.gate_by_head ? heads(layer) : q_size, 1.2);
    }
    if (style_.sinks) vector(prefix + "attn_sinks.weight", kHeads, 1.0, 1.0);
    product(prefix + "attn_output.weight", q_size, kWidth, 0.8);
    if (style_.sinks) vector(prefix + "attn_output.bias", kWidth, 0.0, 0.2);
  }

  /// Of hidden rows.
  void norm(const std::string& name) {
    if (style_.norms.weight) vector(name + ".weight", kWidth, 1.0, 0.2);
    if (style_.norms.bias != Bias::kNone) vector(name + ".bias", kWidth, 0.0, 0.2);
  }
  /// A row for each head.
  void own_norms(const std::string& name, uint64_t heads) {
    add(name, DType::kF32, {spec_.head_dim, heads},
        random_values(spec_, name, spec_.head_dim * heads, 1.2, 0.3));
  }

  /// Of gemma4, where the file says which layers have one.
  [[nodiscard]] bool has_window(uint64_t layer) const { return spec_.window > 0 && layer % 3 != 2; }
  /// Those of laguna differ by layer.
  [[nodiscard]] uint64_t heads(uint64_t layer) const {
    return spec_.arch == "laguna" && layer % 4 != 0 ? kHeads + 2 : kHeads;
  }
  /// The other program takes no others of olmoe.
  [[nodiscard]] uint64_t kv_heads() const { return spec_.arch == "olmoe" ? kHeads : kKvHeads; }
  /// Of some families it takes the width of the feed-forward.
  [[nodiscard]] uint64_t expert_width() const {
    const bool same = spec_.arch == "granitemoe" || spec_.arch == "minimax-m2" ||
                      spec_.arch == "llama" || spec_.arch == "olmoe" ||
                      spec_.arch == "granitehybrid" || spec_.arch == "jamba";
    return same ? kFeedForward : spec_.expert_width;
  }
  /// exp_probs_b, apart from what is written with latent experts.
  [[nodiscard]] bool has_choice_bias() const {
    if (style_.experts.latent || spec_.arch == "cohere2moe") return false;
    return style_.experts.gating == engine::Gating::kSigmoid || spec_.arch == "ernie4_5-moe";
  }

  /// A matrix for each expert.
  void stack(const std::string& name, uint64_t inputs, uint64_t outputs, double gain) {
    add(name, spec_.format, {inputs, outputs, spec_.experts},
        random_values(spec_, name, inputs * outputs * spec_.experts, 0.0,
                      gain / std::sqrt(static_cast<double>(inputs))));
  }
  void router(const std::string& prefix, double deviation) {
    table(prefix + "ffn_gate_inp.weight", kWidth, spec_.experts, 0.0, deviation);
  }

  void experts_beside(const std::string& prefix) {
    router(prefix, 1.0);
    vector(prefix + "ffn_gate_inp.scale", kWidth, 1.0, 0.3);
    for (const char* name : {"pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"}) {
      norm(prefix + name);
    }
    stack(prefix + "ffn_gate_up_exps.weight", kWidth, 2 * expert_width(), 1.1);
    stack(prefix + "ffn_down_exps.weight", expert_width(), kWidth, 0.8);
    vector(prefix + "ffn_down_exps.scale", spec_.experts, 1.0, 0.4);
  }

  void experts(const std::string& prefix) {
    router(prefix, 0.1);
    const bool gated = style_.feed_forward != FeedForward::kPlain;
    const uint64_t width = style_.experts.latent ? kLatent : kWidth;
    if (gated) stack(prefix + "ffn_gate_exps.weight", width, expert_width(), 1.2);
    stack(prefix + "ffn_up_exps.weight", width, expert_width(), 1.0);
    stack(prefix + "ffn_down_exps.weight", expert_width(), width, 0.8);
    if (spec_.arch == "gpt-oss") {
      vector(prefix + "ffn_gate_inp.bias", spec_.experts, 0.0, 0.3);
      table(prefix + "ffn_gate_exps.bias", expert_width(), spec_.experts, 0.0, 0.3);
      table(prefix + "ffn_up_exps.bias", expert_width(), spec_.experts, 0.0, 0.3);
      table(prefix + "ffn_down_exps.bias", kWidth, spec_.experts, 0.0, 0.3);
    }
    if (style_.experts.latent) {
      product(prefix + "ffn_latent_down.weight", kWidth, kLatent, 1.0);
      product(prefix + "ffn_latent_up.weight", kLatent, kWidth, 1.0);
      vector(prefix + "exp_probs_b.bias", spec_.experts, 0.0, 0.2);
    }
    if (has_choice_bias()) vector(prefix + "exp_probs_b.bias", spec_.experts, 0.0, 0.2);
    if (style_.experts.shared == SharedExpert::kNone || !spec_.shared) return;
    if (gated) product(prefix + "ffn_gate_shexp.weight", kWidth, kFeedForward, 1.2);
    product(prefix + "ffn_up_shexp.weight", kWidth, kFeedForward, 1.0);
    product(prefix + "ffn_down_shexp.weight", kFeedForward, kWidth, 0.8);
    if (style_.experts.shared != SharedExpert::kGated) return;
    vector(prefix + "ffn_gate_inp_shexp.weight", kWidth, 0.0, 0.1);
  }

  /// Divisors of the rotary frequencies: 1 for the fast half, up to 1 + more for the slow ones.
  void rope_factors(const char* name, float more) {
    std::vector<float> factors(spec_.head_dim / 2);
    for (size_t i = 0; i < factors.size(); ++i) {
      const float slow = static_cast<float>(2 * i) / static_cast<float>(factors.size()) - 1.0F;
      factors[i] = 1.0F + more * std::max(0.0F, slow);
    }
    add(name, DType::kF32, {factors.size()}, factors);
  }

  /// A matrix that turns inputs of deviation 1 into outputs of deviation `gain`.
  void product(const std::string& name, uint64_t inputs, uint64_t outputs, double gain) {
    matrix(name, inputs, outputs, gain / std::sqrt(static_cast<double>(inputs)));
    if (spec_.format != DType::kNVFP4 || !name.starts_with("blk.")) return;
    // As files of this type have them; the second one is for activations of few bits.
    const std::string stem = name.substr(0, name.rfind('.'));
    add(stem + ".scale", DType::kF32, {1}, {0.75F});
    add(stem + ".input_scale", DType::kF32, {1}, {0.5F});
  }
  void matrix(const std::string& name, uint64_t cols, uint64_t rows, double deviation) {
    add(name, spec_.format, {cols, rows}, random_values(spec_, name, cols * rows, 0.0, deviation));
  }
  void vector(const std::string& name, uint64_t n, double mean, double deviation) {
    add(name, DType::kF32, {n}, random_values(spec_, name, n, mean, deviation));
  }

  void table(const std::string& name, uint64_t cols, uint64_t rows, double mean, double deviation) {
    add(name, DType::kF32, {cols, rows}, random_values(spec_, name, cols * rows, mean, deviation));
  }

  void add(const std::string& name, DType type, const std::vector<uint64_t>& dims,
           const std::vector<float>& values) {
    const DTypeInfo* info = dtype_info(type);
    std::vector<std::byte> data(values.size() / info->block_elements * info->block_bytes);
    write_weights(type, values.data(), data.data(), static_cast<int64_t>(values.size()));
    gguf_.tensor(name, static_cast<uint32_t>(type), dims, std::move(data));
  }

  const Spec& spec_;
  model::arch::DenseStyle style_;
  uint64_t vocab_ = 0;
  GgufWriter gguf_;
};

}  // namespace

std::vector<std::string> random_model_names() {
  std::vector<std::string> names;
  for (const Spec& spec : specs()) names.push_back(spec.name);
  return names;
}

std::vector<std::byte> make_random_model(std::string_view name) {
  for (const Spec& spec : specs()) {
    if (spec.name == name) return ModelWriter(spec).write();
  }
  return {};
}

std::vector<std::byte> make_random_assistant(std::string_view name) {
  for (const Spec& spec : specs()) {
    if (spec.name == name && spec.arch == "gemma4") return ModelWriter(spec).write_assistant();
  }
  return {};
}

DType random_model_format(std::string_view name) {
  for (const Spec& spec : specs()) {
    if (spec.name == name) return spec.format;
  }
  return DType::kF32;
}

uint64_t fingerprint(std::span<const std::byte> bytes) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001B3ULL;
  }
  return hash;
}

}  // namespace gen::test
