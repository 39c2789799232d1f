// SPDX-License-Identifier: Apache-2.0
// Loading the assistant of Gemma 4 (arch/gemma4_assistant.h) as a draft head.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/draft_head.h"

namespace gen::model {

/// general.architecture of such files.
inline constexpr const char* kAssistant = "gemma4-assistant";
/// As load_draft_head, for a file with that name.
Result<std::shared_ptr<const DraftHead>> load_assistant_head(
    std::shared_ptr<const gguf::GgufFile> file, const HeadTarget& target, bool lasting);

}  // namespace gen::model
