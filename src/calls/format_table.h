// SPDX-License-Identifier: Apache-2.0
// All formats of calls, and the choice among them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_format.h"

namespace gen::calls {

/// In the order in which templates are compared with them.
std::vector<std::shared_ptr<const CallFormat>> call_formats();
/// Null if there is none of that name.
std::shared_ptr<const CallFormat> format_named(std::string_view name);
/// All names, separated by commas.
std::string format_names();
/// The first whose signs the template's text contains; null if there is none.
std::shared_ptr<const CallFormat> format_of_source(std::string_view source);
/// JSON objects anywhere in the text, for models that no format is known of.
std::shared_ptr<const CallFormat> generic_format();

}  // namespace gen::calls
