// SPDX-License-Identifier: Apache-2.0
// gen_options of generator.h in the C API. generator.cpp uses them.
#include <generate/generator.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"
#include "api/boundary/option_table.h"
#include "cache/sequence/registry.h"
#include "graph/batch.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::check_range;
using gen::api::guard;
using gen::api::kAnyMost;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::api::SwitchOption;
using gen::api::TextOption;
using gen::api::WholeOption;
using gen::cache::CacheFormat;
using gen::cache::KeyChoice;
using gen::graph::kMaxStepRows;
using gen::graph::kStepRows;

using O = gen_options;

constexpr int32_t kMaxLayers = 1 << 16;
constexpr int32_t kMaxNgram = 64;
constexpr int32_t kMaxRecent = 1 << 28;

constexpr OptionRow<O> kPrefixCache = {
    "prefix_cache",
    WholeOption<O>{[](O& o) -> int32_t& { return o.caches.prefix_blocks; }, 0, kAnyMost},
    "blocks of the pool kept for prompts that share a prefix with an earlier one; 0: none"};
constexpr OptionRow<O> kCompressedKv = {
    "compressed_kv",
    WholeOption<O>{[](O& o) -> int32_t& { return o.caches.compressed_chunk; }, 0, kAnyMost},
    "replaces every full chunk of this many positions by one entry, their mean; 0: off"};
constexpr OptionRow<O> kWindowCopies = {
    "window_copies",
    WholeOption<O>{[](O& o) -> int32_t& { return o.generator.window_copies; }, 0, kAnyMost},
    "most copies of a session's windows at the borders of messages, from which longer cuts go on"};
constexpr OptionRow<O> kSnapshotEvery = {
    "state_snapshot_every",
    WholeOption<O>{[](O& o) -> int32_t& { return o.generator.snapshot_every; }, 0, kAnyMost},
    "tokens between snapshots of a recurrent model's state within prompts and answers; 0: none "
    "there"};
constexpr OptionRow<O> kSnapshotBudget = {
    "state_snapshot_budget",
    WholeOption<O>{[](O& o) -> int32_t& { return o.caches.snapshot_mb; }, -1, kAnyMost},
    "most MiB of a session's snapshots of a recurrent model's state; -1: eight snapshots; 0: none"};
constexpr OptionRow<O> kPrefillChunk = {
    "prefill_chunk",
    WholeOption<O>{[](O& o) -> int32_t& { return o.generator.prefill_chunk; }, 0, kMaxStepRows},
    "most tokens of a prompt in one pass; 0: 256 on the CPU, more on a device that is wide"};
constexpr OptionRow<O> kMaxBatch = {
    "max_batch",
    WholeOption<O>{[](O& o) -> int32_t& { return o.generator.max_sequences; }, 1, kStepRows},
    "most sequences in one pass"};
constexpr OptionRow<O> kMaxQueue = {
    "max_queue",
    WholeOption<O>{[](O& o) -> int32_t& { return o.generator.max_queue; }, 0, kAnyMost},
    "calls beyond max_batch that may wait; 0: no limit"};
constexpr OptionRow<O> kFairness = {
    "fairness",
    WholeOption<O>{[](O& o) -> int32_t& { return o.generator.max_passed_over; }, 0, kAnyMost},
    "passes in which a waiting call may be passed over for more urgent ones"};
constexpr OptionRow<O> kDeterministic = {
    "deterministic", SwitchOption<O>{[](O& o) -> bool& { return o.generator.deterministic; }},
    "the bits of a text depend on nothing that runs beside it, on a device too; the CPU's never "
    "do"};

Status set_kv_dtype(gen_options& options, const char* name) {
  GEN_ASSIGN(CacheFormat format, gen::cache::parse_cache_format(name));
  if (format.key_choice == KeyChoice::kBest) format.key_choice = options.caches.format.key_choice;
  options.caches.format = format;
  return {};
}

Status set_kv_types(gen_options& options, const char* keys, const char* values) {
  return set_kv_dtype(options, std::string(keys).append("/").append(values).c_str());
}

