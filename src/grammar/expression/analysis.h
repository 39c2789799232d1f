// SPDX-License-Identifier: Apache-2.0
// What a compiler wants to know about expressions before it makes machines: which may be empty,
// which contain themselves, which are small enough to be written out in place.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/expression/expression.h"

namespace gen::grammar {

/// A repetition of at most so many places is written out; a larger one is counted.
inline constexpr uint32_t kMaxWrittenOut = 16;
/// A rule of at most so many places stands in place of its calls.
inline constexpr uint32_t kMaxInlined = 256;

struct Analysis {
  struct Facts {
    bool nullable = false;
    bool recursive = false;    // contains itself
    bool inlined = false;      // kRule: is written out where it is called
    bool called = false;       // kDiagram: is a machine of its own
    bool written_out = false;  // kRepeat: without a counter
    bool wide = false;         // reads a large set of bytes
    bool wide_loop = false;    // ... as often as it likes
    bool open_end = false;     // ... at its very end
    uint8_t height = 1;
    uint32_t places = 1;
    uint32_t users = 0;  // expressions that it is a part of
  };
  std::vector<Facts> of;  // by expression
};

/// Cost: linear; nothing recurses.
Analysis analyse(const Expressions& expressions);

/// False only if the expression matches no text. Of members it is not asked how many there must be,
/// nor of diagrams which ways lead to an end.
bool may_match(const Expressions& expressions, ExprId id);

}  // namespace gen::grammar
