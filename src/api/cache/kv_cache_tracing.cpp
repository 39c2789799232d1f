// SPDX-License-Identifier: Apache-2.0
// kv_cache_tracing_new of trace.h: a cache that records the calls on another one. Both are one
// object to their users, but the other can also be read through kv_cache_underlying.
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/cache/kv_cache_handle.h"
#include "api/boundary/run_handles.h"
#include "cache/tensor/tracing_store.h"
#include <generate/trace.h>

namespace {

using gen::Result;
using gen::Status;
using gen::api::CacheBody;
using gen::api::not_null;
using gen::api::OneSequence;
using gen::api::TensorForm;
using gen::cache::TracingStore;

class TracingCache final : public gen::api::StoredCache<TracingStore> {
 public:
  /// `real` is the body of the traced cache; it is kept alive.
  TracingCache(std::unique_ptr<TracingStore> store, std::shared_ptr<CacheBody> real)
      : StoredCache(std::move(store), real->label().max_seq_len), real_(std::move(real)) {}

  [[nodiscard]] gen::cache::TieredStore* tiers() noexcept override { return real_->tiers(); }
  [[nodiscard]] bool has_means() const noexcept override { return real_->has_means(); }
  [[nodiscard]] std::optional<std::span<gen::cache::Block* const>> block_table()
      const noexcept override {
    return real_->block_table();
  }
  [[nodiscard]] const char* tensors_only() const noexcept override {
    return "a tracing cache records tensors; gen_options_set_tracer records the passes of a model";
  }
  /// Not supported: two recorders of one store would disagree.
  [[nodiscard]] Result<std::shared_ptr<CacheBody>> clone() const override {
    return form().clone().status();
  }

 private:
  std::shared_ptr<CacheBody> real_;
};

}  // namespace

gen_status kv_cache_tracing_new(kv_cache* inner, const gen_tracer* tracer, kv_cache** out,
                                gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return gen::api::with_cache(inner, error, [&](kv_cache& c) -> Status {
    GEN_TRY(not_null(tracer, "tracer"));
    GEN_TRY(not_null(out, "out"));
    GEN_TRY(gen::api::own(c));
    GEN_ASSIGN(OneSequence* const real, gen::api::one_sequence(c, "kv_cache_tracing_new"));
    GEN_TRY(real->form().takes_rows());
    std::unique_ptr<TensorForm> form;  // form for the traced cache if it has none yet
    if (!real->shaped()) {
      GEN_ASSIGN(auto store, real->make_store(real->allocator()));
      form = std::make_unique<TensorForm>(std::move(store));
    }
    gen::cache::TensorProvider* const store = (form != nullptr ? *form : real->form()).tensors();
    auto made = gen::api::handle_of(std::make_shared<TracingCache>(
        std::make_unique<TracingStore>(std::shared_ptr<gen::cache::TensorProvider>(c.body, store),
                                       tracer->log),
        c.body));
    made->in_use = c.in_use;  // one store, one user at a time
    made->callbacks = c.callbacks;
    made->underlying.push_back(gen::api::part_of(*made, c.body));
    if (form != nullptr) real->take(std::move(form));
    *out = made.release();
    return {};
  });
}