Status set_kv_key_form(gen_options& options, const char* name) {
  GEN_ASSIGN(options.caches.format.key_choice, gen::cache::find_key_choice(name));
  return {};
}

Status set_paged_kv(gen_options& options, int64_t max_memory_mb, int64_t block_size) {
  GEN_TRY(check_range("paged_kv of MiB", max_memory_mb, 0, kAnyMost));
  GEN_TRY(check_range("paged_kv in blocks of", block_size, 1, kAnyMost));
  options.caches.paged_mb = static_cast<int32_t>(max_memory_mb);
  options.caches.paged_block_size = static_cast<int32_t>(block_size);
  return {};
}

/// Not a whole number's row: what nobody set gives way where another option excludes it.
Status set_window_rewind(gen_options& options, const char* text) {
  GEN_ASSIGN(const int64_t n, gen::api::parse_int(text));
  GEN_TRY(check_range("window_rewind", n, -1, kAnyMost));
  options.generator.window_rewind = static_cast<int32_t>(n);
  return {};
}

/// Parses "512" or "512,32".
Status paged_kv_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  const size_t comma = all.find(',');
  GEN_ASSIGN(const int64_t mib, gen::api::parse_int(std::string(all.substr(0, comma)).c_str()));
  int64_t block_size = options.caches.paged_block_size;
  if (comma != std::string_view::npos) {
    GEN_ASSIGN(block_size, gen::api::parse_int(std::string(all.substr(comma + 1)).c_str()));
  }
  return set_paged_kv(options, mib, block_size);
}

/// Parses "512" or "folder,512"; empty or "0" for none. The folder name may contain commas.
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
  return (folder.empty() ? "" : folder + ",") + std::to_string(options.tiered->sessions.hot_mb);
}

Status set_context_policy(gen_options& options, std::string_view name, int64_t keep) {
  if (name != "stop" && name != "shift") {
    return gen::error(Code::kInvalidArgument, "unknown context_policy \"%.*s\": stop or shift",
                      static_cast<int>(std::min<size_t>(name.size(), 40)), name.data());
  }
  GEN_TRY(check_range("context_policy keep", keep, 0, kAnyMost));
  options.generator.shift_context = name == "shift";
  options.generator.context_keep = static_cast<int32_t>(keep);
  return {};
}

/// Parses "stop", "shift" or "shift,4".
Status context_policy_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  const size_t comma = all.find(',');
  int64_t keep = gen::generate::kDefaultContextKeep;
  if (comma != std::string_view::npos) {
    GEN_ASSIGN(keep, gen::api::parse_int(std::string(all.substr(comma + 1)).c_str()));
  }
  return set_context_policy(options, all.substr(0, comma), keep);
}

Status set_prompt_lookup(gen_options& options, int64_t ngram, int64_t length) {
  GEN_TRY(check_range("prompt_lookup n-gram", ngram, 0, kMaxNgram));
  GEN_TRY(check_range("prompt_lookup length", length, 0, gen::generate::kMaxDraftLength));
  options.drafts.ngram = static_cast<int32_t>(ngram);
  options.drafts.ngram_length =
      length > 0 ? static_cast<int32_t>(length) : gen::generate::kDefaultLookupLength;
  return {};
}

Status set_suffix_lookup(gen_options& options, int64_t length, int64_t recent) {
  GEN_TRY(check_range("suffix_lookup length", length, 0, gen::generate::kMaxDraftLength));
  GEN_TRY(check_range("suffix_lookup recent tokens", recent, 0, kMaxRecent));
  options.drafts.suffix_length = static_cast<int32_t>(length);
  options.drafts.suffix_recent = static_cast<int32_t>(recent);
  return {};
}

Status set_self_draft(gen_options& options, int64_t layers, int64_t length) {
  GEN_TRY(check_range("self_draft layers", layers, 0, kMaxLayers));
  GEN_TRY(check_range("self_draft length", length, 0, gen::generate::kMaxDraftLength));
  options.drafts.self_layers = static_cast<int32_t>(layers);
  options.drafts.self_length =
      length > 0 ? static_cast<int32_t>(length) : gen::generate::kDefaultDraftLength;
  return {};
}

