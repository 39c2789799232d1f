// SPDX-License-Identifier: Apache-2.0
// See kv_cache_handle.h.
#include "api/cache/kv_cache_handle.h"

#include <utility>

#include "api/boundary/caller_struct.h"

namespace gen::api {

std::unique_ptr<kv_cache> handle_of(std::shared_ptr<CacheBody> body) {
  auto made = std::make_unique<kv_cache>();
  made->in_use = &body->in_use();
  made->body = std::move(body);
  return made;
}

std::unique_ptr<kv_cache> part_of(const kv_cache& whole, std::shared_ptr<CacheBody> body) {
  auto made = std::make_unique<kv_cache>();
  made->in_use = whole.in_use;
  made->body = std::move(body);
  made->borrowed = true;
  made->whole = const_cast<kv_cache*>(&whole);
  return made;
}

Status own(const kv_cache& cache) {
  if (const char* why = cache.body->read_only(); why != nullptr) return {Code::kState, why};
  if (cache.borrowed) return {Code::kState, "a borrowed cache is read-only"};
  return {};
}

Result<OneSequence*> one_sequence(const kv_cache& cache, const char* call) {
  if (OneSequence* const body = cache.body->one_sequence(); body != nullptr) return body;
  return other_family(Code::kState, call, "caches of one sequence (fp32, paged, ...)", cache);
}

Status other_family(Code code, const char* call, const char* family, const kv_cache& cache) {
  const CacheName name = cache.body->name();
  return error(code, "%s is for %s; this is a %s%s cache", call, family, name.whose, name.kind);
}

Status check_span(const kv_cache_span* span) {
  GEN_TRY(not_null(span, "span"));
  return check_struct(*span);
}

kv_cache_span span_of(const cache::TensorSpan& from) {
  kv_cache_span span = {};
  if (from.k == nullptr) return span;
  span.type = from.type == DType::kF32 ? KV_CACHE_TYPE_F32 : KV_CACHE_TYPE_F16;
  span.k = from.k;
  span.v = from.v;
  span.batch = from.shape.batch;
  span.seq = from.shape.seq;
  span.k_dim = span.v_dim = from.shape.dim;
  span.k_batch_stride = span.v_batch_stride = from.batch_stride;
  span.k_seq_stride = span.v_seq_stride = from.seq_stride;
  return span;
}

}  // namespace gen::api
