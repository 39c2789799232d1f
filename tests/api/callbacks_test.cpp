// SPDX-License-Identifier: Apache-2.0
// Calls every public function from inside every kind of callback. What the functions on the objects
// that the callback belongs to answer is the table of generate.h; nothing may wait for itself, what
// is freed goes after the callback, and the call around it gives what it gives without all that.
// Arguments are made up by their types, so that a new function needs no more than its name in
// all_functions.inc, and is missed if that lacks it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/log.h"
#include <generate/experimental.h>
#include <generate/generate.h>

#include "status_record.h"

namespace {

constexpr const char* kDraft = GEN_TEST_SOURCE_DIR "/examples/demo_model/draft.gguf";
constexpr int32_t kVocab = 13;  // of the model that is a function

#define HANDLES(H)                                                                               \
  H(gen_model, gen_model_free) H(gen_generator, gen_free) H(gen_session, gen_session_free)      \
  H(gen_stream, gen_stream_close) H(gen_sampling, gen_sampling_free)                            \
  H(gen_options, gen_options_free) H(gen_model_options, gen_model_options_free)                 \
  H(gen_model_config, gen_model_config_free) H(gen_request, gen_request_free)                   \
  H(gen_result, gen_result_free) H(gen_cancel, gen_cancel_free) H(gen_chat, gen_chat_free)      \
  H(gen_tokenizer, gen_tokenizer_free) H(gen_thread_pool, gen_thread_pool_free)                 \
  H(gen_tracer, gen_tracer_free) H(gen_metrics_memory, gen_metrics_memory_free)                 \
  H(gen_memory_estimate, gen_memory_estimate_free) H(gen_profile, gen_profile_free)             \
  H(gen_ssm_state, gen_ssm_state_free) H(kv_cache, kv_cache_free)                               \
  H(kv_cache_pool, kv_cache_pool_free) H(kv_cache_prefix, kv_cache_prefix_free)                 \
  H(kv_cache_radix, kv_cache_radix_free) H(kv_cache_tier_config, kv_cache_tier_config_free)

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
gen_status shift(void* user, int32_t, float*, int32_t, int32_t, int32_t, const int32_t*) {
  of(user).hit();
  return GEN_OK;
}

/// The next token is the last one and 3 more.
gen_status run(void* user, const gen_forward_batch* batch, float* logits, float* /*features*/,
               gen_error* /*error*/) {
  World& world = of(user);
  world.batch = batch;
  if (world.on_forward) world.hit();
  world.batch = nullptr;
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
  check(gen_stream_open(streaming, "", 0, slot<gen_sampling>(), &slot<gen_stream>(), &error), error);
  check(gen_request_new(&slot<gen_request>(), &error), error);
  check(gen_request_set_prompt_tokens(slot<gen_request>(), tokens, 3, &error), error);
  check(gen_request_set_sampling(slot<gen_request>(), slot<gen_sampling>(), &error), error);
  gen_request* requests[] = {slot<gen_request>()};
  check(gen_batch_generate(slot<gen_generator>(), requests, 1, &slot<gen_result>(), &error), error);
  check(gen_cancel_new(&slot<gen_cancel>(), &error), error);
  check(gen_chat_new(&slot<gen_chat>(), &error), error);
  check(gen_tokenizer_load(path.c_str(), &slot<gen_tokenizer>(), &error), error);
  check(gen_thread_pool_new(1, nullptr, 0, &slot<gen_thread_pool>(), &error), error);
  check(gen_tracer_new(&slot<gen_tracer>(), &error), error);
  check(gen_metrics_memory_new(&slot<gen_metrics_memory>(), &error), error);
  check(gen_profile_new(&slot<gen_profile>(), &error), error);
  check(gen_ssm_state_new(1, 1, 1, &slot<gen_ssm_state>(), &error), error);
  check(kv_cache_tier_config_new(&slot<kv_cache_tier_config>(), &error), error);
  make_caches();
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
      static const void* somewhere;
      return reinterpret_cast<T>(&somewhere);
    } else if constexpr (reads) {
      return const_cast<T>(&world.slot<Inner>());
    } else {
      end(std::exchange(world.out<Inner>(), nullptr));
      return &world.out<Inner>();
    }
  } else if constexpr (std::is_same_v<T, gen_token_callback>) {
    return no_token;
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

// --- the functions

enum Uses : uint32_t {
  kModel = 1,
  kGeneration = 2,  // a generator, a session or a stream
  kPool = 4,        // a pool, or what is over it
  kIndex = 8,
  kEverything = 16,
};

struct Function {
  std::string name;
  uint32_t uses = kEverything;
  bool ends = false;  // frees a handle
  std::function<std::optional<gen_status>(World&)> call;
};

template <typename T>
constexpr uint32_t uses_of() {
  using Pointed = std::remove_pointer_t<T>;
  if constexpr (std::is_pointer_v<Pointed> && std::is_const_v<Pointed>) {  // an array of handles
    return uses_of<std::remove_const_t<Pointed>>();
  }
  using Bare = std::remove_cv_t<Pointed>;
  if (std::is_same_v<Bare, gen_model>) return kModel;
  if (std::is_same_v<Bare, gen_generator> || std::is_same_v<Bare, gen_session> ||
      std::is_same_v<Bare, gen_stream>) {
    return kGeneration;
  }
  if (std::is_same_v<Bare, kv_cache_pool> || std::is_same_v<Bare, kv_cache_prefix> ||
      std::is_same_v<Bare, kv_cache>) {
    return kPool;
  }
  if (std::is_same_v<Bare, kv_cache_radix>) return kIndex;
  return 0;
}

template <typename R, typename... A>
Function describe(const char* name, R (*function)(A...)) {
  Function made;
  made.name = name;
  ((made.uses |= uses_of<A>()), ...);
  const std::string_view text = name;
  made.ends = text == "gen_free" || text == "gen_stream_close" ||
              (text.ends_with("_free") && std::is_void_v<R>);
  [[maybe_unused]] const bool ends = made.ends;
  made.call = [=](World& world) -> std::optional<gen_status> {
    if constexpr ((std::is_same_v<A, gen_error*> || ...)) {
      return function(argument<A>(world)...);
    } else {
      static_cast<void>(function(argument<A>(world)...));
      if constexpr (sizeof...(A) == 1) {
        using Only = std::tuple_element_t<0, std::tuple<A...>>;
        using Bare = std::remove_cv_t<std::remove_pointer_t<Only>>;
        if constexpr (kIsHandle<Bare>) {
          if (ends) world.slot<Bare>() = nullptr;
        }
      }
      return std::nullopt;
    }
  };
  return made;
}

/// Where made-up arguments would not do: what writes has a file of its own, and logits have room.
std::function<std::optional<gen_status>(World&)> instead(const std::string& name) {
  const auto to_file = [](auto function, auto handle) {
    return [=](World& world) -> std::optional<gen_status> {
      return function(handle(world), (world.folder + "/written").c_str(), &world.error);
    };
  };
  if (name == "gen_session_save") {
    return to_file(gen_session_save, [](World& w) { return w.slot<gen_session>(); });
  }
  if (name == "kv_cache_save") {
    return to_file(kv_cache_save, [](World& w) { return w.slot<kv_cache>(); });
  }
  if (name == "gen_tracer_write_dot") {
    return to_file(gen_tracer_write_dot, [](World& w) { return w.slot<gen_tracer>(); });
  }
  if (name == "gen_tracer_write_json") {
    return to_file(gen_tracer_write_json, [](World& w) { return w.slot<gen_tracer>(); });
  }
  if (name == "gen_model_forward") {
    return [](World& w) -> std::optional<gen_status> {
      return gen_model_forward(w.slot<gen_model>(), w.ints.data(), 1, w.slot<kv_cache>(),
                               w.floats.data(), w.floats.size(), &w.error);
    };
  }
  if (name == "gen_model_forward_batch") {
    return [](World& w) -> std::optional<gen_status> {
      return gen_model_forward_batch(w.slot<gen_model>(), w.ints.data(), nullptr, nullptr, 1,
                                     &w.slot<kv_cache>(), 1, w.floats.data(), w.floats.size(),
                                     &w.error);
    };
  }
  if (name == "gen_model_forward_profiled") {
    return [](World& w) -> std::optional<gen_status> {
      return gen_model_forward_profiled(w.slot<gen_model>(), w.ints.data(), nullptr, nullptr, 1,
                                        &w.slot<kv_cache>(), 1, w.floats.data(), w.floats.size(),
                                        w.slot<gen_profile>(), &w.error);
    };
  }
  if (name == "gen_metrics_memory_value") {
    return [](World& world) -> std::optional<gen_status> {
      static_cast<void>(gen_metrics_memory_value(world.slot<gen_metrics_memory>(), "steps"));
      return std::nullopt;
    };
  }
  return nullptr;
}

std::vector<Function> all_functions() {
  std::vector<Function> all;
#define X(name) all.push_back(describe(#name, name));
#include "all_functions.inc"
#undef X
  for (Function& function : all) {
    if (auto other = instead(function.name)) function.call = std::move(other);
  }
  return all;
}

// --- the callbacks

struct Kind {
  const char* name;
  World::Model model;
  uint32_t busy;                         // what functions that use it answer
  std::function<void(World&)> prepare;   // switches the callback on
  std::function<std::string(World&)> trigger;  // what the call around it gives
  bool of_work = true;                   // the call is one on World::work
};

std::string text_of(gen_result* result, gen_status status) {
  std::string all = std::to_string(status) + ":";
  size_t n = 0;
  const int32_t* tokens = gen_result_tokens(result, &n);
  for (size_t i = 0; i < n; ++i) all += " " + std::to_string(tokens[i]);
  gen_result_free(result);
  return all;
}

std::string generate(World& world, gen_token_callback callback) {
  gen_result* result = nullptr;
  gen_sampling* sampling = nullptr;
  check(gen_sampling_new(&sampling, &world.error), world.error);
  check(gen_sampling_set_temperature(sampling, 0, &world.error), world.error);
  check(gen_sampling_set_max_new_tokens(sampling, 3, &world.error), world.error);
  const gen_status status =
      callback != nullptr
          ? gen_session_generate_stream(world.work, "", 0, sampling, callback, &world, &result,
                                        &world.error)
          : gen_session_generate(world.work, "", 0, sampling, &result, &world.error);
  gen_sampling_free(sampling);
  return text_of(result, status);
}

/// The stream waits, too, so that the pass is both's.
std::string generate_beside(World& world) {
  const gen_token* token = nullptr;
  int32_t state = 0;
  if (world.slot<gen_stream>() != nullptr) {
    static_cast<void>(
        gen_stream_poll(world.slot<gen_stream>(), &token, &state, &world.error));
  }
  world.armed = true;
  return generate(world, nullptr);
}

std::string status_of(gen_status status) { return std::to_string(status); }

std::string fork_work(World& world) {
  gen_session* fork = nullptr;
  const gen_status status = gen_session_fork(world.work, &fork, &world.error);
  gen_session_free(fork);
  return status_of(status);
}

std::string fill_pool(World& world) {
  kv_cache_block* block = nullptr;
  return status_of(kv_cache_pool_alloc(world.slot<kv_cache_pool>(), &block, &world.error));
}

std::string fill_cache(World& world) {
  return status_of(kv_cache_update(world.slot<kv_cache>(), 0, world.floats.data(),
                                   world.floats.data(), 1, 2, 4, &world.error));
}

std::string load_model(World& world) {
  gen_model_options* options = nullptr;
  gen_model* model = nullptr;
  check(gen_model_options_new(&options, &world.error), world.error);
  check(gen_model_options_set_threads(options, 1, &world.error), world.error);
  check(gen_model_options_set_progress(options, progress, &world, &world.error), world.error);
  std::swap(options, world.slot<gen_model_options>());  // may be freed meanwhile
  const gen_status status = gen_model_load(world.path.c_str(), world.slot<gen_model_options>(),
                                           &model, &world.error);
  gen_model_free(model);
  gen_model_options_free(options);
  return status_of(status);
}

std::string quantise(World& world) {
  return status_of(gen_model_quantize(world.path.c_str(), (world.folder + "/q8").c_str(), "Q8_0",
                                      progress, &world, &world.error));
}

std::string batch(World& world) {
  gen_request* request = nullptr;
  check(gen_request_new(&request, &world.error), world.error);
  check(gen_request_set_prompt(request, "Once", 4, &world.error), world.error);
  gen_sampling* sampling = nullptr;
  check(gen_sampling_new(&sampling, &world.error), world.error);
  check(gen_sampling_set_temperature(sampling, 0, &world.error), world.error);
  check(gen_sampling_set_max_new_tokens(sampling, 3, &world.error), world.error);
  check(gen_request_set_sampling(request, sampling, &world.error), world.error);
  gen_sampling_free(sampling);
  std::swap(request, world.slot<gen_request>());  // may be freed or changed meanwhile
  gen_request* requests[] = {world.slot<gen_request>(), world.slot<gen_request>()};
  gen_result* results[2] = {};
  const gen_status status = gen_batch_generate_stream(world.slot<gen_generator>(), requests, 2,
                                                      batch_token, &world, results, &world.error);
  gen_request_free(request);
  return text_of(results[0], status) + text_of(results[1], status);
}

std::string evict(World& world) {
  size_t n = 0;
  int32_t id = 0;
  check(kv_cache_radix_insert(world.slot<kv_cache_radix>(), world.ints.data(), 3, nullptr, 0, &n,
                              &world.error),
        world.error);
  const gen_status status = kv_cache_radix_evict(world.slot<kv_cache_radix>(), &id, &world.error);
  return status_of(status) + " " + std::to_string(id);
}

std::string read_shifted(World& world) {
  kv_cache* cache = nullptr;
  check(kv_cache_causal_new(&cache, &world.error), world.error);
  check(kv_cache_set_shift(cache, shift, &world, &world.error), world.error);
  check(kv_cache_init(cache, "fp32", 1, 8, 4, &world.error), world.error);
  const int32_t positions[] = {0, 1, 2, 3};
  const int32_t sequences[] = {0, 0, 0, 0};
  check(kv_cache_start_forward(cache, positions, sequences, 3, 0, nullptr, 0, &world.error),
        world.error);
  check(kv_cache_set_layer(cache, 0, &world.error), world.error);
  check(kv_cache_put(cache, world.floats.data(), 1, 4, world.floats.data(), 1, 4, 3, &world.error),
        world.error);
  check(kv_cache_remove(cache, 0, 0, 1, &world.error), world.error);
  check(kv_cache_start_forward(cache, positions + 2, sequences, 1, 0, nullptr, 0, &world.error),
        world.error);
  check(kv_cache_put(cache, world.floats.data(), 1, 4, world.floats.data(), 1, 4, 1, &world.error),
        world.error);
  std::swap(cache, world.slot<kv_cache>());
  std::vector<float> keys(64);
  const gen_status status =
      kv_cache_get_masked(world.slot<kv_cache>(), keys.data(), keys.size(), nullptr, 0, nullptr, 0,
                          nullptr, nullptr, nullptr, &world.error);
  kv_cache_free(cache);
  return status_of(status);
}

std::string log_something(World& world) {
  gen::set_log_sink(log_line, &world);
  gen::set_log_level(gen::LogLevel::kDebug);
  record_nothing(1);  // since everything is busy in it
  gen::log(gen::LogLevel::kInfo, "a line");
  record_nothing(0);
  gen::set_log_sink(nullptr, nullptr);
  return "";
}

const std::vector<Kind>& kinds() {
  using M = World::Model;
  const auto nothing = [](World&) {};
  const auto make_caches = [](World& world) {
    world.make_caches();
    world.on_allocate = true;
  };
  static const std::vector<Kind> all = {
      {"token", M::kFile, 0, nothing, [](World& w) { return generate(w, token); }},
      {"batch", M::kFile, 0, nothing, batch, false},
      {"load_progress", M::kFile, 0, nothing, load_model, false},
      {"quantise_progress", M::kFile, 0, nothing, quantise, false},
      {"forward", M::kFunction, kModel | kGeneration, [](World& w) { w.on_forward = true; },
       generate_beside},
      {"state_clone", M::kStates, kModel | kGeneration, [](World& w) { w.on_states = true; },
       fork_work},
      {"state_truncate", M::kStates, kModel | kGeneration, [](World& w) { w.on_states = true; },
       [](World& w) { return status_of(gen_session_truncate(w.work, 1, &w.error)); }},
      {"state_free", M::kStates, kModel | kGeneration, [](World& w) { w.on_states = true; },
       [](World& w) {
         gen_session_free(std::exchange(w.work, nullptr));
         return std::string();
       },
       false},
      {"allocate", M::kFile, kModel | kGeneration, [](World& w) { w.on_allocate = true; },
       fork_work},
      {"release", M::kFile, kModel | kGeneration, [](World& w) { w.on_release = true; }, fork_work},
      {"allocate_of_pool", M::kFunction, kPool, make_caches, fill_pool, false},
      {"allocate_of_cache", M::kFunction, kPool, make_caches, fill_cache, false},
      {"metrics_at_begin", M::kFile, kGeneration, [](World& w) { w.only_metric = "requests"; },
       [](World& w) { return generate(w, nullptr); }},
      {"metrics_in_step", M::kFile, kGeneration, [](World& w) { w.only_metric = "steps"; },
       generate_beside},
      {"metrics_at_end", M::kFile, kGeneration, [](World& w) { w.only_metric = "finished_length"; },
       [](World& w) { return generate(w, nullptr); }},
      {"evicted", M::kFunction, kIndex, [](World& w) { w.make_caches(); }, evict, false},
      {"shift", M::kFunction, 0, nothing, read_shifted, false},
      {"log", M::kFunction, kEverything, nothing, log_something, false},
  };
  return all;
}

/// Those that only read what never changes.
bool reads_only(const std::string& name) {
  static const std::set<std::string> names = {"gen_model_describe", "gen_model_metadata_value",
                                              "gen_chat_format", "kv_cache_tensor_new"};
  return names.contains(name);
}

/// After these the call around them may well end otherwise.
bool changes_result(const std::string& name, bool self) {
  return self && (name == "gen_session_cancel" || name == "gen_session_free");
}

class EveryFunction : public ::testing::TestWithParam<size_t> {
 protected:
  const Kind& kind() const { return kinds()[GetParam()]; }

  /// A world in which the callback of this kind will call `function`.
  std::string run(World& world, const Function* function, bool self) {
    kind().prepare(world);
    world.restart_work();
    world.inside = [&] {
      if (function != nullptr) check_call(world, *function, false);
    };
    if (self) {
      // The call is on `work`; inside, the function gets that same session.
      world.inside = [&] {
        gen_session* const other = std::exchange(world.slot<gen_session>(), world.work);
        check_call(world, *function, true);
        if (world.slot<gen_session>() == nullptr) world.work = nullptr;
        world.slot<gen_session>() = other;
      };
    }
    world.armed = true;
    world.hits = 0;
    std::string gave = kind().trigger(world);
    world.armed = false;
    EXPECT_EQ(world.hits, 1) << "the callback was not called";
    return gave;
  }

  void check_call(World& world, const Function& function, bool self) {
    const std::optional<gen_status> status = function.call(world);
    if (!status.has_value()) return;
    EXPECT_LE(*status, GEN_OK);
    EXPECT_GE(*status, GEN_ERROR_INTERNAL);
    EXPECT_NE(*status, GEN_ERROR_INTERNAL) << world.error.message;
    if (reads_only(function.name) && (kind().busy & kEverything) == 0) return;
    if ((function.uses & kind().busy) != 0) {
      EXPECT_EQ(*status, GEN_ERROR_BUSY) << world.error.message;
    } else if (kind().busy == 0 && !self && (function.uses & kPool) == 0) {
      EXPECT_NE(*status, GEN_ERROR_BUSY) << world.error.message;
    }
  }
};

TEST(EveryFunctionList, HasAllSymbols) {
  std::set<std::string> listed;
  for (const Function& function : all_functions()) listed.insert(function.name);
  std::ifstream file(GEN_TEST_SOURCE_DIR "/tests/check/symbols.txt");
  std::set<std::string> exported;
  for (std::string line; std::getline(file, line);) exported.insert(line.substr(0, line.find('@')));
  EXPECT_EQ(listed, exported) << "tests/api/all_functions.inc and tests/check/symbols.txt";
  EXPECT_GT(exported.size(), 300U);
}

TEST_P(EveryFunction, MayBeCalledInCallbacks) {
  std::string expected;
  {
    World world(kind().model);
    expected = run(world, nullptr, false);
  }
  std::optional<World> world;
  for (const Function& function : all_functions()) {
    for (const bool self : {false, true}) {
      if (self && ((function.uses & kGeneration) == 0 || !kind().of_work)) continue;
      SCOPED_TRACE(std::string(kind().name) + ": " + function.name + (self ? " of itself" : ""));
      if (!world.has_value()) world.emplace(kind().model);
      const std::string gave = run(*world, &function, self);
      if (!changes_result(function.name, self)) {
        EXPECT_EQ(gave, expected);
      }
      if (HasFatalFailure()) return;
      // Where nothing was freed the next function finds what this one has left.
      if (function.ends || self) world.reset();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Callbacks, EveryFunction,
                         ::testing::Range(size_t{0}, kinds().size()),
                         [](const auto& of) { return std::string(kinds()[of.param].name); });

}  // namespace
