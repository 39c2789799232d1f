// SPDX-License-Identifier: Apache-2.0
// For callbacks_test.cpp: everything there is a handle for, callbacks that call the function under
// test, and arguments made up by their types.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <generate/experimental.h>
#include <generate/generate.h>

#include "status_record.h"

namespace {

constexpr const char* kDraft = GEN_TEST_SOURCE_DIR "/examples/demo_model/draft.gguf";
constexpr int32_t kVocab = 13;  // of the model that is a function
constexpr int32_t kHidden = 4;  // of the same

#define HANDLES(H)                                                                                 \
  H(gen_model, gen_model_free)                                                                     \
  H(gen_generator, gen_free)                                                                       \
  H(gen_session, gen_session_free)                                                                 \
  H(gen_stream, gen_stream_close)                                                                  \
  H(gen_sampling, gen_sampling_free) H(gen_options, gen_options_free) H(                           \
      gen_model_options, gen_model_options_free) H(gen_model_config, gen_model_config_free)        \
      H(gen_request, gen_request_free) H(gen_result, gen_result_free) H(                           \
          gen_cancel, gen_cancel_free) H(gen_chat, gen_chat_free)                                  \
          H(gen_chat_session, gen_chat_session_free) H(gen_template, gen_template_free) H(         \
              gen_tokenizer, gen_tokenizer_free) H(gen_speculative, gen_speculative_free)          \
              H(gen_eagle, gen_eagle_free) H(gen_draft, gen_draft_free) H(                         \
                  gen_thread_pool, gen_thread_pool_free) H(gen_tracer, gen_tracer_free)            \
                  H(gen_metrics_memory, gen_metrics_memory_free) H(gen_grammar, gen_grammar_free)  \
                      H(gen_grammar_matcher, gen_grammar_matcher_free) H(gen_grammar_options,      \
                                                                         gen_grammar_options_free) \
                          H(gen_quantize_options, gen_quantize_options_free) H(                    \
                              gen_memory_estimate, gen_memory_estimate_free)                       \
                              H(gen_gpu_allocator, gen_gpu_allocator_release) H(gen_profile,       \
                                                                                gen_profile_free)  \
                                  H(gen_ssm_state, gen_ssm_state_free) H(kv_cache, kv_cache_free)  \
                                      H(kv_cache_pool, kv_cache_pool_free)                         \
                                          H(kv_cache_prefix, kv_cache_prefix_free)                 \
                                              H(kv_cache_radix, kv_cache_radix_free) H(            \
                                                  kv_cache_tier_config, kv_cache_tier_config_free) \
                                                  H(gen_tool_registry, gen_tool_registry_free)     \
                                                      H(gen_agent_options, gen_agent_options_free) \
                                                          H(gen_agent, gen_agent_free) H(          \
                                                              gen_supervisor, gen_supervisor_free)

#define H(type, free) \
  void end(type* handle) { free(handle); }
HANDLES(H)
#undef H
void end(kv_cache_block* /*block*/) {}  // its pool's

#define H(type, free) type*,
using Slots = std::tuple<HANDLES(H) kv_cache_block*>;
#undef H

template <typename T, typename... All>
constexpr bool is_one_of(const std::tuple<All...>* /*slots*/) {
  return (std::is_same_v<T, All> || ...);
}
template <typename T>
constexpr bool kIsHandle = is_one_of<T*>(static_cast<const Slots*>(nullptr));

void check(gen_status status, const gen_error& error) {
  ASSERT_EQ(status, GEN_OK) << error.message;
}

/// Everything there is a handle for, and the callback that calls the function under test.
class World {
 public:
  enum class Model { kFile, kFunction, kStates };

