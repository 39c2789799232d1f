// SPDX-License-Identifier: Apache-2.0
// kv_cache_describe.
#include <generate/kv_cache.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/cache/kv_cache_handle.h"
#include "cache/sequence/window_cache.h"

namespace {

using gen::Status;

void add(std::string* json, std::string_view key, std::string_view text) {
  json->append(",\"").append(key).append("\":\"").append(text).append("\"");
}

void add(std::string* json, std::string_view key, int64_t number) {
  json->append(",\"").append(key).append("\":").append(std::to_string(number));
}

/// The layers that keep a window, by the number of positions before the next one that it sees.
std::string windows_of(const gen::cache::KvCache& cache) {
  std::map<int32_t, std::vector<int32_t>> groups;
  for (int32_t layer = 0; layer < static_cast<int32_t>(cache.layers().size()); ++layer) {
    if (cache.keeps_behind(layer) == gen::cache::KvCache::kAllEntries) continue;
    groups[gen::cache::window_reach(cache.layers()[static_cast<size_t>(layer)])].push_back(layer);
  }
  std::string json;
  for (const auto& [behind, layers] : groups) {
    json.append(json.empty() ? "{" : ",{").append("\"window\":").append(std::to_string(behind + 1));
    add(&json, "first", gen::cache::KvCache::first_kept(cache.length(), behind));
    json.append(",\"layers\":[");
    for (const int32_t layer : layers) json.append(std::to_string(layer)).append(",");
    json.back() = ']';
    json.push_back('}');
  }
  return json;
}

std::string describe(const kv_cache& cache) {
  const gen::api::CacheLabel& label = cache.body->label();
  std::string json = "{\"kind\":\"";
  json.append(label.traits.kind).append("\"");
  if (label.traits.dtype != nullptr) add(&json, "dtype", label.traits.dtype);
  add(&json, "num_layers", label.num_layers);
  gen::api::OneSequence* const one = cache.body->one_sequence();
  add(&json, "max_seq_len", one != nullptr ? one->form().max_seq_len(label) : label.max_seq_len);
  if (one != nullptr) add(&json, "seq_len", one->form().seq_len());
  add(&json, "memory_bytes", static_cast<int64_t>(cache.body->memory().resident));
  const gen::cache::KvCache* const of_model = one != nullptr ? one->form().model_cache() : nullptr;
  json.append(",\"windows\":[");
  if (of_model != nullptr) json.append(windows_of(*of_model));
  return json.append("]}");
}

}  // namespace

gen_status kv_cache_describe(const kv_cache* cache, char* buf, size_t capacity, size_t* n,
                             gen_error* error) {
  if (n != nullptr) *n = 0;
  return gen::api::with_cache(cache, error, [&](const kv_cache& c) -> Status {
    GEN_TRY(gen::api::not_null(n, "n"));
    return gen::api::text_out(describe(c), buf, capacity, n);
  });
}
