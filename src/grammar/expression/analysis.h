// SPDX-License-Identifier: Apache-2.0
// Facts about expressions that the compiler needs before it builds machines: which are nullable,
// which are recursive, which are small enough to be expanded inline.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/expression/expression.h"

namespace gen::grammar {

/// A repetition of at most this many positions is unrolled; a larger one is counted.
inline constexpr uint32_t kMaxWrittenOut = 16;
/// A rule of at most this many positions is expanded inline.
inline constexpr uint32_t kMaxInlined = 256;

struct Analysis {
  struct Facts {
    bool nullable = false;
    bool recursive = false;    // contains itself
    bool inlined = false;      // kRule: is expanded inline
    bool called = false;       // kDiagram: is a separate machine
    bool written_out = false;  // kRepeat: is unrolled
    bool wide = false;         // reads a large set of bytes
    bool wide_loop = false;    // ... any number of times
    bool open_end = false;     // ... at its very end
    uint8_t height = 1;
    uint32_t places = 1;
    uint32_t users = 0;  // number of expressions that contain it
  };
  std::vector<Facts> of;  // by expression
};

/// Cost: linear; nothing recurses.
Analysis analyse(const Expressions& expressions);

/// False only if the expression matches no text. It does not check how many members are required,
/// nor which transitions of diagrams lead to an end.
bool may_match(const Expressions& expressions, ExprId id);

}  // namespace gen::grammar
