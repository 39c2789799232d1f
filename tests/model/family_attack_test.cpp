// SPDX-License-Identifier: Apache-2.0
// Files of every architecture that are damaged or odd, drawn at random: keys that are missing, of
// another type, out of range or strange, tensors of other names, shapes, types and values. Loading
// one fails with a line that names what is wrong, or the model runs to results or to an error; it
// never takes memory that the file is not worth. And what a file has beside its model's own keys
// and tensors is refused or counts: it is never passed over in silence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "model/arch/registry.h"
#include "support/counting_allocator.h"
#include "support/counting_new.h"
#include "support/loaded_tiny.h"
#include "support/sanitized.h"

namespace gen::model {
namespace {

using test::GgufImage;
using test::GgufWriter;
using test::TinyModel;
using test::TinyModelSpec;

constexpr int32_t kPrompt = 9;
constexpr int32_t kTokens = 11;
// Of files of some 300 KB with a context of up to 2^30.
constexpr size_t kMaxBytes = size_t{64} << 20;

/// Draws of one trial; the seed names the trial.
class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  /// One of 0 … count - 1.
  size_t below(size_t count) {
    const double share = uniform_double(seed_, 0, next_++);
    return std::min(static_cast<size_t>(share * static_cast<double>(count)), count - 1);
  }
  bool once_in(size_t n) { return below(n) == 0; }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

TinyModelSpec draw_spec(Draws& draws, const arch::Architecture& family) {
  TinyModelSpec spec;
  spec.architecture = family.name;
  spec.layers = static_cast<int32_t>(1 + draws.below(4));
  spec.hidden = 32;
  spec.feed_forward = 32;
  spec.head_dim = draws.once_in(2) ? 16 : 32;
  spec.heads = 2;
  spec.kv_heads = static_cast<int32_t>(1 + draws.below(2));
  spec.type = draws.once_in(2) ? DType::kF32 : DType::kQ8_0;
  spec.biases = draws.once_in(2);
  spec.tied = draws.once_in(2);
  spec.window = draws.once_in(3) ? 4 : 0;
  spec.fused_qkv = draws.once_in(3);
  const auto pairs = static_cast<size_t>(spec.head_dim / 2);
  if (family.style.rope.freq_factors && draws.once_in(3)) spec.freq_factors.assign(pairs, 3.0F);
  if (family.style.rope.long_factors && draws.once_in(2)) {
    spec.long_factors.assign(pairs, 3.0F);
    spec.short_factors.assign(pairs, 2.0F);
    spec.original_context = draws.once_in(2) ? 8 : 0;
  }
  return spec;
}

/// What loading and running a file says, with the logits of all rows where it runs.
struct Outcome {
  Status load;
  Status run;
  std::vector<float> logits;
};

Outcome attempt(const std::vector<std::byte>& bytes) {
  Outcome outcome;
  auto file = gguf::GgufFile::parse(bytes);
  if (!file.ok()) {
    outcome.load = file.status();
    return outcome;
  }
  test::CountingAllocator counting;
  LoadOptions options;
  options.engine = test::cpu_engine({1, detect_cpu_level(), &counting, true});
  const size_t before = test::new_bytes;
  auto loaded = load_model(std::move(file).value(), options);
  EXPECT_LE(test::new_bytes - before, kMaxBytes);
  EXPECT_LE(counting.peak_bytes, kMaxBytes);
  if (!loaded.ok()) {
    outcome.load = loaded.status();
    return outcome;
  }
  const Model& model = *loaded.value()->model;
  const int32_t vocab = model.traits().vocab_size;
  const auto cache =
      cache::make_cache("fp32", model.layer_shapes(), 32, engine::system_memory()).value();
  const auto state = model.new_sequence_state().value();
  for (int32_t at = 0; at < kTokens && outcome.run.ok();) {
    const int32_t n = at == 0 ? std::min(kPrompt, model.traits().max_seq_len) : 1;
    if (at + n > model.traits().max_seq_len) break;
    std::vector<int32_t> tokens;
    for (int32_t i = at; i < at + n; ++i) tokens.push_back(i * 7 % vocab);
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, tokens, true, state.get()).ok());
    outcome.run = model.forward(batch.finish(vocab));
    batch.commit();
    const std::vector<float> logits = batch.results(vocab);
    outcome.logits.insert(outcome.logits.end(), logits.begin(), logits.end());
    at += n;
  }
  return outcome;
}

