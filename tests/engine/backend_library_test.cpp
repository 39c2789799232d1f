// SPDX-License-Identifier: Apache-2.0
// An engine from a library of its own. What was loaded stays for the process, so each case is a
// child of its own.
#include "engine/backend/backend_library.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"
#include "engine/backend/registry.h"
#include "support/cpu_engine.h"

namespace gen::engine {
namespace {

const EngineRow& row() { return *engine_row("cuda").value(); }

bool says(const Status& status, const char* part) {
  return status.code() == Code::kUnsupported && std::strstr(status.message(), part) != nullptr;
}

/// Of an append that is enqueued on some stream of a device.
Status append_on(int32_t device) {
  int stream = 0;
  return append_on_device(device, {}, &stream);
}

/// Ends the process: 0 where the reason contains `part`, no engine is made and nothing enqueued.
[[noreturn]] void expect_reason(const std::string& folder, const char* part) {
  ::setenv("GEN_BACKEND_PATH", folder.c_str(), 1);
  const char* reason = row().why_not();
  std::fprintf(stderr, "%s\n", reason != nullptr ? reason : "available");
  ::_exit(reason != nullptr && std::strstr(reason, part) != nullptr && row().device_count() == 0 &&
                  says(create_engine("cuda", {}).status(), part) && says(append_on(0), part)
              ? 0
              : 1);
}

[[noreturn]] void expect_works() {
  ::setenv("GEN_BACKEND_PATH", GEN_FAKE_FOLDER "/kWorks", 1);
  set_log_sink(
      [](void*, int32_t level, const char* line) { std::fprintf(stderr, "%d: %s\n", level, line); },
      nullptr);
  set_log_level(LogLevel::kInfo);
  EngineOptions options;
  options.pool = ThreadPool::create(1).value();
  const auto made = create_engine("cuda", options);
  if (!made.ok()) std::fprintf(stderr, "%s\n", made.status().message());
  ::_exit(made.ok() && row().why_not() == nullptr && row().device_count() == 3 &&
                  row().describe(2).value() == "{\"name\":\"fake 2\"}" &&
                  made.value()->memory().allocate(100).ok() &&
                  says(append_on(2), "device 2 has no kernels") &&
                  says(append_on(3), "device 3 of backend cuda, which has 3")
              ? 0
              : 1);
}

using ::testing::ExitedWithCode;

TEST(BackendLibraryDeathTest, SaysWhyItIsNotThere) {
  EXPECT_EXIT(expect_reason("/nowhere", "no libgenerate-cuda.so in /nowhere"), ExitedWithCode(0),
              "");
  EXPECT_EXIT(expect_reason(GEN_FAKE_FOLDER "/kOtherBuild", "backend of build \"0 another\""),
              ExitedWithCode(0), "");
  EXPECT_EXIT(expect_reason(GEN_FAKE_FOLDER "/kSmall", "backend of build \"unknown\""),
              ExitedWithCode(0), "");
  EXPECT_EXIT(expect_reason(GEN_FAKE_FOLDER "/kNoFunction", "no engine in it"), ExitedWithCode(0),
              "");
  EXPECT_EXIT(expect_reason(GEN_FAKE_FOLDER "/kRefuses", "it is a quiet day"), ExitedWithCode(0),
              "");
}

/// The folder of the process is nobody's choice.
TEST(BackendLibraryDeathTest, AnEmptyPathIsNone) {
  EXPECT_EXIT(
      {
        if (::chdir(GEN_FAKE_FOLDER "/kWorks") != 0) ::_exit(2);
        expect_reason("", "no libgenerate-cuda.so in /");
      },
      ExitedWithCode(0), "");
}

TEST(BackendLibraryDeathTest, MakesAnEngineAndLogsWhereWeDo) {
  EXPECT_EXIT(expect_works(), ExitedWithCode(0), "3: 100 % fake");
}

}  // namespace
}  // namespace gen::engine
