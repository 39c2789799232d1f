// SPDX-License-Identifier: Apache-2.0
// OLMo 3: an architecture of its own for what others call a later olmo2.
#include "model/gguf/compat/family.h"

namespace gen::gguf::compat {

constinit const Family kOlmo3 = {.name = "olmo3", .target = "olmo2"};

}  // namespace gen::gguf::compat
