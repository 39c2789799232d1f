// SPDX-License-Identifier: Apache-2.0
// FireFunction v2: a list behind a word.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat firefunction_format() {
  CallFormat format;
  format.name = "firefunction2";
  format.signs = {"functools["};
  format.section = {" functools[", "]"};
  format.between = ", ";
  format.call = {{Field::kObject}};
  return format;
}

}  // namespace gen::calls
