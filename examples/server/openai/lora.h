// SPDX-License-Identifier: Apache-2.0
// The adapters of a request.
#pragma once

#include "fields.h"
#include "request.h"

namespace server {

/// "model", which may be an adapter's name, and "lora", which replaces its choice of an adapter:
/// [{"id" or "name", "scale"}], ids in the order of the dialect's adapters. ApiError for others.
void read_model(Fields& fields, const Dialect& dialect, Request& request);

}  // namespace server
