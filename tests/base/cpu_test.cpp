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

constexpr CpuLevel kAll[] = {CpuLevel::kScalar,     CpuLevel::kAvx2,       CpuLevel::kAvx512,
                             CpuLevel::kAvx512Vnni, CpuLevel::kAvx512Bf16, CpuLevel::kNeon};

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
  CpuLevel expected = CpuLevel::kScalar;
  if (all({"avx2", "fma", "f16c", "bmi1", "bmi2"})) expected = CpuLevel::kAvx2;
  if (expected == CpuLevel::kAvx2 &&
      all({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})) {
    expected = CpuLevel::kAvx512;
    if (all({"avx512_vnni"})) expected = CpuLevel::kAvx512Vnni;
    if (all({"avx512_vnni", "avx512_bf16"})) expected = CpuLevel::kAvx512Bf16;
  }
#if defined(GEN_WITHOUT_AVX512)
  expected = std::min(expected, CpuLevel::kAvx2);
#endif
  EXPECT_STREQ(cpu_level_name(detect_cpu_level()), cpu_level_name(expected));
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
  const CpuLevel detected = detect_cpu_level();
  const bool lower = intel && detected == CpuLevel::kAvx512Bf16;
  EXPECT_EQ(default_cpu_level(), lower ? CpuLevel::kAvx512Vnni : detected);
}

TEST_F(GenCpu, EveryNameIsTakenOrRefused) {
  const CpuLevel detected = detect_cpu_level();
  for (CpuLevel level : kAll) {
    set(cpu_level_name(level));
    auto chosen = chosen_cpu_level();
    if (cpu_level_runs(level, detected)) {
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      EXPECT_EQ(chosen.value(), level);
    } else {
      EXPECT_EQ(chosen.status().code(), Code::kInvalidArgument);
      EXPECT_NE(std::string(chosen.status().message()).find(cpu_level_name(level)),
                std::string::npos);
    }
  }
}

TEST_F(GenCpu, UnknownNamesAreRefusedByName) {
  for (const char* name : {"AVX2", "sse2", "avx2 ", "avx5120"}) {
    setenv("GEN_CPU", name, 1);
    auto chosen = chosen_cpu_level();
    ASSERT_FALSE(chosen.ok()) << name;
    EXPECT_EQ(chosen.status().code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(chosen.status().message()).find(name), std::string::npos);
  }
}

TEST_F(GenCpu, LevelsRunOnlyWhereTheirInstructionsAre) {
  for (CpuLevel level : kAll) {
    EXPECT_TRUE(cpu_level_runs(level, level));
    EXPECT_TRUE(cpu_level_runs(CpuLevel::kScalar, level));
    if (level != CpuLevel::kNeon) {
      EXPECT_FALSE(cpu_level_runs(CpuLevel::kNeon, level));
    }
  }
  EXPECT_TRUE(cpu_level_runs(CpuLevel::kAvx2, CpuLevel::kAvx512Bf16));
  EXPECT_FALSE(cpu_level_runs(CpuLevel::kAvx512Vnni, CpuLevel::kAvx512));
  EXPECT_FALSE(cpu_level_runs(CpuLevel::kAvx2, CpuLevel::kNeon));
}

}  // namespace
}  // namespace gen
