// SPDX-License-Identifier: Apache-2.0
// See metrics_memory.h.
#include "base/metrics_memory.h"

#include <algorithm>
#include <cmath>

namespace gen {
namespace {

constexpr double kSeconds[] = {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                               0.2,    0.5,    1.0,    2.0,   5.0,   10.0,  20.0, 50.0, 100.0};
constexpr double kCounts[] = {1.0,   2.0,   4.0,   8.0,    16.0,   32.0,  64.0,
                              128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0};

/// The value under a name, made of `initial` if need be. May throw std::bad_alloc.
template <typename Value>
Value& at(std::map<std::string, Value, std::less<>>& values, const char* name,
          const auto& initial) {
  const auto found = values.find(std::string_view(name));
  if (found != values.end()) return found->second;
  return values.emplace(name, initial()).first->second;
}

}  // namespace

std::span<const double> histogram_bounds(std::string_view name) noexcept {
  if (name.ends_with("_seconds")) return kSeconds;
  return kCounts;
}

double MetricsSnapshot::value(std::string_view name) const {
  if (const auto found = counters.find(name); found != counters.end()) return found->second;
  if (const auto found = gauges.find(name); found != gauges.end()) return found->second;
  const size_t dot = name.rfind('.');
  const auto found = histograms.find(name.substr(0, dot));
  if (found == histograms.end() || dot == std::string_view::npos) return 0;
  if (name.substr(dot) == ".count") return static_cast<double>(found->second.count);
  return name.substr(dot) == ".sum" ? found->second.sum : 0;
}

void MetricsMemory::add(const char* name, double value) noexcept {
  if (std::isnan(value)) return;
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    at(values_.counters, name, [] { return 0.0; }) += value;
  } catch (...) {
  }
}

void MetricsMemory::set(const char* name, double value) noexcept {
  if (std::isnan(value)) return;
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    at(values_.gauges, name, [] { return 0.0; }) = value;
  } catch (...) {
  }
}

void MetricsMemory::observe(const char* name, double value) noexcept {
  if (std::isnan(value)) return;
  try {
    const auto bounds = histogram_bounds(name);
    const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
    const std::lock_guard<std::mutex> lock(mutex_);
    HistogramValues& values = at(values_.histograms, name, [&] {
      HistogramValues fresh;
      fresh.counts.resize(bounds.size() + 1);
      return fresh;
    });
    ++values.counts[static_cast<size_t>(bucket)];
    ++values.count;
    values.sum += value;
  } catch (...) {
  }
}

MetricsSnapshot MetricsMemory::snapshot() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return values_;
}

}  // namespace gen
