// SPDX-License-Identifier: Apache-2.0
// Commands that write a model file.
#pragma once

#include <functional>
#include <string>

#include "handles.h"

namespace cli {

/// Runs `call`, which writes `out`, with a bar titled `doing`, then prints the file's size.
/// Warnings go to standard error. The first Ctrl-C cancels the call, which removes the partial
/// file; the second ends the program.
void write_model(
    const char* doing, const std::string& out,
    const std::function<gen_status(gen_progress_callback, void* user, gen_error*)>& call);

}  // namespace cli
