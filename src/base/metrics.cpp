// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "base/metrics.h"

namespace gen {
namespace {

class NoMetrics final : public Metrics {
 public:
  void add(const char* /*name*/, double /*value*/) noexcept override {}
  void set(const char* /*name*/, double /*value*/) noexcept override {}
  void observe(const char* /*name*/, double /*value*/) noexcept override {}
  [[nodiscard]] bool active() const noexcept override { return false; }
};

}  // namespace

Metrics& no_metrics() noexcept {
  static NoMetrics none;  // without state
  return none;
}

}  // namespace gen
