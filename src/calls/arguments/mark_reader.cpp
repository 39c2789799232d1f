// SPDX-License-Identifier: Apache-2.0
// See mark_reader.h.
#include "calls/arguments/mark_reader.h"

namespace gen::calls {

MarkReader::MarkReader(std::vector<std::string> marks) {
  for (const std::string& mark : marks) marks_.push_back({std::string(mark_of(mark))});
  restart();
}

void MarkReader::restart() {
  for (Mark& mark : marks_) {
    mark.at = 0;
    mark.fits = !mark.text.empty();
  }
  spaces_ = 0;
  begun_ = 0;
}

int MarkReader::take(char byte) {
  if (begun_ == 0 && is_blank(byte)) {
    ++spaces_;
    return kMore;
  }
  ++begun_;
  bool any = false;
  for (size_t i = 0; i < marks_.size(); ++i) {
    Mark& mark = marks_[i];
    if (!mark.fits) continue;
    const bool gap = is_blank(mark.text[mark.at]);
    if (gap && is_blank(byte)) {
      any = true;
      continue;
    }
    while (is_blank(mark.text[mark.at])) ++mark.at;
    mark.fits = mark.text[mark.at] == byte;
    if (!mark.fits) continue;
    if (++mark.at == mark.text.size()) return static_cast<int>(i);
    any = true;
  }
  return any ? kMore : kNone;
}

}  // namespace gen::calls
