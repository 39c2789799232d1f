// SPDX-License-Identifier: Apache-2.0
// The position of a byte in a JSON text.
#pragma once

#include <string>
#include <string_view>

namespace cli {

/// The JSON pointer of the value in or before which a text ends: of the object itself if that is in
/// a name, "" for the whole. The text may be invalid anywhere; the pointer is then approximate.
std::string pointer_at_end(std::string_view text);

}  // namespace cli
