// SPDX-License-Identifier: Apache-2.0
// See argument_reader.h.
#include "calls/arguments/argument_reader.h"

namespace gen::calls {

std::unique_ptr<ArgumentReader> make_argument_reader(const CallFormat& format, const Tool* tool,
                                                     std::string_view end) {
  switch (format.syntax) {
    case Syntax::kJson:
      return make_json_reader();
    case Syntax::kTagged:
      return make_tagged_reader(format.marks, tool, end);
    case Syntax::kDict:
      return make_dict_reader(format.marks);
    case Syntax::kPython:
      return make_python_reader(end);
    case Syntax::kNested:
      return make_nested_reader(format.marks, tool, end);
  }
  return nullptr;
}

}  // namespace gen::calls
