// SPDX-License-Identifier: Apache-2.0
// An interface for numbers about the running library, each with a name. Names are in
// generate/request/metric_names.h; metrics_memory.h is a collector.
#pragma once

#include <memory>

#include "base/callbacks.h"

namespace gen {

/// Interface to a collector. A metric is created when its name is first used.
/// Threads: called on any, several at once; implementations must not call the library.
class Metrics {
 public:
  constexpr Metrics() noexcept = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Adds to the counter of this name.
  virtual void add(const char* name, double value) noexcept = 0;
  /// Sets the current value.
  virtual void set(const char* name, double value) noexcept = 0;
  /// One value of a distribution.
  virtual void observe(const char* name, double value) noexcept = 0;
  /// False if nobody listens: then values that need a clock or a lock need not be measured.
  [[nodiscard]] virtual bool active() const noexcept { return true; }
  /// The host's functions behind it; null if there are none.
  [[nodiscard]] virtual std::shared_ptr<Callbacks> callbacks() const noexcept { return nullptr; }

 protected:
  // Not virtual, so that nobody's is trivially destroyed; own one by its own type.
  ~Metrics() = default;
};

/// Nobody listens.
Metrics& no_metrics() noexcept;

}  // namespace gen
