// SPDX-License-Identifier: Apache-2.0
// custom_model.h of the C API: a caller's table of functions as a CustomForward, and the model made
// of it.
#include <generate/custom_model.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/boundary/caller_struct.h"
#include "api/boundary/host_call.h"
#include "base/json_text.h"
#include "api/forward/kv_cache_step.h"
#include "api/model/model_handle.h"
#include "base/in_use.h"
#include "model/custom_model.h"
#include "model/pad_left.h"

struct gen_forward_call {
  const gen::CancelFlag* cancel = nullptr;
  gen::model::CustomAttention* attention = nullptr;  // null: no layer has keys and values
  mutable gen::InUseFlag in_use;  // guards `attention`, which may call an allocator
};

namespace gen::api {
namespace {

/// Handles for the caches of a step, valid while the step runs.
class LentCaches {
 public:
  explicit LentCaches(std::span<const graph::BatchSequence> sequences)
      : handles_(sequences.empty() ? nullptr : new StepHandle[sequences.size()]),
        pointers_(sequences.size()) {
    for (size_t i = 0; i < sequences.size(); ++i) {
      handles_[i].lend(sequences[i].cache, &sequences[i].plan);
      pointers_[i] = &handles_[i].handle;
    }
  }
  /// [sequences], or null if there are none.
  [[nodiscard]] const kv_cache* const* get() const noexcept {
    return pointers_.empty() ? nullptr : pointers_.data();
  }

 private:
  std::unique_ptr<StepHandle[]> handles_;
  std::vector<const kv_cache*> pointers_;
};

class CForward final : public model::CustomForward {
 public:
  explicit CForward(const gen_forward& table) : table_(table) {}
  CForward(const CForward&) = delete;
  CForward& operator=(const CForward&) = delete;
  ~CForward() override {
    if (!in_use_ || table_.release == nullptr) return;
    host_notice(*callbacks_, [&] { table_.release(table_.user); });
  }

  /// From here on the destructor notifies the caller.
  void begin_use() noexcept { in_use_ = true; }
  [[nodiscard]] const std::shared_ptr<Callbacks>& callbacks() const noexcept { return callbacks_; }
  [[nodiscard]] model::CustomStates states() const noexcept {
    return {table_.state_new != nullptr, table_.state_clone != nullptr,
            table_.state_truncate != nullptr, table_.state_layers};
  }

  Status forward(const graph::Batch& batch, std::span<void* const> states, float* features,
                 model::CustomAttention* attention) const override {
    std::vector<int32_t> sequence_of(batch.tokens.size());
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      const graph::BatchSequence& sequence = batch.sequences[i];
      std::fill_n(sequence_of.begin() + sequence.first_row, sequence.n_rows,
                  static_cast<int32_t>(i));
    }
    gen_forward_call call;
    call.cancel = batch.cancel;
    call.attention = attention;
    gen_forward_batch view{};
    view.struct_size = sizeof view;
    view.n_rows = static_cast<int32_t>(batch.tokens.size());
    view.n_sequences = static_cast<int32_t>(batch.sequences.size());
    view.n_logits = static_cast<int32_t>(batch.wanting(graph::kWantsLogits));
    view.tokens = batch.tokens.data();
    view.positions = batch.positions.data();
    view.sequences = sequence_of.data();
    view.wants_logits = batch.wants.data();  // either kWantsLogits or 0
    view.states = states.data();
    view.call = &call;
    // Without attention the function uses no caches of the library.
    const LentCaches lent(attention != nullptr ? batch.sequences
                                               : std::span<const graph::BatchSequence>());
    view.caches = lent.get();
    return ask("forward", [&](gen_error* said) {
      return table_.forward(table_.user, &view, batch.logits, features, said);
    });
  }

  Result<void*> new_state() const override {
    void* state = nullptr;
    GEN_TRY(ask("state_new",
                [&](gen_error* said) { return table_.state_new(table_.user, &state, said); }));
    return state;
  }

  Result<void*> clone_state(const void* state) const override {
    void* copy = nullptr;
    GEN_TRY(ask("state_clone", [&](gen_error* said) {
      return table_.state_clone(table_.user, state, &copy, said);
    }));
    return copy;
  }

