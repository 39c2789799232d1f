// SPDX-License-Identifier: Apache-2.0
// gen_options of generator.h in the C API: how to generate. What it leads to is generator.cpp's.
#include <generate/generator.h>

#include <algorithm>

#include "api/boundary.h"
#include "api/handles.h"
#include "api/option_table.h"
#include "cache/sequence/registry.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::cache::CacheFormat;
using gen::cache::KeyChoice;

constexpr int32_t kMaxPrefillChunk = 512;
constexpr int32_t kMostBatch = 512;

template <Status (*Set)(gen_options&, int64_t)>
Status int_from_text(gen_options& options, const char* text) {
  GEN_ASSIGN(const int64_t value, gen::api::parse_int(text));
  return Set(options, value);
}

Status set_kv_dtype(gen_options& options, const char* name) {
  GEN_ASSIGN(CacheFormat format, gen::cache::parse_cache_format(name));
  if (format.key_choice == KeyChoice::kBest) format.key_choice = options.kv.key_choice;
  options.kv = format;
  return {};
}

Status set_kv_types(gen_options& options, const char* keys, const char* values) {
  return set_kv_dtype(options, std::string(keys).append("/").append(values).c_str());
}

Status set_kv_key_form(gen_options& options, const char* name) {
  GEN_ASSIGN(options.kv.key_choice, gen::cache::find_key_choice(name));
  return {};
}

Status set_paged_kv(gen_options& options, int64_t max_memory_mb, int64_t block_size) {
  constexpr int64_t kMost = INT32_MAX;
  if (max_memory_mb < 0 || max_memory_mb > kMost || block_size < 1 || block_size > kMost) {
    return gen::error(Code::kInvalidArgument,
                      "paged_kv of %lld MiB in blocks of %lld: outside [0, %lld] and [1, %lld]",
                      static_cast<long long>(max_memory_mb), static_cast<long long>(block_size),
                      static_cast<long long>(kMost), static_cast<long long>(kMost));
  }
  options.paged_mb = static_cast<int32_t>(max_memory_mb);
  options.paged_block_size = static_cast<int32_t>(block_size);
  return {};
}

/// "512" or "512,32".
Status paged_kv_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  const size_t comma = all.find(',');
  GEN_ASSIGN(const int64_t mib, gen::api::parse_int(std::string(all.substr(0, comma)).c_str()));
  int64_t block_size = options.paged_block_size;
  if (comma != std::string_view::npos) {
    GEN_ASSIGN(block_size, gen::api::parse_int(std::string(all.substr(comma + 1)).c_str()));
  }
  return set_paged_kv(options, mib, block_size);
}

Status set_prefix_cache(gen_options& options, int64_t blocks) {
  if (blocks < 0 || blocks > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "prefix_cache of %lld blocks: outside [0, %d]",
                      static_cast<long long>(blocks), INT32_MAX);
  }
  options.prefix_blocks = static_cast<int32_t>(blocks);
  return {};
}

Status set_compressed_kv(gen_options& options, int64_t chunk) {
  if (chunk < 0 || chunk > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "compressed_kv in chunks of %lld: outside [0, %d]",
                      static_cast<long long>(chunk), INT32_MAX);
  }
  options.compressed_chunk = static_cast<int32_t>(chunk);
  return {};
}

/// "512" or "folder,512"; empty or "0" for none. A folder may hold commas.
Status tiered_kv_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  if (all.empty() || all == "0") {
    options.tiered = nullptr;
    return {};
  }
  const size_t comma = all.rfind(',');
  auto config = std::make_shared<kv_cache_tier_config>();
  if (comma != std::string_view::npos) config->store.cold_dir = all.substr(0, comma);
  const size_t number = comma == std::string_view::npos ? 0 : comma + 1;
  GEN_ASSIGN(const int64_t mib, gen::api::parse_int(std::string(all.substr(number)).c_str()));
  GEN_TRY(gen::api::set_hot_memory(*config, mib));
  options.tiered = std::move(config);
  return {};
}

