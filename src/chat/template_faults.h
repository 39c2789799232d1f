// SPDX-License-Identifier: Apache-2.0
// Templates of published files that are known to be wrong, and were mended later. They are used as
// they are; the log says what is wrong.
#pragma once

#include <string_view>

namespace gen::chat {

/// What is known to be wrong with a template, as the end of "the chat template …"; empty: nothing.
std::string_view template_fault(std::string_view source) noexcept;

}  // namespace gen::chat
