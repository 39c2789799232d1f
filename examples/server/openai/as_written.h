// SPDX-License-Identifier: Apache-2.0
// Values of a request that the library reads, not the server: as they are written. A number keeps
// its digits (the server would make a double of it), an object its order and names that stand
// twice.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace server {

/// The text of an object without the value that `names` lead to, one object inside the other: where
/// it is an object or an array, an empty one of the same length takes its place, in `room`, which
/// may hold the object already; else nothing is copied. `taken` becomes the value's text, or empty
/// if there is none. Of fields of one name the last counts, as for parse_json(). Of a text that is
/// not JSON, the rest or the value is not JSON either.
std::string_view take_as_written(std::string_view object,
                                 std::initializer_list<std::string_view> names, std::string* taken,
                                 std::string* room);

}  // namespace server
