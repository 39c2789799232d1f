// SPDX-License-Identifier: Apache-2.0
// metrics.h of the C API: a caller's table as Metrics, and the collector.
#include <generate/metrics.h>

#include <cmath>
#include <string>
#include <string_view>

#include "api/boundary/boundary.h"
#include "api/boundary/caller_struct.h"
#include "api/generate/handles.h"
#include "api/boundary/host_call.h"
#include "api/boundary/option_table.h"
#include "base/json_text.h"
#include "base/metrics_memory.h"
#include "generate/request/metric_names.h"

struct gen_metrics_memory {
  std::shared_ptr<gen::MetricsMemory> impl;
  gen_metrics_sink sink;
  gen::HomeProcess home;
};

namespace {

using gen::HistogramValues;
using gen::MetricsMemory;
using gen::Status;
using gen::api::guard;
using gen::json_quote;
using gen::api::not_null;
namespace metric = gen::generate::metric;

class CMetrics final : public gen::Metrics {
 public:
  explicit CMetrics(const gen_metrics_sink& table) : table_(table) {}
  void add(const char* name, double value) noexcept override {
    tell(table_.counter_add, name, value);
  }
  void set(const char* name, double value) noexcept override {
    tell(table_.gauge_set, name, value);
  }
  void observe(const char* name, double value) noexcept override {
    tell(table_.histogram_observe, name, value);
  }
  [[nodiscard]] std::shared_ptr<gen::Callbacks> callbacks() const noexcept override {
    return callbacks_;
  }

 private:
  using Function = void (*)(void* user, const char* name, double value);
  void tell(Function function, const char* name, double value) noexcept {
    if (function == nullptr) return;
    gen::api::host_notice(*callbacks_, [&] { function(table_.user, name, value); });
  }

  gen_metrics_sink table_;
  std::shared_ptr<gen::Callbacks> callbacks_ = std::make_shared<gen::Callbacks>();
};

MetricsMemory& memory_of(void* user) { return *static_cast<gen_metrics_memory*>(user)->impl; }

void memory_add(void* user, const char* name, double value) {
  if (name != nullptr) memory_of(user).add(name, value);
}
void memory_set(void* user, const char* name, double value) {
  if (name != nullptr) memory_of(user).set(name, value);
}
void memory_observe(void* user, const char* name, double value) {
  if (name != nullptr) memory_of(user).observe(name, value);
}

bool is_ours(const gen_metrics_sink& sink) {
  return sink.user != nullptr && sink.counter_add == memory_add && sink.gauge_set == memory_set &&
         sink.histogram_observe == memory_observe;
}

gen::Result<std::shared_ptr<gen::Metrics>> wrap(const gen_metrics_sink& given) {
  GEN_ASSIGN(const gen_metrics_sink sink, gen::api::read_struct(given));
  // The library's own collector is kept directly, so that its handle may be freed.
  if (is_ours(sink)) {
    return std::shared_ptr<gen::Metrics>(static_cast<gen_metrics_memory*>(sink.user)->impl);
  }
  return std::shared_ptr<gen::Metrics>(std::make_shared<CMetrics>(sink));
}

/// JSON cannot represent infinity.
std::string number(double value) {
  return std::isfinite(value) ? gen::api::number_text(value) : std::string("null");
}

std::string bounds_json(std::string_view name) {
  std::string out = "[";
  for (const double bound : gen::histogram_bounds(name)) {
    if (out.size() > 1) out += ',';
    out += number(bound);
  }
  return out + "]";
}

std::string describe_json() {
  std::string out = "[";
  for (const metric::Metric& one : metric::all()) {
    const char* const kind = one.kind == metric::Kind::kCounter ? "counter"
                             : one.kind == metric::Kind::kGauge ? "gauge"
                                                                : "histogram";
    if (out.size() > 1) out += ',';
    out.append("{\"name\":").append(json_quote(one.name));
    out.append(",\"kind\":").append(json_quote(kind));
    out.append(",\"help\":").append(json_quote(one.help));
    if (one.kind == metric::Kind::kHistogram) out.append(",\"buckets\":" + bounds_json(one.name));
    out += '}';
  }
  return out + "]";
}

std::string values_json(const std::map<std::string, double, std::less<>>& values) {
  std::string out = "{";
  for (const auto& [name, value] : values) {
    if (out.size() > 1) out += ',';
    out.append(json_quote(name)).append(":").append(number(value));
  }
  return out + "}";
}

std::string histogram_json(const std::string& name, const HistogramValues& values) {
  std::string out = "{\"count\":";
  out.append(std::to_string(values.count)).append(",\"sum\":").append(number(values.sum));
  out.append(",\"buckets\":[");
  const auto bounds = gen::histogram_bounds(name);
  uint64_t up_to_here = 0;
  for (size_t i = 0; i < values.counts.size(); ++i) {
    up_to_here += values.counts[i];
    out.append(i == 0 ? "{\"le\":" : ",{\"le\":");
    out.append(i < bounds.size() ? number(bounds[i]) : std::string("null"));
    out.append(",\"count\":").append(std::to_string(up_to_here)).append("}");
  }
  return out + "]}";
}

std::string snapshot_json(const gen::MetricsSnapshot& snapshot) {
  std::string out = "{\"counters\":" + values_json(snapshot.counters);
  out.append(",\"gauges\":").append(values_json(snapshot.gauges)).append(",\"histograms\":{");
  const char* comma = "";
  for (const auto& [name, values] : snapshot.histograms) {
    out.append(comma).append(json_quote(name)).append(":").append(histogram_json(name, values));
    comma = ",";
  }
  return out + "}}";
}

}  // namespace

gen_status gen_options_set_metrics(gen_options* options, const gen_metrics_sink* sink,
                                   gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    std::shared_ptr<gen::Metrics> metrics;
    std::optional<gen::HomeProcess> home;
    if (sink != nullptr) {
      GEN_ASSIGN(metrics, wrap(*sink));
      if (is_ours(*sink)) home = static_cast<gen_metrics_memory*>(sink->user)->home;
    }
    options->metrics = std::move(metrics);
    options->metrics_home = home;
    return {};
  });
}

gen_status gen_metrics_describe(char* buf, size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&] { return gen::api::text_out(describe_json(), buf, capacity, n); });
}

gen_status gen_metrics_memory_new(gen_metrics_memory** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    auto made = std::make_unique<gen_metrics_memory>();
    made->impl = std::make_shared<MetricsMemory>();
    made->sink = {sizeof made->sink, made.get(), memory_add, memory_set, memory_observe};
    *out = made.release();
    return {};
  });
}

const gen_metrics_sink* gen_metrics_memory_sink(const gen_metrics_memory* memory) {
  return memory != nullptr ? &memory->sink : nullptr;
}

gen_status gen_metrics_memory_snapshot(const gen_metrics_memory* memory, char* buf, size_t capacity,
                                       size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(memory, "memory"));
    return gen::api::text_out(snapshot_json(memory->impl->snapshot()), buf, capacity, n);
  });
}

double gen_metrics_memory_value(const gen_metrics_memory* memory, const char* name) {
  if (!gen::api::usable(memory) || name == nullptr) return 0;
  try {
    return memory->impl->snapshot().value(name);
  } catch (...) {
    return 0;
  }
}

void gen_metrics_memory_free(gen_metrics_memory* memory) { gen::api::end_handle(memory); }
