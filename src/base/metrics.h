// SPDX-License-Identifier: Apache-2.0
// Where numbers about the running library go, each under a name. Names are in
// generate/request/metric_names.h; metrics_memory.h is a collector.
#pragma once

#include <memory>

#include "base/callbacks.h"

namespace gen {

/// Interface to a collector. A metric comes to be when its name is first used.
/// Threads: called on any, several at once; implementations must not call the library.
class Metrics {
 public:
  constexpr Metrics() noexcept = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Adds to what has been counted under this name.
  virtual void add(const char* name, double value) noexcept = 0;
  /// What is now.
  virtual void set(const char* name, double value) noexcept = 0;
  /// One value of a distribution.
  virtual void observe(const char* name, double value) noexcept = 0;
  /// False if nobody listens: then what takes a clock or a lock to find out need not be found out.
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
