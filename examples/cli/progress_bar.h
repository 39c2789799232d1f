// SPDX-License-Identifier: Apache-2.0
// A bar on standard error, drawn only if that is a terminal, and erased at the end.
#pragma once

#include <string>

namespace cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `share` in [0, 1]; redraws after each per cent.
  void update(double share);

 private:
  std::string label_;
  bool terminal_;
  int shown_ = -1;
};

}  // namespace cli
