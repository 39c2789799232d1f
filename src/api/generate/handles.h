// SPDX-License-Identifier: Apache-2.0
// The handles of generators, sessions and their options. Like all handles they hold shared pointers
// to objects, so freeing a handle never invalidates an object in use elsewhere. Objects that may
// call the host are reached through Shared::enter() of entry.h.
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
#include "api/cache/ssm_state_body.h"
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
  bool lent = false;  // part of another handle
};

struct gen_sampling {
  gen::generate::CallParams params;
};

struct gen_options {
  gen_options() { generator.draft_policy.kind = gen::generate::DraftPolicy::Kind::kAuto; }

  gen::generate::CacheChoice caches;                   // its `tiered` stays empty
  std::shared_ptr<const kv_cache_tier_config> tiered;  // null: everything stays in memory
  gen::generate::DraftChoice drafts;                   // the draft model is in `draft`
  std::shared_ptr<const gen::api::ModelParts> draft;   // null: none
  gen::SharedCallbacks draft_callbacks;                // callbacks of the draft model
  std::string eagle;                                   // file of an EAGLE head; empty: none
  gen::generate::GeneratorOptions generator;           // numbers and switches only
  std::shared_ptr<gen::engine::TraceLog> trace;        // null: none
  std::optional<gen::HomeProcess> trace_home;          // process of `trace`
  std::shared_ptr<gen::Metrics> metrics;               // null: no metrics
  std::optional<gen::HomeProcess> metrics_home;        // process of a collector made by the library
};

struct gen_generator : gen::Postponed {
  gen::api::Shared<const gen::generate::Generator> shared;
  std::string eagle;    // as in the options
  bool drafts = false;  // that file does
  gen::HomeProcess home;
};

struct gen_session : gen::Postponed {
  gen::api::Shared<gen::generate::Session> shared;
  kv_cache cache;       // lends the session's cache
  gen_ssm_state state;  // lends its model's state; without a body if that has none
  bool lent = false;    // part of another handle
  gen::HomeProcess home;
};

struct gen_chat_session : gen::Postponed {
  gen::api::Shared<gen::generate::ChatSession> shared;
  gen_session session;  // lends the chat session's session
  gen::HomeProcess home;
};

namespace gen::api {

/// The callbacks that a generator with these options may reach.
SharedCallbacks callbacks_of(const gen_model& model, const gen_options& options);

/// The head in a file, for the model. Errors name the file: those of GgufFile::open and
/// load_draft_head; kUnsupported if there is none in it.
Result<std::shared_ptr<const model::DraftHead>> head_of_file(const model::Model& model,
                                                             const std::string& path);

/// What drafts, without the draft model: `drafts` of the options, and the head of their `eagle`.
Result<generate::DraftChoice> draft_choice(const gen_options& options, const model::Model& model);

/// The C form of a result.
struct ResultData {
  generate::GenResult result;
  gen_error failure{};
};

/// Moves a result into a handle that was allocated before, so that it cannot fail.
void fill_result(generate::GenResult&& result, gen_result* handle) noexcept;

/// The parameters of a call: a copy of `sampling`, or the defaults for null.
generate::CallParams params_of(const gen_sampling* sampling);

/// Sets `handle` to a session.
void fill_session(std::shared_ptr<generate::Session> session, const SharedCallbacks& callbacks,
                  gen_session* handle);
/// Makes `handle` lend a session's cache; it shares the session's in-use flag.
void lend_cache(generate::Session& session, kv_cache* handle);

/// Makes `handle` lend the state of a session's model, if it has one.
void lend_state(const std::shared_ptr<generate::Session>& session, const SharedCallbacks& callbacks,
                gen_ssm_state* handle);

/// The model that a generator is made for; it keeps all its parts alive.
generate::ModelInUse in_use(const std::shared_ptr<const ModelParts>& parts);
/// The cache options of a C handle.
generate::CacheChoice cache_choice(const gen_options& options);
/// gen_create for callers inside the library.
Result<std::unique_ptr<gen_generator>> create_generator(const gen_model& model,
                                                        const gen_options& options);

/// Fills `token` from an event; its text is borrowed from the event. It has no pieces.
void fill_token(const generate::Event& event, gen_token* token) noexcept;
/// The same with the event's pieces, borrowed from `pieces`. May throw std::bad_alloc.
void fill_token(const generate::Event& event, std::vector<gen_piece>* pieces, gen_token* token);

}  // namespace gen::api

struct gen_result {
  gen::api::ResultData data;
};
