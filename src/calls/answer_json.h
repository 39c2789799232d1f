// SPDX-License-Identifier: Apache-2.0
// An answer that was read, as JSON.
#pragma once

#include <string>

#include "calls/call_parser.h"

namespace gen::calls {

/// {"text": …, "reasoning": …, "calls": [{"id": …, "name": …, "arguments": {…}}, …],
///  "faults": [{"at": …, "what": …}, …]} without white space; "id" only where there is one.
std::string answer_json(const Answer& answer);

}  // namespace gen::calls