bool is_a_line(const Status& status) {
  const std::string_view text = status.message();
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
  });
}

// ---- Damage ----

const std::vector<std::string> kKeys = {"context_length",
                                        "attention.sliding_window",
                                        "attention.sliding_window_pattern",
                                        "attention.chunk_size",
                                        "attention.value_length",
                                        "rope.dimension_count",
                                        "rope.freq_base_swa",
                                        "rope.scaling.type",
                                        "rope.scaling.factor",
                                        "rope.scale_linear",
                                        "rope.scaling.original_context_length",
                                        "rope.scaling.attn_factor",
                                        "rope.scaling.yarn_ext_factor",
                                        "rope.scaling.yarn_beta_fast",
                                        "rope.scaling.yarn_beta_slow",
                                        "rope.scaling.low_freq_factor",
                                        "rope.scaling.high_freq_factor",
                                        "rope.scaling.finetuned",
                                        "rope.dimension_sections",
                                        "attention.scale",
                                        "embedding_scale",
                                        "residual_scale",
                                        "logit_scale",
                                        "attn_logit_softcapping",
                                        "final_logit_softcapping",
                                        "attention.causal",
                                        "expert_count",
                                        "nextn_predict_layers",
                                        "attention.shared_kv_layers",
                                        "attention.max_alibi_bias",
                                        "attention.clamp_kqv"};
