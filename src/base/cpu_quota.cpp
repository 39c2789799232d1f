// SPDX-License-Identifier: Apache-2.0
// Reads cgroup CPU quotas. A process may be limited by any group above its own, so every level up
// to the mount point is asked. Inside a container the path in /proc/self/cgroup may belong to the
// host; levels that do not exist here are passed over. See cpu_quota.h.
#include "base/cpu_quota.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string_view>

namespace gen {
namespace {

// Without stdio, whose buffer may find no memory: then there would seem to be no quota.
std::string read_small_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[4096];
  size_t size = 0;
  ssize_t got = 0;
  while (size < sizeof text && (got = ::read(file, text + size, sizeof text - size)) > 0) {
    size += static_cast<size_t>(got);
  }
  ::close(file);
  return {text, size};
}

double ratio(long long quota, long long period) {
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0.0;
}

// "max 100000" or "150000 100000".
double quota_v2(const std::string& dir) {
  long long quota = 0;
  long long period = 0;
  const std::string text = read_small_file(dir + "/cpu.max");
  return std::sscanf(text.c_str(), "%lld %lld", &quota, &period) == 2 ? ratio(quota, period) : 0.0;
}

// A quota of -1 means none.
double quota_v1(const std::string& dir) {
  long long quota = 0;
  long long period = 0;
  const std::string quota_text = read_small_file(dir + "/cpu.cfs_quota_us");
  const std::string period_text = read_small_file(dir + "/cpu.cfs_period_us");
  if (std::sscanf(quota_text.c_str(), "%lld", &quota) != 1) return 0.0;
  if (std::sscanf(period_text.c_str(), "%lld", &period) != 1) return 0.0;
  return ratio(quota, period);
}

bool lists_controller(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == wanted) return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

// The smallest quota of `group` and all groups above it under `mount`.
double tightest(const std::string& mount, std::string group, double (*read)(const std::string&)) {
  double best = 0.0;
  while (true) {
    if (group == "/") group.clear();
    const double quota = read(mount + group);
    if (quota > 0.0 && (best == 0.0 || quota < best)) best = quota;
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return best;
    group.resize(slash);
  }
}

}  // namespace

double cgroup_cpu_quota(const std::string& root) {
  const std::string groups = read_small_file(root + "/proc/self/cgroup");
  const std::string mount = root + "/sys/fs/cgroup";
  double best = 0.0;
  const auto take = [&best](double quota) {
    if (quota > 0.0 && (best == 0.0 || quota < best)) best = quota;
  };
  // Lines are "hierarchy:controllers:path"; hierarchy 0 with no controllers is version 2.
  std::string_view rest = groups;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : rest.size());
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) {
      take(tightest(mount, path, quota_v2));
      take(tightest(mount + "/unified", path, quota_v2));
    } else if (lists_controller(controllers, "cpu")) {
      take(tightest(mount + "/cpu", path, quota_v1));
    }
  }
  return best;
}

}  // namespace gen
