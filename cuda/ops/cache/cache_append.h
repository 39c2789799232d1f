// SPDX-License-Identifier: Apache-2.0
// Appends to the caller's own caches on the caller's streams, without an engine.
#pragma once

#include "base/status.h"
#include "cuda/device/runtime.h"
#include "engine/memory/counted_append.h"

namespace gen::cuda {

/// One kernel on `stream`, which is of the thread's device and may be in a capture. kDevice.
Status cache_append(const engine::CountedAppend& append, device::Stream stream);

}  // namespace gen::cuda
