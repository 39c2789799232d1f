// SPDX-License-Identifier: Apache-2.0
// A template's source as a tree.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "template/ast.h"

namespace gen::templates {

/// kFormat, naming the line, for an invalid template; kUnsupported, naming it, for an unknown tag,
/// filter or test, and for brackets or blocks nested deeper than kDeepestTree.
Result<std::unique_ptr<const Program>> parse(std::string_view source);

}  // namespace gen::templates
