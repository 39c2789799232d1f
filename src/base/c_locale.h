// SPDX-License-Identifier: Apache-2.0
// CLocale: numbers with points, whatever the program's locale is.
#pragma once

#include <clocale>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

namespace gen {

/// While it lives, the C library reads and writes numbers on this thread as in the locale "C". No
/// callback may run meanwhile.
class CLocale {
 public:
  CLocale() noexcept : plain_(newlocale(LC_ALL_MASK, "C", locale_t{})) {
    if (plain_ != locale_t{}) before_ = uselocale(plain_);
  }
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;
  ~CLocale() {
    if (plain_ == locale_t{}) return;
    uselocale(before_);
    freelocale(plain_);
  }

 private:
  locale_t plain_;
  locale_t before_{};
};

}  // namespace gen
