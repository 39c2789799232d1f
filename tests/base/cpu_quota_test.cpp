// SPDX-License-Identifier: Apache-2.0
// Proves that quotas are found in both cgroup versions, at any level, and that nonsense is ignored.
#include "base/cpu_quota.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gen {
namespace {

class CpuQuota : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) / ("cpu_quota." + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    const std::filesystem::path full = root_.string() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  double quota() const { return cgroup_cpu_quota(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(CpuQuota, NoneWithoutFiles) { EXPECT_EQ(quota(), 0.0); }

TEST_F(CpuQuota, Version2) {
  put("/proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(quota(), 0.0);
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0.0);
  put("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5) << "a parent may be tighter";
}

TEST_F(CpuQuota, Version2InsideANamespace) {
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4.0);
}

TEST_F(CpuQuota, PathOfTheHostFallsBackToTheMount) {
  put("/proc/self/cgroup", "0::/docker/0123456789\n");
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST_F(CpuQuota, Version1) {
  put("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n3:cpuset:/y\n");
  put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0.0);
  put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(quota(), 2.5);
}

TEST_F(CpuQuota, HybridTakesTheTighter) {
  put("/proc/self/cgroup", "1:cpu:/\n0::/\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  put("/sys/fs/cgroup/unified/cpu.max", "100000 100000");
  EXPECT_EQ(quota(), 1.0);
}

TEST_F(CpuQuota, NonsenseIsIgnored) {
  put("/proc/self/cgroup", "\n0\n0:\n:::\n0::/\n");
  for (const char* text : {"", "x y", "100000", "100000 0", "-5 100000", "0 0"}) {
    put("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(quota(), 0.0) << text;
  }
}

}  // namespace
}  // namespace gen
