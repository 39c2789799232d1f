// SPDX-License-Identifier: Apache-2.0
// A flag that is raised while one of several is, all of which it keeps alive.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include "base/cancel.h"

namespace gen::agent {

/// Null ones do not count.
inline std::shared_ptr<const CancelFlag> joined_cancel(
    std::initializer_list<std::shared_ptr<const CancelFlag>> flags) {
  struct Pair {
    Pair(std::shared_ptr<const CancelFlag> a, std::shared_ptr<const CancelFlag> b)
        : first(std::move(a)), second(std::move(b)) {}
    std::shared_ptr<const CancelFlag> first, second;
    CancelFlag flag{first.get(), second.get()};
  };
  std::shared_ptr<const CancelFlag> joined;
  for (const auto& flag : flags) {
    if (flag == nullptr) continue;
    const auto pair = std::make_shared<const Pair>(std::move(joined), flag);
    joined = std::shared_ptr<const CancelFlag>(pair, &pair->flag);
  }
  return joined;
}

}  // namespace gen::agent
