// SPDX-License-Identifier: Apache-2.0
// Proves that a saved session goes on with the same bits as one that never stopped, for every kind
// of cache; that a state which is damaged, foreign or does not fit changes nothing; that forks are
// equal and apart; and that every allocation and every file call may fail. This program counts
// through its own operator new and its own file calls.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <new>

#include "base/checksum.h"
#include "base/mapped_file.h"
#include "cache/sequence/compressed_cache.h"
#include "cache/sequence/paged_cache.h"
#include "engine/memory/host_memory.h"
#include "generate/fake_world.h"
#include "generate/said.h"
#include "support/failing_files.h"
#include "support/loaded_tiny.h"

namespace {

int64_t allocations = 0;
int64_t fails_at = -1;  // number of the allocation that fails, -1 for none

}  // namespace

// Kept out of line: inlined, gcc takes free() for the wrong partner of new.
[[gnu::noinline]] void* operator new(size_t size) {
  if (allocations++ == fails_at) throw std::bad_alloc();
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocations++ == fails_at ? nullptr : std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace gen::generate {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr int32_t kContext = 96;
const Tokens kPrompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8};

Status save_file(const Session& session, const std::string& path) {
  return session.save([&path](const cache::StateContents& contents) {
    return cache::save_state(cache::StateKind::kSession, contents, path);
  });
}

class SessionState : public testing::Test {
 protected:
  SessionState() {
    std::string pattern = (fs::temp_directory_path() / "session_state_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SessionState() override { fs::remove_all(folder_); }

  static test::TinyModelSpec spec(uint32_t seed) {
    test::TinyModelSpec made;
    made.context = kContext;
    made.seed = seed;
    return made;
  }
  static std::shared_ptr<const Generator> generator(const test::LoadedTiny& tiny,
                                                    const std::string& kind, int32_t block_size = 0,
                                                    int32_t context = 0) {
    GeneratorOptions options;
    options.kv_dtype = kind;
    options.max_seq_len = context;
    if (block_size > 0) {
      auto pool = cache::CachePool::create(kind, tiny.model().layer_shapes(), block_size, 1,
                                           engine::system_memory());
      EXPECT_TRUE(pool.ok());
      options.cache_factory = [pool = std::move(pool).value()](std::span<const cache::LayerShape>,
                                                               int32_t capacity) {
        return cache::make_paged_cache(pool, capacity);
      };
    }
    const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(), &tiny.model());
    auto made = Generator::create(model, nullptr, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }
  [[nodiscard]] size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  [[nodiscard]] std::string at(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
  test::LoadedTiny tiny_{test::TinyModel(spec(1))};
};

TEST_F(SessionState, GoesOnWithTheSameBits) {
  for (const cache::CacheKind& kind : cache::cache_kinds()) {
    for (const auto& [from, to] :
         {std::pair{0, 0}, std::pair{0, 16}, std::pair{7, 0}, std::pair{16, 5}}) {
      SCOPED_TRACE(testing::Message() << kind.name << " " << from << " " << to);
      const auto first = generator(tiny_, kind.name, from)->new_session().value();
      say(*first, kPrompt, 15);
      const Bytes state = state_of(*first);
      const auto second = generator(tiny_, kind.name, to)->new_session().value();
      ASSERT_TRUE(second->load(state).ok());
      EXPECT_EQ(second->length(), first->length());
      EXPECT_EQ(held(*second), held(*first));
      EXPECT_EQ(state_of(*second), state);
      EXPECT_EQ(say(*second, {}, 12), say(*first, {}, 12));
      // Cut into what was loaded, and grown again.
      ASSERT_TRUE(first->truncate(17).ok() && second->truncate(17).ok());
      EXPECT_EQ(say(*second, {1, 2, 3}, 9), say(*first, {1, 2, 3}, 9));
    }
  }
}

TEST_F(SessionState, ChunksThatArePooledGoOnToo) {
  GeneratorOptions options;
  options.cache_factory = [](std::span<const cache::LayerShape> shapes, int32_t capacity) {
    return cache::make_compressed_cache(shapes, capacity, 8, engine::system_memory());
  };
  const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(), &tiny_.model());
  const auto made = Generator::create(model, nullptr, options).value();
  const auto first = made->new_session().value();
  say(*first, kPrompt, 15);
  const auto second = made->new_session().value();
  ASSERT_TRUE(second->load(state_of(*first)).ok());
  EXPECT_EQ(state_of(*second), state_of(*first));
  EXPECT_EQ(say(*second, {}, 12), say(*first, {}, 12));
  const auto plain = generator(tiny_, "fp32")->new_session().value();
  EXPECT_EQ(plain->load(state_of(*first)).code(), Code::kInvalidArgument);
  EXPECT_EQ(plain->length(), 0);
}

TEST_F(SessionState, EmptyAndPendingSessions) {
  const auto made = generator(tiny_, "fp16");
  const auto empty = made->new_session().value();
  const auto loaded = made->new_session().value();
  ASSERT_TRUE(loaded->load(state_of(*empty)).ok());
  EXPECT_EQ(loaded->length(), 0);
  // One token, which nothing has evaluated yet.
  ASSERT_TRUE(loaded->append(ids(Tokens{5})).ok());
  const auto other = made->new_session().value();
  ASSERT_TRUE(other->load(state_of(*loaded)).ok());
  EXPECT_EQ(held(*other), Tokens{5});
  EXPECT_EQ(say(*other, {}, 5), say(*loaded, {}, 5));
}

TEST_F(SessionState, AStateThatIsNotOursChangesNothing) {
  const auto made = generator(tiny_, "q4");
  const auto session = made->new_session().value();
  say(*session, kPrompt, 5);
  const Bytes state = state_of(*session);
  const auto expect_refused = [](Session& target, std::span<const std::byte> bytes, Code code) {
    const Status status = target.load(bytes);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_EQ(target.length(), 0);
    EXPECT_EQ(target.cache().length(), 0);
  };
  const test::LoadedTiny stranger{test::TinyModel(spec(2))};
  expect_refused(*generator(stranger, "q4")->new_session().value(), state, Code::kInvalidArgument);
  expect_refused(*generator(tiny_, "q3")->new_session().value(), state, Code::kInvalidArgument);
  expect_refused(*generator(tiny_, "q4", 0, 20)->new_session().value(), state, Code::kContextFull);
  EXPECT_EQ(session->load(state).code(), Code::kState);
  EXPECT_EQ(session->length(), 24);

  const auto other = made->new_session().value();
  for (size_t i = 0; i < state.size(); i += 1 + i / 64) {
    Bytes bytes = state;
    bytes[i] ^= std::byte{0x20};
    expect_refused(*other, bytes, Code::kFormat);
    expect_refused(*other, std::span(state).first(i), Code::kFormat);
  }
  // Tokens and their numbers, under a checksum that is right: they come after the frame of 24 bytes
  // and the model's section of 16 and 48, behind 16 of their own.
  const size_t count_at = 24 + 16 + 48 + 16;
  for (const auto& [offset, value, code] :
       {std::tuple{size_t{0}, 1000, Code::kFormat}, std::tuple{size_t{0}, -1, Code::kFormat},
        std::tuple{size_t{4}, 22, Code::kFormat}, std::tuple{size_t{4}, 25, Code::kFormat},
        std::tuple{size_t{4}, 0, Code::kFormat}, std::tuple{size_t{8}, 50, Code::kFormat},
        std::tuple{size_t{12}, -1, Code::kFormat}}) {
    Bytes bytes = state;
    std::memcpy(bytes.data() + count_at + offset, &value, sizeof(value));
    const uint64_t sum = checksum(std::span(bytes).first(bytes.size() - 8));
    std::memcpy(bytes.data() + bytes.size() - 8, &sum, sizeof(sum));
    SCOPED_TRACE(testing::Message() << offset << " " << value);
    expect_refused(*other, bytes, code);
  }
  ASSERT_TRUE(other->load(state).ok());
  EXPECT_EQ(say(*other, {}, 5), say(*session, {}, 5));
}

TEST_F(SessionState, ModelsWithAStateOfTheirOwnCannot) {
  World world;
  world.model->stateful = true;
  const auto session = world.session();
  EXPECT_EQ(session
                ->save([](const cache::StateContents& contents) {
                  return cache::state_size(contents).status();
                })
                .code(),
            Code::kUnsupported);
  EXPECT_EQ(session->fork().status().code(), Code::kUnsupported);
}

TEST_F(SessionState, ForksAreEqualAndApart) {
  for (const int32_t block_size : {0, 16, 7}) {
    const auto made = generator(tiny_, "fp8", block_size);
    const auto parent = made->new_session().value();
    say(*parent, kPrompt, 10);
    const Bytes before = state_of(*parent);
    const auto child = parent->fork().value();
    EXPECT_EQ(child->length(), parent->length());
    EXPECT_EQ(state_of(*child), before);
    say(*child, {1, 2}, 8);
    EXPECT_EQ(state_of(*parent), before);
    const auto second = parent->fork().value();
    ASSERT_TRUE(parent->truncate(3).ok());
    ASSERT_TRUE(parent->append(ids(Tokens{7, 7, 7, 7, 7, 7, 7, 7, 7, 7})).ok());
    EXPECT_EQ(state_of(*second), before);
    const auto fresh = made->new_session().value();
    ASSERT_TRUE(fresh->load(before).ok());
    EXPECT_EQ(say(*second, {}, 8), say(*fresh, {}, 8));
  }
}

TEST_F(SessionState, AFileIsThereWholeOrNotAtAll) {
  const auto made = generator(tiny_, "q3", 16);
  const auto session = made->new_session().value();
  say(*session, kPrompt, 10);
  const Bytes state = state_of(*session);
  for (int64_t nth = 0;; ++nth) {
    test::file_calls = 0;
    test::file_call_that_fails = nth;
    const Status status = save_file(*session, at("a"));
    const bool reached = test::file_calls > nth;
    test::file_call_that_fails = -1;
    if (status.ok()) {
      EXPECT_GT(nth, 3);  // open, write, fsync, close, rename
      if (!reached) break;
    } else {
      EXPECT_EQ(status.code(), Code::kIo);
      EXPECT_NE(std::string(status.message()).find(at("a")), std::string::npos);
      EXPECT_EQ(files(), 0u) << nth;
    }
    ASSERT_LT(nth, 100);
  }
  EXPECT_EQ(files(), 1u);
  const auto file = MappedFile::open(at("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(std::ranges::equal(file.value().bytes(), state));
  EXPECT_EQ(state_of(*session), state);
}

TEST_F(SessionState, EveryAllocationMayFail) {
  const auto made = generator(tiny_, "q4", 5);
  const auto session = made->new_session().value();
  say(*session, kPrompt, 10);
  const Bytes state = state_of(*session);
  const auto attempt = [](auto&& body) -> Status {  // as the border to C does
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return {Code::kOutOfMemory, "thrown"};
    }
  };
  // Runs `body` with each allocation failing in turn, until none does.
  const auto for_each_failure = [&attempt](auto&& body, auto&& after) {
    for (int64_t nth = 0;; ++nth) {
      ASSERT_LT(nth, 1000);
      allocations = 0;
      fails_at = nth;
      const Status status = attempt(body);
      const bool reached = allocations > nth;
      fails_at = -1;
      if (!reached) {
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_GT(nth, 3);
        return;
      }
      after(status);
    }
  };
  const std::string path = at("a");
  for_each_failure([&] { return save_file(*session, path); },
                   [&](const Status& status) {
                     EXPECT_EQ(files(), status.ok() ? 1u : 0u);
                     fs::remove(path);
                     EXPECT_EQ(state_of(*session), state);
                   });
  auto target = made->new_session().value();
  for_each_failure([&] { return target->load(state); },
                   [&](const Status& status) {
                     EXPECT_EQ(target->length(), status.ok() ? session->length() : 0);
                     EXPECT_TRUE(target->reset().ok());
                     EXPECT_TRUE(target->load(state).ok());
                     EXPECT_EQ(state_of(*target), state);
                     EXPECT_TRUE(target->reset().ok());
                   });
  for_each_failure([&] { return session->fork().status(); },
                   [&](const Status&) { EXPECT_EQ(state_of(*session), state); });
}

}  // namespace
}  // namespace gen::generate
