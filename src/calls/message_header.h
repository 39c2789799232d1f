// SPDX-License-Identifier: Apache-2.0
// Headers of messages, of answers that consist of those (CallFormat::messages).
#pragma once

#include <string>
#include <string_view>

#include "calls/call_format.h"

namespace gen::calls {

struct Header {
  bool fits = true;        // it is a header
  bool reasoning = false;  // the body is
  std::string name = {};   // of the function that the message calls; empty: none
};

/// `text` is all between the answer's beginning, or a mark that begins headers, and the header's
/// end.
Header read_header(const Messages& messages, std::string_view text);

/// Whether a header may begin so.
bool may_be_header(const Messages& messages, std::string_view text) noexcept;

}  // namespace gen::calls
