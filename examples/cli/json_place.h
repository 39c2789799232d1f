// SPDX-License-Identifier: Apache-2.0
// Where in a JSON text a byte is.
#pragma once

#include <string>
#include <string_view>

namespace cli {

/// The JSON pointer of the value that a text breaks off in or before: of the object itself where
/// that is in a name, "" for the whole. The text may be wrong anywhere; then it is a guess.
std::string pointer_at_end(std::string_view text);

}  // namespace cli
