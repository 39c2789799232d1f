// SPDX-License-Identifier: Apache-2.0
// The wrapper of kv_cache_batch.h.
#include <generate/kv_cache_batch.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/cache/kv_cache_many.h"
#include "cache/batch/wrapper_store.h"

namespace gen::api {

Result<ManySequences*> many_sequences(const kv_cache& cache, const char* call) {
  ManySequences* const body = cache.body->many_sequences();
  if (body == nullptr) {
    return other_family(Code::kState, call, "the batch family (causal, swa, ...)", cache);
  }
  GEN_TRY(body->there());
  return body;
}

}  // namespace gen::api

namespace {

using gen::Code;
using gen::Status;
using gen::api::ManySequences;
using gen::api::not_null;

/// Holds the caches that become part of a wrapper.
class HeldChildren {
 public:
  Status take(kv_cache* cache) {
    GEN_TRY(not_null(cache, "one of the caches"));
    if (std::find(caches_.begin(), caches_.end(), cache) != caches_.end()) {
      return {Code::kInvalidArgument, "a cache was given twice"};
    }
    caches_.push_back(cache);
    held_.emplace_back(cache);
    return held_.back().entered("one of the caches");
  }

 private:
  std::vector<kv_cache*> caches_;
  std::vector<gen::api::HeldCache> held_;
};

}  // namespace

gen_status kv_cache_wrapper_new(kv_cache* const* caches, size_t n_caches, kv_cache** out,
                                gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return gen::api::guard(error, [&]() -> Status {
    GEN_TRY(not_null(caches, "caches"));
    GEN_TRY(not_null(out, "out"));
    HeldChildren held;
    std::vector<ManySequences*> children;
    gen::cache::WrapperStore::Children stores;
    for (size_t i = 0; i < n_caches; ++i) {
      GEN_TRY(held.take(caches[i]));
      GEN_ASSIGN(ManySequences* const child,
                 gen::api::many_sequences(*caches[i], "kv_cache_wrapper_new"));
      GEN_TRY(gen::api::own(*caches[i]));
      children.push_back(child);
      stores.push_back(child->shared_store());
    }
    GEN_ASSIGN(auto store, gen::cache::WrapperStore::create(stores));
    auto made = gen::api::handle_of(std::make_shared<ManySequences>(std::move(store)));
    for (auto& child : stores) {
      made->underlying.push_back(gen::api::part_of(
          *made, std::make_shared<ManySequences>(std::move(child), made->body->label())));
    }
    for (ManySequences* const child : children) child->give_store_away();
    *out = made.release();
    return {};
  });
}
