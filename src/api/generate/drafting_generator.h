// SPDX-License-Identifier: Apache-2.0
// What gen_speculative and gen_eagle are: a generator with a drafter that was given to its
// constructor, and verbs of its own. Functions here are the bodies of these verbs.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "api/boundary/entry.h"
#include "api/generate/handles.h"
#include "base/home_process.h"

namespace gen::api {

struct DraftingGenerator : Postponed {
  /// `named` is for messages: "the speculative generator".
  explicit DraftingGenerator(const char* named) noexcept : what(named) {}

  const char* what;
  Shared<const generate::Generator> shared;
  std::shared_ptr<std::atomic<bool>> fixed;  // drafts always have their full length
  HomeProcess home;
};

/// Loads a head into a choice of drafters, where that may call the model's allocator.
using AddHead = std::function<Status(const model::Model& model, generate::DraftChoice* drafts)>;

/// Makes the generator. `add_head` may be null; it is not called where nothing drafts.
Status make_drafting(const gen_model& target, gen_options options, const AddHead& add_head,
                     DraftingGenerator* handle);

/// kInvalidArgument for a length above the most, or the length that counts: that of the default for
/// 0 or less.
Result<int32_t> drafting_length(int32_t length);

// The verbs; `name` is the handle's argument.
gen_status drafting_generate(const DraftingGenerator* handle, const char* name, const char* prompt,
                             size_t len, const gen_sampling* sampling, gen_result** result,
                             gen_error* error);
gen_status drafting_stream(const DraftingGenerator* handle, const char* name, const char* prompt,
                           size_t len, const gen_sampling* sampling, gen_token_callback callback,
                           void* user, gen_result** result, gen_error* error);
gen_status drafting_set_adaptive(const DraftingGenerator* handle, const char* name,
                                 int32_t adaptive, gen_error* error);
gen_status drafting_stats(const DraftingGenerator* handle, const char* name, const char* key,
                          double* value, gen_error* error);

/// The figure of gen_generator_draft_stats. kInvalidArgument for an unknown key.
Status draft_figure(const generate::DraftUse& use, std::string_view key, double* value);

}  // namespace gen::api