  Status truncate_state(void* state, int32_t n) const override {
    return ask("state_truncate",
               [&](gen_error* said) { return table_.state_truncate(table_.user, state, n, said); });
  }

  Status read_state(const void* state, int32_t layer, float* to,
                    std::array<int32_t, 3>* dims) const override {
    return ask("state_get_layer", [&](gen_error* said) {
      return table_.state_get_layer(table_.user, state, layer, to, dims->data(), said);
    });
  }

  void free_state(void* state) const noexcept override {
    if (table_.state_free == nullptr) return;
    host_notice(*callbacks_, [&] { table_.state_free(table_.user, state); });
  }

 private:
  template <typename F>
  Status ask(const char* what, F&& function) const noexcept {
    gen_error said;  // cleared only in part: it has a kilobyte that is rarely read
    said.code = GEN_OK;
    said.message[0] = '\0';
    return host_status(*callbacks_, what,
                       [&] { return host_outcome(function(&said), said, "the model's ", what); });
  }

  gen_forward table_;
  bool in_use_ = false;
  std::shared_ptr<Callbacks> callbacks_ = std::make_shared<Callbacks>();
};

constexpr int32_t kMaxStateLayers = 65536;

Status check_table(const gen_forward& table) {
  if (table.forward == nullptr) return {Code::kInvalidArgument, "gen_forward lacks forward"};
  const bool handles_states = table.state_clone != nullptr || table.state_truncate != nullptr ||
                              table.state_free != nullptr;
  if (table.state_new == nullptr && handles_states) {
    return {Code::kInvalidArgument, "gen_forward has functions on states, but no state_new"};
  }
  if (table.state_layers < 0 || table.state_layers > kMaxStateLayers) {
    return error(Code::kInvalidArgument, "state_layers %d outside [0, %d]", table.state_layers,
                 kMaxStateLayers);
  }
  if (table.state_layers > 0 && (table.state_new == nullptr || table.state_get_layer == nullptr)) {
    return {Code::kInvalidArgument, "gen_forward has state_layers, but no states to read"};
  }
  return {};
}

/// Fills in what the configuration leaves to the tokenizer, and checks token ids.
Status complete(gen_model_config* config, const tokenizer::Tokenizer* tokenizer) {
  const struct {
    const char* name;
    int32_t* token;
    tokenizer::Special kind;
  } tokens[] = {{"eos", &config->eos, tokenizer::Special::kEos},
                {"bos", &config->bos, tokenizer::Special::kBos}};
  for (const auto& [name, token, kind] : tokens) {
    if (*token >= config->vocab_size) {
      return error(Code::kInvalidArgument, "%s %d outside vocabulary of %d", name, *token,
                   config->vocab_size);
    }
    if (*token < 0 && tokenizer != nullptr) *token = tokenizer->special(kind);
  }
  return {};
}

/// On the host, with a thread for each usable CPU.
Result<std::shared_ptr<engine::Engine>> start_engine() {
  ModelParts parts;
  GEN_TRY(parts.start({}));
  return parts.engine;
}

std::string describe(const gen_model_config& config) {
  const auto number = [](const char* key, int32_t value) {
    return std::string(",\"").append(key).append("\":").append(std::to_string(value));
  };
  return std::string("{\"architecture\":")
      .append(json_quote(config.name))
      .append(",\"name\":")
      .append(json_quote(config.name))
      .append(number("vocab_size", config.vocab_size))
      .append(number("max_seq_len", config.max_seq_len))
      .append(number("num_layers", config.num_layers))
      .append(number("num_heads", config.num_heads))
      .append(number("num_kv_heads", config.num_kv_heads))
      .append(number("head_dim", config.head_dim))
      .append(number("hidden", config.hidden))
      .append(",\"backend\":\"custom\"}");
}

Result<std::unique_ptr<gen_model>> make_model(const std::shared_ptr<CForward>& forward,
                                              const gen_model_config& config,
                                              const gen_tokenizer* tokenizer) {
  auto handle = std::make_unique<gen_model>();
  if (tokenizer != nullptr) handle->tokenizer.impl = tokenizer->impl;
  handle->config = config;
  model::ModelTraits traits;
  traits.architecture = config.name;
  traits.vocab_size = config.vocab_size;
  traits.max_seq_len = config.max_seq_len;
  traits.num_layers = config.num_layers;
  traits.num_heads = config.num_heads;
  traits.num_kv_heads = config.num_kv_heads;
  traits.head_dim = config.head_dim;
  traits.hidden = config.hidden;
  traits.eos = config.eos;
  auto loaded = std::make_shared<model::LoadedModel>();
  auto parts = std::make_shared<ModelParts>();
  model::CustomLayers layers;
  layers.count = config.cache_layers;
  if (layers.count > 0) {
    GEN_TRY(parts->start({}));
    layers.engine = parts->engine;
  }
  GEN_ASSIGN(loaded->model, model::CustomModel::create(forward, traits, forward->states(),
                                                       std::move(layers), start_engine));
  GEN_TRY(complete(&handle->config, handle->tokenizer.impl.get()));
  loaded->tokenizer = handle->tokenizer.impl;
  loaded->metadata = std::make_shared<gguf::Metadata>();
  parts->loaded = std::move(loaded);
  parts->description = describe(handle->config);
  handle->shared = Shared<const ModelParts>(std::move(parts), joined({forward->callbacks()}));
  return handle;
}

}  // namespace
}  // namespace gen::api

