// SPDX-License-Identifier: Apache-2.0
// See context.h.
#include "cuda/ops/context.h"

namespace gen::cuda {

Status device_status(device::Error failed, const char* what) {
  if (failed.ok()) return {};
  const Code code = failed == device::kOutOfMemory ? Code::kOutOfMemory : Code::kDevice;
  return error(code, "%s: %s (%s)", what, failed.message(), failed.name());
}

}  // namespace gen::cuda