Status set_draft_acceptance(gen_options& options, const char* name) {
  const std::string_view all = name;
  if (all != "exact" && all != "distribution") {
    return gen::error(Code::kInvalidArgument,
                      "unknown draft_acceptance \"%.*s\": exact or distribution",
                      static_cast<int>(std::min<size_t>(all.size(), 40)), all.data());
  }
  options.generator.draft_policy.rejects = all == "distribution";
  return {};
}

constexpr std::string_view kHeads[] = {"auto", "on", "off"};

/// Parses "auto", "on", "off", or one of them with a length, as in "on,6".
Status set_draft_heads(gen_options& options, const char* text) {
  const std::string_view all = text;
  const size_t comma = all.find(',');
  const std::string_view name = all.substr(0, comma);
  const auto* const found = std::find(std::begin(kHeads), std::end(kHeads), name);
  if (found == std::end(kHeads)) {
    return gen::error(Code::kInvalidArgument, "unknown draft_heads \"%.*s\": auto, on or off",
                      static_cast<int>(std::min<size_t>(name.size(), 40)), name.data());
  }
  int64_t length = 0;
  if (comma != std::string_view::npos) {
    GEN_ASSIGN(length, gen::api::parse_int(std::string(all.substr(comma + 1)).c_str()));
    GEN_TRY(check_range("draft_heads length", length, 0, gen::generate::kMaxDraftLength));
  }
  options.drafts.heads = static_cast<gen::generate::UseHeads>(found - std::begin(kHeads));
  options.drafts.heads_length =
      length > 0 ? static_cast<int32_t>(length) : gen::generate::kDefaultDraftLength;
  return {};
}

std::string draft_heads_text(const gen_options& options) {
  return std::string(kHeads[static_cast<size_t>(options.drafts.heads)]) + "," +
         std::to_string(options.drafts.heads_length);
}

constexpr std::string_view kDraftPolicies[] = {"always", "adaptive", "auto"};
constexpr std::string_view kNoDrafts = "off";

Status set_draft_policy(gen_options& options, const char* text) {
  gen::generate::DraftPolicy& policy = options.generator.draft_policy;
  const std::string_view all = text;
  if (all == kNoDrafts) {
    options.drafts.off = true;
    return {};
  }
  const bool has_share = all.starts_with("adaptive,");
  const std::string_view name = has_share ? all.substr(0, all.find(',')) : all;
  const auto* const found = std::find(std::begin(kDraftPolicies), std::end(kDraftPolicies), name);
  if (found == std::end(kDraftPolicies)) {
    return gen::error(
        Code::kInvalidArgument,
        "unknown draft_policy \"%.*s\": auto, always, adaptive, adaptive,SHARE or off",
        static_cast<int>(std::min<size_t>(name.size(), 40)), name.data());
  }
  double fall_back = gen::generate::DraftPolicy().fall_back;
  if (has_share) {
    const std::string share(all.substr(name.size() + 1));
    GEN_ASSIGN(fall_back, gen::api::parse_double(share.c_str()));
    if (!(fall_back >= 0 && fall_back <= 1)) {
      return gen::error(Code::kInvalidArgument,
                        "draft_policy %.40s: a share of %g is outside [0, 1]", text, fall_back);
    }
  }
  policy.kind = static_cast<gen::generate::DraftPolicy::Kind>(found - std::begin(kDraftPolicies));
  policy.fall_back = fall_back;
  options.drafts.off = false;
  return {};
}

std::string draft_policy_text(const gen_options& options) {
  if (options.drafts.off) return std::string(kNoDrafts);
  const gen::generate::DraftPolicy& policy = options.generator.draft_policy;
  std::string text(kDraftPolicies[static_cast<size_t>(policy.kind)]);
  if (policy.kind != gen::generate::DraftPolicy::Kind::kAdaptive) return text;
  return text.append(",").append(gen::api::number_text(policy.fall_back));
}

