// SPDX-License-Identifier: Apache-2.0
// See text_format.h.
#include "text_format.h"

#include <cstdarg>
#include <cstdio>

namespace cli {

std::string format(const char* form, ...) {
  char text[1001];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  return text;
}

std::string percent(double share) { return share > 0 ? format("%.1f %%", share * 100) : "-"; }

std::string number(double value) { return value > 0 ? format("%.1f", value) : "-"; }

}  // namespace cli
