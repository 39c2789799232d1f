// SPDX-License-Identifier: Apache-2.0
// What a point that a sequence can come back to lies at: of its state (state/snapshot_list.h) and
// of its windows (sequence/window_cache.h).
#pragma once

#include <cstdint>

namespace gen::cache {

/// What a snapshot lies at.
enum class SnapshotPlace : uint8_t {
  kPlain,   // any position
  kBorder,  // where a message or a prompt begins or ends: texts are edited and repeated from there
};

}  // namespace gen::cache