const std::vector<uint32_t> kNumbers = {0,          1,          2,         3,        4,
                                        5,          7,          31,        32,       33,
                                        65536,      65537,      1U << 24,  1U << 30, (1U << 30) + 1,
                                        0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
const std::vector<float> kFloats = {0.0F,
                                    -0.0F,
                                    -1.0F,
                                    1.0F,
                                    2.0F,
                                    0.5F,
                                    1e-6F,
                                    1e-7F,
                                    1e-30F,
                                    1e-44F,
                                    1e6F,
                                    1e15F,
                                    1e30F,
                                    std::numeric_limits<float>::infinity(),
                                    -std::numeric_limits<float>::infinity(),
                                    std::numeric_limits<float>::quiet_NaN()};
const std::vector<std::string> kTexts = {"none",     "linear", "yarn", "llama3",
                                         "longrope", "",       "a\nb"};

void add_key(Draws& draws, const std::string& architecture, GgufWriter* writer) {
  const std::string key = architecture + "." + draws.of(kKeys);
  const size_t count = draws.below(6);
  switch (draws.below(7)) {
    case 0:
      writer->set(key, draws.of(kNumbers));
      break;
    case 1:
    case 2:
      writer->set(key, draws.of(kFloats));
      break;
    case 3:
      writer->set_string(key, draws.of(kTexts));
      break;
    case 4:
      writer->set(key, draws.once_in(2));
      break;
    case 5:
      writer->set_array<uint32_t>(key, std::vector<uint32_t>(count, draws.of(kNumbers)));
      break;
    default:
      writer->set_array<float>(key, std::vector<float>(count, draws.of(kFloats)));
  }
}

/// Of a mark "K.value" or "T.dim0" the part before the last dot.
std::vector<std::string> marked(const GgufImage& image, std::string_view suffix) {
  std::vector<std::string> names;
  for (const auto& [mark, at] : image.marks) {
    if (mark.ends_with(suffix)) names.push_back(mark.substr(0, mark.size() - suffix.size()));
  }
  return names;
}

template <typename T>
T read_at(const GgufImage& image, const std::string& mark) {
  T value;
  std::memcpy(&value, image.bytes.data() + image.at(mark), sizeof value);
  return value;
}

void damage_key(Draws& draws, const std::string& architecture, GgufImage* image) {
  std::vector<std::string> keys;
  for (const std::string& key : marked(*image, ".value")) {
    if (key.starts_with(architecture + ".")) keys.push_back(key);
  }
  const std::string& key = draws.of(keys);
  const auto type = read_at<uint32_t>(*image, key + ".type");
  const auto length = read_at<uint64_t>(*image, key + ".key_length");
  switch (draws.below(4)) {
    case 0:  // it is missing
      image->bytes[image->at(key + ".key") + length - 1] = std::byte{'~'};
      return;
    case 1:  // of another type of the same size
      if (type >= 4 && type <= 6)
        image->poke<uint32_t>(key + ".type", 4 + static_cast<uint32_t>(draws.below(3)));
      return;
    default:
      if (type == 6) image->poke(key + ".value", draws.of(kFloats));
      if (type == 4 || type == 5) image->poke(key + ".value", draws.of(kNumbers));
  }
}

void damage_tensor(Draws& draws, GgufImage* image) {
  const std::vector<std::string> names = marked(*image, ".n_dims");
  const std::string& name = draws.of(names);
  const auto n_dims = read_at<uint32_t>(*image, name + ".n_dims");
  const auto first = read_at<uint64_t>(*image, name + ".dim0");
  const auto type = read_at<uint32_t>(*image, name + ".type");
  switch (draws.below(5)) {
    case 0:
      image->poke(name + ".name", static_cast<char>('a' + draws.below(26)));
      return;
    case 1:
      if (n_dims == 2) {
        image->poke(name + ".dim0", read_at<uint64_t>(*image, name + ".dim1"));
        image->poke(name + ".dim1", first);
      } else {
        image->poke<uint64_t>(name + ".dim0", first / 2);
      }
      return;
    case 2:
      image->poke<uint32_t>(name + ".type", static_cast<uint32_t>(draws.below(40)));
      return;
    case 3:
      image->poke<uint64_t>(n_dims == 2 ? name + ".dim1" : name + ".dim0", 1 + draws.below(64));
      return;
    default: {
      std::byte* data = image->bytes.data() + image->at(name + ".data");
      if (type == 0) {
        const float value = draws.of(kFloats);
        const size_t count = draws.once_in(2) ? first : 1;
        for (size_t i = 0; i < count; ++i) std::memcpy(data + 4 * i, &value, 4);
      } else {
        for (size_t i = 0; i < 34; ++i) data[i] = static_cast<std::byte>(draws.below(256));
      }
    }
  }
}

int trials(int usual) {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::atoi(wanted) : test::fewer(usual);
}

TEST(FamilyAttack, DamageIsNamedOrRuns) {
  uint64_t seed = 0;
  int ran = 0;
  int refused = 0;
  for (const arch::Architecture* family : arch::architectures()) {
    for (int trial = 0; trial < trials(60); ++trial) {
      SCOPED_TRACE(testing::Message() << family->name << " seed " << seed);
      Draws draws(seed++);
      TinyModel tiny(draw_spec(draws, *family));
      const size_t count = 1 + draws.below(3);
      std::vector<size_t> kinds(count);
      for (size_t& kind : kinds) {
        kind = draws.below(3);
        if (kind == 0) add_key(draws, family->name, &tiny.writer());
      }
      GgufImage image = tiny.writer().build();
      for (const size_t kind : kinds) {
        if (kind == 1) damage_key(draws, family->name, &image);
        if (kind == 2) damage_tensor(draws, &image);
      }
      const Outcome outcome = attempt(image.bytes);
      if (!outcome.load.ok()) {
        ++refused;
        EXPECT_TRUE(is_a_line(outcome.load)) << outcome.load.message();
        const std::string_view says = outcome.load.message();
        EXPECT_TRUE(says.find(std::string(family->name) + ".") != says.npos ||
                    says.find("tensor ") != says.npos || says.find("xielu.") != says.npos ||
                    says.find("twice") != says.npos)
            << says;
      } else if (!outcome.run.ok()) {
        EXPECT_TRUE(is_a_line(outcome.run)) << outcome.run.message();
      } else {
        ++ran;
        for (const float logit : outcome.logits) ASSERT_TRUE(std::isfinite(logit));
      }
    }
  }
  EXPECT_GT(ran, 0);
  EXPECT_GT(refused, ran / 4);
}

// ---- Nothing is passed over ----

/// The same for every family, with its own pattern of layers with and without windows.
TinyModelSpec whole_spec(const arch::Architecture& family) {
  TinyModelSpec spec;
  spec.architecture = family.name;
  spec.layers = 6;
  spec.hidden = 32;
  spec.feed_forward = 32;
  spec.heads = 2;
  spec.kv_heads = 1;
  return spec;
}

void add_vector(GgufWriter* writer, const std::string& name, int32_t size) {
  std::vector<float> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.5F + 0.25F * static_cast<float>(i % 5);
  const auto bytes = std::as_bytes(std::span(values));
  writer->tensor(name, 0, {values.size()}, {bytes.begin(), bytes.end()});
}

/// Each in every length that it may have somewhere.
const std::vector<const char*> kVectors = {"output.bias",
                                           "output_norm.bias",
                                           "token_embd_norm.weight",
                                           "rope_freqs.weight",
                                           "rope_factors_long.weight",
                                           "rope_factors_short.weight",
                                           "output.scale",
                                           "blk.0.rope_freqs.weight",
                                           "blk.0.attn_norm.weight",
                                           "blk.0.attn_norm.bias",
                                           "blk.0.attn_q.bias",
                                           "blk.0.attn_k.bias",
                                           "blk.0.attn_v.bias",
                                           "blk.0.attn_qkv.bias",
                                           "blk.0.attn_output.bias",
                                           "blk.0.attn_q_norm.weight",
                                           "blk.0.attn_q_norm.bias",
                                           "blk.0.attn_k_norm.weight",
                                           "blk.0.attn_sub_norm.weight",
                                           "blk.0.attn_output_norm.weight",
                                           "blk.0.attn_sinks.weight",
                                           "blk.0.post_attention_norm.weight",
                                           "blk.0.ffn_norm.weight",
                                           "blk.0.ffn_norm.bias",
                                           "blk.0.post_ffw_norm.weight",
                                           "blk.0.ffn_gate.bias",
                                           "blk.0.ffn_up.bias",
                                           "blk.0.ffn_down.bias",
                                           "blk.0.ffn_sub_norm.weight",
                                           "blk.0.ffn_down.scale",
                                           "blk.0.attn_q.scale",
                                           "blk.6.attn_norm.weight"};

TEST(FamilyAttack, ATensorThatIsAddedCountsOrIsRefused) {
  test::Thinned thinned(5);
  for (const arch::Architecture* family : arch::architectures()) {
    const TinyModelSpec spec = whole_spec(*family);
    const Outcome plain = attempt(TinyModel(spec).bytes());
    ASSERT_TRUE(plain.load.ok()) << plain.load.message();
    for (const char* name : kVectors) {
      for (const int32_t size : {1, spec.head_dim / 2, spec.head_dim, spec.hidden, spec.vocab,
                                 spec.head_dim * 4, 2 * spec.feed_forward}) {
        SCOPED_TRACE(testing::Message() << family->name << " " << name << " of " << size);
        if (thinned.skips()) continue;
        TinyModel tiny(spec);
        if (tiny.writer().build().marks.contains(std::string(name) + ".n_dims")) continue;
        add_vector(&tiny.writer(), name, size);
        const Outcome more = attempt(tiny.bytes());
        if (!more.load.ok()) {
          // One of a pair may say that the other is missing.
          const std::string said = more.load.message();
          EXPECT_TRUE(said.find(name) != said.npos || said.find("rope_factors_") != said.npos)
              << said;
          continue;
        }
        EXPECT_TRUE(!more.run.ok() || more.logits != plain.logits);
      }
    }
  }
}

/// What changes the computation in some family.
struct Telling {
  const char* key;
  double value;
  enum { kWhole, kNumber, kNo, kYes, kList } form;
};
/// Where it says nothing, and is known to.
bool is_idle(const arch::Architecture& family, std::string_view key, int32_t window) {
  const std::string_view name = family.name;
  if (key == "ssm.dt_b_c_rms" && family.style.recurrent_norms) return true;
  // The value is what the family has in any case.
  const arch::ExpertStyle& experts = family.style.experts;
  if (key == "expert_gating_func" && experts.gating == engine::Gating::kSigmoid) return true;
  // The first block has no experts in any case, nor one that a step leaves out.
  const bool places = key.starts_with("leading_") || key.starts_with("interleave_");
  if (places && experts.some_blocks) return true;
  // The first blocks have no feed-forward.
  if (name == "nemotron_h_moe" && places) return true;
  // Of those with experts.
  if (key.starts_with("expert_w") || key.starts_with("expert_g") || places) {
    return experts.has != arch::Experts::kRequired;
  }
  const arch::DenseStyle& style = family.style;
  if (key.starts_with("rope.") && style.rope.kind == engine::RopeKind::kNone) return true;
  if (key.starts_with("attention.") && style.recurs == arch::Recurs::kOnly) return true;
  // Layers without a window are not rotated.
  if (key.starts_with("rope.") && style.rotate_local && window == 0) return true;
  // Of YaRN alone.
  if (key == "rope.scaling.yarn_log_multiplier") return style.query_temperature;
  // Positions are one in texts, and pairs lie as if there were none.
  if (key == "rope.dimension_sections") {
    return style.rope_sections && style.rope.kind == engine::RopeKind::kHalves;
  }
  // Of those with windows in some layers, should there be none.
  if (key == "rope.freq_base_swa") return family.style.global_every > 0 && window == 0;
  // What converters write that the models do not have.
  return key == "attention.sliding_window" && (name == "phi3" || name == "exaone4");
}
constexpr Telling kTelling[] = {
    {"attention.sliding_window", 3, Telling::kWhole},
    {"attention.chunk_size", 3, Telling::kWhole},
    {"attention.scale", 0.7, Telling::kNumber},
    {"attention.causal", 0, Telling::kNo},
    {"attention.max_alibi_bias", 8, Telling::kNumber},
    {"attention.clamp_kqv", 4, Telling::kNumber},
    {"attention.temperature_scale", 0.5, Telling::kNumber},
    {"attn_logit_softcapping", 0.5, Telling::kNumber},
    {"final_logit_softcapping", 0.5, Telling::kNumber},
    {"embedding_scale", 3, Telling::kNumber},
    {"residual_scale", 3, Telling::kNumber},
    {"logit_scale", 3, Telling::kNumber},
    {"expert_count", 8, Telling::kWhole},
    {"nextn_predict_layers", 1, Telling::kWhole},
    {"attention.shared_kv_layers", 1, Telling::kWhole},
    {"rope.dimension_count", 4, Telling::kWhole},
    {"rope.scaling.factor", 4, Telling::kNumber},
    {"rope.scale_linear", 4, Telling::kNumber},
    {"rope.scaling.attn_factor", 1.5, Telling::kNumber},
    {"rope.scaling.yarn_log_multiplier", 0.5, Telling::kNumber},
    {"rope.freq_base_swa", 77, Telling::kNumber},
    {"expert_weights_scale", 2.5, Telling::kNumber},
    {"expert_gating_func", 2, Telling::kWhole},
    {"leading_dense_block_count", 1, Telling::kWhole},
    {"interleave_moe_layer_step", 2, Telling::kWhole},
    {"swiglu_clamp_exp", 0.01, Telling::kNumber},
    {"swiglu_clamp_shexp", 0.01, Telling::kNumber},
    {"rope.dimension_sections", 2, Telling::kList},
    {"ssm.dt_b_c_rms", 1, Telling::kYes},
};

TEST(FamilyAttack, AKeyThatIsAddedCountsOrIsRefused) {
  for (const arch::Architecture* family : arch::architectures()) {
    TinyModelSpec spec = whole_spec(*family);
    spec.embedding_factor = spec.residual_factor = spec.logit_scale = 0.0F;
    spec.score_cap = spec.logit_cap = 0.0F;
    for (const int32_t window : {0, 5}) {
      spec.window = window;
      const Outcome plain = attempt(TinyModel(spec).bytes());
      ASSERT_TRUE(plain.load.ok()) << plain.load.message();
      for (const Telling& telling : kTelling) {
        SCOPED_TRACE(testing::Message() << family->name << " " << telling.key << " " << window);
        const std::string key = std::string(family->name) + "." + telling.key;
        TinyModel tiny(spec);
        if (tiny.writer().build().marks.contains(key + ".value")) continue;
        if (is_idle(*family, telling.key, window)) continue;
        const auto whole = static_cast<uint32_t>(telling.value);
        if (telling.form == Telling::kWhole) tiny.writer().set(key, whole);
        if (telling.form == Telling::kNumber) {
          tiny.writer().set(key, static_cast<float>(telling.value));
        }
        if (telling.form == Telling::kNo) tiny.writer().set(key, false);
        if (telling.form == Telling::kYes) tiny.writer().set(key, true);
        if (telling.form == Telling::kList) {
          tiny.writer().set_array<uint32_t>(key, {whole, whole, whole, 0});
        }
        const Outcome more = attempt(tiny.bytes());
        if (!more.load.ok()) {
          // Or another, or a tensor, that it asks for.
          const std::string said = more.load.message();
          EXPECT_TRUE(said.find(std::string(family->name) + ".") != said.npos ||
                      said.find("tensor blk.0.") != said.npos ||
                      said.find("tensor per_layer_token_embd.weight") != said.npos)
              << said;
          continue;
        }
        EXPECT_TRUE(!more.run.ok() || more.logits != plain.logits);
      }
    }
  }
}

}  // namespace
}  // namespace gen::model
