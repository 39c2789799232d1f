// SPDX-License-Identifier: Apache-2.0
// Raw text of values that the library reads, not the server. A number keeps its digits (the server
// would make a double of it), an object its order and duplicate names.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace server {

/// The text of an object without the value at the path `names`, one object inside the other. If the
/// value is an object or an array, an empty one of the same length replaces it, in `room`, which
/// may hold the object already; otherwise nothing is copied. `taken` becomes the value's text, or
/// empty if there is none. Of duplicate fields the last counts, as in parse_json(). If the text is
/// not JSON, the rest or the value is not JSON either.
std::string_view take_as_written(std::string_view object,
                                 std::initializer_list<std::string_view> names, std::string* taken,
                                 std::string* room);

}  // namespace server
