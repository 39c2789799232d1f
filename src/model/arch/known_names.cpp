// SPDX-License-Identifier: Apache-2.0
// See known_names.h.
#include "model/arch/known_names.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace gen::model::arch {
namespace {

/// What a family would need.
struct Lacking {
  std::string_view name;
  std::string_view needs;
};
constexpr Lacking kLacking[] = {
    {"deepseek2", "latent attention"},
    {"mistral4", "latent attention"},
    {"deepseek32", "latent attention over entries that an indexer chooses"},
    {"glm-dsa", "latent attention over entries that an indexer chooses"},
    {"deepseek4", "compressed attention and several residual streams"},
    {"hy_v4", "latent attention and several residual streams"},
    {"glm5next", "latent attention, delta nets with a decay of each channel and several streams"},
    {"kimi-linear", "latent attention and delta nets with a decay of each channel"},
    {"kimi-k3", "latent attention"},
    {"qwen4exp", "several residual streams, attention to chosen blocks and embeddings of n-grams"},
    {"minimax-m3", "attention to blocks that an indexer chooses"},
    {"llama4", "experts whose inputs have weights"},
    {"rwkv7", "a recurrence of its own"},
};

/// Made for ollama's own engine, and not translated.
constexpr Lacking kOllamas[] = {
    {"glm4moelite", "latent attention"},
    {"deepseekocr", "latent attention"},
    {"mllama", "attention to pictures"},
};

constexpr std::string_view kDense[] = {
    "deci",           "falcon",    "gpt2",     "gptj",    "mpt",      "baichuan",
    "starcoder",      "refact",    "bloom",    "qwen",    "plamo",    "plamo3",
    "codeshell",      "orion",     "minicpm3", "gemma3n", "xverse",   "openelm",
    "chatglm",        "bitnet",    "jais",     "jais2",   "exaone",   "plm",
    "pangu-embedded", "maincoder", "talkie",   "mellum",  "nanbeige", "phi4flash"};
constexpr std::string_view kExperts[] = {
    "grok",        "phimoe",       "dbrx",     "arctic", "exaone-moe", "bailingmoe",
    "bailingmoe2", "bailingmoe3",  "dots1",    "dots3",  "afmoe",      "hunyuan-moe",
    "hy_v3",       "smallthinker", "grovemoe", "mimo2",  "qwen3vlmoe"};
constexpr std::string_view kRecurrent[] = {"rwkv6", "rwkv6qwen2", "arwkv7", "plamo2"};
constexpr std::string_view kEncoders[] = {
    "bert",         "modern-bert", "nomic-bert", "nomic-bert-moe",  "neo-bert",   "jina-bert-v2",
    "jina-bert-v3", "eurobert",    "t5encoder",  "gemma-embedding", "llama-embed"};
constexpr std::string_view kBothCoders[] = {"t5"};
constexpr std::string_view kDiffusion[] = {"dream", "llada", "llada-moe", "rnd1",
                                           "diffusion-gemma"};
constexpr std::string_view kPictures[] = {"clip",       "chameleon", "cogvlm",
                                          "hunyuan_vl", "paddleocr", "deepseek2-ocr"};
constexpr std::string_view kPictureMakers[] = {"flux",   "sd1",     "sdxl",  "sd3",
                                               "aura",   "lumina2", "wan",   "hidream",
                                               "cosmos", "ltxv",    "hyvid", "qwen_image"};
constexpr std::string_view kSound[] = {"wavtokenizer-dec", "whisper"};

struct Group {
  std::span<const std::string_view> names;
  std::string_view what;
};
constexpr Group kGroups[] = {
    {kDense, "a decoder without experts of a family that is not here yet"},
    {kExperts, "a decoder with experts of a family that is not here yet"},
    {kRecurrent, "a recurrent or hybrid model of a family that is not here yet"},
    {kEncoders, "an encoder, which generates no text"},
    {kBothCoders, "an encoder and a decoder"},
    {kDiffusion, "a model of diffusion, which does not write from left to right"},
    {kPictures, "a model of pictures"},
    {kPictureMakers, "a model that makes pictures"},
    {kSound, "a model of sound"},
};

constexpr size_t kMostLetters = 40;  // of names that are compared

/// Letters and digits alone, small, without what names of classes end with.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, kMostLetters)) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      out += c;
    }
  }
  for (const std::string_view end : {"forcausallm", "forconditionalgeneration"}) {
    if (out.ends_with(end)) out.resize(out.size() - end.size());
  }
  return out;
}

/// Levenshtein's.
int distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int above = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int changed = above + (a[i] == b[j] ? 0 : 1);
      above = row[j + 1];
      row[j + 1] = std::min({changed, above + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string why_not_supported(std::string_view name) {
  for (const Lacking& row : kLacking) {
    if (name == row.name) return "it needs " + std::string(row.needs);
  }
  for (const Lacking& row : kOllamas) {
    if (name == row.name) {
      return "the file was made for ollama's own engine, and the model needs " +
             std::string(row.needs);
    }
  }
  for (const Group& group : kGroups) {
    if (std::find(group.names.begin(), group.names.end(), name) == group.names.end()) continue;
    return "it is " + std::string(group.what);
  }
  return {};
}

int spelling_distance(std::string_view name, std::string_view other) {
  if (name.size() > kMostLetters) return -1;
  const std::string a = plain(name);
  const std::string b = plain(other);
  if (a.empty()) return -1;
  const int letters = distance(a, b);
  constexpr size_t kPrefix = 4;  // letters that are a family's name
  const size_t shorter = std::min(a.size(), b.size());
  const bool begins = shorter >= kPrefix && a.substr(0, shorter) == b.substr(0, shorter);
  const bool close = letters <= 2 && letters * 3 <= static_cast<int>(shorter);
  return begins || close ? letters : -1;
}

}  // namespace gen::model::arch
