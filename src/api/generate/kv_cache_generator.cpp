// SPDX-License-Identifier: Apache-2.0
// kv_cache_generator_new: a cache that has a model's form from the start.
#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"
#include "api/cache/kv_cache_handle.h"
#include <generate/kv_cache.h>

using gen::Status;
using gen::api::not_null;

gen_status kv_cache_generator_new(const gen_generator* generator, int32_t max_seq_len,
                                  kv_cache** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return gen::api::guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    const gen::generate::Generator& inner = *used;
    const int32_t most = inner.max_seq_len();
    if (max_seq_len < 0 || max_seq_len > most) {
      return gen::error(gen::Code::kInvalidArgument, "max_seq_len %d outside [0, %d]", max_seq_len,
                        most);
    }
    GEN_ASSIGN(auto cache, inner.make_lone_cache(max_seq_len == 0 ? most : max_seq_len));
    const gen::api::CacheLabel label = gen::api::label_of(*cache);
    auto body = std::make_shared<gen::api::ModelCacheBody>(label, std::move(cache));
    body->keep(inner.shared_from_this());
    auto made = gen::api::handle_of(std::move(body));
    made->callbacks = generator->shared.callbacks();
    *out = made.release();
    return {};
  });
}