/// Parses "3" or "3,8"; a missing second number is 0.
template <Status (*kSet)(gen_options&, int64_t, int64_t)>
Status pair_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  const size_t comma = all.find(',');
  GEN_ASSIGN(const int64_t first, gen::api::parse_int(std::string(all.substr(0, comma)).c_str()));
  int64_t second = 0;
  if (comma != std::string_view::npos) {
    GEN_ASSIGN(second, gen::api::parse_int(std::string(all.substr(comma + 1)).c_str()));
  }
  return kSet(options, first, second);
}

std::string key_forms() {
  std::string names;
  for (int32_t choice = 0; choice < gen::cache::kKeyChoices; ++choice) {
    names.append(names.empty() ? "" : ", ").append(key_choice_name(static_cast<KeyChoice>(choice)));
  }
  return names;
}

std::string kv_names() {
  std::string names;
  for (const auto& kind : gen::cache::cache_kinds()) names.append(kind.name).append(", ");
  return names + "or KEYS/VALUES for two of them; :FORM appended sets kv_key_form";
}

const OptionRow<O> kRows[] = {
    {"kv_dtype",
     TextOption<O>{kv_names, set_kv_dtype,
                   [](const O& o) {
                     const CacheFormat& kv = o.caches.format;
                     return std::string(CacheFormat{kv.keys, kv.values}.name());
                   }},
     "storage format of keys and values"},
    {"kv_key_form",
     TextOption<O>{
         key_forms, set_kv_key_form,
         [](const O& o) { return std::string(key_choice_name(o.caches.format.key_choice)); }},
     "how keys are stored"},
    {"paged_kv",
     TextOption<O>{[] { return std::string("MIB or MIB,POSITIONS"); }, paged_kv_from_text,
                   [](const O& o) {
                     return std::to_string(o.caches.paged_mb) + "," +
                            std::to_string(o.caches.paged_block_size);
                   }},
     "keeps keys and values in blocks of POSITIONS positions from a pool of MIB; 0: each session "
     "has its own memory"},
    kPrefixCache,
    kCompressedKv,
    {"window_rewind",
     TextOption<O>{[] { return gen::api::range_text(-1, std::numeric_limits<double>::infinity()); },
                   set_window_rewind,
                   [](const O& o) {
                     return std::to_string(
                         o.generator.window_rewind.value_or(gen::generate::kDefaultWindowRewind));
                   },
                   "int"},
     "layers with a window keep only its positions and this many before them, and what a cut goes "
     "back to beyond these is evaluated again, from the nearest copy; -1: they keep all"},
    kWindowCopies,
    {"tiered_kv",
     TextOption<O>{[] { return std::string("MIB or FOLDER,MIB"); }, tiered_kv_from_text,
                   tiered_kv_text},
     "keeps the newest keys and values in MIB of memory and the rest in a file in FOLDER; empty or "
     "0: all in memory"},
    {"context_policy",
     TextOption<O>{
         [] { return std::string("stop, shift or shift,KEEP"); }, context_policy_from_text,
         [](const O& o) {
           return o.generator.shift_context ? "shift," + std::to_string(o.generator.context_keep)
                                            : std::string("stop");
         }},
     "when the context is full: stop, or drop the oldest tokens after the first KEEP"},
    {"parse_special", SwitchOption<O>{[](O& o) -> bool& { return o.generator.parse_special; }},
     "special tokens written in prompts are parsed as such; 0: they are text"},
    {"prompt_lookup",
     TextOption<O>{[] { return std::string("NGRAM or NGRAM,LENGTH"); },
                   pair_from_text<set_prompt_lookup>,
                   [](const O& o) {
                     return o.drafts.ngram == 0 ? "0"
                                                : std::to_string(o.drafts.ngram) + "," +
                                                      std::to_string(o.drafts.ngram_length);
                   }},
     "drafts LENGTH tokens where the last NGRAM tokens occurred before in the text; 0: off"},
    {"suffix_lookup",
     TextOption<O>{
         [] { return std::string("LENGTH or LENGTH,RECENT"); }, pair_from_text<set_suffix_lookup>,
         [](const O& o) {
           return o.drafts.suffix_length == 0 ? "0"
                                              : std::to_string(o.drafts.suffix_length) + "," +
                                                    std::to_string(o.drafts.suffix_recent);
         }},
     "drafts up to LENGTH tokens from places where the end of the text occurred before, in it or "
     "in the last RECENT tokens of ended texts of other sessions; 0: off"},
    {"self_draft",
     TextOption<O>{[] { return std::string("LAYERS or LAYERS,LENGTH"); },
                   pair_from_text<set_self_draft>,
                   [](const O& o) {
                     return o.drafts.self_layers == 0 ? "0"
                                                      : std::to_string(o.drafts.self_layers) + "," +
                                                            std::to_string(o.drafts.self_length);
                   }},
     "drafts up to LENGTH tokens with the model's first LAYERS and its output layer, where lookups "
     "and a draft model find nothing; 0: off"},
    {"draft_heads",
     TextOption<O>{[] { return std::string("auto, on or off, or one of them with ,LENGTH"); },
                   set_draft_heads, draft_heads_text},
     "drafts up to LENGTH tokens with the head that is in the model's file (multi-token "
     "prediction), where lookups find nothing; auto: unless a draft model or first layers draft, "
     "or it cannot be used; on: it is an error if there is none; off: never"},
    {"eagle",
     TextOption<O>{[] { return std::string("a file as gen_options_set_eagle() takes it"); },
                   [](O& o, const char* path) {
                     o.eagle = path;
                     return Status();
                   },
                   [](const O& o) { return o.eagle; }},
     "drafts with the head of a file, whatever draft_heads says, where lookups find nothing; "
     "empty: none"},
    {"draft_acceptance",
     TextOption<O>{[] { return std::string("exact or distribution"); }, set_draft_acceptance,
                   [](const O& o) {
                     return std::string(o.generator.draft_policy.rejects ? "distribution"
                                                                         : "exact");
                   }},
     "exact: the text is that of plain decoding; distribution: keeps more drafts of a draft model "
     "when sampling, and the text differs but has the same distribution"},
    {"draft_policy",
     TextOption<O>{[] { return std::string("auto, always, adaptive, adaptive,SHARE or off"); },
                   set_draft_policy, draft_policy_text},
     "how many tokens are drafted at a time; auto: by measured times; always: as many as allowed; "
     "adaptive: more while most are accepted, fewer while few are, none for a while when fewer "
     "than SHARE are; off: none, and what would draft takes no memory"},
    kSnapshotEvery,
    kSnapshotBudget,
    kPrefillChunk,
    kMaxBatch,
    kMaxQueue,
    kFairness,
    kDeterministic,
};

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
    return kPrefixCache.set(*options, blocks);
  });
}

