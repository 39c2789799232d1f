// SPDX-License-Identifier: Apache-2.0
// custom_model.h of the C API: the configuration. Its getters are in model.cpp.
#include <generate/custom_model.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "api/boundary.h"
#include "api/model_handle.h"
#include "api/option_table.h"
#include "cache/limits.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OptionRow;
using C = gen_model_config;

constexpr size_t kMostName = 31;          // what a saved session has room for

Status set_number(int32_t& to, int64_t value, int32_t least, const char* what) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  if (value < least || value > kMost) {
    return gen::error(Code::kInvalidArgument, "%s %lld is outside [%d, %d]", what,
                      static_cast<long long>(value), least, kMost);
  }
  to = static_cast<int32_t>(value);
  return {};
}

Status set_vocab_size(C& c, int64_t value) {
  return set_number(c.vocab_size, value, 1, "vocab_size");
}
Status set_max_seq_len(C& c, int64_t value) {
  return set_number(c.max_seq_len, value, 1, "max_seq_len");
}
Status set_eos(C& c, int64_t value) { return set_number(c.eos, value, -1, "eos"); }
Status set_bos(C& c, int64_t value) { return set_number(c.bos, value, -1, "bos"); }
Status set_num_layers(C& c, int64_t value) {
  return set_number(c.num_layers, value, 0, "num_layers");
}
Status set_num_heads(C& c, int64_t value) { return set_number(c.num_heads, value, 0, "num_heads"); }
Status set_num_kv_heads(C& c, int64_t value) {
  return set_number(c.num_kv_heads, value, 0, "num_kv_heads");
}
Status set_head_dim(C& c, int64_t value) { return set_number(c.head_dim, value, 0, "head_dim"); }
Status set_hidden(C& c, int64_t value) { return set_number(c.hidden, value, 0, "hidden"); }

Status set_kv_layers(C& c, int64_t value) {
  if (value > gen::cache::kMostLayers) {
    return gen::error(Code::kInvalidArgument, "kv_layers %lld is outside [0, %d]",
                      static_cast<long long>(value), gen::cache::kMostLayers);
  }
  return set_number(c.kv_layers, value, 0, "kv_layers");
}

Status set_name(C& c, const char* name) {
  const std::string_view text = name;
  const bool good = std::all_of(text.begin(), text.end(), [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
  });
  if (text.empty() || text.size() > kMostName || !good) {
    return gen::error(Code::kInvalidArgument,
                      "a name of %zu bytes: 1 to %zu of printable ASCII without quotes",
                      text.size(), kMostName);
  }
  c.name = text;
  return {};
}

template <Status (*Set)(C&, int64_t)>
Status from_int(C& c, const char* text) {
  GEN_ASSIGN(const int64_t value, gen::api::parse_int(text));
  return Set(c, value);
}

const OptionRow<C> kRows[] = {
    {"vocab_size", "int", "1 and up", "0", from_int<set_vocab_size>,
     [](const C& c) { return std::to_string(c.vocab_size); }},
    {"max_seq_len", "int", "1 and up", "0", from_int<set_max_seq_len>,
     [](const C& c) { return std::to_string(c.max_seq_len); }},
    {"eos", "int", "a token, or -1", "-1", from_int<set_eos>,
     [](const C& c) { return std::to_string(c.eos); }},
    {"bos", "int", "a token, or -1", "-1", from_int<set_bos>,
     [](const C& c) { return std::to_string(c.bos); }},
    {"num_layers", "int", "0 and up", "0", from_int<set_num_layers>,
     [](const C& c) { return std::to_string(c.num_layers); }},
    {"num_heads", "int", "0 and up", "0", from_int<set_num_heads>,
     [](const C& c) { return std::to_string(c.num_heads); }},
    {"num_kv_heads", "int", "0 and up", "0", from_int<set_num_kv_heads>,
     [](const C& c) { return std::to_string(c.num_kv_heads); }},
    {"head_dim", "int", "0 and up", "0", from_int<set_head_dim>,
     [](const C& c) { return std::to_string(c.head_dim); }},
    {"hidden", "int", "0 and up", "0", from_int<set_hidden>,
     [](const C& c) { return std::to_string(c.hidden); }},
    {"kv_layers", "int", "0 to 65536", "0", from_int<set_kv_layers>,
     [](const C& c) { return std::to_string(c.kv_layers); }},
    {"name", "string", "1 to 31 bytes of ASCII", "custom", set_name,
     [](const C& c) { return c.name; }},
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
  return with(config, error, [&](C& c) { return set_vocab_size(c, tokens); });
}

gen_status gen_model_config_set_max_seq_len(gen_model_config* config, int32_t tokens,
                                            gen_error* error) {
  return with(config, error, [&](C& c) { return set_max_seq_len(c, tokens); });
}

gen_status gen_model_config_set_eos(gen_model_config* config, int32_t token, gen_error* error) {
  return with(config, error, [&](C& c) { return set_eos(c, token); });
}

gen_status gen_model_config_set_bos(gen_model_config* config, int32_t token, gen_error* error) {
  return with(config, error, [&](C& c) { return set_bos(c, token); });
}

gen_status gen_model_config_set_num_layers(gen_model_config* config, int32_t layers,
                                           gen_error* error) {
  return with(config, error, [&](C& c) { return set_num_layers(c, layers); });
}

gen_status gen_model_config_set_num_heads(gen_model_config* config, int32_t heads,
                                          gen_error* error) {
  return with(config, error, [&](C& c) { return set_num_heads(c, heads); });
}

gen_status gen_model_config_set_num_kv_heads(gen_model_config* config, int32_t heads,
                                             gen_error* error) {
  return with(config, error, [&](C& c) { return set_num_kv_heads(c, heads); });
}

gen_status gen_model_config_set_head_dim(gen_model_config* config, int32_t elements,
                                         gen_error* error) {
  return with(config, error, [&](C& c) { return set_head_dim(c, elements); });
}

gen_status gen_model_config_set_hidden(gen_model_config* config, int32_t elements,
                                       gen_error* error) {
  return with(config, error, [&](C& c) { return set_hidden(c, elements); });
}

gen_status gen_model_config_set_kv_layers(gen_model_config* config, int32_t layers,
                                          gen_error* error) {
  return with(config, error, [&](C& c) { return set_kv_layers(c, layers); });
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
