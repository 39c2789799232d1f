// SPDX-License-Identifier: Apache-2.0
// What the stub of cuBLASLt does for the tests of one program, and what it was asked for.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "cuda/engine/tested_engine.h"

namespace gen::test {

/// How a way of the library adds up: in double, rounded once; halves of the columns apart; as our
/// own kernels do; or so but for the last row, which is made at once.
enum class AddsUp { kAtOnce, kInHalves, kAsWeDo, kAsWeDoButTheLast };

struct LibraryCalls {
  int made = 0;
  int residuals = 0;
  int answer = 0;  // of the next ones
  /// Ways of the products that were asked for without split columns.
  std::vector<int> whole;
  /// The library's ways, of which the first is made where no others are asked for.
  std::vector<AddsUp> ways = {AddsUp::kAtOnce};
};
LibraryCalls& calls();

/// The library is looked for when an engine is made. Nothing has been asked for then.
std::shared_ptr<engine::Engine> engine_with(const char* library);

}  // namespace gen::test
