// SPDX-License-Identifier: Apache-2.0
// Bounds that caches of all kinds share.
#pragma once

#include <cstdint>

namespace gen::cache {

/// The maximum number of layers of a cache: more than any model has, and few enough for a table of
/// each.
inline constexpr int32_t kMaxLayers = 65536;

}  // namespace gen::cache
