// SPDX-License-Identifier: Apache-2.0
// A caller's gen_allocator table as an Allocator.
#pragma once

#include <memory>

#include "base/allocator.h"
#include <generate/base.h>

namespace gen::api {

/// Checks and copies the table. kInvalidArgument for a wrong struct_size or a missing function.
Result<std::shared_ptr<Allocator>> wrap_allocator(const gen_allocator& table);

}  // namespace gen::api