std::string tiered_kv_text(const gen_options& options) {
  if (options.tiered == nullptr) return "";
  const std::string& folder = options.tiered->store.cold_dir;
  return (folder.empty() ? "" : folder + ",") + std::to_string(options.tiered->hot_mb);
}

Status set_context_policy(gen_options& options, std::string_view name, int64_t keep) {
  if (name != "stop" && name != "shift") {
    return gen::error(Code::kInvalidArgument, "unknown context_policy \"%.*s\": stop or shift",
                      static_cast<int>(std::min<size_t>(name.size(), 40)), name.data());
  }
  if (keep < 0 || keep > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "context_policy keeps %lld tokens, outside [0, %d]",
                      static_cast<long long>(keep), INT32_MAX);
  }
  options.shift_context = name == "shift";
  options.context_keep = static_cast<int32_t>(keep);
  return {};
}

/// "stop", "shift" or "shift,4".
Status context_policy_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  const size_t comma = all.find(',');
  int64_t keep = gen::generate::kDefaultContextKeep;
  if (comma != std::string_view::npos) {
    GEN_ASSIGN(keep, gen::api::parse_int(std::string(all.substr(comma + 1)).c_str()));
  }
  return set_context_policy(options, all.substr(0, comma), keep);
}

Status set_prefill_chunk(gen_options& options, int64_t tokens) {
  if (tokens < 1 || tokens > kMaxPrefillChunk) {
    return gen::error(Code::kInvalidArgument, "prefill_chunk %lld is outside [1, %d]",
                      static_cast<long long>(tokens), kMaxPrefillChunk);
  }
  options.prefill_chunk = static_cast<int32_t>(tokens);
  return {};
}

Status set_max_batch(gen_options& options, int64_t sequences) {
  if (sequences < 1 || sequences > kMostBatch) {
    return gen::error(Code::kInvalidArgument, "max_batch %lld is outside [1, %d]",
                      static_cast<long long>(sequences), kMostBatch);
  }
  options.max_batch = static_cast<int32_t>(sequences);
  return {};
}

// A queue of INT32_MAX / 2 is as good as none; sums with max_batch fit.
Status set_max_queue(gen_options& options, int64_t calls) {
  constexpr int32_t kMost = INT32_MAX / 2;
  if (calls < 0 || calls > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "max_queue %lld is outside [0, %d]",
                      static_cast<long long>(calls), INT32_MAX);
  }
  options.max_queue = static_cast<int32_t>(std::min<int64_t>(calls, kMost));
  return {};
}

Status set_fairness(gen_options& options, int64_t steps) {
  if (steps < 0 || steps > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "fairness of %lld steps is outside [0, %d]",
                      static_cast<long long>(steps), INT32_MAX);
  }
  options.fairness = static_cast<int32_t>(steps);
  return {};
}

