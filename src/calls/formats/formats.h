// SPDX-License-Identifier: Apache-2.0
// The formats, one family a file.
#pragma once

#include "calls/call_format.h"

namespace gen::calls {

CallFormat hermes_format();
CallFormat qwen_coder_format();
CallFormat generic_json_format();

}  // namespace gen::calls
