// SPDX-License-Identifier: Apache-2.0
// See argument_reader.h.
#include "calls/arguments/argument_reader.h"

namespace gen::calls {

std::unique_ptr<ArgumentReader> make_argument_reader(const CallFormat&, const Tool*,
                                                     std::string_view) {
  return make_json_reader();
}

}  // namespace gen::calls