const OptionRow<gen_options> kRows[] = {
    {"kv_dtype", "string", "a name of gen_kv_kind_describe, or keys/values", "fp32", set_kv_dtype,
     [](const gen_options& o) {
       return std::string(CacheFormat{o.kv.keys, o.kv.values}.name());
     }},
    {"kv_key_form", "string", "best, rotated or hadamard", "best", set_kv_key_form,
     [](const gen_options& o) { return std::string(key_choice_name(o.kv.key_choice)); }},
    {"paged_kv", "string", "MiB of the pool, or MiB,block size; 0 for no pool", "0,16",
     paged_kv_from_text,
     [](const gen_options& o) {
       return std::to_string(o.paged_mb) + "," + std::to_string(o.paged_block_size);
     }},
    {"prefix_cache", "int", "blocks of the pool kept for prompts that begin alike; 0 for none", "0",
     int_from_text<set_prefix_cache>,
     [](const gen_options& o) { return std::to_string(o.prefix_blocks); }},
    {"compressed_kv", "int", "positions of a chunk that becomes one; 0 for none", "0",
     int_from_text<set_compressed_kv>,
     [](const gen_options& o) { return std::to_string(o.compressed_chunk); }},
    {"tiered_kv", "string", "folder,MiB of memory, or MiB; empty for none", "", tiered_kv_from_text,
     tiered_kv_text},
    {"context_policy", "string", "stop, shift or shift,TOKENS KEPT", "stop",
     context_policy_from_text,
     [](const gen_options& o) {
       return o.shift_context ? std::string("shift,") + std::to_string(o.context_keep)
                              : std::string("stop");
     }},
    {"prefill_chunk", "int", "1 to 512", "256", int_from_text<set_prefill_chunk>,
     [](const gen_options& o) { return std::to_string(o.prefill_chunk); }},
    {"max_batch", "int", "1 to 512", "64", int_from_text<set_max_batch>,
     [](const gen_options& o) { return std::to_string(o.max_batch); }},
    {"max_queue", "int", "0 and up; 0 for no limit", "0", int_from_text<set_max_queue>,
     [](const gen_options& o) { return std::to_string(o.max_queue); }},
    {"fairness", "int", "0 and up; steps that a call may be left out of", "16",
     int_from_text<set_fairness>, [](const gen_options& o) { return std::to_string(o.fairness); }},
};
static_assert(gen::generate::kDefaultPrefillChunk == 256, "the table's default");
static_assert(gen::generate::kDefaultMaxSequences == 64, "the table's default");
static_assert(gen::generate::kMostPassedOver == 16, "the table's default");

}  // namespace

gen_status gen_options_new(gen_options** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_options;
    return {};
  });
}

void gen_options_free(gen_options* options) { delete options; }

gen_status gen_options_set_kv_dtype(gen_options* options, const char* name, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(name, "name"));
    return set_kv_dtype(*options, name);
  });
}

gen_status gen_options_set_kv_types(gen_options* options, const char* keys, const char* values,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(keys, "keys"));
    GEN_TRY(not_null(values, "values"));
    return set_kv_types(*options, keys, values);
  });
}

gen_status gen_options_set_kv_key_form(gen_options* options, const char* name, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(name, "name"));
    return set_kv_key_form(*options, name);
  });
}

gen_status gen_options_set_paged_kv(gen_options* options, int32_t max_memory_mb, int32_t block_size,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_paged_kv(*options, max_memory_mb, block_size);
  });
}

gen_status gen_options_set_prefix_cache(gen_options* options, int32_t blocks, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_prefix_cache(*options, blocks);
  });
}

gen_status gen_options_set_compressed_kv(gen_options* options, int32_t chunk, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_compressed_kv(*options, chunk);
  });
}

gen_status gen_options_set_tiered_kv(gen_options* options, const kv_cache_tier_config* config,
                                     gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    if (config != nullptr) GEN_TRY(gen::api::check_for_sessions(*config));
    options->tiered =
        config != nullptr ? std::make_shared<const kv_cache_tier_config>(*config) : nullptr;
    return {};
  });
}

gen_status gen_options_set_context_policy(gen_options* options, const char* policy, int32_t keep,
                                          gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(policy, "policy"));
    return set_context_policy(*options, policy, keep);
  });
}

gen_status gen_options_set_prefill_chunk(gen_options* options, int32_t tokens, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_prefill_chunk(*options, tokens);
  });
}

gen_status gen_options_set_max_batch(gen_options* options, int32_t sequences, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_max_batch(*options, sequences);
  });
}

gen_status gen_options_set_max_queue(gen_options* options, int32_t calls, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_max_queue(*options, calls);
  });
}

gen_status gen_options_set_fairness(gen_options* options, int32_t steps, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_fairness(*options, steps);
  });
}

gen_status gen_options_set(gen_options* options, const char* key, const char* value,
                           gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return gen::api::set_by_name<gen_options>(kRows, *options, key, value);
  });
}

gen_status gen_options_describe(const gen_options* options, char* buf, size_t capacity, size_t* n,
                                gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return gen::api::text_out(gen::api::describe_options<gen_options>(kRows, *options), buf,
                              capacity, n);
  });
}
