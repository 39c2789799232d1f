// SPDX-License-Identifier: Apache-2.0
// Loading EAGLE heads (arch/eagle.h) as draft heads.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "model/draft_head.h"

namespace gen::model {

/// Whether general.architecture, or tensors among those of a model, are of an EAGLE head.
bool is_eagle(const gguf::GgufFile& file, const std::string& architecture);
/// As load_draft_head, for a file with such a head.
Result<std::shared_ptr<const DraftHead>> load_eagle_head(std::shared_ptr<const gguf::GgufFile> file,
                                                         const HeadTarget& target, bool lasting);

}  // namespace gen::model
