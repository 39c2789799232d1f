// SPDX-License-Identifier: Apache-2.0
// Proves who waits for whom where languages are made: equal ones are made once, short ones not
// behind long ones, none for a client that has left. What makes them here begins and ends when it
// is told to, so that nothing depends on time.
#include "languages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/sanitized.h"

namespace server {
namespace {

/// Makes languages by their text: each once it is let, or until it is stopped.
class Maker {
 public:
  Languages::Make make() {
    return [this](const Language& language, const std::stop_token& stop) -> Languages::Made {
      std::unique_lock lock(mutex_);
      ++begun_[language.text];
      changed_.notify_all();
      // A stop tells nobody that it is there; whoever asks again and again sees it.
      while (!let_.contains(language.text) && !stop.stop_requested()) {
        changed_.wait_for(lock, std::chrono::milliseconds(1));
      }
      if (stop.stop_requested()) {
        ++stopped_;
        changed_.notify_all();
        throw server_error(503, "stopped");
      }
      if (language.text.starts_with("wrong")) throw bad_request("regex", "is wrong");
      if (language.text.starts_with("huge")) throw std::bad_alloc();
      return std::make_shared<const Automaton>(Matcher(), bytes_);
    };
  }
  void let(const std::string& text) {
    const std::lock_guard lock(mutex_);
    let_.insert(text);
    changed_.notify_all();
  }
  void wait_until_begun(const std::string& text) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.contains(text); });
  }
  void wait_until_stopped(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ == n; });
  }
  int begun(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return begun_[text];
  }
  /// Of what is made from now on.
  void set_bytes(size_t bytes) { bytes_ = bytes; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> begun_;
  std::set<std::string> let_;
  int stopped_ = 0;
  std::atomic<size_t> bytes_{1};
};

/// A client that wants a language, in a thread of its own.
class Client {
 public:
  Client(Languages& languages, Language language)
      : thread_([this, &languages, language = std::move(language)] {
          try {
            made_ = languages.get(language, [this] {
              waits_ = true;
              return !leaves_;
            });
          } catch (const ApiError& error) {
            status_ = error.status;
          }
        }) {}
  ~Client() {
    if (thread_.joinable()) thread_.join();
  }
  void wait_until_it_waits() const {
    while (!waits_) std::this_thread::yield();
  }
  void leave() { leaves_ = true; }
  /// What it got; null if it left or was refused.
  Languages::Made made() {
    if (thread_.joinable()) thread_.join();
    return made_;
  }
  /// Of the refusal; 0 for none.
  int status() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  std::atomic<bool> waits_{false};
  std::atomic<bool> leaves_{false};
  Languages::Made made_;
  int status_ = 0;
  std::thread thread_;
};

Language regex(const std::string& text) { return {"regex", text, {}}; }
/// Too long to go past others.
std::string long_text(char c) { return std::string(Languages::kShortText + 1, c); }

Languages::Made made_now(Languages& languages, Maker& maker, const Language& language) {
  maker.let(language.text);
  return languages.get(language, [] { return true; });
}

TEST(Languages, EqualOnesAreMadeOnce) {
  Maker maker;
  Languages languages(maker.make(), 2, 1000);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(std::make_unique<Client>(languages, regex("a")));
  for (const auto& client : clients) client->wait_until_it_waits();
  maker.let("a");
  for (const auto& client : clients) {
    EXPECT_NE(client->made(), nullptr);
    EXPECT_EQ(client->made(), clients[0]->made());
  }
  EXPECT_EQ(maker.begun("a"), 1);
  EXPECT_EQ(languages.counts().made, 1U);
}

TEST(Languages, DifferentOnesAreNotTakenForEqual) {
  Maker maker;
  Languages languages(maker.make(), 2, 1000);
  const Language all[] = {{"regex", "a", {}},
                          {"lark", "a", {}},
                          {"regex", "a", {{"k", "1"}}},
                          {"regex", "a", {{"k", "2"}}},
                          {"regex", "a", {{"k1", ""}}},
                          {"regex", "1a", {{"k", ""}}},
                          {"regex", "", {{"k", "1"}, {"", "a"}}},
                          {"regex", std::string("a\0", 2), {}},
                          {"regex", "1:a", {}}};
  std::set<Languages::Made> made;
  for (const Language& one : all) made.insert(made_now(languages, maker, one));
  EXPECT_EQ(made.size(), std::size(all));
  for (const Language& one : all) {
    EXPECT_TRUE(made.contains(languages.get(one, [] { return true; })));
  }
  EXPECT_EQ(languages.counts().made, std::size(all));
}

TEST(Languages, DifferentOnesDoNotWaitBehindALongOne) {
  Maker maker;
  Languages languages(maker.make(), 2, 1000);
  Client slow(languages, regex(long_text('a')));
  maker.wait_until_begun(long_text('a'));
  EXPECT_NE(made_now(languages, maker, regex(long_text('b'))), nullptr);
  EXPECT_EQ(languages.counts().making, 1U);
  maker.let(long_text('a'));
  EXPECT_NE(slow.made(), nullptr);
}

