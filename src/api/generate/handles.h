// SPDX-License-Identifier: Apache-2.0
// The handles of what generates, and of what says how. As all handles they hold shared pointers to
// the rooms' objects, so freeing a handle never pulls anything away from under somebody else; what
// may call the host is reached through Shared::enter() of entry.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/boundary/entry.h"
#include "api/boundary/run_handles.h"
#include "api/text/text_handles.h"
#include "api/cache/kv_cache_handle.h"
#include "api/model/model_handle.h"
#include "api/cache/tier_config.h"
#include "base/home_process.h"
#include "engine/trace/trace_log.h"
#include <generate/error.h>
#include <generate/generator.h>
#include "generate/cache_choice.h"
#include "generate/chat_session.h"
#include "generate/draft_choice.h"
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "generate/request/call_params.h"

struct gen_chat {
  std::shared_ptr<gen::generate::Chat> impl = std::make_shared<gen::generate::Chat>();
};

struct gen_sampling {
  gen::generate::CallParams params;
};

struct gen_options {
  gen_options() { generator.draft_policy.kind = gen::generate::DraftPolicy::Kind::kAuto; }

  gen::generate::CacheChoice caches;                   // without `tiered`
  std::shared_ptr<const kv_cache_tier_config> tiered;  // null: everything stays in memory
  gen::generate::DraftChoice drafts;                   // without the model, which is `draft`
  std::shared_ptr<const gen::api::ModelParts> draft;   // null: none
  gen::SharedCallbacks draft_callbacks;                // its own
  gen::generate::GeneratorOptions generator;           // numbers and switches; the rest stands here
  std::shared_ptr<gen::engine::TraceLog> trace;        // null: none
  std::optional<gen::HomeProcess> trace_home;          // of `trace`
  std::shared_ptr<gen::Metrics> metrics;               // null: nobody listens
  std::optional<gen::HomeProcess> metrics_home;        // of a collector of the library's
};

struct gen_generator : gen::Postponed {
  gen::api::Shared<const gen::generate::Generator> shared;
  gen::HomeProcess home;
};

struct gen_session : gen::Postponed {
  gen::api::Shared<gen::generate::Session> shared;
  kv_cache cache;     // lends the session's
  bool lent = false;  // it is part of another handle
  gen::HomeProcess home;
};

struct gen_chat_session : gen::Postponed {
  gen::api::Shared<gen::generate::ChatSession> shared;
  gen_session session;  // lends the chat session's
  gen::HomeProcess home;
};

namespace gen::api {

/// A result as C sees it.
struct ResultData {
  generate::GenResult result;
  gen_error failure{};
};

/// Puts a result into a handle that was made before there was any, so that handing it out cannot
/// fail.
void fill_result(generate::GenResult&& result, gen_result* handle) noexcept;

/// The parameters of a call: a copy of `sampling`, or defaults for null.
generate::CallParams params_of(const gen_sampling* sampling);

/// Makes `handle` one of a session.
void fill_session(std::shared_ptr<generate::Session> session, const SharedCallbacks& callbacks,
                  gen_session* handle);
/// Makes `handle` lend a session's cache, sharing its in-use flag.
void lend_cache(generate::Session& session, kv_cache* handle);

/// What generators are made over, which keeps all the parts.
generate::ModelInUse in_use(const std::shared_ptr<const ModelParts>& parts);
/// Of options as C sees them.
generate::CacheChoice cache_choice(const gen_options& options);
/// gen_create for what stands behind the border.
Result<std::unique_ptr<gen_generator>> create_generator(const gen_model& model,
                                                        const gen_options& options);

/// Fills `token` from an event, whose text it borrows.
void fill_token(const generate::Event& event, gen_token* token) noexcept;

}  // namespace gen::api

struct gen_result {
  gen::api::ResultData data;
};
