// SPDX-License-Identifier: Apache-2.0
// The memory of a cache of any kind.
#pragma once

#include <cstddef>

namespace gen::cache {

struct MemoryUse {
  size_t resident = 0;  // allocated
  size_t payload = 0;   // keys and values held
  size_t metadata = 0;  // tables and bookkeeping
};

}  // namespace gen::cache
