// SPDX-License-Identifier: Apache-2.0
// See generator.h.
#include "generate/loop/generator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cache/sequence/layer_memories.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/window_cache.h"
#include "engine/memory/host_memory.h"
#include "generate/step/scheduler.h"

namespace gen::generate {
namespace {

/// Identifies the model and cache format. Models that compute different keys or values for the same
/// tokens have different names.
std::string domain_name(const model::ModelTraits& traits, const std::string& kv_dtype) {
  std::string name = traits.architecture;
  name.append("/").append(std::to_string(traits.fingerprint)).append("/").append(kv_dtype);
  return name;
}

StepLimits limits_of(const GeneratorOptions& options, const model::ModelTraits& traits) {
  StepLimits limits{std::min(options.max_sequences, traits.max_batch_sequences),
                    traits.max_batch_rows, options.prefill_chunk, options.max_passed_over,
                    options.deterministic};
  limits.max_starving = options.max_starving;
  limits.max_yielding = options.max_yielding;
  limits.least_starving = options.least_starving;
  return limits;
}

}  // namespace

Generator::Generator(std::shared_ptr<const model::Model> model,
                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                     GeneratorOptions options)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      options_(std::move(options)),
      vocab_size_(model_->traits().vocab_size),
      scheduler_(std::make_unique<Scheduler>(
          *model_, limits_of(options_, model_->traits()), options_.tracer.get(), metrics(),
          &options_.measure_caches, options_.drafter.get(), &options_.draft_policy)) {
  // Some models pad their matrices with rows beyond the vocabulary; these have no text.
  if (tokenizer_ != nullptr) {
    vocab_size_ = std::min(vocab_size_, tokenizer_->vocab_size());
    end_tokens_.assign(tokenizer_->end_tokens().begin(), tokenizer_->end_tokens().end());
  }
  if (model_->traits().eos >= 0) end_tokens_.push_back(model_->traits().eos);
  if (options_.prefix_cache != nullptr) {
    prefix_domain_ =
        options_.prefix_cache->domain(domain_name(model_->traits(), options_.kv_dtype));
  }
}

Generator::~Generator() = default;

Result<std::shared_ptr<const Generator>> Generator::create(
    std::shared_ptr<const model::Model> model,
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer, GeneratorOptions options) {
  const model::ModelTraits& traits = model->traits();
  if (options.max_seq_len < 0 || options.max_seq_len > traits.max_seq_len) {
    return error(Code::kInvalidArgument, "max_seq_len %d outside [0, %d], the model's context",
                 options.max_seq_len, traits.max_seq_len);
  }
  if (traits.result > 0) {
    return error(Code::kUnsupported, "a model whose rows answer with %d numbers and no logits",
                 traits.result);
  }
  if (options.prefill_chunk < 0) {
    return error(Code::kInvalidArgument, "prefill_chunk %d is negative", options.prefill_chunk);
  }
  if (options.max_sequences < 1) {
    return error(Code::kInvalidArgument, "max_sequences %d is below 1", options.max_sequences);
  }
  if (options.max_queue < 0) {
    return error(Code::kInvalidArgument, "max_queue %d is negative", options.max_queue);
  }
  if (options.max_seq_len == 0) options.max_seq_len = traits.max_seq_len;
  if (options.shift_context &&
      (options.context_keep < 0 || options.context_keep > options.max_seq_len - 2)) {
    return error(Code::kInvalidArgument, "context_policy keeps %d tokens, outside [0, %d]",
                 options.context_keep, options.max_seq_len - 2);
  }
  // Half of the range is practically unlimited, and its sum with max_sequences does not overflow.
  options.max_queue = std::min(options.max_queue, std::numeric_limits<int32_t>::max() / 2);
  options.prefill_chunk = prefill_rows(options.prefill_chunk, traits);
  if (options.memory == nullptr) options.memory = &engine::system_memory();
  if (!options.cache_factory) {
    GEN_ASSIGN(const auto format, cache::parse_cache_format(options.kv_dtype));
    GEN_TRY(cache::check_layers(format, model->layer_shapes()));
  }
  return std::shared_ptr<const Generator>(
      new Generator(std::move(model), std::move(tokenizer), std::move(options)));
}

Result<std::unique_ptr<cache::KvCache>> Generator::make_cache(int32_t capacity,
                                                              int32_t window_rewind) const {
  const auto shapes = model_->layer_shapes();
  if (options_.cache_factory) {
    GEN_ASSIGN(auto made, options_.cache_factory(shapes, capacity));
    if (window_rewind < 0) made->keep_all();
    return made;
  }
  return cache::make_in_memories(
      shapes, model::memories_of_layers(*model_, *options_.memory),
      [&](std::span<const cache::LayerShape> layers, engine::EngineMemory& memory) {
        if (window_rewind < 0) {
          return cache::make_cache(options_.kv_dtype, layers, capacity, memory);
        }
        cache::WindowRoom room{prefill_chunk(), window_rewind, options_.window_copies};
        if (options_.shift_context && model_->traits().can_shift) room.lead = options_.context_keep;
        return cache::make_windowed_cache(options_.kv_dtype, layers, capacity, room, memory);
      });
}

}  // namespace gen::generate