gen_status gen_model_new_custom(const gen_forward* forward, const gen_model_config* config,
                                const gen_tokenizer* tokenizer, gen_model** out, gen_error* error) {
  using gen::Status;
  using gen::api::not_null;
  if (out != nullptr) *out = nullptr;
  return gen::api::guard(error, [&]() -> Status {
    GEN_TRY(not_null(forward, "forward"));
    GEN_TRY(not_null(config, "config"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const gen_forward ours, gen::api::read_struct(*forward));
    GEN_TRY(gen::api::check_table(ours));
    const auto table = std::make_shared<gen::api::CForward>(ours);
    GEN_ASSIGN(auto handle, gen::api::make_model(table, *config, tokenizer));
    table->begin_use();
    *out = handle.release();
    return {};
  });
}

gen_status gen_forward_attention(const gen_forward_batch* batch, int32_t layer, const float* q,
                                 const float* k, const float* v, float scale, float* out,
                                 gen_error* error) {
  using gen::Code;
  using gen::Status;
  using gen::api::not_null;
  return gen::api::guard(error, [&]() -> Status {
    GEN_TRY(not_null(batch, "batch"));
    GEN_TRY(not_null(batch->call, "the batch's call"));
    GEN_TRY(not_null(q, "q"));
    GEN_TRY(not_null(k, "k"));
    GEN_TRY(not_null(v, "v"));
    GEN_TRY(not_null(out, "out"));
    if (!std::isfinite(scale)) {
      return gen::error(Code::kInvalidArgument, "scale %g is not finite",
                        static_cast<double>(scale));
    }
    if (batch->call->attention == nullptr) {
      return {Code::kUnsupported, "the model has no layers that keep keys and values: kv_layers"};
    }
    const gen::InUseGuard use(&batch->call->in_use);
    GEN_TRY(use.entered("the batch"));
    return batch->call->attention->run(layer, q, k, v, scale, out);
  });
}

int32_t gen_forward_cancelled(const gen_forward_batch* batch) {
  if (batch == nullptr || batch->call == nullptr) return 0;
  const gen::CancelFlag* const cancel = batch->call->cancel;
  return cancel != nullptr && cancel->raised() ? 1 : 0;
}

gen_status gen_pad_left(const int32_t* tokens, const size_t* lengths, size_t count, int32_t pad,
                        int32_t* out, size_t capacity, size_t* width, gen_error* error) {
  using gen::Status;
  using gen::api::not_null;
  if (width != nullptr) *width = 0;
  return gen::api::guard(error, [&]() -> Status {
    GEN_TRY(not_null(width, "width"));
    if (count == 0) return {};
    GEN_TRY(not_null(lengths, "lengths"));
    const size_t longest = *std::max_element(lengths, lengths + count);
    if (longest > 0) GEN_TRY(not_null(tokens, "tokens"));
    *width = longest;
    if (out == nullptr) return {};
    return gen::model::pad_left(tokens, {lengths, count}, pad, {out, capacity});
  });
}
