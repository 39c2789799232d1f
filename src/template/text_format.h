// SPDX-License-Identifier: Apache-2.0
// str.format; the % form is percent_format of evaluator.h.
#pragma once

#include "template/builtin.h"

namespace gen::templates {

Result<Value> brace_format(const Call& call);

}  // namespace gen::templates
