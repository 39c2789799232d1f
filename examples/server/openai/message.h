// SPDX-License-Identifier: Apache-2.0
// Messages of a chat request.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "request.h"

namespace server {

/// One of "messages". ApiError, naming the field after `where`, if a template cannot use it.
Message read_message(const nlohmann::json& value, const std::string& where);

}  // namespace server