TEST(Languages, ShortOnesGoPastLongOnes) {
  Maker maker;
  Languages languages(maker.make(), 2, 1000);
  std::vector<std::unique_ptr<Client>> slow;
  for (const char c : {'a', 'b', 'c', 'd'}) {
    slow.push_back(std::make_unique<Client>(languages, regex(long_text(c))));
    if (c < 'c') maker.wait_until_begun(long_text(c));
    slow.back()->wait_until_it_waits();
  }
  EXPECT_NE(made_now(languages, maker, regex("short")), nullptr);
  EXPECT_EQ(languages.counts().making, 2U);
  EXPECT_EQ(languages.counts().waiting, 2U);
  // The others in the order they came, never more than two at once.
  maker.let(long_text('b'));
  maker.wait_until_begun(long_text('c'));
  EXPECT_EQ(maker.begun(long_text('d')), 0);
  for (const char c : {'a', 'c', 'd'}) maker.let(long_text(c));
  for (const auto& client : slow) EXPECT_NE(client->made(), nullptr);
}

TEST(Languages, WhoLeavesFreesTheirMaker) {
  Maker maker;
  Languages languages(maker.make(), 1, 1000);
  Client first(languages, regex(long_text('a')));
  Client second(languages, regex(long_text('a')));
  // Without this the one maker could take the other language first.
  maker.wait_until_begun(long_text('a'));
  Client waiting(languages, regex(long_text('b')));
  for (Client* client : {&first, &second, &waiting}) client->wait_until_it_waits();
  // The other one still waits for it.
  first.leave();
  EXPECT_EQ(first.made(), nullptr);
  EXPECT_EQ(languages.counts().given_up, 0U);
  // What no thread has begun is never begun.
  waiting.leave();
  EXPECT_EQ(waiting.made(), nullptr);
  EXPECT_EQ(languages.counts().waiting, 0U);
  second.leave();
  EXPECT_EQ(second.made(), nullptr);
  maker.wait_until_stopped(1);
  EXPECT_EQ(languages.counts().given_up, 2U);
  EXPECT_NE(made_now(languages, maker, regex(long_text('c'))), nullptr);
  EXPECT_EQ(maker.begun(long_text('b')), 0);
  // Who comes now does not share in what was given up.
  EXPECT_NE(made_now(languages, maker, regex(long_text('a'))), nullptr);
  EXPECT_EQ(maker.begun(long_text('a')), 2);
  EXPECT_EQ(languages.counts().made, 2U);
}

TEST(Languages, AFailureIsToldToAllAndNotKept) {
  Maker maker;
  Languages languages(maker.make(), 1, 1000);
  Client first(languages, regex("wrong"));
  Client second(languages, regex("wrong"));
  first.wait_until_it_waits();
  second.wait_until_it_waits();
  maker.let("wrong");
  EXPECT_EQ(first.status(), 400);
  EXPECT_EQ(second.status(), 400);
  EXPECT_EQ(maker.begun("wrong"), 1);
  EXPECT_THROW(languages.get(regex("wrong"), [] { return true; }), ApiError);
  EXPECT_EQ(maker.begun("wrong"), 2);
}

TEST(Languages, MemoryThatIsNotThereIsToldToAll) {
  Maker maker;
  Languages languages(maker.make(), 1, 1000);
  Client first(languages, regex("huge"));
  Client second(languages, regex("huge"));
  first.wait_until_it_waits();
  second.wait_until_it_waits();
  maker.let("huge");
  EXPECT_EQ(first.status(), 503);
  EXPECT_EQ(second.status(), 503);
  EXPECT_NE(made_now(languages, maker, regex("a")), nullptr);
}

TEST(Languages, AreKeptWithinTheirBytes) {
  Maker maker;
  Languages languages(maker.make(), 1, 1000);
  maker.set_bytes(400);
  for (const char* text : {"a", "b", "a", "c", "a", "b"}) made_now(languages, maker, regex(text));
  // "c" took the place of "b", which had not been used as lately as "a".
  EXPECT_EQ(maker.begun("a"), 1);
  EXPECT_EQ(maker.begun("b"), 2);
  // What is larger than all is not kept, but shared while somebody has it.
  maker.set_bytes(2000);
  auto used = made_now(languages, maker, regex("large"));
  EXPECT_EQ(made_now(languages, maker, regex("large")), used);
  EXPECT_EQ(maker.begun("large"), 1);
  used.reset();
  made_now(languages, maker, regex("large"));
  EXPECT_EQ(maker.begun("large"), 2);
}

TEST(Languages, StoppingTellsEverybody) {
  Maker maker;
  Languages languages(maker.make(), 1, 1000);
  Client made(languages, regex(long_text('a')));
  maker.wait_until_begun(long_text('a'));
  Client waiting(languages, regex(long_text('b')));
  waiting.wait_until_it_waits();
  languages.stop();
  EXPECT_EQ(made.status(), 503);
  EXPECT_EQ(waiting.status(), 503);
  EXPECT_THROW(languages.get(regex("c"), [] { return true; }), ApiError);
  maker.wait_until_stopped(1);
  EXPECT_EQ(maker.begun(long_text('b')), 0);
  EXPECT_EQ(languages.counts().made, 0U);
}

TEST(Languages, TooFewThreadsAreAnError) {
  if (gen::test::kSanitized) GTEST_SKIP() << "a sanitizer needs more memory than that";
  Maker maker;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  // Each thread has megabytes of stack.
  const rlimit little = {std::min(before.rlim_max, rlim_t{2} << 30U), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  const size_t much = size_t{4} << 30U;
  void* const room = ::mmap(nullptr, much, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool limited = room == MAP_FAILED;
  if (limited) {
    EXPECT_ANY_THROW(Languages(maker.make(), 100000, 0));
  } else {
    ::munmap(room, much);
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  if (!limited) GTEST_SKIP() << "the limit has no effect, as in emulators";
}

}  // namespace
}  // namespace server