  explicit World(Model kind);
  ~World() {
    armed = false;
    std::apply([](auto... handles) { (end(handles), ...); }, outs);
    gen_stream_close(slot<gen_stream>());
    slot<gen_stream>() = nullptr;
    std::apply([](auto... handles) { (end(handles), ...); }, slots);
    for (kv_cache* cache : retired) kv_cache_free(cache);
    gen_session_free(work);
    gen_session_free(streaming);
    std::filesystem::remove_all(folder);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  template <typename T>
  T*& slot() {
    return std::get<T*>(slots);
  }
  template <typename T>
  T*& out() {
    return std::get<T*>(outs);
  }
  /// What all callbacks do: the function under test, once.
  void hit() {
    if (!armed) return;
    armed = false;
    ++hits;
    inside();
  }
  void make_agents();
  void make_caches();
  /// `work` holds what it held at first.
  void restart_work();

  std::function<void()> inside;
  bool armed = false;
  int hits = 0;
  std::string only_metric;  // the one whose callback counts; empty: any
  bool on_allocate = false;
  bool on_release = false;
  bool on_forward = false;
  bool on_states = false;
  const gen_forward_batch* batch = nullptr;

  Slots slots{};
  Slots outs{};
  gen_session* work = nullptr;       // whose call the callback is in
  gen_session* streaming = nullptr;  // of the stream
  std::vector<kv_cache*> retired;
  std::string folder;
  std::string path;  // of a model; also a text
  gen_allocator allocator{};
  gen_metrics_sink sink{};
  gen_forward forward{};
  kv_cache_span span{};
  gen_eagle_tensors tensors{};  // zeros
  std::vector<float> floats = std::vector<float>(1 << 16);
  std::vector<int32_t> ints = std::vector<int32_t>(1 << 12, 1);
  std::vector<char> bytes = std::vector<char>(1 << 18);
  std::vector<uint8_t> ones = std::vector<uint8_t>(64, 1);
  gen_error error{};
};

World& of(void* user) { return *static_cast<World*>(user); }

gen_status allocate(void* user, size_t bytes, size_t align, void** out) {
  if (of(user).on_allocate) of(user).hit();
  *out = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  return *out != nullptr ? GEN_OK : GEN_ERROR_OUT_OF_MEMORY;
}
void release(void* user, void* pointer, size_t /*bytes*/) {
  if (of(user).on_release) of(user).hit();
  std::free(pointer);
}
void metric(void* user, const char* name, double /*value*/) {
  if (of(user).only_metric == name) of(user).hit();
}
int token(void* user, const gen_token* /*token*/) {
  of(user).hit();
  return 0;
}
gen_status logits(void* user, float* /*logits*/, size_t /*n*/, const int32_t* /*tokens*/,
                  size_t /*count*/, size_t /*said*/, gen_error* /*error*/) {
  of(user).hit();
  return GEN_OK;
}
int batch_token(void* user, size_t /*index*/, const gen_token* /*token*/) {
  of(user).hit();
  return 0;
}
int progress(void* user, double /*share*/) {
  of(user).hit();
  return 0;
}
void evicted(void* user, int32_t /*id*/) { of(user).hit(); }
void log_line(void* user, int32_t /*level*/, const char* /*line*/) { of(user).hit(); }
int no_tool(void* /*user*/, const gen_tool_call* /*call*/, gen_tool_reply* /*reply*/) { return 0; }
int no_event(void* /*user*/, const gen_agent_event* /*event*/) { return 0; }
gen_status shift(void* user, int32_t, float*, int32_t, int32_t, int32_t, const int32_t*) {
  of(user).hit();
  return GEN_OK;
}

/// The next token is the last one and 3 more.
gen_status run(void* user, const gen_forward_batch* batch, float* logits, float* features,
               gen_error* /*error*/) {
  World& world = of(user);
  world.batch = batch;
  if (world.on_forward) world.hit();
  world.batch = nullptr;
  if (features != nullptr) std::fill_n(features, batch->n_rows * kHidden, 1.0F);
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    if (batch->wants_logits[row] == 0) continue;
    for (int32_t i = 0; i < kVocab; ++i) {
      *logits++ = i == (batch->tokens[row] + 3) % kVocab ? 5.0F : 0.0F;
    }
  }
  return GEN_OK;
}
gen_status state_new(void* user, void** state, gen_error* /*error*/) {
  if (of(user).on_states) of(user).hit();
  *state = std::malloc(1);
  return GEN_OK;
}
gen_status state_clone(void* user, const void* /*state*/, void** out, gen_error* error) {
  return state_new(user, out, error);
}
gen_status state_truncate(void* user, void* /*state*/, int32_t /*n*/, gen_error* /*error*/) {
  if (of(user).on_states) of(user).hit();
  return GEN_OK;
}
void state_free(void* user, void* state) {
  if (of(user).on_states) of(user).hit();
  std::free(state);
}

World::World(Model kind) {
  std::string name = (std::filesystem::temp_directory_path() / "callbacks-XXXXXX").string();
  folder = mkdtemp(name.data());
  path = folder + "/model.gguf";
  std::filesystem::create_symlink(kDraft, path);
  allocator = {sizeof allocator, this, allocate, ::release};
  sink = {sizeof sink, this, metric, metric, metric};
  forward.struct_size = sizeof forward;
  forward.user = this;
  forward.forward = run;
  if (kind == Model::kStates) {
    forward.state_new = state_new;
    forward.state_clone = state_clone;
    forward.state_truncate = state_truncate;
    forward.state_free = state_free;
  }
  span.struct_size = sizeof span;

  check(gen_model_options_new(&slot<gen_model_options>(), &error), error);
  check(gen_model_options_set_threads(slot<gen_model_options>(), 1, &error), error);
  check(gen_model_config_new(&slot<gen_model_config>(), &error), error);
  check(gen_model_config_set_vocab_size(slot<gen_model_config>(), kVocab, &error), error);
  check(gen_model_config_set_max_seq_len(slot<gen_model_config>(), 64, &error), error);
  check(gen_model_config_set_hidden(slot<gen_model_config>(), kHidden, &error), error);
  gen_model*& model = slot<gen_model>();
  if (kind == Model::kFile) {
    check(gen_model_options_set_allocator(slot<gen_model_options>(), &allocator, &error), error);
    check(gen_model_load(path.c_str(), slot<gen_model_options>(), &model, &error), error);
  } else {
    check(gen_model_new_custom(&forward, slot<gen_model_config>(), nullptr, &model, &error), error);
  }
  check(gen_options_new(&slot<gen_options>(), &error), error);
  check(gen_options_set_metrics(slot<gen_options>(), &sink, &error), error);
  check(gen_create(model, slot<gen_options>(), &slot<gen_generator>(), &error), error);
  check(gen_sampling_new(&slot<gen_sampling>(), &error), error);
  check(gen_sampling_set_temperature(slot<gen_sampling>(), 0, &error), error);
  check(gen_sampling_set_max_new_tokens(slot<gen_sampling>(), 3, &error), error);
  const int32_t tokens[] = {3, 4, 5};
  for (gen_session** session : {&work, &streaming, &slot<gen_session>()}) {
    check(gen_session_new(slot<gen_generator>(), session, &error), error);
    check(gen_session_append_tokens(*session, tokens, 3, &error), error);
  }
  check(gen_stream_open(streaming, "", 0, slot<gen_sampling>(), &slot<gen_stream>(), &error),
        error);
  check(gen_request_new(&slot<gen_request>(), &error), error);
  check(gen_request_set_prompt_tokens(slot<gen_request>(), tokens, 3, &error), error);
  check(gen_request_set_sampling(slot<gen_request>(), slot<gen_sampling>(), &error), error);
  gen_request* requests[] = {slot<gen_request>()};
  check(gen_batch_generate(slot<gen_generator>(), requests, 1, &slot<gen_result>(), &error), error);
  check(gen_cancel_new(&slot<gen_cancel>(), &error), error);
  check(gen_chat_new(&slot<gen_chat>(), &error), error);
  check(gen_chat_add(slot<gen_chat>(), "user", "hi", 2, &error), error);
  check(gen_template_new("{{ messages }}", 14, &slot<gen_template>(), &error), error);
  if (gen_model_tokenizer(model) != nullptr) {
    check(gen_chat_session_new(slot<gen_generator>(), slot<gen_chat>(), &slot<gen_chat_session>(),
                               &error),
          error);
  }
  if (kind != Model::kStates) {  // a model with a state cannot draft for another one
    check(gen_speculative_new(model, model, 2, nullptr, &slot<gen_speculative>(), &error), error);
  }
  tensors.struct_size = sizeof tensors;
  tensors.hidden = gen_model_config_hidden(gen_model_get_config(model));
  tensors.vocab_size = kVocab;
  tensors.norm_weight = tensors.norm_bias = floats.data();
  tensors.fc1_weight = tensors.fc2_weight = floats.data();
  tensors.lm_head = kind != Model::kFile ? floats.data() : nullptr;
  EXPECT_LE(static_cast<size_t>(tensors.hidden) * static_cast<size_t>(tensors.hidden),
            floats.size());
  check(gen_eagle_new_tensors(model, &tensors, 2, nullptr, &slot<gen_eagle>(), &error), error);
  check(gen_draft_new(model, model, nullptr, &slot<gen_draft>(), &error), error);
  check(gen_tokenizer_load(path.c_str(), &slot<gen_tokenizer>(), &error), error);
  check(gen_thread_pool_new(1, nullptr, 0, &slot<gen_thread_pool>(), &error), error);
  check(gen_tracer_new(&slot<gen_tracer>(), &error), error);
  check(gen_gpu_allocator_host(&slot<gen_gpu_allocator>(), &error), error);
  check(gen_metrics_memory_new(&slot<gen_metrics_memory>(), &error), error);
  check(gen_profile_new(&slot<gen_profile>(), &error), error);
  check(gen_grammar_options_new(&slot<gen_grammar_options>(), &error), error);
  check(gen_quantize_options_new(&slot<gen_quantize_options>(), &error), error);
  check(gen_grammar_from_regex("[a-z]*", 6, nullptr, &slot<gen_grammar>(), &error), error);
  check(gen_grammar_matcher_new(slot<gen_grammar>(), slot<gen_tokenizer>(),
                                &slot<gen_grammar_matcher>(), &error),
        error);
  check(gen_ssm_state_new(1, 1, 1, &slot<gen_ssm_state>(), &error), error);
  check(kv_cache_tier_config_new(&slot<kv_cache_tier_config>(), &error), error);
  make_agents();
  make_caches();
}

/// An agent of the model if that has texts, and a supervisor of it.
void World::make_agents() {
  check(gen_tool_registry_new(&slot<gen_tool_registry>(), &error), error);
  check(gen_tool_registry_add(slot<gen_tool_registry>(), "tool", "", "", no_tool, nullptr, &error),
        error);
  check(gen_agent_options_new(&slot<gen_agent_options>(), &error), error);
  check(gen_agent_options_set(slot<gen_agent_options>(), "max_steps", "1", &error), error);
  check(gen_agent_options_set_sampling(slot<gen_agent_options>(), slot<gen_sampling>(), &error),
        error);
  const bool speaks = gen_model_tokenizer(slot<gen_model>()) != nullptr;
  check(gen_agent_new(speaks ? slot<gen_generator>() : nullptr, slot<gen_tool_registry>(),
                      slot<gen_agent_options>(), &slot<gen_agent>(), &error),
        error);
  check(gen_supervisor_new(&slot<gen_supervisor>(), &error), error);
  if (speaks) {
    check(gen_supervisor_add_agent(slot<gen_supervisor>(), "agent", "", slot<gen_agent>(), &error),
          error);
  }
}

/// A pool that has given out nothing yet, with a cache and a prefix cache over it, and an index.
void World::make_caches() {
  retired.push_back(std::exchange(slot<kv_cache>(), nullptr));
  end(std::exchange(slot<kv_cache_prefix>(), nullptr));
  end(std::exchange(slot<kv_cache_pool>(), nullptr));
  end(std::exchange(slot<kv_cache_radix>(), nullptr));
  slot<kv_cache_block>() = nullptr;
  kv_cache_pool*& pool = slot<kv_cache_pool>();
  check(kv_cache_pool_new(1, 2, 4, 4, "fp32", &pool, &error), error);
  check(kv_cache_pool_set_allocator(pool, &allocator, &error), error);
  check(kv_cache_paged_new(pool, 1, &slot<kv_cache>(), &error), error);
  check(kv_cache_prefix_new(4, pool, &slot<kv_cache_prefix>(), &error), error);
  check(kv_cache_radix_new(1, 4, &slot<kv_cache_radix>(), &error), error);
  check(kv_cache_radix_set_evict_callback(slot<kv_cache_radix>(), evicted, this, &error), error);
}

void World::restart_work() {
  const int32_t tokens[] = {3, 4, 5};
  if (work == nullptr) check(gen_session_new(slot<gen_generator>(), &work, &error), error);
  check(gen_session_reset(work, &error), error);
  check(gen_session_append_tokens(work, tokens, 3, &error), error);
}

// --- arguments by type

int no_token(void*, const gen_token*) { return 0; }
int no_batch_token(void*, size_t, const gen_token*) { return 0; }
int no_progress(void*, double) { return 0; }
void no_line(void*, int32_t, const char*) {}

template <typename T>
T argument(World& world) {
  using Bare = std::remove_cv_t<std::remove_pointer_t<T>>;  // of a pointer
  if constexpr (std::is_arithmetic_v<T>) {
    return T{1};
  } else if constexpr (std::is_same_v<T, gen_error*>) {
    return &world.error;
  } else if constexpr (kIsHandle<Bare>) {
    return world.slot<Bare>();
  } else if constexpr (std::is_pointer_v<Bare>) {
    using Inner = std::remove_cv_t<std::remove_pointer_t<Bare>>;
    constexpr bool reads = std::is_const_v<std::remove_pointer_t<T>>;
    if constexpr (!kIsHandle<Inner>) {
      static void* somewhere;
      return reinterpret_cast<T>(reinterpret_cast<uintptr_t>(&somewhere));  // whatever is const
    } else if constexpr (reads) {
      return const_cast<T>(&world.slot<Inner>());
    } else {
      end(std::exchange(world.out<Inner>(), nullptr));
      return &world.out<Inner>();
    }
  } else if constexpr (std::is_same_v<T, gen_token_callback>) {
    return no_token;
  } else if constexpr (std::is_same_v<T, gen_tool_callback>) {
    return no_tool;
  } else if constexpr (std::is_same_v<T, gen_agent_callback>) {
    return no_event;
  } else if constexpr (std::is_same_v<Bare, gen_tool_reply>) {
    return nullptr;  // there is one only while a tool runs
  } else if constexpr (std::is_same_v<T, gen_logits_callback>) {
    return nullptr;
  } else if constexpr (std::is_same_v<T, gen_batch_callback>) {
    return no_batch_token;
  } else if constexpr (std::is_same_v<T, gen_progress_callback>) {
    return no_progress;
  } else if constexpr (std::is_same_v<T, gen_log_callback>) {
    return no_line;
  } else if constexpr (std::is_same_v<T, kv_cache_radix_evict_callback>) {
    return nullptr;
  } else if constexpr (std::is_same_v<T, kv_cache_shift_fn>) {
    return shift;
  } else if constexpr (std::is_same_v<Bare, gen_allocator>) {
    return &world.allocator;
  } else if constexpr (std::is_same_v<Bare, gen_metrics_sink>) {
    return &world.sink;
  } else if constexpr (std::is_same_v<Bare, gen_forward>) {
    return &world.forward;
  } else if constexpr (std::is_same_v<Bare, gen_forward_batch>) {
    return world.batch;
  } else if constexpr (std::is_same_v<Bare, kv_cache_span>) {
    return &world.span;
  } else if constexpr (std::is_same_v<Bare, gen_eagle_tensors>) {
    return &world.tensors;
  } else if constexpr (std::is_same_v<T, const char*>) {
    return world.path.c_str();
  } else if constexpr (std::is_same_v<Bare, float>) {
    return world.floats.data();
  } else if constexpr (std::is_same_v<Bare, int32_t>) {
    return world.ints.data();
  } else if constexpr (std::is_same_v<Bare, uint8_t>) {
    return world.ones.data();
  } else {
    static_assert(std::is_pointer_v<T>);
    return reinterpret_cast<T>(world.bytes.data());
  }
}

}  // namespace
