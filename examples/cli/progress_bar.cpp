// SPDX-License-Identifier: Apache-2.0
// See progress_bar.h.
#include "progress_bar.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace cli {

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (shown_ >= 0) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::update(double share) {
  const int percent = static_cast<int>(share * 100);
  if (!terminal_ || percent == shown_) return;
  shown_ = percent;
  std::string bar(static_cast<size_t>(percent) / 4, '#');
  bar.resize(25, '.');
  std::fprintf(stderr, "\r%s [%s] %3d%%", label_.c_str(), bar.c_str(), percent);
  std::fflush(stderr);
}

}  // namespace cli