gen_status gen_options_set_compressed_kv(gen_options* options, int32_t chunk, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return kCompressedKv.set(*options, chunk);
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

gen_status gen_options_set_prompt_lookup(gen_options* options, int32_t ngram, int32_t length,
                                         gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_prompt_lookup(*options, ngram, length);
  });
}

gen_status gen_options_set_state_snapshot_every(gen_options* options, int32_t tokens,
                                                gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return kSnapshotEvery.set(*options, tokens);
  });
}

gen_status gen_options_set_state_snapshot_budget(gen_options* options, int32_t max_memory_mb,
                                                 gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return kSnapshotBudget.set(*options, max_memory_mb);
  });
}

gen_status gen_options_set_prefill_chunk(gen_options* options, int32_t tokens, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return kPrefillChunk.set(*options, tokens);
  });
}

gen_status gen_options_set_max_batch(gen_options* options, int32_t sequences, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return kMaxBatch.set(*options, sequences);
  });
}

gen_status gen_options_set_max_queue(gen_options* options, int32_t calls, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return kMaxQueue.set(*options, calls);
  });
}

gen_status gen_options_set_fairness(gen_options* options, int32_t steps, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return kFairness.set(*options, steps);
  });
}

gen_status gen_options_set_deterministic(gen_options* options, int32_t on, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    options->generator.deterministic = on != 0;
    return {};
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
