// SPDX-License-Identifier: Apache-2.0
// A collector of metrics in memory: sums, last values, and distributions in fixed buckets.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"

namespace gen {

/// Upper bounds of a histogram's buckets, ascending. A value counts in the first bucket whose bound
/// it does not exceed, or in one more bucket if it exceeds all. Names that end in "_seconds" have
/// 1, 2, 5 times powers of ten from 0.0001 to 100, all others the powers of two from 1 to 4096.
std::span<const double> histogram_bounds(std::string_view name) noexcept;

struct HistogramValues {
  std::vector<uint64_t> counts;  // [bounds + 1], each bucket by itself
  uint64_t count = 0;
  double sum = 0;
};

/// All that was collected, by name.
struct MetricsSnapshot {
  std::map<std::string, double, std::less<>> counters;
  std::map<std::string, double, std::less<>> gauges;
  std::map<std::string, HistogramValues, std::less<>> histograms;

  /// Of a counter or a gauge, or "NAME.count" and "NAME.sum" of a histogram; 0 for another name.
  [[nodiscard]] double value(std::string_view name) const;
};

/// Nothing is lost or counted twice. A name for which there is no memory is left out. So are values
/// that are NaN.
/// Threads: any.
class MetricsMemory final : public Metrics {
 public:
  void add(const char* name, double value) noexcept override;
  void set(const char* name, double value) noexcept override;
  void observe(const char* name, double value) noexcept override;

  /// One moment of all metrics.
  [[nodiscard]] MetricsSnapshot snapshot() const;

 private:
  mutable std::mutex mutex_;
  MetricsSnapshot values_;
};

}  // namespace gen
