// SPDX-License-Identifier: Apache-2.0
// The files that a command reads, which none of its outputs may replace.
#pragma once

#include <string>
#include <vector>

#include "model_file.h"

namespace cli {

/// The files that the choice reads: the model with all its parts, and what drafts.
std::vector<std::string> files_of(const ModelChoice& choice);

/// A Failure that names the option if `path` is one of the files to read, by whatever name: writing
/// would replace what may be the only copy.
void check_apart(const std::string& path, const std::string& option,
                 const std::vector<std::string>& read);

}  // namespace cli
