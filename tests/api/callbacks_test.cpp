// SPDX-License-Identifier: Apache-2.0
// Calls every public function from inside every kind of callback. What the functions on the objects
// that the callback belongs to answer is the table of generate.h; nothing may wait for itself, what
// is freed goes after the callback, and the call around it gives what it gives without all that.
// Arguments are made up by their types, so that a new function needs no more than its name in
// all_functions.inc, and is missed if that lacks it.
#include <fstream>
#include <set>

#include "base/log.h"
#include "callbacks_world.h"
#include "support/sanitized.h"

namespace {

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
  // The others have a generator of their own, over the same model.
  if (std::is_same_v<Bare, gen_model> || std::is_same_v<Bare, gen_speculative> ||
      std::is_same_v<Bare, gen_eagle> || std::is_same_v<Bare, gen_draft>) {
    return kModel;
  }
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
              text == "gen_gpu_allocator_release" || (text.ends_with("_free") && std::is_void_v<R>);
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
  if (name == "gen_model_importance") {
    return [](World& w) -> std::optional<gen_status> {
      return gen_model_importance(w.slot<gen_model>(), w.ints.data(), 1, 0, nullptr,
                                  (w.folder + "/sums").c_str(), nullptr, nullptr, &w.error);
    };
  }
  if (name == "gen_model_forward_batch") {
    return [](World& w) -> std::optional<gen_status> {
      return gen_model_forward_batch(w.slot<gen_model>(), w.ints.data(), nullptr, nullptr, 1,
                                     &w.slot<kv_cache>(), 1, w.floats.data(), w.floats.size(),
                                     &w.error);
    };
  }
  if (name == "gen_model_forward_hidden") {
    return [](World& w) -> std::optional<gen_status> {
      const int32_t layer = 0;
      return gen_model_forward_hidden(w.slot<gen_model>(), w.ints.data(), 1, w.slot<kv_cache>(),
                                      &layer, 1, w.floats.data(), w.floats.size(), &w.error);
    };
  }
  if (name == "gen_model_forward_profiled") {
    return [](World& w) -> std::optional<gen_status> {
      return gen_model_forward_profiled(w.slot<gen_model>(), w.ints.data(), nullptr, nullptr, 1,
                                        &w.slot<kv_cache>(), 1, w.floats.data(), w.floats.size(),
                                        w.slot<gen_profile>(), &w.error);
    };
  }
  if (name == "gen_chat_session_open_stream") {
    return [](World& w) -> std::optional<gen_status> {
      gen_stream* stream = nullptr;
      const gen_status status = gen_chat_session_open_stream(
          w.slot<gen_chat_session>(), "A", 1, w.slot<gen_sampling>(), &stream, &w.error);
      gen_stream_close(stream);  // the conversation is in use as long as it is open
      return status;
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
  uint32_t busy;                               // what functions that use it answer
  std::function<void(World&)> prepare;         // switches the callback on
  std::function<std::string(World&)> trigger;  // what the call around it gives
  bool of_work = true;                         // the call is one on World::work
};

std::string text_of(gen_result* result, gen_status status) {
  std::string all = std::to_string(status) + ":";
  size_t n = 0;
  const int32_t* tokens = gen_result_tokens(result, &n);
  for (size_t i = 0; i < n; ++i) all += " " + std::to_string(tokens[i]);
  gen_result_free(result);
  return all;
}

std::string generate(World& world, gen_token_callback callback,
                     gen_logits_callback edit = nullptr) {
  gen_result* result = nullptr;
  gen_sampling* sampling = nullptr;
  check(gen_sampling_new(&sampling, &world.error), world.error);
  check(gen_sampling_set_temperature(sampling, 0, &world.error), world.error);
  check(gen_sampling_set_max_new_tokens(sampling, 3, &world.error), world.error);
  check(gen_sampling_set_logits_callback(sampling, edit, &world, &world.error), world.error);
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
    static_cast<void>(gen_stream_poll(world.slot<gen_stream>(), &token, &state, &world.error));
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
  const gen_status status =
      gen_model_load(world.path.c_str(), world.slot<gen_model_options>(), &model, &world.error);
  gen_model_free(model);
  gen_model_options_free(options);
  return status_of(status);
}

std::string quantise(World& world) {
  return status_of(gen_model_quantize_with(world.path.c_str(), (world.folder + "/q8").c_str(),
                                           "Q8_0", world.slot<gen_quantize_options>(), progress,
                                           &world, &world.error));
}

std::string importance(World& world) {
  const int32_t token = 1;
  return status_of(gen_model_importance(world.slot<gen_model>(), &token, 1, 0, nullptr,
                                        (world.folder + "/sums").c_str(), progress, &world,
                                        &world.error));
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
      {"logits", M::kFile, 0, nothing, [](World& w) { return generate(w, nullptr, logits); }},
      {"batch", M::kFile, 0, nothing, batch, false},
      {"load_progress", M::kFile, 0, nothing, load_model, false},
      {"quantise_progress", M::kFile, 0, nothing, quantise, false},
      {"importance_progress", M::kFile, 0, nothing, importance, false},
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
  static const std::set<std::string> names = {
      "gen_model_describe", "gen_model_metadata_value", "gen_chat_encode",
      "gen_chat_format",    "kv_cache_tensor_new",      "gen_options_set_speculative_draft"};
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
    if (function.name.starts_with("gen_speculative_") && world.slot<gen_speculative>() == nullptr) {
      return;  // a model with a state has none
    }
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
  size_t number = GetParam();
  for (const Function& function : all_functions()) {
    // Under a sanitizer a fifth of them in each kind of callback, another one in the next.
    if (gen::test::kSanitized && ++number % 5 != 0) continue;
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

INSTANTIATE_TEST_SUITE_P(Callbacks, EveryFunction, ::testing::Range(size_t{0}, kinds().size()),
                         [](const auto& of) { return std::string(kinds()[of.param].name); });

}  // namespace
