// SPDX-License-Identifier: Apache-2.0
// custom_model.h of the C API: the configuration. Its getters are in model.cpp.
#include <generate/custom_model.h>

#include <algorithm>
#include <string_view>

#include "api/boundary/boundary.h"
#include "api/model/model_handle.h"
#include "api/boundary/option_table.h"
#include "cache/limits.h"
#include "model/model.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::kAnyMost;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::api::TextOption;
using gen::api::WholeOption;
using gen::model::kMaxModelName;
using C = gen_model_config;

constexpr OptionRow<C> kVocabSize = {
    "vocab_size", WholeOption<C>{[](C& c) -> int32_t& { return c.vocab_size; }, 1, kAnyMost},
    "rows of logits"};
constexpr OptionRow<C> kMaxSeqLen = {
    "max_seq_len", WholeOption<C>{[](C& c) -> int32_t& { return c.max_seq_len; }, 1, kAnyMost},
    "longest context"};
constexpr OptionRow<C> kEos = {"eos",
                               WholeOption<C>{[](C& c) -> int32_t& { return c.eos; }, -1, kAnyMost},
                               "the token that ends a text; -1 for none"};
constexpr OptionRow<C> kBos = {"bos",
                               WholeOption<C>{[](C& c) -> int32_t& { return c.bos; }, -1, kAnyMost},
                               "the token that begins a text; -1 for none"};
constexpr OptionRow<C> kNumLayers = {
    "num_layers", WholeOption<C>{[](C& c) -> int32_t& { return c.num_layers; }, 0, kAnyMost},
    "layers, as the model reports them"};
constexpr OptionRow<C> kNumHeads = {
    "num_heads", WholeOption<C>{[](C& c) -> int32_t& { return c.num_heads; }, 0, kAnyMost},
    "query heads of a layer"};
constexpr OptionRow<C> kNumKvHeads = {
    "num_kv_heads", WholeOption<C>{[](C& c) -> int32_t& { return c.num_kv_heads; }, 0, kAnyMost},
    "key and value heads of a layer"};
constexpr OptionRow<C> kHeadDim = {
    "head_dim", WholeOption<C>{[](C& c) -> int32_t& { return c.head_dim; }, 0, kAnyMost},
    "elements of a head"};
constexpr OptionRow<C> kHidden = {
    "hidden", WholeOption<C>{[](C& c) -> int32_t& { return c.hidden; }, 0, kAnyMost},
    "width of the features that the function returns; 0: none"};
constexpr OptionRow<C> kKvLayers = {
    "kv_layers",
    WholeOption<C>{[](C& c) -> int32_t& { return c.cache_layers; }, 0, gen::cache::kMaxLayers},
    "layers that keep keys and values in the library's caches"};

Status set_name(C& c, const char* name) {
  const std::string_view text = name;
  const bool good = std::all_of(text.begin(), text.end(), [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
  });
  if (text.empty() || text.size() > kMaxModelName || !good) {
    return gen::error(Code::kInvalidArgument,
                      "a name of %zu bytes: 1 to %zu of printable ASCII without quotes",
                      text.size(), kMaxModelName);
  }
  c.name = text;
  return {};
}

const OptionRow<C> kRows[] = {
    kVocabSize,
    kMaxSeqLen,
    kEos,
    kBos,
    kNumLayers,
    kNumHeads,
    kNumKvHeads,
    kHeadDim,
    kHidden,
    kKvLayers,
    {"name",
     TextOption<C>{[] {
                     return "1 to " + std::to_string(kMaxModelName) +
                            " bytes of printable ASCII without quotes";
                   },
                   set_name, [](const C& c) { return c.name; }},
     "what the model is called, and what its saved sessions must name"},
};

template <typename F>
gen_status with(C* config, gen_error* error, F&& set) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    return set(*config);
  });
}

}  // namespace

gen_status gen_model_config_new(gen_model_config** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_model_config;
    return {};
  });
}

void gen_model_config_free(gen_model_config* config) { delete config; }

gen_status gen_model_config_set_vocab_size(gen_model_config* config, int32_t tokens,
                                           gen_error* error) {
  return with(config, error, [&](C& c) { return kVocabSize.set(c, tokens); });
}

gen_status gen_model_config_set_max_seq_len(gen_model_config* config, int32_t tokens,
                                            gen_error* error) {
  return with(config, error, [&](C& c) { return kMaxSeqLen.set(c, tokens); });
}

gen_status gen_model_config_set_eos(gen_model_config* config, int32_t token, gen_error* error) {
  return with(config, error, [&](C& c) { return kEos.set(c, token); });
}

gen_status gen_model_config_set_bos(gen_model_config* config, int32_t token, gen_error* error) {
  return with(config, error, [&](C& c) { return kBos.set(c, token); });
}

gen_status gen_model_config_set_num_layers(gen_model_config* config, int32_t layers,
                                           gen_error* error) {
  return with(config, error, [&](C& c) { return kNumLayers.set(c, layers); });
}

gen_status gen_model_config_set_num_heads(gen_model_config* config, int32_t heads,
                                          gen_error* error) {
  return with(config, error, [&](C& c) { return kNumHeads.set(c, heads); });
}

gen_status gen_model_config_set_num_kv_heads(gen_model_config* config, int32_t heads,
                                             gen_error* error) {
  return with(config, error, [&](C& c) { return kNumKvHeads.set(c, heads); });
}

gen_status gen_model_config_set_head_dim(gen_model_config* config, int32_t elements,
                                         gen_error* error) {
  return with(config, error, [&](C& c) { return kHeadDim.set(c, elements); });
}

gen_status gen_model_config_set_hidden(gen_model_config* config, int32_t elements,
                                       gen_error* error) {
  return with(config, error, [&](C& c) { return kHidden.set(c, elements); });
}

gen_status gen_model_config_set_kv_layers(gen_model_config* config, int32_t layers,
                                          gen_error* error) {
  return with(config, error, [&](C& c) { return kKvLayers.set(c, layers); });
}

gen_status gen_model_config_set_name(gen_model_config* config, const char* name, gen_error* error) {
  return with(config, error, [&](C& c) -> Status {
    GEN_TRY(not_null(name, "name"));
    return set_name(c, name);
  });
}

gen_status gen_model_config_set(gen_model_config* config, const char* key, const char* value,
                                gen_error* error) {
  return with(config, error, [&](C& c) -> Status {
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return gen::api::set_by_name<C>(kRows, c, key, value);
  });
}

gen_status gen_model_config_describe(const gen_model_config* config, char* buf, size_t capacity,
                                     size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    return gen::api::text_out(gen::api::describe_options<C>(kRows, *config), buf, capacity, n);
  });
}
