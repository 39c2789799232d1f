// SPDX-License-Identifier: Apache-2.0
// Proves that the detected level agrees with what the compiler's own detection and the kernel say,
// and that GEN_CPU lowers it, or is refused by name.
#include "base/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <set>
#include <string>

namespace gen {
namespace {

class GenCpu : public ::testing::Test {
 protected:
  GenCpu() {
    if (const char* value = std::getenv("GEN_CPU")) before_ = value;
  }
  ~GenCpu() override { set(before_); }
  static void set(const std::string& value) {
    if (value.empty()) {
      unsetenv("GEN_CPU");
    } else {
      setenv("GEN_CPU", value.c_str(), 1);
    }
  }

 private:
  std::string before_;
};

// What GEN_CPU's names mean, by what kernels for them may use.
constexpr NamedCpuLevel kAll[] = {
    {"scalar", {}},
    {"avx2", {kCpuAvx2}},
    {"avx512", {kCpuAvx2 | kCpuAvx512}},
    {"avx512_vnni", {kCpuAvx2 | kCpuAvx512 | kCpuVnni}},
    {"avx512_bf16", {kCpuAvx2 | kCpuAvx512 | kCpuVnni | kCpuBf16}},
    {"neon", {kCpuNeon}},
};
// A unit that no level with a name has.
constexpr uint32_t kPretended = 1U << 31;

// Linux lists a feature only if it also saves the registers, so the two must agree.
TEST_F(GenCpu, AgreesWithTheKernelsList) {
  std::ifstream info("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) flags.insert(word);
    break;
  }
  // An emulator of another architecture shows the list of the machine that it runs on.
  if (flags.empty() || detect_cpu_level() == CpuLevel::kNeon) {
    GTEST_SKIP() << "/proc/cpuinfo has no x86 flags, or not those of this processor";
  }
  const auto all = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (flags.count(name) == 0) return false;
    }
    return true;
  };
  uint32_t expected = 0;
  if (all({"avx2", "fma", "f16c", "bmi1", "bmi2"})) {
    expected = kCpuAvx2;
#if !defined(GEN_WITHOUT_AVX512)
    if (all({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})) {
      expected |= kCpuAvx512;
      if (all({"avx512_vnni"})) expected |= kCpuVnni;
      if (all({"avx512_bf16"})) expected |= kCpuBf16;
    }
#endif
  }
  EXPECT_EQ(detect_cpu_level().features, expected);
}

TEST_F(GenCpu, UnsetOrEmptyMeansTheDefault) {
  unsetenv("GEN_CPU");
  EXPECT_EQ(chosen_cpu_level().value(), default_cpu_level());
  setenv("GEN_CPU", "", 1);
  EXPECT_EQ(chosen_cpu_level().value(), default_cpu_level());
}

TEST_F(GenCpu, TheDefaultIsDetectedButForIntelsBf16) {
  std::ifstream info("/proc/cpuinfo");
  bool intel = false;
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("vendor_id", 0) == 0) intel = line.find("GenuineIntel") != std::string::npos;
  }
  CpuLevel expected = detect_cpu_level();
  if (intel) expected.features &= ~kCpuBf16;
  EXPECT_EQ(default_cpu_level().features, expected.features);
}

TEST_F(GenCpu, EveryNameIsTakenOrRefused) {
  const CpuLevel detected = detect_cpu_level();
  for (const auto& [name, level] : kAll) {
    set(name);
    auto chosen = chosen_cpu_level();
    if (cpu_level_runs(level, detected)) {
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      EXPECT_EQ(chosen.value().features, level.features) << name;
    } else {
      EXPECT_EQ(chosen.status().code(), Code::kInvalidArgument);
      EXPECT_NE(std::string(chosen.status().message()).find(name), std::string::npos);
    }
  }
}

TEST_F(GenCpu, NamesAreOfTheSetsTheyStandFor) {
  for (const auto& [name, level] : kAll) {
    EXPECT_STREQ(cpu_level_name(level), name);
    EXPECT_STREQ(cpu_level_name({level.features | kPretended}), name);
  }
  EXPECT_STREQ(cpu_level_name({kCpuAvx2 | kCpuAvx512 | kCpuBf16}), "avx512");
}

TEST_F(GenCpu, UnknownNamesAreRefusedByName) {
  for (const char* name : {"AVX2", "sse2", "avx2 ", "avx5120"}) {
    setenv("GEN_CPU", name, 1);
    auto chosen = chosen_cpu_level();
    ASSERT_FALSE(chosen.ok()) << name;
    EXPECT_EQ(chosen.status().code(), Code::kInvalidArgument);
    const std::string message = chosen.status().message();
    EXPECT_NE(message.find(name), std::string::npos);
    EXPECT_NE(message.find("scalar, avx2, avx512, avx512_vnni, avx512_bf16, neon"),
              std::string::npos);
  }
}

TEST_F(GenCpu, LevelsRunOnlyWhereTheirInstructionsAre) {
  for (const auto& [name, level] : kAll) {
    EXPECT_TRUE(cpu_level_runs(level, level)) << name;
    EXPECT_TRUE(cpu_level_runs(CpuLevel::kScalar, level)) << name;
    EXPECT_EQ(cpu_level_runs(CpuLevel::kNeon, level), level == CpuLevel::kNeon) << name;
    EXPECT_TRUE(cpu_level_runs(level, {level.features | kPretended})) << name;
    EXPECT_FALSE(cpu_level_runs({level.features | kPretended}, level)) << name;
  }
  EXPECT_TRUE(cpu_level_runs(CpuLevel::kAvx2, CpuLevel::kAvx512Bf16));
  EXPECT_FALSE(cpu_level_runs(CpuLevel::kAvx512Vnni, CpuLevel::kAvx512));
  EXPECT_FALSE(cpu_level_runs(CpuLevel::kAvx2, CpuLevel::kNeon));
}

}  // namespace
}  // namespace gen
