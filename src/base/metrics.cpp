// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "base/metrics.h"

#include <type_traits>

namespace gen {
namespace {

class NoMetrics final : public Metrics {
 public:
  void add(const char* /*name*/, double /*value*/) noexcept override {}
  void set(const char* /*name*/, double /*value*/) noexcept override {}
  void observe(const char* /*name*/, double /*value*/) noexcept override {}
  [[nodiscard]] bool active() const noexcept override { return false; }
};

// Constant-initialised and trivially destroyed: no code runs at load or at exit.
constinit NoMetrics nobody;
static_assert(std::is_trivially_destructible_v<NoMetrics>);

}  // namespace

Metrics& no_metrics() noexcept { return nobody; }

}  // namespace gen
