// SPDX-License-Identifier: Apache-2.0
// The behaviour of the cuBLASLt stub in a test program, and a record of its calls.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "cuda/engine/tested_engine.h"

namespace gen::test {

/// The order of additions of one of the library's algorithms: in double, rounded once; in two
/// halves of the columns; as in our own kernels; or as in our own kernels except for the last row,
/// which is computed in double.
enum class AddsUp { kAtOnce, kInHalves, kAsWeDo, kAsWeDoButTheLast };

struct LibraryCalls {
  int made = 0;
  int residuals = 0;
  int answer = 0;  // of the next ones
  /// Ways of the products that were asked for without split columns.
  std::vector<int> whole;
  /// The library's ways, of which the first is made where no others are asked for.
  std::vector<AddsUp> ways = {AddsUp::kAtOnce};
  /// Microseconds of a product by each of them, 1 where there are none, and by our own kernel, on
  /// the emulator's clock.
  std::vector<double> way_us;
  double own_us = 100.0;
};
LibraryCalls& calls();

/// Clears the record of calls. From now on kernels take the times above; all others take none.
void begin_calls();

/// The library is loaded when an engine is made; calls are counted from there on.
std::shared_ptr<engine::Engine> engine_with(const char* library);

}  // namespace gen::test
