// SPDX-License-Identifier: Apache-2.0
// The adapters that a server is started with: the option --lora.
#pragma once

#include <generate/generate.h>

#include <string>
#include <vector>

namespace server {

/// Loads [NAME=]FILE[:SCALE] each into the model, and returns their names in this order. Without
/// NAME it is the file's, without its ending. What stands before the first '=' is a name if the
/// whole, without its scale, is no file. cli::Failure for a name that there is twice or that is
/// `model_name`, and for files that do not fit.
std::vector<std::string> load_adapters(const std::vector<std::string>& options,
                                       const gen_model* model, const std::string& model_name);

}  // namespace server
